//! The lock of a log: held by one process for as long as it writes, never expiring.
//!
//! The lock itself is the operating system's, so it is released when its process ends, for whatever
//! reason. The record in the file only names the holder; it is cleared on release, and ignored if
//! its process is not alive.

use std::{
    io, thread,
    time::{Duration, Instant},
};

use crate::{
    Disk, DiskFile, Error, Holder, LockMode, LogName, blobs, segment::LogFiles, segment::write_all,
};

/// Time limit for a holder to write its record, or to release the lock while it is dying.
const RECORD_PATIENCE: Duration = Duration::from_secs(2);

/// Time limit for a killed holder to end.
const KILL_PATIENCE: Duration = Duration::from_secs(10);

/// Interval between two attempts on a lock whose holder has not written its record. The state lasts
/// for moments, and the operating system offers no event to wait for.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// Maximum length of a record in bytes.
const RECORD_LIMIT: usize = 4 << 10;

/// The way to take a log that another process may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockWait {
    /// Takes the log only if nobody holds it; otherwise fails with [`Error::Held`].
    IfFree,
    /// Kills the process that holds the log, waits until it has ended, and takes the log. A process
    /// never kills itself: if it holds the log already, this fails with [`Error::Held`] too.
    KillHolder,
}

/// A held lock, which is released when dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    file: Box<dyn DiskFile>,
    pub(crate) holder: Holder,
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Clears the record of this holder; the lock is released with the file.
        let _ = self.file.clear();
    }
}

/// Takes the lock of an existing log.
pub(crate) fn take(files: &LogFiles, how: LockWait) -> Result<Lock, Error> {
    let path = files.lock();
    let failed = |what| Error::io(what, path.clone());
    let mut deadline = Instant::now() + RECORD_PATIENCE;
    loop {
        // The first segment makes a log: no lock is left in a folder that is not a log.
        if !files.has_segment(1)? {
            return Err(Error::NotFound {
                name: files.name.clone(),
            });
        }
        let file = files
            .disk
            .open_lock(&path)
            .map_err(|error| files.missing(error))?;
        if file.try_lock(LockMode::Exclusive).map_err(failed("lock"))? {
            if is_at(files.disk.as_ref(), file.as_ref(), &path) {
                return record(files, file);
            }
            continue;
        }
        match living_holder(files, file.as_ref()) {
            Some(holder) => {
                let me = files.disk.holder().map_err(failed("find out who takes"))?;
                if how == LockWait::IfFree || holder.process == me.process {
                    let holder = Box::new(holder);
                    return Err(Error::Held {
                        name: files.name.clone(),
                        holder,
                    });
                }
                end(&files.name, holder)?;
                deadline = Instant::now() + RECORD_PATIENCE;
            }
            None if Instant::now() < deadline => thread::sleep(LOOK_AGAIN),
            None => {
                return Err(Error::HeldByUnknown {
                    name: files.name.clone(),
                });
            }
        }
    }
}

/// Locks a file that this process just created.
pub(crate) fn take_new(files: &LogFiles) -> Result<Lock, Error> {
    let path = files.lock();
    let file = files
        .disk
        .create_new(&path)
        .map_err(Error::io("create", &path))?;
    if file
        .try_lock(LockMode::Exclusive)
        .map_err(Error::io("lock", &path))?
    {
        record(files, file)
    } else {
        Err(Error::HeldByUnknown {
            name: files.name.clone(),
        })
    }
}

pub(crate) fn holder(files: &LogFiles) -> Result<Option<Holder>, Error> {
    let path = files.lock();
    let deadline = Instant::now() + RECORD_PATIENCE;
    loop {
        let file = match files.disk.open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io("open", path)(error)),
        };
        // Shared, so that two queries do not find each other. A process that takes the log at this
        // moment finds a lock without a record and tries again.
        if file
            .try_lock(LockMode::Shared)
            .map_err(Error::io("lock", &path))?
        {
            return Ok(None);
        }
        if let Some(holder) = living_holder(files, file.as_ref()) {
            return Ok(Some(holder));
        }
        if Instant::now() >= deadline {
            return Err(Error::HeldByUnknown {
                name: files.name.clone(),
            });
        }
        thread::sleep(LOOK_AGAIN);
    }
}

fn record(files: &LogFiles, file: Box<dyn DiskFile>) -> Result<Lock, Error> {
    let path = files.lock();
    let failed = |what| Error::io(what, path.clone());
    let holder = files.disk.holder().map_err(failed("find out who takes"))?;
    let text = serde_json::to_vec(&holder).expect("a holder has string keys only");
    file.clear().map_err(failed("write"))?;
    match write_all(file.as_ref(), &text) {
        // The lock holds without its record. Removing needs it, and makes room.
        Err(error) if error.kind() == io::ErrorKind::StorageFull => {}
        written => written.map_err(failed("write"))?,
    }
    Ok(Lock { file, holder })
}

fn living_holder(files: &LogFiles, file: &dyn DiskFile) -> Option<Holder> {
    if file.metadata().ok()?.len > RECORD_LIMIT as u64 {
        return None;
    }
    let text = blobs::read_whole(file).ok()??;
    let holder: Holder = serde_json::from_slice(&text).ok()?;
    files.disk.lives(&holder).then_some(holder)
}

fn end(name: &LogName, holder: Holder) -> Result<(), Error> {
    let killed = holder.process.kill().and_then(|()| {
        if holder.process.wait_gone(KILL_PATIENCE)? {
            return Ok(());
        }
        let why = format!("it was killed and is still there after {KILL_PATIENCE:?}");
        Err(io::Error::new(io::ErrorKind::TimedOut, why))
    });
    killed.map_err(|source| Error::NotKilled {
        name: name.clone(),
        holder: Box::new(holder),
        source,
    })
}

/// Whether an open file still has this name: a log that was removed keeps its locks for a moment.
pub(crate) fn is_at(disk: &dyn Disk, file: &dyn DiskFile, path: &std::path::Path) -> bool {
    match (file.metadata(), disk.metadata(path)) {
        (Ok(open), Ok(named)) => open.inode == named.inode,
        _ => false,
    }
}
