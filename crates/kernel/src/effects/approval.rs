//! Asking a person. The question is an entry, so every surface shows the same card, and a crash
//! brings it back with the same id; the answer is an inbox message, used up exactly once.

use gyrus_contract::{Digest, EffectId, Grant, MessageBody, OnAsk, Principal, Scope};

use super::diverges;
use crate::{ApprovalAnswered, ApprovalAsked, Card, Ending, Entry, Stop, core::Core, run::Begun};

/// A person's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Yes.
    pub approved: bool,
    /// Who; `None` when nobody could be asked, which counts as a no.
    pub by: Option<Principal>,
    /// Words to the model.
    pub reason: Option<String>,
}

impl From<ApprovalAnswered> for Answer {
    fn from(answered: ApprovalAnswered) -> Self {
        Self {
            approved: answered.approved,
            by: answered.by,
            reason: answered.reason,
        }
    }
}

/// A question that a loop asks by itself.
pub(crate) async fn perform(core: &Core, begun: Begun, card: Card) -> Result<Answer, Stop> {
    let digest = Digest::of_json(&card);
    let mut past = Past::default();
    for entry in begun.past {
        past.read(core, &begun.effect, entry, &digest)?;
    }
    ask(core, &begun.effect, digest, card, past).await
}

/// What the journal holds of a question.
#[derive(Debug, Default)]
pub(crate) struct Past {
    asked: Option<String>,
    answered: Option<ApprovalAnswered>,
}

impl Past {
    /// Takes in a recorded entry of the question about `digest`.
    pub(crate) fn read(
        &mut self,
        core: &Core,
        effect: &EffectId,
        entry: Entry,
        digest: &Digest,
    ) -> Result<(), Stop> {
        match entry {
            Entry::ApprovalAsked(past) if past.digest == *digest => {
                self.asked = Some(past.card.sentence);
            }
            Entry::ApprovalAnswered(past) if past.digest == *digest && self.asked.is_some() => {
                if past.by.is_none() {
                    core.shared().denied.extend(self.asked.clone());
                }
                core.grant(&past.grants);
                self.answered = Some(past);
            }
            other => return Err(diverges(effect, &other, format!("asking about {digest}"))),
        }
        Ok(())
    }
}

/// Asks, unless it was answered already.
pub(crate) async fn ask(
    core: &Core,
    effect: &EffectId,
    digest: Digest,
    card: Card,
    past: Past,
) -> Result<Answer, Stop> {
    let question = card.sentence.clone();
    let wider = card.wider.clone();
    if let Some(answered) = past.answered {
        return Ok(answered.into());
    }
    if past.asked.is_none() {
        core.log.append(ApprovalAsked {
            effect: effect.clone(),
            card,
            digest,
        })?;
        core.log.barrier().await?;
    }
    let Some(inbox) = &core.inbox else {
        return Err(Stop::EndOfRecord);
    };
    let mut watch = inbox.watch()?;
    loop {
        core.obey_messages()?;
        if let Some(answered) = answer_in_inbox(core, effect, digest, &wider)? {
            return record(core, answered).await;
        }
        match core.settings.on_ask {
            OnAsk::Wait => {}
            OnAsk::Park => {
                return Err(Ending::Waiting {
                    run: None,
                    effect: effect.clone(),
                    question,
                }
                .into());
            }
            OnAsk::Deny => {
                core.shared().denied.push(question);
                let nobody = ApprovalAnswered {
                    effect: effect.clone(),
                    digest,
                    approved: false,
                    by: None,
                    reason: None,
                    grants: Vec::new(),
                    message: None,
                };
                return record(core, nobody).await;
            }
        }
        tokio::select! {
            _ = watch.changed() => {}
            ending = core.controls.paused() => return Err(ending.into()),
        }
    }
}

async fn record(core: &Core, answered: ApprovalAnswered) -> Result<Answer, Stop> {
    core.log.append(answered.clone())?;
    core.log.barrier().await?;
    core.grant(&answered.grants);
    if let Some(id) = &answered.message {
        core.forget_message(id)?;
    }
    Ok(answered.into())
}

/// The oldest answer to this card. An answer to another digest stays where it is: it may be
/// meant for a card of another branch.
fn answer_in_inbox(
    core: &Core,
    asking: &EffectId,
    about: Digest,
    wider: &[Grant],
) -> Result<Option<ApprovalAnswered>, Stop> {
    for message in core.messages()? {
        let (approved, reason, scope) = match message.body {
            MessageBody::Approve {
                effect,
                digest,
                words,
                scope,
            } if effect == *asking && digest == about => (true, words, scope),
            MessageBody::Deny {
                effect,
                digest,
                reason,
            } if effect == *asking && digest == about => (false, reason, Scope::Once),
            _ => continue,
        };
        let redactor = &core.kernel.organs().redactor;
        return Ok(Some(ApprovalAnswered {
            effect: asking.clone(),
            digest: about,
            approved,
            by: Some(message.from),
            reason: reason.map(|words| redactor.redact(&words).into_owned()),
            grants: match scope {
                Scope::Once => Vec::new(),
                Scope::Session => wider.to_vec(),
            },
            message: Some(message.id),
        }));
    }
    Ok(None)
}
