//! Changes of a folder, made in a layer over it, judged there, and then moved into it.
//!
//! The folder is shown to a command as the lower layer of an overlay. All changes of the command are
//! in the upper layer: so [`CallLayer::list`] finds them exactly, however large the folder is and
//! whatever a person does in it meanwhile. [`CallLayer::apply`] moves them into the folder, each
//! entry by one rename. The old entry takes the place of the new one in the layer, so that nothing
//! is copied, and [`take_back`] moves it back. A file that somebody else changed since the command
//! began stays as that person left it.
//!
//! Everything is moved between two folders of one file system, never through a link. The plan is on
//! disk before the first move, and each entry is identified by its inode: so after a kill the next
//! process continues with [`CallLayer::recover`], and the folder is either completely old or completely
//! new. Changes that others made meanwhile stay.
//!
//! Overlays that an ordinary user mounts cannot rename a folder of the lower layer, and answer
//! `EXDEV`. The sandbox's supervisor then moves the folder for the command; a folder in which
//! something is mounted stays.

mod error;
mod list;
mod apply;
mod kept;
mod stamp;
pub(crate) mod encoded;

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use gyrus_contract::Digest;
use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
use serde::{Deserialize, Serialize};

pub use self::{
    error::{LayerError, MAX_LISTED},
    kept::{Copies, KeptFiles, LayerChange, TakenBack, take_back},
    list::LayerChanges,
};
use crate::{
    root::{RootError, RootFolder, remove_tree},
    undo::UndoRefusal,
};

const UPPER: &str = "upper";
const WORK: &str = "work";
const PLAN: &str = "plan.json";
const BEGAN: &str = "began";
const UNDECIDED: &str = "undecided";
const JUDGEMENT: &str = "judgement.json";

/// File systems that cannot hold an overlay's changes, by their magic numbers of statfs(2):
/// overlays, FUSE and NFS.
const UNFIT_SYSTEMS: [rustix::fs::FsWord; 3] = [0x794c_7630, 0x6573_5546, 0x6969];

/// Maximum length of the paths that an overlay is mounted with, in bytes: the kernel takes a page, and
/// names of calls are added.
const LONGEST_OPTIONS: usize = 3_500;

/// Interval between readings of a file system's clock while waiting for a tick.
const CLOCK_READ_EVERY: Duration = Duration::from_millis(1);

/// Maximum number of times that the clock is read, for a file system without times.
const CLOCK_READS: u32 = 100;

/// The layer of one call, in a folder of its own that no command can see.
#[derive(Debug, Clone)]
pub struct CallLayer {
    folder: PathBuf,
    workspace: PathBuf,
}

/// Result of moving the changes of a layer.
#[derive(Debug, Default)]
pub struct AppliedLayer {
    /// The data needed to undo the changes.
    pub kept: KeptFiles,
    /// Paths that other processes changed meanwhile; their changes stay.
    pub refused: Vec<UndoRefusal>,
    pub moved: MovedPaths,
}

/// Paths to which layers were moved, each with the time of its last change at the move, in
/// nanoseconds. Changes since, and older entries in a moved folder, come from the layer.
pub type MovedPaths = BTreeMap<PathBuf, i64>;

/// One step of a layer: a move, or a change of a mode. Paths are below the folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
enum LayerStep {
    /// Moves an entry of the layer to a path that does not exist.
    Put {
        #[serde(with = "crate::layer::encoded")]
        path: PathBuf,
        inode: u64,
    },
    /// Exchange an entry of the layer and one of the folder.
    Swap {
        #[serde(with = "crate::layer::encoded")]
        path: PathBuf,
        inode: u64,
        /// Stamp of the folder's entry.
        before: Digest,
    },
    /// Move an entry of the folder, which the command deleted, into the layer.
    Take {
        #[serde(with = "crate::layer::encoded")]
        path: PathBuf,
        inode: u64,
        before: Digest,
    },
    /// Change the mode of a folder that is in both.
    Mode {
        #[serde(with = "crate::layer::encoded")]
        path: PathBuf,
        before: u32,
        after: u32,
    },
}

impl LayerStep {
    fn path(&self) -> &Path {
        match self {
            Self::Put { path, .. }
            | Self::Swap { path, .. }
            | Self::Take { path, .. }
            | Self::Mode { path, .. } => path,
        }
    }
}

