//! The only access to files: a place that the gate resolved, opened so that it is still that place.
//!
//! Between the verdict and the opening, anything may have been swapped for a symbolic link. A
//! resolved path holds no links, so none is followed: a place is opened below a [`Root`], that of
//! the workspace, or `/` for a place outside.

use std::{
    os::{fd::OwnedFd, unix::ffi::OsStrExt as _},
    path::{Path, PathBuf},
};

use gyrus_contract::{ResolvedCall, ResolvedPath, git_mode};
use gyrus_text::one_line;
use gyrus_workspace::{
    Parent, RootFolder,
    patch::{self, FileVersion},
};
use rustix::{
    fs::{Dir, FileType, OFlags, Stat, fstat},
    io::Errno,
};
use serde::Serialize;

/// Maximum size of a file that is compared to show its change, in bytes.
pub(crate) const MAX_COMPARED_BYTES: usize = 1 << 20;

/// Maximum number of characters of a change on a card.
const MAX_DIFF_CHARS: usize = 16_000;

/// Maximum number of names in an error about a missing file, and of candidates for them.
const MAX_NAMED: usize = 12;
const MAX_LOOKED_AT: usize = 1_000;

#[derive(Serialize)]
pub(crate) struct ChangedFile {
    paths: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<String>,
}

/// A file or folder that a call may access.
pub(crate) struct AccessPlace<'a> {
    path: &'a ResolvedPath,
    root: RootFolder<'static>,
    /// Path below `root`; empty for `root` itself.
    below: &'a Path,
}

/// Reason why a place cannot be used; the message is for a model.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PlaceError {
    #[error("the path was not looked up before the call; the argument must be called `path`")]
    Unresolved,
    #[error("`{path}` does not exist{there}")]
    Missing { path: String, there: String },
    #[error(
        "the folder of `{path}` does not exist; make it first, outside the workspace it is not made"
    )]
    NoFolder { path: String },
    #[error("`{path}` is {kind}")]
    Special { path: String, kind: &'static str },
    #[error("`{path}` was replaced by a symbolic link after it was checked; look at it again")]
    Swapped { path: String },
    #[error(
        "`{path}` exists ({size}) and this run has not read it, so nothing was written. To change a \
         part of it use `edit`; `write` it once more to replace all of it.{start}"
    )]
    NotRead {
        path: String,
        size: String,
        start: String,
    },
    #[error("`{path}`: {error}{}", hint(*.error))]
    Io { path: String, error: Errno },
}

fn hint(error: Errno) -> &'static str {
    match error {
        Errno::NOSPC | Errno::DQUOT => "; nothing was changed, make room first",
        Errno::NAMETOOLONG => "; a name may have at most 255 bytes",
        Errno::ROFS => "; nothing can be written there",
        _ => "",
    }
}

impl<'a> AccessPlace<'a> {
    pub(crate) fn of(call: &'a ResolvedCall, workspace: &Path) -> Result<Self, PlaceError> {
        let path = call.paths.get("path").ok_or(PlaceError::Unresolved)?;
        let (root, below) = match &path.in_workspace {
            Some(below) => (workspace, below.as_path()),
            None => (
                Path::new("/"),
                path.real.strip_prefix("/").unwrap_or(&path.real),
            ),
        };
        let root = RootFolder::open(root).map_err(|failed| PlaceError::Io {
            path: failed.path.display().to_string(),
            error: failed.error,
        })?;
        Ok(Self { path, root, below })
    }

    /// Returns a note about a file whose name only looks like the one in the call; empty otherwise.
    pub(crate) fn note(&self, call: &ResolvedCall) -> String {
        let wrote = call.arguments["path"].as_str().unwrap_or(self.given());
        if Path::new(wrote).file_name() == Path::new(self.given()).file_name() {
            return String::new();
        }
        let name = self.path.real.file_name().unwrap_or_default();
        format!(
            "\n[no file has exactly that name; this is the only one that looks like it: `{}`]",
            name.display()
        )
    }

    /// Returns the path as the model wrote it, with the real name of a similarly spelt file.
    pub(crate) fn given(&self) -> &str {
        &self.path.given
    }

    /// Returns the absolute path, without links.
    pub(crate) fn real(&self) -> &Path {
        &self.path.real
    }

    /// Returns the value of a call that changed the file: its path, and the change as a patch.
    pub(crate) fn value(&self, diff: Option<String>) -> ChangedFile {
        ChangedFile {
            paths: vec![self.given().to_owned()],
            diff,
        }
    }

    /// Returns a change of the file as a patch for a person; `None` for a file outside of the
    /// workspace, or one that is not text or too large to compare.
    pub(crate) fn diff(&self, old: Option<&[u8]>, new: &[u8]) -> Option<String> {
        let is_text = |content: &[u8]| {
            content.len() <= MAX_COMPARED_BYTES && std::str::from_utf8(content).is_ok()
        };
        if !is_text(old.unwrap_or_default()) || !is_text(new) {
            return None;
        }
        let path = self.in_workspace()?.as_os_str().as_bytes();
        let side = |content| FileVersion {
            mode: git_mode(false),
            content,
        };
        let mut diff = patch::of_file(path, old.map(side), Some(side(new)));
        let kept = gyrus_text::first_chars(&diff, MAX_DIFF_CHARS).len();
        if kept < diff.len() {
            diff.truncate(kept);
            diff.push_str("\n[the rest of the diff is left out]\n");
        }
        Some(diff)
    }

