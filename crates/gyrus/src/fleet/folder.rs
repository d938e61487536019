//! The folder of a run that goes with it from machine to machine: it has the same path on all of them,
//! and is made from what the run began with, or from the run's journal.
//!
//! The same path, because the journal, the model's memory, grants and recorded calls are full of it. A
//! folder is made beside its place and moved there: one that is there is whole.

use std::{
    fs::{self, DirBuilder, File},
    io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use gyrus::runtime::{self, Home};
use gyrus_contract::{BlobId, RunId};
use gyrus_fleet::{BlobError, Machine as _, OsMachine, SharedLog, fetch_blob};
use gyrus_kernel::{FolderTravels, RecordedFolder, log_name, workspace};
use gyrus_runtime::{
    queue::{QueueCommand, QueueWork},
    request::FolderBase,
};
use gyrus_surfaces::console::put;
use gyrus_text::{counted, one_line};
use gyrus_workspace::snapshot::{SnapshotError, materialise};
use rustix::fs::FlockOperation;
use tokio::runtime::Handle;

use super::clone;
use crate::{Gyrus, failure::Failure};

/// A folder that every machine has, in which every user may create folders, and whose contents
/// survive a restart.
pub(super) const PLACE: &str = "/var/tmp";

/// Time limit for one content.
const CONTENT: Duration = Duration::from_secs(60);

/// Time for which an unused folder is reused: systems remove files from [`PLACE`] that nobody used
/// for ten days or more.
const STANDS: Duration = Duration::from_secs(5 * 24 * 60 * 60);

/// Maximum number of paths that a message names.
const NAMED: usize = 20;

pub(super) fn place(run: RunId) -> Result<PathBuf, Failure> {
    let place = fs::canonicalize(PLACE)
        .map_err(|error| Failure::failed(format!("{PLACE} cannot be used")).because(&error))?;
    Ok(place.join(name(run)))
}

fn name(run: RunId) -> String {
    format!("gyrus-{run}")
}

/// Returns the file that marks a run whose journal was copied without its folder.
fn copied(home: &Home, run: RunId) -> PathBuf {
    home.state.join("fleet/copied").join(run.to_string())
}

/// Notes that the journal of a run was copied here, so a whole journal no longer means that the
/// folder is the newest.
pub(super) fn was_copied(home: &Home, run: RunId) -> Result<(), Failure> {
    let copied = copied(home, run);
    let noted = || -> io::Result<()> {
        fs::create_dir_all(copied.parent().unwrap_or(&copied))?;
        File::create(&copied).map(drop)
    };
    noted().map_err(|error| unusable(&copied, &error))
}

enum FolderOrigin {
    Base(FolderBase),
    Journal(RecordedFolder),
}

pub(super) struct ReadyFolder {
    pub(super) travels: FolderTravels,
    /// Held while the run is driven: systems that clean [`PLACE`] leave a locked folder alone.
    _lock: Option<File>,
}

impl ReadyFolder {
    const STAYS: Self = Self {
        travels: FolderTravels::No,
        _lock: None,
    };
}

/// Creates the folder of a run, if the folder travels and is not there.
pub(super) fn prepare(
    command: &mut QueueCommand,
    gyrus: &Gyrus,
    had_all: bool,
    (log, runtime): (&Arc<dyn SharedLog>, &Handle),
) -> Result<ReadyFolder, Failure> {
    let (run, store) = (command.run, gyrus.store()?);
    let base = match &command.work {
        QueueWork::Start(request) => request.base.clone(),
        QueueWork::Resume => None,
    };
    let journal = store.exists(&log_name(run)).then(|| workspace(&store, run));
    let began = match journal.flatten() {
        Some(folder)
            if folder
                .file_name()
                .is_some_and(|last| last == name(run).as_str()) =>
        {
            Some(folder)
        }
        Some(_) => return Ok(ReadyFolder::STAYS),
        None if base.is_none() => return Ok(ReadyFolder::STAYS),
        None => None,
    };
    let place = place(run)?;
    if let Some(folder) = began.as_ref().filter(|folder| **folder != place) {
        return Err(Failure::failed(format!(
            "the run works in {}, which would be {} on this machine",
            folder.display(),
            place.display()
        )));
    }
    if let QueueWork::Start(request) = &mut command.work {
        request.workdir.clone_from(&place);
    }
    let copied = copied(&gyrus.home()?, run);
    let stands = stands(&place)? && !copied.exists();
    let travels = if began.is_some() && had_all && stands {
        FolderTravels::Stayed
    } else {
        let recorded = match began {
            Some(_) => RecordedFolder::of(&store, run)?,
            None => RecordedFolder::NotYet,
        };
        let source = match (recorded, base) {
            (RecordedFolder::NotYet, Some(base)) => FolderOrigin::Base(base),
            (recorded, _) => FolderOrigin::Journal(recorded),
        };
        let left_out = make(&place, |into| match &source {
            FolderOrigin::Base(base) => from_base(base, into, log, runtime),
            FolderOrigin::Journal(folder) => from_journal(folder, gyrus, into),
        })?;
        let _ = fs::remove_file(&copied);
        tell(&left_out)?;
        if began.is_some() {
            FolderTravels::Arrived
        } else {
            FolderTravels::Stayed
        }
    };
    runtime::workspace(&gyrus.home()?, &place)?;
    let lock = File::open(&place).map_err(|error| unusable(&place, &error))?;
    // Without it, a run of many weeks may miss files that it did not use.
    let _ = rustix::fs::flock(&lock, FlockOperation::NonBlockingLockShared);
    Ok(ReadyFolder {
        travels,
        _lock: Some(lock),
    })
}

/// Whether a folder exists and can be used as it is.
fn stands(place: &Path) -> Result<bool, Failure> {
    let found = match fs::symlink_metadata(place) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(unusable(place, &error)),
    };
    if found.uid() != rustix::process::geteuid().as_raw() || !found.is_dir() {
        // Its name is known to whoever sees the run on the servers.
        return Err(Failure::failed(format!(
            "{} belongs to somebody else on this machine",
            place.display()
        ))
        .hint("let another worker continue the run, or ask the owner of the folder to"));
    }
    let age = found.modified().ok().and_then(|at| at.elapsed().ok());
    Ok(age.is_none_or(|age| age < STANDS))
}