impl CallLayer {
    /// Creates a new layer over `workspace` in `folder`, which must not exist.
    ///
    /// # Errors
    /// When it cannot be made, or lies on another file system.
    pub fn create(folder: &Path, workspace: &Path) -> Result<Self, LayerError> {
        let layer = Self::at(folder, workspace);
        let made = || {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)?;
            fs::create_dir(layer.upper())?;
            fs::create_dir(layer.work())?;
            // The layer's top folder is seen in the place of the workspace's.
            let mode = fs::metadata(workspace)?.permissions().mode() & 0o777;
            fs::set_permissions(layer.upper(), fs::Permissions::from_mode(mode))?;
            begin(&folder.join(BEGAN))?;
            Ok((mount_of(workspace)?, mount_of(folder)?))
        };
        let (one, other) = made().map_err(|source| LayerError::File {
            path: folder.to_owned(),
            source,
        })?;
        if one == other {
            Ok(layer)
        } else {
            let _ = fs::remove_dir_all(folder);
            Err(LayerError::Apart {
                one: workspace.to_owned(),
                other: folder.to_owned(),
            })
        }
    }

    /// Opens the layer of an earlier process; `None` if there is none.
    pub fn find(folder: &Path, workspace: &Path) -> Option<Self> {
        let layer = Self::at(folder, workspace);
        layer.upper().is_dir().then_some(layer)
    }

    fn at(folder: &Path, workspace: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            workspace: workspace.to_owned(),
        }
    }

    /// Returns the upper folder, which receives the changes of a command.
    pub fn upper(&self) -> PathBuf {
        self.folder.join(UPPER)
    }

    /// Returns the work folder of the overlay, which is empty.
    pub fn work(&self) -> PathBuf {
        self.folder.join(WORK)
    }

    pub(crate) fn roots(&self) -> Result<(RootFolder<'static>, RootFolder<'static>), RootError> {
        Ok((
            RootFolder::open(&self.upper())?,
            RootFolder::open(&self.workspace)?,
        ))
    }

    /// Returns the time at which the command began, by the clock of its file system, in
    /// nanoseconds. Earlier changes of the folder have an earlier time.
    fn began(&self) -> Result<i64, LayerError> {
        let path = self.folder.join(BEGAN);
        changed_at(&path).map_err(|source| LayerError::File { path, source })
    }

    /// Records that the layer's command begins now, so that earlier changes in the folder do not
    /// count as those of others. Creating the layer does the same.
    pub fn begin(&self) -> Result<(), LayerError> {
        let path = self.folder.join(BEGAN);
        begin(&path).map_err(|source| LayerError::File { path, source })
    }

    /// Makes the changes depend on a decision that only this process can make: if it ends before
    /// [`CallLayer::decide`], they are to be discarded.
    pub fn leave_undecided(&self) -> Result<(), LayerError> {
        let path = self.folder.join(UNDECIDED);
        fs::write(&path, "").map_err(|source| LayerError::File { path, source })
    }

    /// Records the decision that the changes count.
    pub fn decide(&self) -> Result<(), LayerError> {
        let path = self.folder.join(UNDECIDED);
        match fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(LayerError::File { path, source })
            }
            _ => Ok(()),
        }
    }

    /// Whether the changes are to be discarded, because the process that could have decided that
    /// they count did not.
    pub fn is_undecided(&self) -> bool {
        self.folder.join(UNDECIDED).exists()
    }

    /// Whether the changes are being moved into the folder, or were. Then only
    /// [`CallLayer::recover`] can continue.
    pub fn is_being_applied(&self) -> bool {
        self.folder.join(PLAN).exists()
    }

    /// Stores the judgement of the changes, for a process that continues after a kill. It is on
    /// disk when [`CallLayer::apply`] makes the first change.
    pub fn keep_judgement(&self, judgement: &[u8]) -> Result<(), LayerError> {
        let path = self.folder.join(JUDGEMENT);
        let written = || {
            let mut file = fs::File::create(&path)?;
            file.write_all(judgement)?;
            file.sync_all()
        };
        written().map_err(|source| LayerError::File { path, source })
    }

    /// Returns the stored judgement, if there is one.
    pub fn judgement(&self) -> Option<Vec<u8>> {
        fs::read(self.folder.join(JUDGEMENT)).ok()
    }

    /// Whether the layer was ever mounted over the workspace for a command.
    pub fn was_mounted(&self) -> bool {
        // The kernel makes this folder when it mounts an overlay.
        self.work().join("work").exists()
    }

    /// Removes the layer with its contents.
    ///
    /// # Errors
    /// When that is refused.
    pub fn remove(self) -> Result<(), LayerError> {
        let path = self.folder;
        make_removable(&path);
        remove_tree(&path).map_err(|source| LayerError::File { path, source })
    }
}

/// Whether layers over `workspace` can be in `folder`: files can be renamed between both, and the
/// file system can hold the changes of an overlay, unless the kernel refuses it.
pub fn is_possible(folder: &Path, workspace: &Path) -> bool {
    let is_fit =
        rustix::fs::statfs(folder).is_ok_and(|system| !UNFIT_SYSTEMS.contains(&system.f_type));
    let is_short = 2 * folder.as_os_str().len() + workspace.as_os_str().len() <= LONGEST_OPTIONS;
    let near = mount_of(folder).ok();
    is_fit && is_short && near.is_some() && near == mount_of(workspace).ok()
}

/// Returns the file system of a path, and the mount by which it is seen: a folder may be mounted a
/// second time, and nothing can be renamed from one mount to another.
fn mount_of(path: &Path) -> io::Result<(u32, u32, u64)> {
    let seen = statx(CWD, path, AtFlags::empty(), StatxFlags::MNT_ID)?;
    Ok((seen.stx_dev_major, seen.stx_dev_minor, seen.stx_mnt_id))
}

/// Touches a file until its time is later than that of every earlier change of the file system.
fn begin(path: &Path) -> io::Result<()> {
    fs::write(path, "")?;
    let first = changed_at(path)?;
    for read in 0..CLOCK_READS {
        fs::write(path, "")?;
        if changed_at(path)? > first {
            break;
        }
        // Some systems move on only a few hundred times a second.
        if read > 0 {
            thread::sleep(CLOCK_READ_EVERY);
        }
    }
    Ok(())
}

/// Returns the time of an entry's last change, in nanoseconds; a link is not followed.
///
/// # Errors
/// When there is none, or it is out of reach.
pub fn changed_at(path: &Path) -> io::Result<i64> {
    let data = fs::symlink_metadata(path)?;
    let seconds = data.ctime().saturating_mul(1_000_000_000);
    Ok(seconds.saturating_add(data.ctime_nsec()))
}

/// Makes the overlay's work folder removable: the kernel leaves a folder there without any
/// permissions.
fn make_removable(folder: &Path) {
    let inner = folder.join(WORK).join("work");
    let _ = fs::set_permissions(inner, fs::Permissions::from_mode(0o700));
}
