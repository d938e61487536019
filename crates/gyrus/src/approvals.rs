//! Questions that runs have asked and nobody has answered, and answers to them.
//!
//! All of it is read from journals; an answer is a message in the inbox of the run that asks.

use std::{collections::BTreeSet, path::PathBuf};

use gyrus_contract::{Digest, EffectId, MessageBody, Principal, RunId, Scope, SurfaceMessage};
use gyrus_journal::Store;
use gyrus_kernel::{Card, Entry, log_name};

use crate::{failure::Failure, grants};

/// A question.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Open {
    /// The run that asks: the one that was looked at, or a child of it.
    pub(crate) run: RunId,
    /// Its effect.
    pub(crate) effect: EffectId,
    /// What is shown.
    pub(crate) card: Card,
    /// What an answer must name.
    pub(crate) digest: Digest,
    /// When it was asked, in UTC milliseconds.
    pub(crate) at_ms: i64,
}

/// The questions of a run and its children, oldest first.
pub(crate) fn open(store: &Store, run: RunId) -> Result<Vec<Open>, Failure> {
    let reader = store.reader(&log_name(run))?;
    let mut settled: BTreeSet<EffectId> = BTreeSet::new();
    let mut found = Vec::new();
    // A question belongs to the step in hand, so what was before the last step's end is over.
    for entry in reader.entries_back()? {
        let entry = entry?;
        match gyrus_kernel::parse(&entry) {
            Ok(
                Entry::CycleEnded(_)
                | Entry::CycleDropped(_)
                | Entry::RunEnded(_)
                | Entry::RunStarted(_),
            ) => break,
            Ok(Entry::ApprovalAnswered(answered)) => {
                settled.insert(answered.effect);
            }
            Ok(Entry::ToolResulted(result)) => {
                settled.insert(result.effect);
            }
            Ok(Entry::ChildEnded(child)) => {
                settled.insert(child.effect);
            }
            Ok(Entry::ApprovalAsked(asked)) if settled.insert(asked.effect.clone()) => {
                found.push(vec![Open {
                    run,
                    effect: asked.effect,
                    card: asked.card,
                    digest: asked.digest,
                    at_ms: entry.at_ms,
                }]);
            }
            Ok(Entry::ChildStarted(child))
                if settled.insert(child.effect.clone()) && store.exists(&log_name(child.child)) =>
            {
                found.push(open(store, child.child)?);
            }
            // Facts and erased payloads ask nothing.
            _ => {}
        }
    }
    Ok(found.into_iter().rev().flatten().collect())
}

/// Whether an answer waits in the inbox already; the run takes it up when it goes on.
pub(crate) fn is_answered(store: &Store, open: &Open) -> Result<bool, Failure> {
    let messages = store.inbox(&log_name(open.run))?.messages()?;
    Ok(messages.iter().any(|(_, body)| {
        let message: Option<SurfaceMessage> = serde_json::from_str(body).ok();
        matches!(
            message.map(|message| message.body),
            Some(MessageBody::Approve { effect, digest, .. } | MessageBody::Deny { effect, digest, .. })
                if effect == open.effect && digest == open.digest
        )
    }))
}

/// Answers a question. When this returns, the answer is on disk.
pub(crate) fn answer(
    store: &Store,
    open: &Open,
    from: Principal,
    answer: Answer,
) -> Result<(), Failure> {
    let (effect, digest) = (open.effect.clone(), open.digest);
    let body = match answer {
        Answer::Yes { words, reach } => {
            let scope = match reach {
                Reach::Once => Scope::Once,
                Reach::Session => Scope::Session,
                Reach::Always => {
                    let workspace = workspace(store, open.run)?;
                    grants::give(store, &workspace, &open.card.wider, &from)?;
                    Scope::Session
                }
            };
            MessageBody::Approve {
                effect,
                digest,
                words,
                scope,
            }
        }
        Answer::No { reason } => MessageBody::Deny {
            effect,
            digest,
            reason,
        },
    };
    send(store, open.run, from, body)
}

/// How far a yes reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// This one call.
    Once,
    /// What the card offers, for the rest of the session.
    Session,
    /// The same, in this folder, until it is revoked.
    Always,
}

/// The folder that a run works in.
fn workspace(store: &Store, run: RunId) -> Result<PathBuf, Failure> {
    let reader = store.reader(&log_name(run))?;
    match reader.entry(1)?.map(|entry| gyrus_kernel::parse(&entry)) {
        Some(Ok(Entry::RunStarted(started))) => Ok(started.workspace),
        _ => Err(Failure::failed(format!(
            "run {run} does not say where it works"
        ))),
    }
}

/// What a person says to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Yes, or the answer to a question.
    Yes {
        /// The answer, to a question that wants words.
        words: Option<String>,
        /// How far it reaches.
        reach: Reach,
    },
    /// No, perhaps with words for the model.
    No {
        /// The words.
        reason: Option<String>,
    },
}

/// Puts a message into a run's inbox. When this returns, it is on disk.
pub(crate) fn send(
    store: &Store,
    run: RunId,
    from: Principal,
    body: MessageBody,
) -> Result<(), Failure> {
    let id = uuid::Uuid::now_v7().to_string();
    let message = SurfaceMessage {
        id: id.clone(),
        from,
        body,
    };
    let text = serde_json::to_string(&message)
        .map_err(|error| Failure::failed("the message is no JSON").because(&error))?;
    store.inbox(&log_name(run))?.send(&id, &text)?;
    Ok(())
}
