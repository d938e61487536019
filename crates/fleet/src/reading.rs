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
    /// A message contradicts earlier ones.
    #[error(transparent)]
    Inconsistent(#[from] Inconsistent),
    /// The local copy cannot be written.
    #[error("the local copy of the run cannot be kept: {0}")]
    Copy(String),
}

/// Function that receives the messages of a log in order, and returns the reason if it cannot.
pub(crate) type Sink<'a> = dyn FnMut(&RunMessage) -> Result<(), String> + Send + 'a;

/// A run's log, up to the last message that was read.
#[derive(Debug, Clone)]
pub struct RunReading {
    /// The name of the log.
    pub subject: LogSubject,
    /// The state that follows from the messages read so far.
    pub standing: RunStanding,
}

impl RunReading {
    /// Creates a reader of a log that begins at the first message.
    pub fn new(subject: LogSubject) -> Self {
        Self {
            subject,
            standing: RunStanding::default(),
        }
    }

    /// Reads the messages that the engine shows beyond the last read one; that may be less than
    /// there is. Returns the number of messages.
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
