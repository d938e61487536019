//! Judging the changes that a server makes in the workspace while it starts, before anything else
//! happens.
//!
//! A server is started before any call is judged, one of a plugin or of an editor's settings even
//! unasked. A server that changed control files by then is not used, and what it did to them is
//! moved away, with a copy that is named.

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use gyrus_contract::{ChangedPath, Gate as _, Judgement, PathChange};
use gyrus_gate::PolicyGate;
use gyrus_mcp::{EndOfStart, StartedServer};
use gyrus_process::ProcessIdentity;
use gyrus_text::{counted, one_line};
use parking_lot::Mutex;

/// Maximum number of entries of a workspace in which a server's start can be judged.
const MAX_ENTRIES: usize = 2_000_000;
/// Maximum size of a control file that is copied during the start of a server, in bytes.
const MAX_KEPT: u64 = 1 << 20;
/// Maximum time to wait for a server that was ended.
const GONE_WITHIN: Duration = Duration::from_secs(5);
/// Maximum number of files that are named to the person.
const MAX_NAMED: usize = 5;

/// The process whose end proves that a server has ended.
pub(super) type KeeperOfServer = Arc<Mutex<Option<ProcessIdentity>>>;

/// Data by which a changed file is recognised: kind and mode, size, time of the last change, number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileStamp {
    mode: u32,
    size: u64,
    changed: (i64, i64),
    number: u64,
}

enum ControlFileBefore {
    File { bytes: Vec<u8>, mode: u32 },
    Link(PathBuf),
}

pub(super) struct WorkspaceBefore {
    workspace: PathBuf,
    /// Folder for files that are moved away, made at its first use.
    trash: PathBuf,
    gate: PolicyGate,
    keeper: KeeperOfServer,
    entries: BTreeMap<PathBuf, FileStamp>,
    kept: BTreeMap<PathBuf, ControlFileBefore>,
}

impl WorkspaceBefore {
    /// Looks at the workspace.
    ///
    /// # Errors
    /// A message with the reason why the workspace cannot be compared later.
    pub(super) fn look(
        workspace: &Path,
        trash: PathBuf,
        gate: PolicyGate,
        keeper: KeeperOfServer,
    ) -> Result<Self, String> {
        let entries = entries(workspace)?;
        let mut before = Self {
            workspace: workspace.to_owned(),
            trash,
            gate,
            keeper,
            entries,
            kept: BTreeMap::new(),
        };
        let all = before.entries.iter().filter(|(_, stamp)| !is_folder(stamp));
        let all = all.map(|(path, _)| ChangedPath {
            path: path.clone(),
            change: PathChange::Changed,
        });
        for (change, _) in before.withheld(&all.collect::<Vec<_>>()) {
            if let Ok(kept) = keep(&workspace.join(&change.path)) {
                before.kept.insert(change.path, kept);
            }
        }
        Ok(before)
    }

    /// Returns the judgement of the start, for the time when the server is ready, or has ended.
    pub(super) fn end(mut self) -> EndOfStart {
        Box::new(move |server| {
            if server == StartedServer::Ended {
                self.trash.push("after");
                let keeper = self.keeper.lock();
                if let Some(keeper) = &*keeper {
                    let _ = keeper.wait_gone(GONE_WITHIN);
                }
            }
            self.judge()
        })
    }

    fn withheld(&self, changes: &[ChangedPath]) -> Vec<(ChangedPath, String)> {
        let under = Judgement::outside_of_runs(&self.workspace);
        let withheld = self.gate.withhold(changes, &under).into_iter();
        withheld
            .map(|one| (changes[one.index].clone(), one.reason))
            .collect()
    }

