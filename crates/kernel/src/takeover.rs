//! Taking a run's screen over by a person. The run begins nothing meanwhile, not even a look; the
//! journal records who had it, for how long and what they told the run, and nothing else.

use std::time::Instant;

use gyrus_contract::Principal;
use gyrus_journal::Writer;
use tokio::sync::OwnedRwLockWriteGuard;

use crate::{Controls, Kernel, Stop, TakeoverEnded, TakeoverStarted, log::RunLog};

/// The handle for taking over one run's screen. Clones control the same run.
#[derive(Clone)]
pub struct Takeovers {
    kernel: Kernel,
    writer: Writer,
    controls: Controls,
}

impl Takeovers {
    pub(crate) fn new(kernel: Kernel, writer: Writer, controls: Controls) -> Self {
        Self {
            kernel,
            writer,
            controls,
        }
    }

    /// Waits until the run has no effect in progress, and prevents new ones while the returned
    /// value lives; returns `None` when the run has ended.
    pub async fn begin(&self, by: Principal) -> Result<Option<Takeover>, Stop> {
        let Some(alone) = self.controls.alone().await else {
            return Ok(None);
        };
        let log = RunLog::live(self.writer.clone())?;
        log.append(TakeoverStarted { by: by.clone() })?;
        log.barrier().await?;
        Ok(Some(Takeover {
            of: self.clone(),
            log,
            by,
            since: Instant::now(),
            _alone: alone,
        }))
    }
}

/// A screen that a person controls. If it is dropped without [`Takeover::end`], the journal does
/// not record its duration.
pub struct Takeover {
    of: Takeovers,
    log: RunLog,
    by: Principal,
    since: Instant,
    _alone: OwnedRwLockWriteGuard<bool>,
}

impl Takeover {
    /// Waits until the run must pause or stop, which a person at its screen does not delay.
    pub async fn interrupted(&self) {
        self.of.controls.paused().await;
    }

    /// Gives the screen back to the run.
    pub async fn end(self, words: Option<&str>) -> Result<(), Stop> {
        let redactor = &self.of.kernel.organs().redactor;
        self.log.append(TakeoverEnded {
            by: self.by,
            took_ms: u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX),
            words: words.map(|words| redactor.redact(words).into_owned()),
        })?;
        self.log.barrier().await
    }
}