    /// Returns the path below the workspace; `None` when it is outside.
    pub(crate) fn in_workspace(&self) -> Option<&Path> {
        self.path.in_workspace.as_deref()
    }

    /// Returns the names in the place's folder, or in the nearest existing one above, as the end of
    /// a sentence; empty outside of the workspace.
    fn there(&self) -> String {
        let Some(path) = self.in_workspace() else {
            return String::new();
        };
        let folders = path.ancestors().skip(1);
        let opened = folders.filter_map(|folder| {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            Some((folder, self.root.open_at(folder, flags).ok()?))
        });
        let Some((folder, names)) = { opened }.next().and_then(|(folder, opened)| {
            let entries = Dir::read_from(opened).ok()?.take(MAX_LOOKED_AT).flatten();
            let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
            let mut names: Vec<String> = names.filter(|name| name != "." && name != "..").collect();
            names.sort_unstable();
            Some((folder, names))
        }) else {
            return String::new();
        };
        let shown = names.iter().take(MAX_NAMED).map(|name| one_line(name));
        let shown: Vec<_> = shown.collect();
        let folder = match folder.to_str() {
            Some("") => "the workspace".to_owned(),
            _ => format!("`{}`", one_line(&folder.display().to_string())),
        };
        match names.len() {
            0 => format!("; {folder} is empty"),
            all if all > MAX_NAMED => {
                format!(
                    "; {folder} has {}, and {} more",
                    shown.join(", "),
                    all - MAX_NAMED
                )
            }
            _ => format!("; {folder} has {}", shown.join(", ")),
        }
    }

    pub(crate) fn error(&self, error: Errno) -> PlaceError {
        let path = self.given().to_owned();
        match error {
            Errno::NOENT => PlaceError::Missing {
                path,
                there: self.there(),
            },
            // Errors of `Root`: a link, or a path that leaves the root.
            Errno::LOOP | Errno::XDEV => PlaceError::Swapped { path },
            error => PlaceError::Io { path, error },
        }
    }

    /// Opens the file or folder for reading. Anything else is an error, and is not even opened:
    /// for a pipe or a device, that alone may hang or do something.
    pub(crate) fn open(&self) -> Result<(OwnedFd, Stat), PlaceError> {
        let looked_at = self
            .root
            .open_at(self.below, OFlags::PATH)
            .map_err(|error| self.error(error))?;
        self.ordinary(&looked_at)?;
        // Swapped in between, a pipe does not hang us.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let opened = self
            .root
            .open_at(self.below, flags)
            .map_err(|error| self.error(error))?;
        let stat = self.ordinary(&opened)?;
        Ok((opened, stat))
    }

    fn ordinary(&self, file: &OwnedFd) -> Result<Stat, PlaceError> {
        let stat = fstat(file).map_err(|error| self.error(error))?;
        match special(&stat) {
            None => Ok(stat),
            Some(kind) => Err(PlaceError::Special {
                path: self.given().to_owned(),
                kind,
            }),
        }
    }

    /// Returns the folders from the workspace down to the place, which is not among them, each with
    /// the path of the place below it. There are none for a place outside the workspace: folders
    /// above it were not judged.
    pub(crate) fn folders_above(&self) -> Vec<(OwnedFd, PathBuf)> {
        match self.in_workspace() {
            Some(_) => self.root.folders_above(self.below),
            None => Vec::new(),
        }
    }

    /// Opens the folder of the place. In the workspace, missing folders are made; they are removed
    /// again with [`Parent::undo`].
    pub(crate) fn parent(&self) -> Result<Parent<'a>, PlaceError> {
        if self.below.file_name().is_none() {
            let path = self.given().to_owned();
            return Err(PlaceError::Special {
                path,
                kind: "the top folder, not a file",
            });
        }
        let parent = match self.in_workspace() {
            Some(_) => self.root.make_parent(self.below),
            None => self.root.parent(self.below).map(Parent::from),
        };
        parent.map_err(|error| match error {
            Errno::NOENT => PlaceError::NoFolder {
                path: self.given().to_owned(),
            },
            error => self.error(error),
        })
    }
}

/// Returns the name of the kind of a file that is neither a regular file nor a folder.
pub(crate) fn special(stat: &Stat) -> Option<&'static str> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile | FileType::Directory => None,
        FileType::Symlink => Some("a symbolic link, not a file"),
        FileType::Fifo => Some("a named pipe, not a file"),
        FileType::Socket => Some("a socket, not a file"),
        FileType::CharacterDevice | FileType::BlockDevice => Some("a device, not a file"),
        FileType::Unknown => Some("of an unknown kind, not a file"),
    }
}
