//! The folders of sandboxes: temporary files of runs, and their changes of shared caches.
//!
//! The folder of a run lasts as long as the run can go on. It is locked by the process that uses
//! it, so that another process which removes what killed ones left never takes one that is in use.

use std::{
    collections::BTreeMap,
    ffi::CStr,
    fs::{self, File},
    io,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd},
        unix::fs::MetadataExt,
    },
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use gyrus_contract::RunId;
use gyrus_journal::Store;
use gyrus_kernel::{Entry, log_name, parse};
use parking_lot::Mutex;
use rustix::{
    fs::{AtFlags, CWD, Dir, Mode, OFlags, openat, unlinkat},
    io::Errno,
};

use super::{Home, RuntimeError};

/// Prefix of the names of folders that wait to be removed.
const REMOVED: &str = "removed-";

/// Prefixes of the names of folders that belong to a process, before the process's id.
const OF_PROCESSES: [&str; 2] = ["mcp-", "probe-"];

/// Maximum time for removing folders at one start. The next start does the rest.
const REMOVING: Duration = Duration::from_secs(2);

/// Maximum depth of folders that are removed: each level holds a file descriptor.
const MAX_DEPTH: usize = 256;

/// Maximum number of attempts to lock a folder that others remove.
const MAX_ATTEMPTS: usize = 8;

/// Maximum number of parents of a run that are examined.
const MAX_PARENTS: usize = 64;

pub(super) fn below(home: &Home) -> PathBuf {
    home.state.join("sandbox")
}

/// The folders of runs that this process uses, with their locks.
#[derive(Debug, Default)]
pub(super) struct RunFolders(Mutex<BTreeMap<RunId, File>>);

impl RunFolders {
    /// Returns the folder of a run, created and locked.
    pub(super) fn folder(&self, home: &Home, run: RunId) -> io::Result<PathBuf> {
        let path = below(home).join(run.to_string());
        let mut locked = self.0.lock();
        if locked.contains_key(&run) {
            return Ok(path);
        }
        for _ in 0..MAX_ATTEMPTS {
            fs::create_dir_all(&path)?;
            if let Some(folder) = lock(&path)? {
                locked.insert(run, folder);
                return Ok(path);
            }
        }
        Err(io::Error::other("other processes keep removing it"))
    }
}

/// Returns a folder for the changes of a command that is tried as if a run had started it. It is
/// removed with the run's own.
pub fn of_trial(home: &Home, run: RunId) -> PathBuf {
    below(home).join(run.to_string()).join("trial")
}

/// Locks a folder; `None` if another process has moved it away meanwhile.
fn lock(path: &Path) -> io::Result<Option<File>> {
    let missing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    let folder = match File::open(path) {
        Err(error) if missing(&error) => return Ok(None),
        folder => folder?,
    };
    folder.lock_shared()?;
    let (locked, there) = (folder.metadata()?, fs::metadata(path));
    Ok(there
        .is_ok_and(|there| there.ino() == locked.ino())
        .then_some(folder))
}

/// Removes the folders of runs that are over. A folder that cannot be removed is left to the next
/// [`sweep`].
pub fn remove(home: &Home, runs: &[RunId]) {
    let below = below(home);
    for run in runs {
        put_away(&below, &run.to_string());
    }
    empty(&below);
}

/// Removes the folders that killed processes left: those of servers and probes, and those of runs
/// that are over, were killed or no longer exist. Folders of parked runs and those that a living
/// process uses are kept. Ends after 2 seconds; the next call removes the rest.
///
/// # Errors
/// The journals cannot be opened.
pub fn sweep(home: &Home) -> Result<(), RuntimeError> {
    let below = below(home);
    let Ok(entries) = fs::read_dir(&below) else {
        return Ok(());
    };
    let store = home.store()?;
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        let is_left = match name.parse() {
            Ok(run) => !may_go_on(&store, run),
            Err(_) => is_of_dead_process(name),
        };
        if is_left
            && let Ok(folder) = File::open(entry.path())
            && folder.try_lock().is_ok()
        {
            put_away(&below, name);
        }
    }
    empty(&below);
    Ok(())
}

fn is_of_dead_process(name: &str) -> bool {
    let process = OF_PROCESSES.iter().find_map(|prefix| {
        let process = name.strip_prefix(prefix)?.split('-').next()?;
        process.parse::<u32>().ok()
    });
    process.is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists())
}

