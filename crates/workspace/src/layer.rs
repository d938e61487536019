//! Changes of a large folder that are made in a layer over it, judged there, and then moved into it.
//!
//! A folder that is too large to be kept before each command is shown to the command as the lower
//! layer of an overlay. What the command changed lies in the upper layer, and nowhere else: so
//! [`Layer::list`] knows it exactly, however large the folder is. [`Layer::apply`] moves it into the
//! folder, each thing by one rename. What stood there before takes the place of the new thing in the
//! layer, so that nothing is copied, and [`take_back`] moves it back.
//!
//! Everything is moved between two folders of one file system, never through a link. The plan is on
//! disk before the first move, and each thing is known by its inode: so whoever comes after a kill
//! goes on with [`Layer::recover`], and the folder is wholly as it was or wholly as it will be. What
//! somebody else changed meanwhile stays theirs.
//!
//! Overlays that an ordinary user mounts cannot rename a folder of the lower layer: the command gets
//! `EXDEV`, upon which `mv` copies and programs that cannot fail.

mod list;
mod apply;
mod kept;
mod stamp;

use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

use gyrus_contract::Digest;
use serde::{Deserialize, Serialize};

pub use self::{
    kept::{Copies, Kept, KeptFiles, TakenBack, take_back},
    list::Listed,
};
use crate::{
    root::{Failed, Root},
    undo::Refused,
};

/// The most things that a layer may hold or hide.
pub const MAX_LISTED: usize = 2_000_000;

const UPPER: &str = "upper";
const WORK: &str = "work";
const PLAN: &str = "plan.json";
const BEGAN: &str = "began";

/// Why a layer cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LayerError {
    /// A call of the system failed.
    #[error(transparent)]
    System(#[from] Failed),
    /// A file of the layer's own cannot be read or written.
    #[error("`{}`: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// The system's words.
        source: io::Error,
    },
    /// There are too many changes.
    #[error("there are more than {MAX_LISTED} changes")]
    TooMany,
    /// Renames cannot lead from one to the other.
    #[error("`{}` and `{}` lie on different file systems", one.display(), other.display())]
    Apart {
        /// The folder.
        one: PathBuf,
        /// The layer.
        other: PathBuf,
    },
}

/// The layer of one call, in a folder of its own that no command can see.
#[derive(Debug, Clone)]
pub struct Layer {
    folder: PathBuf,
    workspace: PathBuf,
}

/// What came of moving the changes of a layer.
#[derive(Debug, Default)]
pub struct Applied {
    /// What is needed to take it back.
    pub kept: KeptFiles,
    /// What somebody else changed meanwhile; theirs stays.
    pub refused: Vec<Refused>,
}

/// One move, or change of a mode. Paths are below the folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
enum Step {
    /// The layer's thing goes where nothing stands.
    Put {
        #[serde(with = "crate::layer::encoded")]
        path: PathBuf,
        inode: u64,
    },
    /// The layer's thing and the folder's change places.
    Swap {
        #[serde(with = "crate::layer::encoded")]
        path: PathBuf,
        inode: u64,
        /// The stamp of the folder's.
        before: Digest,
    },
    /// The folder's thing, which the command deleted, goes into the layer.
    Take {
        #[serde(with = "crate::layer::encoded")]
        path: PathBuf,
        inode: u64,
        /// Its stamp.
        before: Digest,
    },
    /// A folder that is in both gets another mode.
    Mode {
        #[serde(with = "crate::layer::encoded")]
        path: PathBuf,
        before: u32,
        after: u32,
    },
}

impl Step {
    fn path(&self) -> &Path {
        match self {
            Self::Put { path, .. }
            | Self::Swap { path, .. }
            | Self::Take { path, .. }
            | Self::Mode { path, .. } => path,
        }
    }
}

impl Layer {
    /// Makes a new layer over `workspace` in `folder`, which must not exist.
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
            fs::write(folder.join(BEGAN), "")?;
            Ok((fs::metadata(workspace)?.dev(), fs::metadata(folder)?.dev()))
        };
        let (one, other) = made().map_err(|source| LayerError::File {
            path: folder.to_owned(),
            source,
        })?;
        match one == other {
            true => Ok(layer),
            false => {
                let _ = fs::remove_dir_all(folder);
                Err(LayerError::Apart {
                    one: workspace.to_owned(),
                    other: folder.to_owned(),
                })
            }
        }
    }

    /// The layer that an earlier process made; `None` if it did not.
    #[must_use]
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

    /// Takes the changes of a command.
    #[must_use]
    pub fn upper(&self) -> PathBuf {
        self.folder.join(UPPER)
    }

    /// An empty folder for the operating system.
    #[must_use]
    pub fn work(&self) -> PathBuf {
        self.folder.join(WORK)
    }

    pub(crate) fn roots(&self) -> Result<(Root<'static>, Root<'static>), Failed> {
        Ok((Root::open(&self.upper())?, Root::open(&self.workspace)?))
    }

    /// When the layer was made, by the clock of its file system, in nanoseconds.
    fn began(&self) -> Result<i64, LayerError> {
        let path = self.folder.join(BEGAN);
        let data = fs::metadata(&path).map_err(|source| LayerError::File { path, source })?;
        Ok(data
            .ctime()
            .saturating_mul(1_000_000_000)
            .saturating_add(data.ctime_nsec()))
    }

    /// Removes the layer with all that is in it.
    ///
    /// # Errors
    /// When that is refused.
    pub fn remove(self) -> Result<(), LayerError> {
        let path = self.folder;
        make_removable(&path);
        fs::remove_dir_all(&path).map_err(|source| LayerError::File { path, source })
    }
}

/// The operating system leaves a folder there that nobody may look into.
fn make_removable(folder: &Path) {
    let inner = folder.join(WORK).join("work");
    let _ = fs::set_permissions(inner, fs::Permissions::from_mode(0o700));
}

/// Paths of any bytes as text.
pub(crate) mod encoded {
    use std::{
        ffi::OsStr,
        os::unix::ffi::OsStrExt,
        path::{Path, PathBuf},
    };

    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use crate::snapshot::name;

    pub(crate) fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&name::encode(path.as_os_str().as_bytes()))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
        let text = String::deserialize(from)?;
        let bytes = name::decode(&text).ok_or_else(|| D::Error::custom("invalid path"))?;
        Ok(OsStr::from_bytes(&bytes).into())
    }
}
