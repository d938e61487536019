//! Things that people ask for that take more than the state of the chat: answers to cards, words for
//! runs, and looks at things.
//!
//! A job is carried out at least once, so what it does to a run must not happen twice: an answer is
//! bound to its card, a message in an inbox has the id of the job.

mod attempt;
mod decision;
mod answers;
mod looks;
mod runs;

use std::{sync::Arc, time::Duration};

use gyrus_contract::{Answer, ApprovalScope, BoxedFuture, RunId};
use gyrus_runtime::{EventId, blocking, ledger::LedgerError};

pub(crate) use self::attempt::JobAttempt;
use self::decision::{JobDecision, nothing, say};
use crate::{
    cards::{self, ButtonMeaning},
    conversation::ReplyTarget,
    messenger::{ChatEvent, ChatPlace, IncomingMessage, PressedButton},
    record::{ChatChange, ChatRecord, MessageSubject, Numbers, OutgoingState, PendingWork},
    shared::AccountInner,
    words::{self, ChatWords},
};

/// Time within which the id of a message that is being sent is known.
const KNOWN_WITHIN: Duration = Duration::from_secs(10);

/// Carries out a pending job, and records its completion together with the messages about it.
pub(crate) fn carry_out(
    shared: Arc<AccountInner>,
    number: u64,
    attempt: JobAttempt,
) -> BoxedFuture<'static, ()> {
    Box::pin(async move {
        if let Err(error) = to_end(&shared, number, attempt).await {
            shared.failed(&error);
        }
    })
}

async fn to_end(
    shared: &Arc<AccountInner>,
    number: u64,
    attempt: JobAttempt,
) -> Result<(), LedgerError> {
    let Some(work) = shared.with(|record| record.pending.get(&number).cloned()) else {
        return Ok(());
    };
    let decision = match &work.event {
        ChatEvent::Press(press) => pressed(shared, press).await,
        ChatEvent::Message(message) => written(shared, message, &work, attempt).await,
        ChatEvent::Moved { .. } | ChatEvent::Other => nothing(),
    };
    shared
        .commit(|record, numbers| {
            let mut changes = decision(record, numbers);
            changes.push(ChatChange::Done { number });
            (changes, ())
        })
        .await
}

async fn written(
    shared: &Arc<AccountInner>,
    message: &IncomingMessage,
    work: &PendingWork,
    attempt: JobAttempt,
) -> JobDecision {
    let replied = replied(shared, message).await;
    match words::read(&message.text) {
        ChatWords::Stop(what) => runs::stop(shared, message, &what, run_of(shared, replied)).await,
        ChatWords::Status => {
            let looking = Arc::clone(shared);
            let text = blocking(move || looks::status(&looking)).await;
            say(shared, message, text)
        }
        ChatWords::Approve => looks::questions(shared, message).await,
        ChatWords::Screenshot => looks::screenshot(shared, message, run_of(shared, replied)).await,
        ChatWords::Memory(words) => {
            let arguments = ["memory", "search", "--", &words].map(str::to_owned);
            looks::printed(shared, message, arguments.to_vec()).await
        }
        ChatWords::Agents(words) if words.is_empty() => {
            looks::printed(shared, message, vec!["agents".to_owned()]).await
        }
        ChatWords::Agents(words) => tell_agent(shared, message, &words).await,
        ChatWords::Plain(words) => match replied {
            Some(MessageSubject::Card(card)) => {
                answers::answer_in_words(shared, message, card, words).await
            }
            Some(MessageSubject::Run(run)) => {
                runs::add_to_run(shared, message, run, words, work, attempt).await
            }
            Some(MessageSubject::Nothing | MessageSubject::Unknown(_)) => {
                runs::new_task(shared, message, words, None)
            }
            None => {
                let text = "The message that you reply to is not known here. To begin a run, write \
                            without replying.";
                say(shared, message, text.to_owned())
            }
        },
        ChatWords::Run(_)
        | ChatWords::Help
        | ChatWords::Start
        | ChatWords::Pair(_)
        | ChatWords::Unknown(_) => nothing(),
    }
}

