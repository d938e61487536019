//! Taking a run's log, so that this worker alone drives the run.

use std::sync::Arc;

use crate::{
    AppendAnswer, ClaimWords, Hold, LeaseTimes, Machine, MachineTime, MessageId, ReadError,
    RunHolder, RunMessage, RunMessageKind, RunReading, SharedLog, WriterId, reading::Sink,
};

/// The way to proceed with a run that another worker holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Leave the run to that worker.
    No,
    /// Wait until that worker must have been killed, and take the run unless it showed up meanwhile.
    Succeed {
        /// The position of the run's last message, with a time after which this was seen on this
        /// machine.
        seen: Option<(u64, MachineTime)>,
    },
    /// Take the run at once: the caller knows that everything of that worker's run is dead.
    Dead,
}

/// A run's log cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClaimError {
    #[error("worker {} drives the run", holder.claimed.worker)]
    Held {
        holder: Box<RunHolder>,
        /// The position of the log's last message.
        position: u64,
    },
    /// The log cannot be read or written until the time that was given.
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("the shared log does not take the claim: {why}")]
    Impossible { why: String },
    /// It is unknown whether the claim is in the log; if it is, nobody acts on it.
    #[error("the shared log did not answer in time: {why}")]
    Unanswered { why: String },
}

/// The author of a claim, and the id of its messages.
pub struct Claimant<'a> {
    pub log: &'a Arc<dyn SharedLog>,
    pub machine: &'a Arc<dyn Machine>,
    /// A new name, never used before.
    pub writer: WriterId,
    /// The words of the claim.
    pub claimed: ClaimWords,
}

/// Takes a run's log after reading all of it. `sink` gets its messages, this claim included. Gives
/// up at `until` if the log does not answer.
///
/// # Errors
/// Another worker holds it, or the log cannot be read or written.
pub async fn claim(
    claimant: Claimant<'_>,
    reading: &mut RunReading,
    sink: &mut Sink<'_>,
    wait: Wait,
    until: MachineTime,
) -> Result<Hold, ClaimError> {
    let mut claiming = ClaimAttempt {
        claimant,
        wait,
        until,
        first_sent: None,
        why: "it was not asked yet".to_owned(),
    };
    loop {
        claiming.catch_up(reading, sink).await?;
        if let Some(hold) = claiming.landed(reading)? {
            return Ok(hold);
        }
        if !claiming.may_take(reading).await? {
            continue;
        }
        if let Some(message) = claiming.attempt(reading).await? {
            let (position, message) = message;
            let standing = &mut reading.standing;
            standing
                .apply(position, &message)
                .map_err(ReadError::from)?;
            sink(&message).map_err(ReadError::Copy)?;
        }
    }
}

struct ClaimAttempt<'a> {
    claimant: Claimant<'a>,
    wait: Wait,
    until: MachineTime,
    /// The time of the first attempt, from which the lease counts whichever attempt is stored.
    first_sent: Option<MachineTime>,
    why: String,
}

