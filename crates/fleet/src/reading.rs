//! Reading a run's log as far as the engine shows it.

use crate::{
    BadMessage, Inconsistent, LogSubject, LogUnreachable, MachineTime, RunMessage, RunStanding,
    SharedLog, message::is_foreign,
};

/// A run's log cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The engine does not answer.
    #[error(transparent)]
    Unreachable(#[from] LogUnreachable),
    /// A message cannot be read.
    #[error(transparent)]
    Bad(#[from] BadMessage),
    /// A message contradicts those before it.
    #[error(transparent)]
    Inconsistent(#[from] Inconsistent),
    /// Whoever keeps the local copy cannot.
    #[error("the local copy of the run cannot be kept: {0}")]
    Copy(String),
}

/// Takes the messages of a log, in order, as they are read. It says why if it cannot.
pub(crate) type Sink<'a> = dyn FnMut(&RunMessage) -> Result<(), String> + Send + 'a;

/// A run's log as far as it was read.
#[derive(Debug, Clone)]
pub struct RunReading {
    /// The name of the log.
    pub subject: LogSubject,
    /// The state that follows from what was read.
    pub standing: RunStanding,
}

impl RunReading {
    /// Begins to read a log from its first message.
    pub fn new(subject: LogSubject) -> Self {
        Self {
            subject,
            standing: RunStanding::default(),
        }
    }

    /// Reads what the engine shows beyond what was read; that may be less than there is. Returns the
    /// number of messages.
    ///
    /// # Errors
    /// Messages before the error were taken.
    pub async fn catch_up(
        &mut self,
        log: &dyn SharedLog,
        sink: &mut Sink<'_>,
        until: MachineTime,
    ) -> Result<usize, ReadError> {
        let mut count = 0;
        loop {
            let after = self.standing.position;
            let messages = log.read_from(&self.subject, after, until).await?;
            if messages.is_empty() {
                return Ok(count);
            }
            count += messages.len();
            for stored in messages {
                let message = match RunMessage::decode(&stored.body) {
                    Ok(message) => message,
                    Err(_) if is_foreign(&stored.body) => {
                        self.standing.position = stored.position;
                        continue;
                    }
                    Err(error) => return Err(error.into()),
                };
                self.standing.apply(stored.position, &message)?;
                sink(&message).map_err(ReadError::Copy)?;
            }
        }
    }
}
