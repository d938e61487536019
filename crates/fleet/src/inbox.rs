//! Messages to the runs of a fleet: answers, words, stops. Each run that a person started has a subject
//! for them, also for the runs below it; whoever drives it puts them into the local inbox, where the
//! run looks.

use std::{sync::Arc, time::Duration};

use gyrus_contract::{MessageBody, Principal, RunId, SurfaceMessage, time_ordered_uuid};
use gyrus_journal::Store;
use gyrus_kernel::{Entry, log_name, parse};
use serde::{Deserialize, Serialize};

use crate::{
    AppendAnswer, LogSubject, LogUnreachable, Machine, MachineTime, MessageId, SharedLog, WriterId,
};

/// Pause before an attempt is repeated because of another write.
const PAUSE: Duration = Duration::from_millis(5);

/// A message cannot be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The log does not answer. The message may arrive all the same, once.
    #[error(transparent)]
    Unreachable(#[from] LogUnreachable),
    #[error("the shared log does not take the message: {why}")]
    Impossible { why: String },
}

/// A message to a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetMessage {
    pub run: RunId,
    /// The id of the message, by which taking it twice is harmless.
    pub id: String,
    /// The message, in the form of an inbox.
    pub body: String,
}

impl FleetMessage {
    /// Returns the sender of a request to stop; `None` if it is none.
    pub fn stops(&self) -> Option<Principal> {
        let message: SurfaceMessage = serde_json::from_str(&self.body).ok()?;
        matches!(message.body, MessageBody::Stop).then_some(message.from)
    }
}

pub(crate) fn inbox_subject(root: RunId) -> LogSubject {
    LogSubject::new(&format!("inbox.{root}")).expect("ids of runs are words")
}

/// Returns the run at the top of the family that a run of a store belongs to.
pub fn root_of(store: &Store, run: RunId) -> RunId {
    let mut root = run;
    while !root.is_root() {
        let started = store
            .reader(&log_name(root))
            .and_then(|reader| reader.entry(1));
        let parent = match started.ok().flatten().as_ref().map(parse) {
            Some(Ok(Entry::RunStarted(started))) => started.parent,
            _ => None,
        };
        let Some(parent) = parent else {
            break;
        };
        root = parent.run;
    }
    root
}

/// Sends a message to a run of the family of `root`. When this returns, it outlives any crash.
///
/// # Errors
/// The log does not answer by `until`, or does not take it.
pub async fn send_message(
    log: &Arc<dyn SharedLog>,
    machine: &Arc<dyn Machine>,
    root: RunId,
    message: &FleetMessage,
    until: MachineTime,
) -> Result<(), SendError> {
    let subject = inbox_subject(root);
    let body = serde_json::to_vec(message).map_err(|error| SendError::Impossible {
        why: error.to_string(),
    })?;
    let body: Arc<[u8]> = body.into();
    let id = MessageId {
        subject: subject.clone(),
        writer: WriterId(time_ordered_uuid().as_u128()),
        index: 0,
    };
    let mut last = 0;
    let mut why = "others write too".to_owned();
    loop {
        let read = read_messages(log, root, last, until).await;
        match read {
            Ok(messages) => {
                if messages.iter().any(|(_, sent)| sent.id == message.id) {
                    return Ok(());
                }
                last = messages.last().map_or(last, |(position, _)| *position);
            }
            Err(unreachable) => why = unreachable.why,
        }
        match log.append_if(&id, last, &body, until).await {
            AppendAnswer::Stored { .. } => return Ok(()),
            AppendAnswer::Impossible { why } => return Err(SendError::Impossible { why }),
            AppendAnswer::Unknown { why: reason } => why = reason,
            AppendAnswer::Refused { .. } | AppendAnswer::Busy => {}
        }
        if machine.now() >= until {
            return Err(LogUnreachable { why }.into());
        }
        machine.sleep_until(machine.now() + PAUSE).await;
    }
}

/// Returns the messages to a run and its child runs after a position, with their positions. What
/// cannot be read is left out: a newer gyrus wrote it, and no run waits for it here.
///
/// # Errors
/// The log does not answer by `until`.
pub async fn read_messages(
    log: &Arc<dyn SharedLog>,
    root: RunId,
    after: u64,
    until: MachineTime,
) -> Result<Vec<(u64, FleetMessage)>, LogUnreachable> {
    let subject = inbox_subject(root);
    let (mut found, mut after) = (Vec::new(), after);
    loop {
        let stored = log.read_from(&subject, after, until).await?;
        let Some(newest) = stored.last() else {
            return Ok(found);
        };
        after = newest.position;
        for message in stored {
            if let Ok(read) = serde_json::from_slice(&message.body) {
                found.push((message.position, read));
            }
        }
    }
}