/// Creates a folder beside its place, and moves it there.
fn make(
    place: &Path,
    fill: impl FnOnce(&Path) -> Result<Vec<String>, Failure>,
) -> Result<Vec<String>, Failure> {
    let beside = |what: &str| {
        let unique = gyrus_contract::time_ordered_uuid().simple();
        place.with_extension(format!("{what}-{unique}"))
    };
    let (new, old) = (beside("new"), beside("old"));
    DirBuilder::new()
        .mode(0o700)
        .create(&new)
        .map_err(|error| unusable(&new, &error))?;
    let filled = fill(&new).and_then(|left_out| {
        let moved = || -> io::Result<()> {
            rustix::fs::syncfs(File::open(&new)?)?;
            match fs::rename(place, &old) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            fs::rename(&new, place)
        };
        moved().map_err(|error| unusable(place, &error))?;
        Ok(left_out)
    });
    // What cannot be removed is in nobody's way.
    let _ = remove(&old);
    if filled.is_err() {
        let _ = remove(&new);
    }
    filled
}

fn from_base(
    base: &FolderBase,
    into: &Path,
    log: &Arc<dyn SharedLog>,
    runtime: &Handle,
) -> Result<Vec<String>, Failure> {
    match base {
        FolderBase::Uploaded { snapshot } => {
            let load =
                |id: &BlobId| runtime.block_on(fetch_blob(log, id, OsMachine.now() + CONTENT));
            materialise(snapshot, load, into).map_err(|error| match error {
                SnapshotError::Store(BlobError::Unreachable(error)) => Failure::elsewhere(&error),
                SnapshotError::Store(error) => {
                    Failure::usage("a part of the uploaded folder is not there").because(&error)
                }
                error @ SnapshotError::Malformed { .. } => {
                    Failure::usage("the folder cannot be made").because(&error)
                }
                error => Failure::failed("the folder cannot be made").because(&error),
            })
        }
        FolderBase::Commit {
            url,
            commit,
            branch,
        } => clone::check_out(url, commit, branch.as_deref(), into).map(|()| Vec::new()),
    }
}