impl ClaimAttempt<'_> {
    fn times(&self) -> LeaseTimes {
        LeaseTimes::new(std::time::Duration::from_millis(
            self.claimant.claimed.lease_ms,
        ))
    }

    fn now(&self) -> MachineTime {
        self.claimant.machine.now()
    }

    /// Reads the existing messages until the given time.
    async fn catch_up(
        &mut self,
        reading: &mut RunReading,
        sink: &mut Sink<'_>,
    ) -> Result<(), ClaimError> {
        loop {
            let attempt = (self.now() + self.times().attempt()).min(self.until);
            let log = &**self.claimant.log;
            match reading.catch_up(log, sink, attempt).await {
                Ok(_) => return Ok(()),
                Err(ReadError::Unreachable(unreachable)) if self.now() < self.until => {
                    self.why = unreachable.why;
                    self.pause().await;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn pause(&self) {
        let machine = self.claimant.machine;
        machine
            .sleep_until(machine.now() + self.times().pause())
            .await;
    }

    /// Returns the hold if the claim is in the log and still valid.
    fn landed(&self, reading: &RunReading) -> Result<Option<Hold>, ClaimError> {
        let Some(first_sent) = self.first_sent else {
            return Ok(None);
        };
        let is_ours = |holder: &&RunHolder| holder.writer == self.claimant.writer;
        if reading
            .standing
            .holder
            .as_ref()
            .is_none_or(|holder| !is_ours(&holder))
        {
            return if self.now() < self.until {
                Ok(None)
            } else {
                Err(ClaimError::Unanswered {
                    why: self.why.clone(),
                })
            };
        }
        let times = self.times();
        if self.now() + times.margin() >= first_sent + times.lease() {
            return Err(ClaimError::Unanswered {
                why: "the answer came when the lease was nearly over".to_owned(),
            });
        }
        let hold = Hold::new(
            Arc::clone(self.claimant.log),
            Arc::clone(self.claimant.machine),
            reading,
            self.claimant.writer,
            times,
            first_sent,
        );
        match hold {
            Ok(hold) => Ok(Some(hold)),
            Err(why) => Err(ClaimError::Impossible { why }),
        }
    }

    /// Whether the run may be taken now. Waits if it may be later.
    async fn may_take(&mut self, reading: &RunReading) -> Result<bool, ClaimError> {
        let Some(holder) = &reading.standing.holder else {
            return Ok(true);
        };
        let position = reading.standing.position;
        let held = || ClaimError::Held {
            holder: Box::new(holder.clone()),
            position,
        };
        match self.wait {
            Wait::No => Err(held()),
            Wait::Dead => Ok(true),
            Wait::Succeed { seen: None } => {
                // After the read: the last message was sent before now.
                let seen = Some((position, self.now()));
                self.wait = Wait::Succeed { seen };
                Ok(false)
            }
            Wait::Succeed {
                seen: Some((place, _)),
            } if place != position => Err(held()),
            Wait::Succeed {
                seen: Some((_, at)),
            } => {
                let free = at + holder.times().succession();
                if self.now() >= free {
                    return Ok(true);
                }
                self.until = self.until.max(free + self.times().lease());
                // Looks in between, so that a worker that lives is soon left alone, and one that
                // died after all is waited for from its last message on.
                let look = self.now() + holder.times().renew_after();
                self.claimant.machine.sleep_until(free.min(look)).await;
                Ok(false)
            }
        }
    }

    /// Tries the claim once; returns it with its place if it was stored.
    async fn attempt(
        &mut self,
        reading: &RunReading,
    ) -> Result<Option<(u64, RunMessage)>, ClaimError> {
        let message = RunMessage {
            writer: self.claimant.writer,
            epoch: reading.standing.epoch + 1,
            index: 0,
            kind: RunMessageKind::Claimed(self.claimant.claimed.clone()),
        };
        let id = MessageId {
            subject: reading.subject.clone(),
            writer: self.claimant.writer,
            index: 0,
        };
        let now = self.now();
        self.first_sent.get_or_insert(now);
        let attempt = (now + self.times().attempt()).min(self.until);
        let log = self.claimant.log;
        let expected = reading.standing.position;
        match log
            .append_if(&id, expected, &message.encode(), attempt)
            .await
        {
            AppendAnswer::Stored { position } if position > expected => {
                return Ok(Some((position, message)));
            }
            AppendAnswer::Stored { .. } | AppendAnswer::Busy => {
                self.why = "another write is under way".to_owned();
            }
            AppendAnswer::Refused { .. } => self.why = "others write too".to_owned(),
            AppendAnswer::Unknown { why } => self.why = why,
            AppendAnswer::Impossible { why } => return Err(ClaimError::Impossible { why }),
        }
        self.pause().await;
        Ok(None)
    }
}
