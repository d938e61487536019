//! A run that this worker holds: the only way to write its log.

use std::sync::Arc;

use crate::{
    AppendAnswer, EntryLines, LeaseTimes, LogSubject, LogUnreachable, Machine, MachineTime,
    MessageId, RunMessage, RunMessageKind, RunReading, SharedLog, WriterId, message::is_foreign,
};

/// The run is lost to this worker: nothing more may be done for it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HoldError {
    #[error("worker {worker} has taken the run over")]
    Fenced { worker: String },
    /// The log did not answer for so long that another worker may take the run.
    #[error("the shared log did not answer within the lease: {why}")]
    Late { why: String },
    /// The log rejects the message for good.
    #[error("the shared log does not take the run's entries: {why}")]
    Impossible { why: String },
    /// The machine cannot guarantee to end this process at the end of the lease.
    #[error("the machine would not end this process when its lease is over: {why}")]
    Unbound { why: String },
    #[error("the run was lost to this worker before")]
    Lost,
}

/// A run that this worker holds. Its methods must be driven to their end: what is dropped halfway
/// may be in the log or not.
pub struct Hold {
    log: Arc<dyn SharedLog>,
    machine: Arc<dyn Machine>,
    subject: LogSubject,
    writer: WriterId,
    epoch: u64,
    times: LeaseTimes,
    /// The position of the last message.
    position: u64,
    /// The number of this writer's last message.
    index: u64,
    /// The time at which the last message that is in the log was sent.
    sent: MachineTime,
    lost: bool,
}

impl Hold {
    pub(crate) fn new(
        log: Arc<dyn SharedLog>,
        machine: Arc<dyn Machine>,
        reading: &RunReading,
        writer: WriterId,
        times: LeaseTimes,
        sent: MachineTime,
    ) -> Result<Self, String> {
        machine.live_until(sent + times.lease())?;
        Ok(Self {
            log,
            machine,
            subject: reading.subject.clone(),
            writer,
            epoch: reading.standing.epoch,
            times,
            position: reading.standing.position,
            index: 0,
            sent,
            lost: false,
        })
    }

    /// Returns the number of the claim.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Returns the time until which the run may be driven.
    pub fn deadline(&self) -> MachineTime {
        self.sent + self.times.lease()
    }

    /// Returns the time at which [`Hold::renew`] is due if no entries are appended before.
    pub fn renewal_due(&self) -> MachineTime {
        self.sent + self.times.renew_after()
    }

    /// Appends entries of the run's journal. They outlive any crash when this returns.
    ///
    /// # Errors
    /// The run is lost to this worker.
    pub async fn append(&mut self, lines: EntryLines) -> Result<u64, HoldError> {
        self.put(RunMessageKind::Entries(lines)).await
    }

    /// Appends small blobs that later entries may name.
    ///
    /// # Errors
    /// The run is lost to this worker.
    pub async fn put_blobs(&mut self, blobs: Vec<Arc<[u8]>>) -> Result<u64, HoldError> {
        self.put(RunMessageKind::Blobs(blobs)).await
    }

    /// Shows that this worker lives.
    ///
    /// # Errors
    /// The run is lost to this worker.
    pub async fn renew(&mut self) -> Result<u64, HoldError> {
        self.put(RunMessageKind::Renewed).await
    }

    /// Releases the run. Nothing of it may be alive.
    ///
    /// # Errors
    /// The run was lost to this worker.
    pub async fn release(mut self) -> Result<u64, HoldError> {
        self.put(RunMessageKind::Released).await
    }

    async fn put(&mut self, kind: RunMessageKind) -> Result<u64, HoldError> {
        if self.lost {
            return Err(HoldError::Lost);
        }
        let message = RunMessage {
            writer: self.writer,
            epoch: self.epoch,
            index: self.index + 1,
            kind,
        };
        match self.deliver(&message).await {
            Ok((position, sent)) => {
                (self.position, self.index, self.sent) = (position, message.index, sent);
                let bound = self.machine.live_until(self.deadline());
                bound.map_err(|why| {
                    self.lost = true;
                    HoldError::Unbound { why }
                })?;
                Ok(position)
            }
            Err(error) => {
                self.lost = true;
                Err(error)
            }
        }
    }

    /// Tries until the message is in the log, or this worker's time is up. Returns its place, and
    /// the time of the first attempt: whichever attempt was stored was sent then or later.
    async fn deliver(&self, message: &RunMessage) -> Result<(u64, MachineTime), HoldError> {
        let id = MessageId {
            subject: self.subject.clone(),
            writer: self.writer,
            index: message.index,
        };
        let body = message.encode();
        let first_sent = self.machine.now();
        let give_up = MachineTime(
            self.deadline()
                .0
                .saturating_sub(u64::try_from(self.times.margin().as_micros()).unwrap_or(0)),
        );
        let mut why = "another write is under way".to_owned();
        let mut after = self.position;
        loop {
            let now = self.machine.now();
            if now >= give_up {
                return Err(HoldError::Late { why });
            }
            let attempt = (now + self.times.attempt()).min(give_up);
            let look = match self.log.append_if(&id, after, &body, attempt).await {
                AppendAnswer::Stored { position } => return Ok((position, first_sent)),
                AppendAnswer::Impossible { why } => return Err(HoldError::Impossible { why }),
                AppendAnswer::Busy => false,
                AppendAnswer::Refused { .. } => {
                    "the last message of the run's log is another one".clone_into(&mut why);
                    true
                }
                AppendAnswer::Unknown { why: reason } => {
                    why = reason;
                    true
                }
            };
            if look {
                let attempt = (self.machine.now() + self.times.attempt()).min(give_up);
                match self.look(message, &mut after, attempt).await {
                    Ok(Some(position)) => return Ok((position, first_sent)),
                    Ok(None) => {}
                    Err(LookError::Unreachable(unreachable)) => why = unreachable.why,
                    Err(LookError::Fenced { worker }) => return Err(HoldError::Fenced { worker }),
                }
            }
            let pause = self.machine.now() + self.times.pause();
            self.machine.sleep_until(pause).await;
        }
    }

    /// Searches the log for the message, and moves `after` past messages that no gyrus wrote.
    /// `None` if the log does not show what follows: that proves nothing.
    async fn look(
        &self,
        message: &RunMessage,
        after: &mut u64,
        until: MachineTime,
    ) -> Result<Option<u64>, LookError> {
        let shown = self.log.read_from(&self.subject, *after, until).await;
        let shown = shown.map_err(LookError::Unreachable)?;
        let foreign = shown.iter().take_while(|next| is_foreign(&next.body));
        let passed = foreign.inspect(|next| *after = next.position).count();
        let Some(next) = shown.get(passed) else {
            return Ok(None);
        };
        match RunMessage::decode(&next.body) {
            Ok(next_message)
                if next_message.writer == self.writer && next_message.index == message.index =>
            {
                Ok(Some(next.position))
            }
            Ok(RunMessage {
                kind: RunMessageKind::Claimed(claimed),
                ..
            }) => Err(LookError::Fenced {
                worker: claimed.worker,
            }),
            // Whoever wrote this, it was not this worker, so the run is not this worker's.
            _ => Err(LookError::Fenced {
                worker: "unknown".to_owned(),
            }),
        }
    }
}

enum LookError {
    Unreachable(LogUnreachable),
    Fenced { worker: String },
}