/// Whether a run, or a run above it, is parked or held by a process.
fn may_go_on(store: &Store, run: RunId) -> bool {
    let mut next = Some(run);
    for _ in 0..MAX_PARENTS {
        let Some(run) = next else { return false };
        if !store.exists(&log_name(run)) {
            return false;
        }
        match standing(store, run) {
            Ok((false, parent)) => next = parent,
            // Nothing is known of a run whose journal cannot be read.
            Ok((true, _)) | Err(_) => return true,
        }
    }
    true
}

/// Returns whether a run is held or parked, and its parent.
fn standing(store: &Store, run: RunId) -> Result<(bool, Option<RunId>), gyrus_journal::Error> {
    let name = log_name(run);
    if store.holder(&name)?.is_some() {
        return Ok((true, None));
    }
    let reader = store.reader(&name)?;
    let last = reader.entries_back()?.next().transpose()?;
    let is_parked = matches!(
        last.as_ref().map(parse),
        Some(Ok(Entry::RunParked(_)) | Err(_))
    );
    let parent = match reader.entry(1)?.as_ref().map(parse) {
        Some(Ok(Entry::RunStarted(started))) => started.parent.map(|parent| parent.run),
        _ => None,
    };
    Ok((is_parked, parent))
}

/// Renames a folder, so that it is not found during its removal.
fn put_away(below: &Path, name: &str) {
    // One of this name is still being removed: then this one waits for the next sweep.
    let _ = fs::rename(below.join(name), below.join(format!("{REMOVED}{name}")));
}

/// Removes the folders that were renamed for removal.
fn empty(below: &Path) {
    let until = Instant::now() + REMOVING;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(folder) = openat(CWD, below, flags, Mode::empty()) else {
        return;
    };
    for entry in Dir::read_from(&folder).into_iter().flatten().flatten() {
        if entry.file_name().to_bytes().starts_with(REMOVED.as_bytes()) {
            // What stays is tried again by the next process.
            let _ = remove_tree(folder.as_fd(), entry.file_name(), MAX_DEPTH, until);
        }
    }
}

/// Removes the entry of this name in a folder, with all that is in it. No link is followed, and no
/// right on it is needed but to own it: caches have folders that are read-only, and overlays one
/// without any rights.
fn remove_tree(
    parent: BorrowedFd<'_>,
    name: &CStr,
    depth: usize,
    until: Instant,
) -> io::Result<()> {
    if depth == 0 || Instant::now() >= until {
        return Err(io::ErrorKind::TimedOut.into());
    }
    match unlinkat(parent, name, AtFlags::empty()) {
        Err(Errno::ISDIR) => {}
        done => return Ok(done?),
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = openat(parent, name, flags, Mode::empty())?;
    let itself = format!("/proc/self/fd/{}", folder.as_raw_fd());
    rustix::fs::chmod(itself, Mode::RWXU)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = openat(&folder, c".", flags, Mode::empty())?;
    for entry in Dir::read_from(&folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if name != c"." && name != c".." {
            remove_tree(folder.as_fd(), name, depth - 1, until)?;
        }
    }
    Ok(unlinkat(parent, name, AtFlags::REMOVEDIR)?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_folder_in_use_is_never_swept() {
        let state = tempfile::tempdir().unwrap();
        let home = Home::at(state.path().to_owned(), None);
        let (mine, left) = (RunId::new(), RunId::new());
        let folders = RunFolders::default();
        let held = folders.folder(&home, mine).unwrap();
        let not_held = RunFolders::default().folder(&home, left).unwrap();
        sweep(&home).unwrap();
        assert!(held.exists() && !not_held.exists());
        drop(folders);
        sweep(&home).unwrap();
        assert_eq!(fs::read_dir(below(&home)).unwrap().count(), 0);
    }

    #[test]
    fn folders_without_rights_are_removed_and_links_are_not_followed() {
        let state = tempfile::tempdir().unwrap();
        let home = Home::at(state.path().to_owned(), None);
        let run = RunId::new();
        let folder = RunFolders::default().folder(&home, run).unwrap();
        let other = state.path().join("other");
        fs::create_dir(&other).unwrap();
        fs::write(other.join("file"), "").unwrap();
        fs::create_dir_all(folder.join("work/work")).unwrap();
        fs::write(folder.join("work/file"), "").unwrap();
        symlink(&other, folder.join("link")).unwrap();
        for (name, mode) in [("work/work", 0o000), ("work", 0o500)] {
            fs::set_permissions(folder.join(name), fs::Permissions::from_mode(mode)).unwrap();
        }
        remove(&home, &[run]);
        assert_eq!(fs::read_dir(below(&home)).unwrap().count(), 0);
        assert!(other.join("file").exists());
    }
}
