//! Files of a repository that git tracks, from its index.
//!
//! Format: <https://git-scm.com/docs/index-format>, versions 2 and 3. An index that cannot be read
//! for certain (another version, a split or sparse index, other hashes) counts as tracking
//! everything.

use std::{
    fs,
    path::{Path, PathBuf},
};

const MAX_INDEX_BYTES: u64 = 64 << 20;
/// Bytes of a hash at the end of entries and of the file.
const HASH: usize = 20;

pub(super) enum GitTrackedFiles {
    /// The paths of the tracked files, sorted.
    These(Vec<Vec<u8>>),
    /// The files are not known.
    Unknown,
}

impl GitTrackedFiles {
    /// Reads the index of the repository whose `.git` is in this folder.
    pub(super) fn read(repository: &Path) -> Self {
        let Some(index) = git_folder(repository).map(|folder| folder.join("index")) else {
            return Self::Unknown;
        };
        match fs::symlink_metadata(&index) {
            // A repository before its first `git add`.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Self::These(Vec::new()),
            Ok(about) if about.is_file() && about.len() <= MAX_INDEX_BYTES => fs::read(&index)
                .ok()
                .and_then(|bytes| paths(&bytes))
                .map_or(Self::Unknown, Self::These),
            Ok(_) | Err(_) => Self::Unknown,
        }
    }

    /// Whether git certainly tracks no file below a folder.
    pub(super) fn has_nothing_in(&self, folder: &[u8]) -> bool {
        let Self::These(paths) = self else {
            return false;
        };
        let below = [folder, b"/"].concat();
        let first = paths.partition_point(|path| *path < below);
        let within = |path: &Vec<u8>| path.starts_with(&below) || path == folder;
        !paths.get(first).is_some_and(within) && paths.binary_search(&folder.to_vec()).is_err()
    }
}

/// Returns the folder with the index: `.git`, or the one that a file of that name points to.
fn git_folder(repository: &Path) -> Option<PathBuf> {
    let git = repository.join(".git");
    let about = fs::symlink_metadata(&git).ok()?;
    if about.is_dir() {
        return Some(git);
    }
    let text = about
        .is_file()
        .then(|| fs::read_to_string(&git).ok())
        .flatten()?;
    Some(repository.join(text.strip_prefix("gitdir:")?.trim()))
}

fn paths(index: &[u8]) -> Option<Vec<Vec<u8>>> {
    let number = |at: usize| {
        let bytes = index.get(at..at + 4)?;
        Some(u32::from_be_bytes(bytes.try_into().ok()?))
    };
    if index.get(..4)? != b"DIRC" || !matches!(number(4)?, 2 | 3) {
        return None;
    }
    let mut paths = Vec::new();
    let mut at = 12;
    for _ in 0..number(8)? {
        // Ten numbers, the hash, and two bytes of flags, of which one may announce two more.
        let flags = at + 40 + HASH;
        let extended = index.get(flags)? & 0x40 != 0;
        let start = flags + if extended { 4 } else { 2 };
        let length = index.get(start..)?.iter().position(|byte| *byte == 0)?;
        paths.push(index[start..start + length].to_vec());
        // One to eight zeros, up to a multiple of eight.
        at += (start + length - at) / 8 * 8 + 8;
    }
    // The rest must have consistent lengths, or the entries were misread.
    while index.len().checked_sub(at)? != HASH {
        let optional = index.get(at)?.is_ascii_uppercase();
        if !optional {
            return None;
        }
        at += 8 + usize::try_from(number(at + 4)?).ok()?;
    }
    paths.is_sorted().then_some(paths)
}