/// Sends the text after an agent's name to the agent. A message that is handled again after a crash
/// has no further effect.
async fn tell_agent(
    shared: &Arc<AccountInner>,
    message: &IncomingMessage,
    words: &str,
) -> JobDecision {
    let (agent, words) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
    let by = shared.principal(&message.person);
    let id = EventId::derived(&format!(
        "{} {} {}",
        by.surface, message.chat, message.message
    ));
    let told = match words.trim() {
        "" => Err(format!(
            "Write behind the name what it is to be told: /agents {agent} …"
        )),
        words => shared.host.tell_agent(agent, words, id, &by).await,
    };
    let text = told.map_or_else(|why| why, |()| format!("The agent {agent} was told."));
    say(shared, message, text)
}

async fn replied(shared: &AccountInner, message: &IncomingMessage) -> Option<MessageSubject> {
    let message_id = message.reply_to.clone()?;
    let place = ChatPlace {
        chat: message.chat.clone(),
        message: message_id,
    };
    subject(shared, &place).await
}

/// Returns the subject of a message. People may be quicker than the answer that has its id.
async fn subject(shared: &AccountInner, place: &ChatPlace) -> Option<MessageSubject> {
    let mut changes = shared.changes.subscribe();
    let known = async {
        loop {
            changes.borrow_and_update();
            let (about, may_come) = shared.with(|record| {
                let may_come = record.is_sending_to(&place.chat);
                (record.about(place), may_come)
            });
            if about.is_some() || !may_come || changes.changed().await.is_err() {
                return about;
            }
        }
    };
    let known = tokio::time::timeout(KNOWN_WITHIN, known).await;
    known.unwrap_or_default()
}

fn run_of(shared: &AccountInner, about: Option<MessageSubject>) -> Option<RunId> {
    match about? {
        MessageSubject::Run(run) => Some(run),
        MessageSubject::Card(card) => shared.with(|record| Some(record.cards.get(&card)?.task)),
        MessageSubject::Nothing | MessageSubject::Unknown(_) => None,
    }
}

async fn pressed(shared: &Arc<AccountInner>, press: &PressedButton) -> JobDecision {
    let place = ChatPlace {
        chat: press.chat.clone(),
        message: press.message.clone(),
    };
    let about = subject(shared, &place).await;
    let (words, decision) = match (cards::read(&press.data), about) {
        (Some((ButtonMeaning::Allow { card }, mark)), about) if may_be(about, card) => {
            let yes = Answer::yes(ApprovalScope::Once);
            answers::answer(shared, press, card, mark, yes).await
        }
        (Some((ButtonMeaning::Deny { card }, mark)), about) if may_be(about, card) => {
            let no = Answer::Deny { reason: None };
            answers::answer(shared, press, card, mark, no).await
        }
        (Some((ButtonMeaning::Again { message }, None)), Some(MessageSubject::Unknown(shown)))
            if message == shown =>
        {
            send_again(message)
        }
        (Some((ButtonMeaning::File { index }, None)), Some(MessageSubject::Run(run))) => {
            looks::file_of(shared, press, run, index).await
        }
        _ => ("This button means nothing any more.".to_owned(), nothing()),
    };
    // Nobody waits for it, and a press that is old cannot be acknowledged.
    let (messenger, press) = (Arc::clone(&shared.messenger), press.press.clone());
    tokio::spawn(async move { messenger.acknowledge(&press, &words).await });
    decision
}

/// Whether a message with this subject may be the one with the buttons of a card. One whose
/// delivery was unknown counts, until somebody pressed its button.
fn may_be(about: Option<MessageSubject>, card: u64) -> bool {
    about.is_none_or(|about| about == MessageSubject::Card(card))
}

/// Sends a message of unknown delivery again.
fn send_again(number: u64) -> (String, JobDecision) {
    let decision = move |record: &ChatRecord, numbers: &mut Numbers| {
        let unknown = record.outgoing.get(&number);
        let unknown = unknown.filter(|one| one.state == OutgoingState::Unknown);
        let Some(unknown) = unknown else {
            return Vec::new();
        };
        let speaking = ReplyTarget {
            chat: unknown.chat.clone(),
            reply_to: unknown.reply_to.clone(),
            about: unknown.about,
        };
        let mut changes = vec![ChatChange::Dropped { number }];
        let again = speaking.add(numbers, unknown.what.clone(), &mut changes);
        // A card has its buttons below the message that arrives.
        if let MessageSubject::Card(card) = unknown.about
            && let Some(card) = record.cards.get(&card)
            && card.message == number
        {
            let mut card = card.clone();
            card.message = again;
            changes.push(ChatChange::Card(Box::new(card)));
        }
        changes
    };
    ("It is sent again.".to_owned(), Box::new(decision))
}
