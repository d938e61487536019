//! The small files by which git finds a repository that lies elsewhere, read as git reads them.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use super::{RepositoryError, folder::GitFolder};

/// Maximum bytes of such a file.
const MAX_POINTER: u64 = 8_192;

/// Returns the path in a `.git` file of the folder `git`: `gitdir: PATH`.
///
/// Git reads everything after the colon and one blank, except line ends at the end of the file: a
/// blank at the end is part of the path.
pub(super) fn of_git_file(git: &GitFolder, name: &Path) -> Result<PathBuf, RepositoryError> {
    let content = git.read(name, MAX_POINTER)?.unwrap_or_default();
    let path = content.strip_prefix(b"gitdir: ").and_then(path);
    let path = path.ok_or_else(|| damaged(git, name))?;
    Ok(git.path().join(path))
}

/// Returns the common directory that a linked work tree names in `commondir`; `None` without that
/// file.
pub(super) fn of_commondir(git: &GitFolder) -> Result<Option<PathBuf>, RepositoryError> {
    let name = Path::new("commondir");
    let Some(content) = git.read(name, MAX_POINTER)? else {
        return Ok(None);
    };
    let path = path(&content).ok_or_else(|| damaged(git, name))?;
    Ok(Some(git.path().join(path)))
}

/// Returns the `.git` file of a linked work tree, as its own folder `worktree` names it in
/// `gitdir`. `None` if that is not readable as one path.
pub(super) fn of_worktree(
    git: &GitFolder,
    worktree: &Path,
) -> Result<Option<PathBuf>, RepositoryError> {
    let content = git
        .read(&worktree.join("gitdir"), MAX_POINTER)?
        .unwrap_or_default();
    let path = path(&content);
    // Git takes all blanks off the end here, and not when it follows the file.
    let path = path.filter(|path| !path.as_os_str().as_bytes().ends_with(b" "));
    Ok(path.map(|path| git.path().join(worktree).join(path)))
}

fn path(content: &[u8]) -> Option<PathBuf> {
    let end = content
        .iter()
        .rposition(|byte| !matches!(byte, b'\n' | b'\r'))?;
    let path = &content[..=end];
    let is_odd = path.iter().any(u8::is_ascii_control);
    (!is_odd).then(|| PathBuf::from(OsStr::from_bytes(path)))
}

fn damaged(git: &GitFolder, name: &Path) -> RepositoryError {
    RepositoryError::Damaged {
        path: git.path().join(name),
        reason: "it does not name one folder".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blank_at_the_end_is_part_of_the_path() {
        for (content, expected) in [
            ("gitdir: ../real\n", Some("../real")),
            ("gitdir: ../real \n", Some("../real ")),
            ("gitdir: ../real\r\n\n", Some("../real")),
            ("gitdir:  x\n", Some(" x")),
            ("gitdir:../real\n", None),
            ("gitdir: a\nb\n", None),
            ("gitdir: \n", Some("")),
            ("gitdir: a\0b", None),
        ] {
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join(".git"), content).unwrap();
            let git = GitFolder::open(folder.path()).unwrap();
            let found = of_git_file(&git, Path::new(".git")).ok();
            let expected = expected.filter(|path| !path.is_empty());
            assert_eq!(
                found,
                expected.map(|path| folder.path().join(path)),
                "{content:?}"
            );
        }
    }
}
