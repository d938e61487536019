//! The two kinds of error of an effect: a [`Stop`] ends the cycle, and loops pass it on with `?` and
//! never catch it; a failure is the loop's to handle.

use std::fmt;

use gyrus_contract::EffectId;

use crate::{BadBlob, Ending, UnreadableEntry};

/// The reason why an effect does not return. A failing tool is not a stop but an observation.
///
/// A loop that ignores one gains nothing: every later effect of the run returns it again.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Stop {
    /// The run stops for now and can be resumed.
    #[error("the run parks")]
    Park(Box<Ending>),
    /// The loop cannot continue.
    #[error("{0}")]
    Failed(String),
    /// The loop acts differently from the record.
    #[error(transparent)]
    Divergence(Box<Divergence>),
    /// A replay reached the end of the record.
    #[error("the record ends here")]
    EndOfRecord,
    /// The journal cannot be written or read.
    #[error(transparent)]
    Journal(#[from] std::sync::Arc<gyrus_journal::Error>),
    /// The journal holds an entry that cannot be read.
    #[error(transparent)]
    Unreadable(#[from] UnreadableEntry),
    /// A blob has other content than its entry requires.
    #[error(transparent)]
    BadBlob(#[from] BadBlob),
}

impl From<gyrus_journal::Error> for Stop {
    fn from(error: gyrus_journal::Error) -> Self {
        Stop::Journal(std::sync::Arc::new(error))
    }
}

impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Self {
        Stop::Failed(error.to_string())
    }
}

impl From<Divergence> for Stop {
    fn from(divergence: Divergence) -> Self {
        Stop::Divergence(Box::new(divergence))
    }
}

impl From<Ending> for Stop {
    fn from(ending: Ending) -> Self {
        Stop::Park(Box::new(ending))
    }
}

/// The error of an effect, or of a step made of effects, that can also fail in a way that the loop
/// handles.
#[derive(Debug)]
pub enum EffectError<E> {
    /// The cycle ends.
    Stop(Stop),
    /// The effect failed, and the loop continues.
    Failed(E),
}

impl<E> EffectError<E> {
    /// Returns the failure, for the loop to handle.
    ///
    /// # Errors
    /// Returns the [`Stop`], to be passed on.
    pub fn handled(self) -> Result<E, Stop> {
        match self {
            EffectError::Stop(stop) => Err(stop),
            EffectError::Failed(failure) => Ok(failure),
        }
    }
}

impl<E> From<Stop> for EffectError<E> {
    fn from(stop: Stop) -> Self {
        EffectError::Stop(stop)
    }
}

impl<E> From<Ending> for EffectError<E> {
    fn from(ending: Ending) -> Self {
        EffectError::Stop(ending.into())
    }
}

/// A loop, run again, acted differently: it is not deterministic, or its code has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Divergence {
    /// The effect at which the loop differs.
    pub effect: EffectId,
    /// The recorded entry.
    pub recorded: String,
    /// The loop's action now.
    pub now: String,
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the loop diverges from its journal at effect {}: recorded was {}, but now it does {}",
            self.effect, self.recorded, self.now
        )
    }
}

impl std::error::Error for Divergence {}
