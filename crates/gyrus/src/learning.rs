//! Learning from a run that is over: its lesson, the note of its end, and its procedure.
//!
//! Nothing is learned from a record. All of it is read from the run's journal, and names the run, so doing it twice changes nothing.
//! While a run may still teach something a mark names it, which its process keeps locked. A mark
//! that nobody locks was left by a process that was killed, and whoever starts next learns from that
//! run. So nothing has to look through old journals.

use std::{
    fs::{self, File, TryLockError},
    io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use gyrus::runtime::Home;
use gyrus_contract::RunId;
use gyrus_journal::{LogReader, Store};
use gyrus_kernel::{Ending, Entry, is_record, log_name};
use gyrus_surfaces::console::put;
use gyrus_text::readable;

use crate::{
    config::Config,
    failure::Failure,
    lessons, memory,
    procedures::{self, ProcedureUpdate},
};

/// The folder of the marks, in the state folder.
const MARKS: &str = "learning";

/// Maximum number of runs that are learned from at one start.
const MAX_CAUGHT_UP: usize = 16;

/// Maximum number of marks that are examined at one start.
const MAX_MARKS: usize = 1_000;

/// A run from which something may still be learned. The mark stays on disk until the run was
/// learned from.
pub(crate) struct LearningMark {
    run: RunId,
    mark: PathBuf,
    /// Lock of the mark, which keeps others from learning from the run meanwhile.
    _lock: File,
}

impl LearningMark {
    /// Marks a run that is about to be driven. A child run is never marked.
    pub(crate) fn begin(home: &Home, run: RunId) -> Option<Self> {
        if !run.is_root() {
            return None;
        }
        let folder = home.state.join(MARKS);
        let mark = folder.join(run.to_string());
        let made = || {
            fs::create_dir_all(&folder)?;
            let lock = lock_mark(&mark)?;
            File::open(&folder)?.sync_all()?;
            Ok::<_, io::Error>(lock)
        };
        match made() {
            Ok(lock) => Some(Self {
                run,
                mark,
                _lock: lock,
            }),
            Err(error) => {
                let error =
                    Failure::failed(format!("{} cannot be made", mark.display())).because(&error);
                tell("nothing is learned from this run", &error);
                None
            }
        }
    }

    /// Takes over the mark of a process that was killed.
    fn abandoned(folder: &Path, run: RunId) -> Option<Self> {
        let mark = folder.join(run.to_string());
        let lock = File::options().write(true).open(&mark).ok()?;
        match lock.try_lock() {
            Ok(()) => is_at(&lock, &mark).then_some(Self {
                run,
                mark,
                _lock: lock,
            }),
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => None,
        }
    }

    /// Learns from the run if it has ended or is parked, and returns the procedure that the run
    /// added. A run that goes on later is marked again then.
    pub(crate) fn finish(
        self,
        home: &Home,
        store: &Store,
        config: &Config,
    ) -> Option<ProcedureUpdate> {
        match self.learn(home, store, config) {
            Ok(added) => {
                // A mark that stays is looked at once more.
                let _ = fs::remove_file(&self.mark);
                added
            }
            Err(failure) => {
                let run = self.run.short();
                tell(
                    &format!("not all of run {run} was learned; the next start tries again"),
                    &failure,
                );
                None
            }
        }
    }

    fn learn(
        &self,
        home: &Home,
        store: &Store,
        config: &Config,
    ) -> Result<Option<ProcedureUpdate>, Failure> {
        let name = log_name(self.run);
        if !store.exists(&name) || is_record(store, self.run) {
            return Ok(None);
        }
        let Some((ending, at_ms)) = end(&store.reader(&name)?)? else {
            return Ok(None);
        };
        // What fails keeps nothing else from being learned.
        let lesson = lessons::settle(&lessons::of_home(home, store), store, self.run);
        let note = memory::note_end(home, store, config, (self.run, &ending, at_ms));
        let procedure = procedures::after_run(store, self.run);
        let mirrored = procedures::mirror(home, store);
        lesson.and(note).and(mirrored)?;
        Ok(procedure?.ok())
    }
}

/// Learns from the runs whose processes were killed before the runs were learned from.
pub(crate) fn catch_up(home: &Home, config: &Config) -> Result<(), Failure> {
    let folder = home.state.join(MARKS);
    let names = fs::read_dir(&folder).into_iter().flatten().take(MAX_MARKS);
    let mut runs: Vec<RunId> = names
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    if runs.is_empty() {
        return Ok(());
    }
    // In the order of their starts, in which they would have been learned from.
    runs.sort_unstable();
    let store = home.store()?;
    let left = runs.into_iter();
    for learning in left
        .filter_map(|run| LearningMark::abandoned(&folder, run))
        .take(MAX_CAUGHT_UP)
    {
        learning.finish(home, &store, config);
    }
    Ok(())
}

/// Returns how a run ended or parked, and when.
fn end(reader: &LogReader) -> Result<Option<(Ending, i64)>, Failure> {
    let Some(last) = reader.entries_back()?.next().transpose()? else {
        return Ok(None);
    };
    Ok(match gyrus_kernel::parse(&last) {
        Ok(Entry::RunEnded(ended)) => Some((ended.ending, last.at_ms)),
        Ok(Entry::RunParked(parked)) => Some((parked.ending, last.at_ms)),
        _ => None,
    })
}

/// Creates a mark and locks it. Another process that holds the lock is learning from the run, and
/// removes the mark.
fn lock_mark(mark: &Path) -> io::Result<File> {
    loop {
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(mark)?;
        file.lock()?;
        if is_at(&file, mark) {
            return Ok(file);
        }
    }
}

/// Whether an open file is still the file at this path.
fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::metadata(path)) {
        (Ok(open), Ok(named)) => (open.dev(), open.ino()) == (named.dev(), named.ino()),
        (Ok(_) | Err(_), _) => false,
    }
}

fn tell(what: &str, why: &Failure) {
    // Without anybody to tell, the run goes on all the same.
    let _ = put(&format!("{what}: {}\n", readable(&why.to_string())));
}
