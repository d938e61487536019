//! Answers to cards, by their buttons and by replies.

use std::sync::Arc;

use gyrus_contract::{Answer, Principal};
use gyrus_kernel::{
    ApprovalCard,
    approvals::{self, AnswerMismatch, ApprovalError, VoidAnswer},
};
use gyrus_runtime::blocking;

use super::decision::{JobDecision, nothing, say};
use crate::{
    cards,
    conversation::ReplyTarget,
    following::{settle, void_in_words},
    messenger::{ChatPlace, IncomingMessage, PressedButton},
    record::{ChatChange, ChatRecord, MessageSubject, Numbers, ShownCard},
    shared::AccountInner,
};

/// Applies a button's answer to exactly the card above it.
pub(super) async fn answer(
    shared: &Arc<AccountInner>,
    press: &PressedButton,
    number: u64,
    mark: Option<&str>,
    given: Answer,
) -> (String, JobDecision) {
    let card = shared.with(|record| record.cards.get(&number).cloned());
    let place = ChatPlace {
        chat: press.chat.clone(),
        message: press.message.clone(),
    };
    let card = card.filter(|card| {
        let is_here = shared.with(|record| {
            let sent = record.sent(card.message);
            record.present(&card.chat) == place.chat && sent.is_none_or(|sent| *sent == place)
        });
        is_here && mark == Some(cards::mark(&card.card.digest).as_str())
    });
    let Some(card) = card else {
        return ("This card is not known any more.".to_owned(), nothing());
    };
    let principal = shared.principal(&press.person);
    let approves = given.is_yes();
    let said = give(shared, &card, principal.clone(), move |_| Ok(given)).await;
    let own = format!("by {principal}");
    let words = match said {
        Ok(()) if approves => format!("approved {own}"),
        Ok(()) => format!("denied {own}"),
        Err(GivenInVain::Void(words)) => words,
        Err(GivenInVain::Failed(words)) => return (words, nothing()),
    };
    let shown = words.clone();
    let shared = Arc::clone(shared);
    let decision = move |record: &ChatRecord, numbers: &mut Numbers| {
        let mut changes = Vec::new();
        if record.sent(card.message).is_none() {
            // It arrived after all.
            changes.push(ChatChange::Sent {
                number: card.message,
                place,
                about: MessageSubject::Card(number),
            });
        }
        changes.extend(settle(&shared, record, numbers, number, &words));
        changes
    };
    (shown, Box::new(decision))
}

enum GivenInVain {
    /// The card needs no answer any more, for this reason.
    Void(String),
    /// The answer could not be given, for this reason.
    Failed(String),
}

async fn give(
    shared: &Arc<AccountInner>,
    card: &ShownCard,
    by: Principal,
    answer: impl FnOnce(&ApprovalCard) -> Result<Answer, VoidAnswer> + Send + 'static,
) -> Result<(), GivenInVain> {
    let (shared, card) = (Arc::clone(shared), card.clone());
    blocking(move || {
        let store = shared.gateway.store();
        let answered = approvals::find(store, &card.card).and_then(|open| {
            let answer = answer(&open.card)?;
            approvals::answer(store, &open, by, answer)
        });
        answered.map_err(|error| match error {
            ApprovalError::Void(VoidAnswer::Mismatch(mismatch)) => {
                GivenInVain::Failed(format!("{mismatch}: {}", buttons_or_words(mismatch)))
            }
            ApprovalError::Void(void) => GivenInVain::Void(void_in_words(void)),
            error => GivenInVain::Failed(gyrus_net::causes(&error)),
        })
    })
    .await
}

/// Returns the next step, as buttons or words, after an answer that a card does not accept.
fn buttons_or_words(mismatch: AnswerMismatch) -> &'static str {
    match mismatch {
        AnswerMismatch::UnaskedWords => {
            "press one of its buttons. To deny it and say what to do instead, reply `no: …` to it."
        }
        mismatch => mismatch.hint(),
    }
}

/// Returns the reason in a reply that denies a card's request: `no: not there`.
fn denial(card: &ApprovalCard, words: &str) -> Option<String> {
    let (no, reason) = words.trim().split_once([':', ','])?;
    let is_no = ["no", "nein", "deny", "reject"].contains(&no.trim().to_lowercase().as_str());
    (is_no && !card.question).then(|| reason.trim().to_owned())
}

pub(super) async fn answer_in_words(
    shared: &Arc<AccountInner>,
    message: &IncomingMessage,
    number: u64,
    words: String,
) -> JobDecision {
    let Some(card) = shared.with(|record| record.cards.get(&number).cloned()) else {
        return say(
            shared,
            message,
            "This card is not known any more.".to_owned(),
        );
    };
    let principal = shared.principal(&message.person);
    let own = format!("answered by {principal}");
    let reply = |card: &ApprovalCard| match denial(card, &words) {
        Some(reason) => Ok(Answer::Deny {
            reason: Some(reason),
        }),
        None => approvals::reply(card, words),
    };
    let said = match give(shared, &card, principal, reply).await {
        Ok(()) => own,
        Err(GivenInVain::Void(words)) => {
            let (shared, speaking) = (Arc::clone(shared), ReplyTarget::to(message));
            return Box::new(move |record, numbers| {
                let mut changes = settle(&shared, record, numbers, number, &words);
                speaking.say(&shared, numbers, &words, Vec::new(), &mut changes);
                changes
            });
        }
        Err(GivenInVain::Failed(words)) => return say(shared, message, words),
    };
    let shared = Arc::clone(shared);
    Box::new(move |record, numbers| settle(&shared, record, numbers, number, &said))
}
