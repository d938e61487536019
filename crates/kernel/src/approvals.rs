//! Open questions of runs, and answers to them.
//!
//! Questions are read from journals; an answer is a message in the inbox of the run that asks.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{File, TryLockError},
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use gyrus_contract::{Digest, EffectId, MessageBody, Principal, RunId, Scope, SurfaceMessage};
use gyrus_journal::Store;

use crate::{
    ApprovalAnswered, ApprovalAsked, ApprovalCard, Entry, ToolResulted, Validity,
    clock::now_ms,
    grants::{self, GrantError},
    log::parse,
    log_name,
    names::QuestionId,
    runs::{check_not_record, is_record},
};

/// Time for which an answer waits while another one is being given.
const TURN_WITHIN: Duration = Duration::from_secs(5);

/// Interval at which it checks whether it may be given.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// The error of a question that cannot be read or answered.
#[derive(Debug, thiserror::Error)]
pub enum ApprovalError {
    /// A journal cannot be read, or a message cannot be sent.
    #[error(transparent)]
    Journal(#[from] gyrus_journal::Error),
    /// A standing grant cannot be written.
    #[error(transparent)]
    Grant(#[from] GrantError),
    /// Another process has been answering for too long.
    #[error(
        "another process has been answering run {} for {TURN_WITHIN:?}; nothing was sent",
        run.short()
    )]
    Busy {
        /// The run that asks.
        run: RunId,
    },
    /// The folder of a run's journal cannot be locked.
    #[error("{} cannot be locked", folder.display())]
    Unlockable {
        /// The folder.
        folder: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The first entry of a run cannot be read.
    #[error("run {0} does not say where it works")]
    NoWorkspace(RunId),
    /// A message cannot be written as JSON.
    #[error("the message is not JSON")]
    Message(#[source] serde_json::Error),
}

/// The reason why an answer to a card does not count.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VoidAnswer {
    /// Another answer was first.
    #[error("{id} of run {} has its answer already: {said}", run.short())]
    Answered {
        /// The run that asked.
        run: RunId,
        /// The question.
        id: QuestionId,
        /// The answer, and the person who gave it.
        said: String,
    },
    /// The run does not ask this any more.
    #[error("run {} asks nothing at {id} any more", run.short())]
    NotAsked {
        /// The run that asked.
        run: RunId,
        /// The question.
        id: QuestionId,
    },
    /// The run has asked again, with another card.
    #[error("the card {given} of run {} is void: it was asked anew, as {now}", run.short())]
    AskedAnew {
        /// The run that asks.
        run: RunId,
        /// The card that was answered.
        given: QuestionId,
        /// The present card.
        now: QuestionId,
    },
    /// The time for an answer is over.
    #[error("the question {id} of run {} has expired", run.short())]
    Expired {
        /// The run that asked.
        run: RunId,
        /// The question.
        id: QuestionId,
    },
}

/// An open question.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenQuestion {
    /// The run that asks: the one that was looked at, or a child of it.
    pub run: RunId,
    /// The name of the question.
    pub id: QuestionId,
    /// The card that is shown.
    pub card: ApprovalCard,
    /// The digest that an answer must name.
    pub digest: Digest,
    /// The time in which an answer counts.
    pub valid: Validity,
}

impl OpenQuestion {
    /// Creates the question of an entry in the journal of `run`.
    pub fn new(run: RunId, asked: ApprovalAsked) -> Self {
        Self {
            run,
            id: QuestionId {
                effect: asked.effect,
                asking: asked.asking,
            },
            card: asked.card,
            digest: asked.digest,
            valid: asked.valid,
        }
    }

    /// Whether answers no longer count.
    pub fn is_over(&self) -> bool {
        self.valid.is_over(now_ms())
    }
}