    fn judge(&self) -> Result<(), String> {
        let now = entries(&self.workspace)?;
        let mut changes = Vec::new();
        for (path, stamp) in &now {
            let change = match self.entries.get(path) {
                None => PathChange::Created,
                Some(before) if before == stamp => continue,
                Some(before) if is_folder(before) && is_folder(stamp) => continue,
                Some(_) => PathChange::Changed,
            };
            changes.push((path, change));
        }
        let gone = self.entries.keys().filter(|path| !now.contains_key(*path));
        changes.extend(gone.map(|path| (path, PathChange::Deleted)));
        changes.sort_by_key(|(path, _)| *path);
        let changes: Vec<_> = changes
            .into_iter()
            .map(|(path, change)| ChangedPath {
                path: path.clone(),
                change,
            })
            .collect();
        let withheld = self.withheld(&changes);
        let Some((first, reason)) = withheld.first() else {
            return Ok(());
        };
        let first = format!(
            "`{}` ({})",
            one_line(&first.path.display().to_string()),
            one_line(reason)
        );
        let more = match withheld.len() {
            1 => String::new(),
            count => format!(" and {}", counted(count - 1, "other control file")),
        };
        let mut left = Vec::new();
        for (change, _) in &withheld {
            if let Err(error) = self.take_back(change) {
                left.push(format!(
                    "`{}`: {error}",
                    one_line(&change.path.display().to_string())
                ));
            }
        }
        left.truncate(MAX_NAMED);
        let left = match left.as_slice() {
            [] => String::new(),
            left => format!("; these remain: {}", left.join(", ")),
        };
        Err(format!(
            "while it started it changed {first}{more}, which was taken back; a copy lies in {}{left}",
            self.trash.display()
        ))
    }

    /// Moves the present file at a path away, and restores the one that stood there before.
    fn take_back(&self, change: &ChangedPath) -> io::Result<()> {
        let path = self.workspace.join(&change.path);
        if path.symlink_metadata().is_ok() {
            let away = self.trash.join(&change.path);
            fs::create_dir_all(away.parent().unwrap_or(&self.trash))?;
            match fs::rename(&path, &away) {
                Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                    if !path.is_symlink() && path.is_file() {
                        fs::copy(&path, &away)?;
                    }
                    if path.is_dir() && !path.is_symlink() {
                        fs::remove_dir_all(&path)?;
                    } else {
                        fs::remove_file(&path)?;
                    }
                }
                moved => moved?,
            }
        }
        if change.change == PathChange::Created || !self.entries.contains_key(&change.path) {
            return Ok(());
        }
        let Some(kept) = self.kept.get(&change.path) else {
            return Err(io::Error::other("what stood there before is not known"));
        };
        fs::create_dir_all(path.parent().unwrap_or(&self.workspace))?;
        match kept {
            ControlFileBefore::Link(target) => symlink(target, &path),
            ControlFileBefore::File { bytes, mode } => {
                let folder = path.parent().unwrap_or(&self.workspace);
                let mut file = tempfile::NamedTempFile::new_in(folder)?;
                io::Write::write_all(&mut file, bytes)?;
                fs::set_permissions(file.path(), fs::Permissions::from_mode(*mode))?;
                file.persist_noclobber(&path)?;
                Ok(())
            }
        }
    }
}

fn is_folder(stamp: &FileStamp) -> bool {
    stamp.mode & 0o170_000 == 0o040_000
}

fn keep(path: &Path) -> io::Result<ControlFileBefore> {
    let data = path.symlink_metadata()?;
    if data.is_symlink() {
        return Ok(ControlFileBefore::Link(fs::read_link(path)?));
    }
    if !data.is_file() || data.len() > MAX_KEPT {
        return Err(io::Error::other("no copy is kept of it"));
    }
    Ok(ControlFileBefore::File {
        bytes: fs::read(path)?,
        mode: data.permissions().mode(),
    })
}

/// Lists a workspace, without following links. Repositories are read-only for servers, so what is
/// in a `.git` is not listed.
fn entries(workspace: &Path) -> Result<BTreeMap<PathBuf, FileStamp>, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        // One that cannot be read was not changed by a server, or it hides what it holds.
        let Ok(entries) = fs::read_dir(workspace.join(&folder)) else {
            continue;
        };
        for entry in entries.flatten() {
            let Ok(data) = entry.metadata() else {
                continue;
            };
            let path = folder.join(entry.file_name());
            if data.is_dir() && entry.file_name() != ".git" {
                folders.push(path.clone());
            }
            if found.len() >= MAX_ENTRIES {
                return Err(format!(
                    "the folder has more than {MAX_ENTRIES} entries, so what a server does while \
                     it starts cannot be judged"
                ));
            }
            let stamp = FileStamp {
                mode: data.mode(),
                size: data.size(),
                changed: (data.ctime(), data.ctime_nsec()),
                number: data.ino(),
            };
            found.insert(path, stamp);
        }
    }
    Ok(found)
}