fn from_journal(
    folder: &RecordedFolder,
    gyrus: &Gyrus,
    into: &Path,
) -> Result<Vec<String>, Failure> {
    let why = match folder {
        RecordedFolder::Known { .. } => {
            return Ok(folder.lay_out(&gyrus.store()?, into)?.unwrap_or_default());
        }
        RecordedFolder::NotYet => "the run recorded nothing of the folder",
        RecordedFolder::Missing(why) => why,
    };
    Err(Failure::failed(format!(
        "only the worker that drove the run last has its folder: {why}"
    )))
}

fn tell(left_out: &[String]) -> Result<(), Failure> {
    if left_out.is_empty() {
        return Ok(());
    }
    Ok(put(&format!(
        "not in the folder, because secrets stay where they are ({}): {}\n",
        counted(left_out.len(), "file"),
        named(left_out)
    ))?)
}

/// Returns the first of some paths, for a message.
pub(super) fn named(paths: &[String]) -> String {
    let shown: Vec<_> = paths
        .iter()
        .take(NAMED)
        .map(|path| one_line(path))
        .collect();
    let more = paths.len().saturating_sub(NAMED);
    if more == 0 {
        shown.join(", ")
    } else {
        format!("{} and {more} more", shown.join(", "))
    }
}

fn unusable(path: &Path, error: &io::Error) -> Failure {
    Failure::failed(format!("{} cannot be used", path.display())).because(error)
}

/// Removes the folder of a run that is over.
pub(super) fn discard(run: RunId) {
    if let Ok(place) = place(run)
        && stands(&place).is_ok()
    {
        // What stays is removed when the worker starts again.
        let _ = remove(&place);
    }
}

/// Removes the folders of runs that are over, and temporary folders beside them.
pub(super) fn sweep(is_over: impl Fn(RunId) -> bool) {
    let Ok(entries) = fs::read_dir(PLACE) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(rest) = name.to_str().and_then(|name| name.strip_prefix("gyrus-")) else {
            continue;
        };
        let run = rest
            .split('.')
            .next()
            .and_then(|run| run.parse::<RunId>().ok());
        if run.is_some_and(&is_over) {
            let _ = remove(&entry.path());
        }
    }
}

/// Removes a folder with everything in it, even if a run took away its own right to do so.
fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_all(folder)?;
            fs::remove_dir_all(folder)
        }
        removed => removed,
    }
}

fn open_all(folder: &Path) -> io::Result<()> {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            open_all(&entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_made_whole_or_not_at_all() {
        let run = RunId::new();
        let place = place(run).unwrap();
        let filled = make(&place, |into| {
            fs::write(into.join("half"), "x").unwrap();
            Err(Failure::failed("the rest is missing"))
        });
        assert!(filled.is_err() && !place.exists());
        let beside = || {
            let all = fs::read_dir(PLACE).unwrap().flatten();
            let names = all.map(|entry| entry.file_name().into_string().unwrap_or_default());
            names.filter(|one| one.starts_with(&name(run))).count()
        };
        assert_eq!(beside(), 0);
        for text in ["one", "two"] {
            make(&place, |into| {
                let closed = into.join("closed");
                fs::create_dir(&closed).unwrap();
                fs::write(closed.join(text), text).unwrap();
                fs::set_permissions(&closed, fs::Permissions::from_mode(0o0)).unwrap();
                Ok(Vec::new())
            })
            .unwrap();
            assert_eq!(beside(), 1);
        }
        assert!(stands(&place).unwrap());
        sweep(|other| other == run);
        assert_eq!(beside(), 0);
    }

    #[test]
    fn what_another_put_there_is_not_used() {
        let place = place(RunId::new()).unwrap();
        std::os::unix::fs::symlink("/etc", &place).unwrap();
        let refused = stands(&place);
        fs::remove_file(&place).unwrap();
        assert!(refused.is_err());
    }
}
