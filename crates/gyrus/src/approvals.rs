//! Questions that runs have asked and nobody has answered, and answers to them.
//!
//! All of it is read from journals; an answer is a message in the inbox of the run that asks.

use std::{
    collections::BTreeSet,
    fs::{File, TryLockError},
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use gyrus_contract::{Digest, EffectId, MessageBody, Principal, RunId, Scope, SurfaceMessage};
use gyrus_journal::Store;
use gyrus_kernel::{
    ApprovalAnswered, ApprovalAsked, Card, Entry, ToolResulted, Validity, log_name,
};

use crate::{
    failure::Failure,
    grants,
    names::{QuestionId, short},
    time,
};

/// How long an answer waits for another that is being given.
const TURN_WITHIN: Duration = Duration::from_secs(5);

/// How often it looks whether its turn has come.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A question.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Open {
    /// The run that asks: the one that was looked at, or a child of it.
    pub(crate) run: RunId,
    /// What it is called.
    pub(crate) id: QuestionId,
    /// What is shown.
    pub(crate) card: Card,
    /// What an answer must name.
    pub(crate) digest: Digest,
    /// When an answer counts.
    pub(crate) valid: Validity,
}

impl Open {
    /// What `run` asks.
    pub(crate) fn new(run: RunId, asked: ApprovalAsked) -> Self {
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

    /// Whether no answer counts any more.
    pub(crate) fn is_over(&self) -> bool {
        self.valid.is_over(time::now_ms())
    }
}

/// The questions of a run and its children, oldest first.
pub(crate) fn open(store: &Store, run: RunId) -> Result<Vec<Open>, Failure> {
    let reader = store.reader(&log_name(run))?;
    let mut settled: BTreeSet<EffectId> = BTreeSet::new();
    let mut ended: Vec<ToolResulted> = Vec::new();
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
                settled.insert(result.effect.clone());
                ended.push(result);
            }
            Ok(Entry::ChildEnded(child)) => {
                settled.insert(child.effect);
            }
            Ok(Entry::ApprovalAsked(asked))
                if ended.iter().any(|call| voids(call, &asked.effect)) => {}
            Ok(Entry::ApprovalAsked(asked)) if settled.insert(asked.effect.clone()) => {
                found.push(vec![Open::new(run, asked)]);
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

/// Whether the end of a call makes void what its command asked: all but what is asked on.
pub(crate) fn voids(ended: &ToolResulted, asked: &EffectId) -> bool {
    asked.is_within(&ended.effect) && !ended.pending.contains(asked)
}

/// Whether a question is that of a run that wants its browser taken over.
pub(crate) fn asks_to_take_over(store: &Store, open: &Open) -> Result<bool, Failure> {
    for entry in store.reader(&log_name(open.run))?.entries_back()? {
        if let Ok(Entry::ToolCalled(called)) = gyrus_kernel::parse(&entry?)
            && called.effect == open.id.effect
        {
            return Ok(called.call.tool == gyrus_screen::HAND_OVER);
        }
    }
    Ok(false)
}

/// A run and those of its children that are under way, outermost first.
pub(crate) fn under_way(store: &Store, run: RunId) -> Result<Vec<RunId>, Failure> {
    let mut found = vec![run];
    let mut ended = BTreeSet::new();
    for entry in store.reader(&log_name(run))?.entries_back()? {
        match gyrus_kernel::parse(&entry?) {
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

/// The answer that waits in the inbox, if there is one; the run takes it up when it goes on.
pub(crate) fn waiting_answer(store: &Store, open: &Open) -> Result<Option<String>, Failure> {
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

/// What became of an answer.
#[derive(Debug)]
#[must_use]
pub(crate) enum Became {
    /// It is on disk, and no other answer to this card can come before it.
    Given,
    /// It does not count, and was not sent.
    Void(Failure),
}

/// Answers a question. Of several answers that are given at once, by whatever processes, the
/// first is sent and the others are told of it.
pub(crate) fn answer(
    store: &Store,
    open: &Open,
    from: Principal,
    answer: Answer,
) -> Result<Became, Failure> {
    let turn = my_turn(store, open.run)?;
    if let Some(void) = void(store, open)? {
        return Ok(Became::Void(void));
    }
    let (effect, digest) = (open.id.effect.clone(), open.digest);
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
    send(store, open.run, from, body)?;
    drop(turn);
    Ok(Became::Given)
}

/// Waits until no other process answers a question of this run; the turn is over when the file is
/// dropped.
fn my_turn(store: &Store, run: RunId) -> Result<File, Failure> {
    let folder = store.folder(&log_name(run));
    let since = Instant::now();
    let failed = |error: &std::io::Error| {
        Failure::failed(format!("{} cannot be locked", folder.display())).because(error)
    };
    let file = File::open(&folder).map_err(|error| failed(&error))?;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if since.elapsed() < TURN_WITHIN => {
                thread::sleep(LOOK_EVERY);
            }
            Err(TryLockError::WouldBlock) => {
                let name = short(&run.to_string()).to_owned();
                return Err(Failure::failed(format!(
                    "another process has been answering run {name} for {TURN_WITHIN:?}; nothing \
                     was sent"
                ))
                .hint("see what became of it: gyrus approvals"));
            }
            Err(TryLockError::Error(error)) => return Err(failed(&error)),
        }
    }
}

/// Why an answer to this card does not count, if it does not.
fn void(store: &Store, card: &Open) -> Result<Option<Failure>, Failure> {
    let name = short(&card.run.to_string()).to_owned();
    let resume = format!("to go on: gyrus resume {name}");
    let id = &card.id;
    let answered = |said: &str| {
        Failure::usage(format!("{id} of run {name} has its answer already: {said}"))
            .hint(resume.clone())
    };
    // In this order: an answer leaves the inbox when the journal has it.
    if let Some(said) = waiting_answer(store, card)? {
        return Ok(Some(answered(&said)));
    }
    let same_effect = |open: &Open| open.run == card.run && open.id.effect == id.effect;
    let Some(now) = open(store, card.run)?.into_iter().find(same_effect) else {
        return Ok(Some(match recorded_answer(store, card)? {
            Some(said) => answered(&said),
            None => Failure::usage(format!("run {name} asks nothing at {id} any more"))
                .hint("see what is asked: gyrus approvals"),
        }));
    };
    if now.digest != card.digest {
        return Ok(Some(asked_anew(&name, id, &now.id)));
    }
    Ok(now.is_over().then(|| {
        Failure::usage(format!("the question {id} of run {name} has expired"))
            .hint(format!("to be asked anew: gyrus resume {name}"))
    }))
}

/// What to say to whoever answers a card in whose place there is another.
pub(crate) fn asked_anew(run: &str, given: &QuestionId, now: &QuestionId) -> Failure {
    Failure::usage(format!(
        "the card {given} of run {run} is void: it was asked anew, as {now}"
    ))
    .hint("see what it asks now: gyrus approvals")
}

/// What the journal says was answered to this card.
fn recorded_answer(store: &Store, card: &Open) -> Result<Option<String>, Failure> {
    for entry in store.reader(&log_name(card.run))?.entries_back()? {
        if let Ok(Entry::ApprovalAnswered(answered)) = gyrus_kernel::parse(&entry?)
            && answered.effect == card.id.effect
            && answered.digest == card.digest
        {
            return Ok(Some(in_words(&answered)));
        }
    }
    Ok(None)
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
