//! Follows a path part by part, and checks everything on the way.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStringExt,
    path::{Component, Path, PathBuf},
};

use gyrus_contract::FileIdentity;
use rustix::{
    fs::{AtFlags, CWD, FileType, Stat, readlinkat, stat, statat},
    io::Errno,
};

use super::owners::Owners;

/// Maximum number of links on one path, as in the kernel.
const MAX_LINKS: usize = 40;

/// Reason why a path cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Distrust {
    /// The file does not exist, or it cannot be examined.
    NotThere(String),
    /// Another user or a run could have put the file there.
    Untrusted(String),
}

impl Distrust {
    fn untrusted(what: &Path, why: &str) -> Self {
        Self::Untrusted(format!("{} {why}", what.display()))
    }
}

/// Result of following a path.
#[derive(Debug)]
pub(super) struct FoundProgram {
    /// The path without links.
    pub(super) real: PathBuf,
    /// The file; `None` for a folder.
    pub(super) file: Option<ProgramFile>,
}

/// A file at the end of a path.
#[derive(Debug)]
pub(super) struct ProgramFile {
    pub(super) is_executable: bool,
    pub(super) identity: FileIdentity,
}

/// Follows paths, and refuses those into a folder that runs can write to.
pub(super) struct PathWalk<'a> {
    owners: &'a Owners,
    /// Folders that runs can write to, by their path without links if known, and by their identity:
    /// a bind mount has another path.
    writable: Vec<(PathBuf, Option<(u64, u64)>)>,
}

impl<'a> PathWalk<'a> {
    pub(super) fn new(owners: &'a Owners, writable: &[PathBuf]) -> Self {
        let seen = |folder: &PathBuf| {
            let real = folder.canonicalize().unwrap_or_else(|_| folder.clone());
            let stat = stat(folder).ok().map(|stat| (stat.st_dev, stat.st_ino));
            (real, stat)
        };
        Self {
            owners,
            writable: writable.iter().map(seen).collect(),
        }
    }

    pub(super) fn follow(&self, path: &Path) -> Result<FoundProgram, Distrust> {
        let mut real = PathBuf::from("/");
        self.look_at(&real)?;
        let mut rest: Vec<OsString> = parts(path);
        let mut links = 0;
        let mut file = None;
        while let Some(part) = rest.pop() {
            if part == OsStr::new("..") {
                real.pop();
                continue;
            }
            let next = real.join(&part);
            let stat = self.look_at(&next)?;
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Symlink => {
                    links += 1;
                    if links > MAX_LINKS {
                        return Err(Distrust::NotThere("too many links".to_owned()));
                    }
                    let target = readlinkat(CWD, &next, Vec::new())
                        .map_err(|error| not_there(&next, error))?;
                    let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
                    if target.is_absolute() {
                        real = PathBuf::from("/");
                    }
                    rest.extend(parts(&target));
                }
                FileType::Directory => real = next,
                kind => {
                    if !rest.is_empty() {
                        return Err(not_there(&next, Errno::NOTDIR));
                    }
                    file = Some(ProgramFile {
                        is_executable: kind == FileType::RegularFile && stat.st_mode & 0o111 != 0,
                        identity: super::identity(&stat),
                    });
                    real = next;
                }
            }
        }
        Ok(FoundProgram { real, file })
    }

    /// Examines the entry at a path in a checked folder, if no other user can change it.
    fn look_at(&self, path: &Path) -> Result<Stat, Distrust> {
        let stat =
            statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).map_err(|error| not_there(path, error))?;
        for (folder, identity) in &self.writable {
            if path.starts_with(folder) || *identity == Some((stat.st_dev, stat.st_ino)) {
                let why = format!("lies in {}, which runs can write", folder.display());
                return Err(Distrust::untrusted(path, &why));
            }
        }
        match self.owners.who_else_may_change(path, &stat) {
            None => Ok(stat),
            Some(why) => Err(Distrust::untrusted(path, &why)),
        }
    }
}

fn not_there(path: &Path, error: Errno) -> Distrust {
    Distrust::NotThere(format!("{}: {error}", path.display()))
}

/// Returns the parts of a path, the last one first.
fn parts(path: &Path) -> Vec<OsString> {
    let parts = path.components().rev();
    parts
        .filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some(OsString::from("..")),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
        })
        .collect()
}
