//! Git's own locks (`index.lock`, `HEAD.lock`, `refs/heads/main.lock` …), taken so that a later
//! process can distinguish them from those of others.
//!
//! One file, which holds the token of the plan, is linked under the name of each lock: a lock is
//! there with its whole content, or not at all, and it is ours if that content is the token.

use std::{
    cell::Cell,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use rustix::io::Errno;

use super::{
    carried::CarryError,
    folder::{GitFolder, Modes, PathKind},
    plan::CarryPlan,
};

/// Total time limit for waiting for locks of other processes.
const TIMEOUT: Duration = Duration::from_millis(500);

/// The locks of a carry-over in one store, with its folder there. Dropping this releases nothing:
/// after an error, as after a kill, the next process finishes the carry-over.
pub(super) struct Locks<'a> {
    pub(super) live: &'a GitFolder,
    pub(super) modes: Modes,
    stage: PathBuf,
    token: String,
    deadline: Instant,
    files: Cell<usize>,
    held: Vec<PathBuf>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum LockResult {
    Held,
    /// A file is in the place of its folder.
    NoFolder,
}

impl<'a> Locks<'a> {
    /// Creates the locks with none taken and nothing written, so that only those of a killed
    /// process can be released.
    pub(super) fn new(
        live: &'a GitFolder,
        store: &Path,
        plan: &CarryPlan,
    ) -> Result<Self, CarryError> {
        Ok(Self {
            live,
            modes: live.modes()?,
            stage: plan.stage(store),
            token: format!("gyrus {}\n", plan.token),
            deadline: Instant::now() + TIMEOUT,
            files: Cell::new(0),
            held: Vec::new(),
        })
    }

    /// Prepares to take locks; a process that was killed may have prepared already.
    pub(super) fn prepare(&self) -> Result<(), CarryError> {
        let live = self.live;
        // The lock's own file stays, because held locks are links to it.
        for name in live.names(&self.stage)? {
            if name != b"lock" {
                live.remove_tree(&self.stage.join(String::from_utf8_lossy(&name).as_ref()))?;
            }
        }
        live.make_folder(&self.stage, self.modes)?;
        // A piece of it, of a process that was killed while it wrote, is held by no lock.
        if !self.is_own(&self.file())? {
            live.remove_tree(&self.file())?;
            live.write_new(&self.file(), self.token.as_bytes(), self.modes.file)?;
        }
        Ok(())
    }

    fn file(&self) -> PathBuf {
        self.stage.join("lock")
    }

    /// Takes the lock of the file at `path`.
    ///
    /// # Errors
    /// [`CarryError::Locked`] if another process holds it for longer than this waits.
    pub(super) fn take(&mut self, path: &Path) -> Result<LockResult, CarryError> {
        let lock = lock_of(path);
        let above = lock.parent().unwrap_or(Path::new(""));
        let mut pause = Duration::from_millis(1);
        loop {
            match self.live.make_folder(above, self.modes) {
                Ok(()) => {}
                Err(failed) if failed.error == Errno::NOTDIR => return Ok(LockResult::NoFolder),
                Err(failed) => return Err(failed.into()),
            }
            match self.live.link(&self.file(), &lock) {
                Ok(()) => break,
                Err(failed) if failed.error == Errno::EXIST => {
                    if self.is_own(&lock)? {
                        break;
                    }
                    if Instant::now() >= self.deadline {
                        let path = self.live.path().join(lock);
                        return Err(CarryError::Locked { path });
                    }
                    thread::sleep(pause);
                    pause = (pause * 2).min(Duration::from_millis(50));
                }
                // Git removes empty folders.
                Err(failed) if failed.error == Errno::NOENT && Instant::now() < self.deadline => {}
                Err(failed) if failed.error == Errno::NOTDIR => return Ok(LockResult::NoFolder),
                Err(failed) if failed.error == Errno::PERM || failed.error == Errno::OPNOTSUPP => {
                    let reason = "its file system has no hard links".to_owned();
                    return Err(CarryError::Refused { reason });
                }
                Err(failed) => return Err(failed.into()),
            }
        }
        self.held.push(lock);
        Ok(LockResult::Held)
    }

    /// Releases the locks of references in the folder `path`, which becomes a file.
    pub(super) fn release_below(&mut self, path: &Path) -> Result<(), CarryError> {
        let (below, held) = self
            .held
            .drain(..)
            .partition(|lock| lock.parent() == Some(path));
        self.held = held;
        let below: Vec<PathBuf> = below;
        for lock in below {
            self.live.remove_file(&lock)?;
        }
        Ok(())
    }

    fn is_own(&self, lock: &Path) -> Result<bool, CarryError> {
        // The lock of another process may contain a whole index.
        let content = self.live.read(lock, super::index::MAX_INDEX);
        Ok(content.is_ok_and(|content| content.as_deref() == Some(self.token.as_bytes())))
    }

    /// Writes a file of this carry-over, to be renamed to its place.
    pub(super) fn stage(&self, content: &[u8], durable: bool) -> Result<PathBuf, CarryError> {
        let path = self.stage_name();
        self.live.write_new(&path, content, self.modes.file)?;
        if durable {
            self.live.sync_file(&path)?;
        }
        Ok(path)
    }

    /// Returns an unused name in this carry-over's folder.
    pub(super) fn stage_name(&self) -> PathBuf {
        self.files.set(self.files.get() + 1);
        self.stage.join(self.files.get().to_string())
    }

    /// Releases all locks of this carry-over, and those that a killed process took and `others`
    /// names, and removes the folder of the carry-over.
    pub(super) fn release(self, others: &[PathBuf]) -> Result<(), CarryError> {
        let others: Vec<_> = others.iter().map(|path| lock_of(path)).collect();
        for lock in self.held.iter().chain(&others) {
            if self.live.kind(lock)? == PathKind::File && self.is_own(lock)? {
                self.live.remove_file(lock)?;
            }
        }
        self.live.remove_tree(&self.stage)?;
        Ok(())
    }
}

fn lock_of(path: &Path) -> PathBuf {
    let mut lock = path.as_os_str().to_owned();
    lock.push(".lock");
    PathBuf::from(lock)
}