/// Returns the open questions of a run and its children, oldest first. A record asks nobody.
pub fn open(store: &Store, run: RunId) -> Result<Vec<OpenQuestion>, ApprovalError> {
    if is_record(store, run) {
        return Ok(Vec::new());
    }
    let reader = store.reader(&log_name(run))?;
    let mut settled: BTreeSet<EffectId> = BTreeSet::new();
    let mut ended: Vec<ToolResulted> = Vec::new();
    let mut found = Vec::new();
    // A question belongs to the cycle in progress, so earlier ones are over.
    for entry in reader.entries_back()? {
        let entry = entry?;
        match parse(&entry) {
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
                settled.insert(result.effect.clone());
                ended.push(result);
            }
            Ok(Entry::ChildEnded(child)) => {
                settled.insert(child.effect);
            }
            Ok(Entry::ApprovalAsked(asked))
                if ended.iter().any(|call| voids(call, &asked.effect)) => {}
            Ok(Entry::ApprovalAsked(asked)) if settled.insert(asked.effect.clone()) => {
                found.push(vec![OpenQuestion::new(run, asked)]);
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

/// Returns the open questions of a run and its children that an answer still counts for, oldest first:
/// those without one in the journal or the inbox, and in time.
///
/// # Errors
/// A journal or an inbox cannot be read.
pub fn unanswered(store: &Store, run: RunId) -> Result<Vec<OpenQuestion>, ApprovalError> {
    let mut unanswered = Vec::new();
    for question in open(store, run)? {
        if void(store, &question)?.is_none() {
            unanswered.push(question);
        }
    }
    Ok(unanswered)
}

/// Whether the end of a call voids a question of its command: all questions but those that are
/// continued.
pub fn voids(ended: &ToolResulted, asked: &EffectId) -> bool {
    asked.is_within(&ended.effect) && !ended.pending.contains(asked)
}

/// Returns a run and those of its children that are in progress, outermost first.
pub fn under_way(store: &Store, run: RunId) -> Result<Vec<RunId>, ApprovalError> {
    let mut found = vec![run];
    let mut ended = BTreeSet::new();
    for entry in store.reader(&log_name(run))?.entries_back()? {
        match parse(&entry?) {
            Ok(Entry::CycleEnded(_) | Entry::CycleDropped(_) | Entry::RunStarted(_)) => break,
            Ok(Entry::ChildEnded(child)) => {
                ended.insert(child.child);
            }
            Ok(Entry::ChildStarted(child))
                if !ended.contains(&child.child) && store.exists(&log_name(child.child)) =>
            {
                found.extend(under_way(store, child.child)?);
            }
            _ => {}
        }
    }
    Ok(found)
}

/// Returns the answer that waits in the inbox, if there is one; the run reads it when it continues.
pub fn waiting_answer(store: &Store, open: &OpenQuestion) -> Result<Option<String>, ApprovalError> {
    for (_, body) in store.inbox(&log_name(open.run))?.messages()? {
        let Ok(message) = serde_json::from_str::<SurfaceMessage>(&body) else {
            continue;
        };
        let (effect, digest, said) = match &message.body {
            MessageBody::Approve { effect, digest, .. } => (effect, digest, "approved"),
            MessageBody::Deny { effect, digest, .. } => (effect, digest, "denied"),
            _ => continue,
        };
        if *effect == open.id.effect && *digest == open.digest {
            let Principal { surface, id } = message.from;
            return Ok(Some(format!("{said} by {id} ({surface})")));
        }
    }
    Ok(None)
}

/// The result of giving an answer.
#[derive(Debug)]
#[must_use]
pub enum Delivery {
    /// The answer is on disk, and no other answer to this card can come before it.
    Given,
    /// The answer does not count, and was not sent.
    Void(VoidAnswer),
}

/// Answers a question. Of several concurrent answers, from any processes, the first is sent and the
/// others are void.
pub fn answer(
    store: &Store,
    open: &OpenQuestion,
    from: Principal,
    answer: ApprovalAnswer,
) -> Result<Delivery, ApprovalError> {
    check_not_record(store, open.run)?;
    let turn = my_turn(store, open.run)?;
    if let Some(void) = void(store, open)? {
        return Ok(Delivery::Void(void));
    }
    let (effect, digest) = (open.id.effect.clone(), open.digest);
    let body = match answer {
        ApprovalAnswer::Yes { words, reach } => {
            let scope = match reach {
                ApprovalReach::Once => Scope::Once,
                ApprovalReach::Session => Scope::Session,
                ApprovalReach::Always => {
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
        ApprovalAnswer::No { reason } => MessageBody::Deny {
            effect,
            digest,
            reason,
        },
    };
    send(store, open.run, from, body)?;
    drop(turn);
    Ok(Delivery::Given)
}

/// Waits until no other process answers a question of this run, and locks the run for this one;
/// dropping the file releases the lock.
fn my_turn(store: &Store, run: RunId) -> Result<File, ApprovalError> {
    let folder = store.folder(&log_name(run));
    let since = Instant::now();
    let failed = |source| ApprovalError::Unlockable {
        folder: folder.clone(),
        source,
    };
    let file = File::open(&folder).map_err(failed)?;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if since.elapsed() < TURN_WITHIN => {
                thread::sleep(LOOK_EVERY);
            }
            Err(TryLockError::WouldBlock) => return Err(ApprovalError::Busy { run }),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
    }
}

/// Returns the reason why an answer to this card does not count (any more), if there is one.
///
/// # Errors
/// A journal or an inbox cannot be read.
pub fn void(store: &Store, card: &OpenQuestion) -> Result<Option<VoidAnswer>, ApprovalError> {
    let (run, id) = (card.run, card.id.clone());
    // The order matters: an answer leaves the inbox only when it is in the journal.
    if let Some(said) = waiting_answer(store, card)? {
        return Ok(Some(VoidAnswer::Answered { run, id, said }));
    }
    let same_effect = |open: &OpenQuestion| open.run == run && open.id.effect == id.effect;
    let Some(now) = open(store, run)?.into_iter().find(same_effect) else {
        return Ok(Some(match recorded_answer(store, card)? {
            Some(said) => VoidAnswer::Answered { run, id, said },
            None => VoidAnswer::NotAsked { run, id },
        }));
    };
    if now.digest != card.digest {
        return Ok(Some(VoidAnswer::AskedAnew {
            run,
            given: id,
            now: now.id,
        }));
    }
    Ok(now.is_over().then_some(VoidAnswer::Expired { run, id }))
}

/// Returns the answer to this card in the journal.
fn recorded_answer(store: &Store, card: &OpenQuestion) -> Result<Option<String>, ApprovalError> {
    for entry in store.reader(&log_name(card.run))?.entries_back()? {
        if let Ok(Entry::ApprovalAnswered(answered)) = parse(&entry?)
            && answered.effect == card.id.effect
            && answered.digest == card.digest
        {
            return Ok(Some(in_words(&answered)));
        }
    }
    Ok(None)
}

/// Returns what people denied in a run: each question, and who answered it.
///
/// # Errors
/// The journal cannot be read.
pub fn denied_by_people(store: &Store, run: RunId) -> Result<Vec<String>, gyrus_journal::Error> {
    let (mut questions, mut denied) = (BTreeMap::new(), Vec::new());
    for entry in store.reader(&log_name(run))?.entries(1)? {
        match parse(&entry?) {
            Ok(Entry::ApprovalAsked(asked)) => {
                questions.insert(asked.effect, asked.card.sentence);
            }
            Ok(Entry::ApprovalAnswered(answered)) if !answered.approved => {
                if let (Some(by), Some(question)) = (&answered.by, questions.get(&answered.effect))
                {
                    denied.push(format!("{question} (denied by {})", by.id));
                }
            }
            _ => {}
        }
    }
    Ok(denied)
}

fn in_words(answered: &ApprovalAnswered) -> String {
    let said = if answered.approved {
        "approved"
    } else {
        "denied"
    };
    match &answered.by {
        Some(by) => format!("{said} by {} ({})", by.id, by.surface),
        None => format!("{said}, as nobody could be asked"),
    }
}

/// The extent of an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalReach {
    /// This one call.
    Once,
    /// Everything that the card offers, for the rest of the session.
    Session,
    /// Everything that the card offers, in this folder, until it is revoked.
    Always,
}

/// Returns the folder that a run works in.
fn workspace(store: &Store, run: RunId) -> Result<PathBuf, ApprovalError> {
    let reader = store.reader(&log_name(run))?;
    match reader.entry(1)?.map(|entry| parse(&entry)) {
        Some(Ok(Entry::RunStarted(started))) => Ok(started.workspace),
        _ => Err(ApprovalError::NoWorkspace(run)),
    }
}

/// A person's answer to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalAnswer {
    /// Approval, or the answer to a question.
    Yes {
        /// The answer in words, if the question asks for words.
        words: Option<String>,
        /// The extent of the approval.
        reach: ApprovalReach,
    },
    /// Denial.
    No {
        /// The reason, for the model.
        reason: Option<String>,
    },
}

/// Puts a message into a run's inbox. When this returns, it is on disk.
///
/// # Errors
/// The run is a record, or its inbox takes no more.
pub fn send(
    store: &Store,
    run: RunId,
    from: Principal,
    body: MessageBody,
) -> Result<(), ApprovalError> {
    let id = gyrus_contract::time_ordered_uuid().to_string();
    send_as(store, run, &id, from, body)
}

/// Puts a message with an id of the caller's, a UUID of version 7, into a run's inbox. While it
/// waits there, sending it again is harmless.
///
/// # Errors
/// Those of [`send`].
pub fn send_as(
    store: &Store,
    run: RunId,
    id: &str,
    from: Principal,
    body: MessageBody,
) -> Result<(), ApprovalError> {
    check_not_record(store, run)?;
    let message = SurfaceMessage {
        id: id.to_owned(),
        from,
        body,
    };
    let text = serde_json::to_string(&message).map_err(ApprovalError::Message)?;
    store.inbox(&log_name(run))?.send(id, &text)?;
    Ok(())
}
