//! The state of a run's log: the fold of its messages.

use std::time::Duration;

use gyrus_contract::Digest;

use crate::{ClaimWords, LeaseTimes, RunMessage, RunMessageKind, WriterId};

/// The state of a run's log up to a message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunStanding {
    /// The position of the last message; 0 if there is none.
    pub position: u64,
    /// The number of the last claim; 0 if there was none.
    pub epoch: u64,
    /// The worker that drives the run; `None` if it was let go.
    pub holder: Option<RunHolder>,
    /// The number of the journal's last entry; 0 if it has none.
    pub entries: u64,
    /// The hash of the last entry, if there is one.
    pub head: Option<Digest>,
    /// Number of claims since the journal's last entry.
    pub fruitless_claims: u32,
}

/// The worker that drives a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunHolder {
    /// The id of the claim that writes the run's messages.
    pub writer: WriterId,
    /// The number of the worker's last message.
    pub index: u64,
    /// The content of the worker's claim.
    pub claimed: ClaimWords,
}

impl RunHolder {
    /// Returns the times of the lease, which the worker chose.
    pub fn times(&self) -> LeaseTimes {
        LeaseTimes::new(Duration::from_millis(self.claimed.lease_ms))
    }
}

/// A message that no worker could have appended: the shared log broke its word, or somebody else
/// writes into it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the message at {position} of the run's log contradicts those before it: {why}")]
pub struct Inconsistent {
    /// The position of the message.
    pub position: u64,
    pub why: String,
}

impl RunStanding {
    /// Applies the next message.
    ///
    /// # Errors
    /// The message contradicts the state, which then stays unchanged.
    pub fn apply(&mut self, position: u64, message: &RunMessage) -> Result<(), Inconsistent> {
        let inconsistent = |why: &str| Inconsistent {
            position,
            why: why.to_owned(),
        };
        if position <= self.position {
            return Err(inconsistent("it is not after them"));
        }
        if let RunMessageKind::Claimed(claimed) = &message.kind {
            if message.epoch != self.epoch + 1 || message.index != 0 {
                return Err(inconsistent("it claims the run under a wrong number"));
            }
            self.epoch = message.epoch;
            self.fruitless_claims += 1;
            self.holder = Some(RunHolder {
                writer: message.writer,
                index: 0,
                claimed: claimed.clone(),
            });
            self.position = position;
            return Ok(());
        }
        let epoch = self.epoch;
        let holder = self
            .holder
            .as_mut()
            .filter(|holder| holder.writer == message.writer && message.epoch == epoch)
            .ok_or_else(|| inconsistent("its writer does not hold the run"))?;
        if message.index != holder.index + 1 {
            return Err(inconsistent("a message of its writer is missing"));
        }
        match &message.kind {
            RunMessageKind::Entries(lines) => {
                if lines.first != self.entries + 1 || lines.last < lines.first {
                    return Err(inconsistent("its entries do not follow"));
                }
                if self.head.is_some_and(|head| head != lines.previous) {
                    return Err(inconsistent("its entries follow another one"));
                }
                (self.entries, self.head) = (lines.last, Some(lines.head));
                self.fruitless_claims = 0;
                holder.index = message.index;
            }
            RunMessageKind::Renewed | RunMessageKind::Blobs(_) => holder.index = message.index,
            RunMessageKind::Released => self.holder = None,
            RunMessageKind::Claimed(_) => unreachable!("it returned above"),
        }
        self.position = position;
        Ok(())
    }
}
