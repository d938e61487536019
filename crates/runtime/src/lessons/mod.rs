//! Lessons of finished runs, for later runs with similar goals.
//!
//! The one idea: lessons are a ledger of their own, so that they outlive the journals that they were
//! read from, and what a person decided about them is kept beside them. A run that was given lessons
//! counts for or against each of them once it has ended; a lesson that more runs fail with is no
//! longer given, and never deleted. The words are a model's: whoever gives them to a run says so.

mod record;
mod similar;

use std::{
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use gyrus_journal::Store;

pub use self::{
    record::{
        GivenTo, Lesson, LessonBook, LessonDecision, LessonFact, LessonRecord, MORE_FAILURES,
    },
    similar::LessonSubject,
};
use crate::ledger::{Ledger, LedgerError};

const ID: &str = "main";

/// Time limit for a change to wait for its turn.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Time between two tries to have a turn.
const BETWEEN_TRIES: Duration = Duration::from_millis(5);

#[derive(Debug, thiserror::Error)]
pub enum LessonError {
    /// The ledger cannot be read or written.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// A file beside the ledger cannot be used.
    #[error("{path} cannot be used", path = path.display())]
    File { path: PathBuf, source: io::Error },
    /// Another process has held the lock of the lessons for too long.
    #[error("another process is changing the lessons")]
    Busy,
    #[error("there is no lesson {0}")]
    Unknown(u64),
}

/// The lessons of a person's runs. Clones are the same lessons.
#[derive(Debug, Clone)]
pub struct Lessons {
    store: Store,
    folder: PathBuf,
}

impl Lessons {
    /// Returns the lessons of a store. Nothing is made before it is needed.
    pub fn of(store: &Store, folder: &Path) -> Self {
        Self {
            store: store.clone(),
            folder: folder.to_owned(),
        }
    }

    pub fn all(&self) -> Result<LessonBook, LessonError> {
        Ok(Ledger::read(&self.store, ID)?)
    }

    /// Returns the lessons that fit a new run best and are not retired, the best first. Of several
    /// with the same words one is returned.
    pub fn similar(
        &self,
        subject: &LessonSubject<'_>,
        most: usize,
    ) -> Result<Vec<Lesson>, LessonError> {
        Ok(similar::best(&self.all()?, subject, most))
    }

    /// Adds the facts that `facts` derives from the present lessons, in one process at a time.
    pub fn change<E: From<LessonError>>(
        &self,
        facts: impl FnOnce(&LessonBook) -> Result<Vec<LessonFact>, E>,
    ) -> Result<(), E> {
        let _turn = self.take_turn()?;
        let mut ledger = Ledger::<LessonBook>::open(&self.store, ID).map_err(LessonError::from)?;
        let new = facts(ledger.state())?;
        if new.is_empty() {
            return Ok(());
        }
        ledger.append(new).map_err(LessonError::from)?;
        let on_disk = ledger.writer().barrier_blocking();
        on_disk.map_err(|error| LessonError::Ledger(error.into()))?;
        Ok(())
    }

    /// Waits a bounded time until no other process changes the lessons. The lock ends with its
    /// process.
    fn take_turn(&self) -> Result<File, LessonError> {
        fs::create_dir_all(&self.folder).map_err(at(&self.folder))?;
        let path = self.folder.join("lock");
        let lock = File::create(&path).map_err(at(&path))?;
        let begun = Instant::now();
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(lock),
                Err(TryLockError::WouldBlock) if begun.elapsed() < TIMEOUT => {
                    thread::sleep(BETWEEN_TRIES);
                }
                Err(TryLockError::WouldBlock) => return Err(LessonError::Busy),
                Err(TryLockError::Error(source)) => return Err(at(&path)(source)),
            }
        }
    }
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> LessonError {
    let path = path.to_owned();
    move |source| LessonError::File { path, source }
}

#[cfg(test)]
mod tests;
