//! Files beside `HEAD` about operations in progress: those that are carried over, and those that
//! belong to an operation that stays private until it is finished.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use gyrus_contract::Digest;

use super::{
    RepositoryError,
    folder::{GitFolder, PathKind},
    names::ObjectId,
};

/// Maximum bytes of such a file.
const MAX_STATE: u64 = 1 << 20;
/// Maximum number of files of an unfinished operation, and maximum depth of its folders.
const MAX_FILES: usize = 20_000;
const MAX_DEPTH: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StateForm {
    Objects,
    Message,
    Mode,
}

/// The files of state that are carried over, with the form of their contents.
///
/// | file | why |
/// | --- | --- |
/// | `ORIG_HEAD` | an object's name; where `git reset ORIG_HEAD` leads back to |
/// | `MERGE_HEAD`, `CHERRY_PICK_HEAD`, `REVERT_HEAD` | names of objects; without them a conflict in the index could be committed as if there had been no merge |
/// | `MERGE_MODE` | `no-ff` or nothing |
/// | `MERGE_MSG`, `SQUASH_MSG` | text, which a person sees before committing it |
const CARRIED: [(&str, StateForm); 7] = [
    ("ORIG_HEAD", StateForm::Objects),
    ("MERGE_HEAD", StateForm::Objects),
    ("CHERRY_PICK_HEAD", StateForm::Objects),
    ("REVERT_HEAD", StateForm::Objects),
    ("MERGE_MODE", StateForm::Mode),
    ("MERGE_MSG", StateForm::Message),
    ("SQUASH_MSG", StateForm::Message),
];

/// Files that need not be preserved: git writes them again when it needs them (`FETCH_HEAD` also
/// names places, and `MERGE_RR` makes git apply recorded resolutions).
pub(super) const WRITTEN_ANEW: [&str; 9] = [
    "COMMIT_EDITMSG",
    "FETCH_HEAD",
    "AUTO_MERGE",
    "MERGE_RR",
    "TAG_EDITMSG",
    "NOTES_EDITMSG",
    "EDIT_DESCRIPTION",
    "gc.log",
    "gc.pid",
];

/// Operations that take several steps. Their files contain lists of steps, which may name programs:
/// a person's `git rebase --continue` would run them.
const OPERATIONS: [(&str, &[&str]); 5] = [
    ("rebase", &["rebase-merge"]),
    ("rebase or am", &["rebase-apply"]),
    ("cherry-pick or revert", &["sequencer"]),
    (
        "bisect",
        &[
            "BISECT_START",
            "BISECT_LOG",
            "BISECT_NAMES",
            "BISECT_TERMS",
            "BISECT_RUN",
            "BISECT_EXPECTED_REV",
            "BISECT_ANCESTORS_OK",
            "BISECT_FIRST_PARENT",
            "refs/bisect",
        ],
    ),
    (
        "merge of notes",
        &[
            "NOTES_MERGE_PARTIAL",
            "NOTES_MERGE_REF",
            "NOTES_MERGE_WORKTREE",
        ],
    ),
];

/// Other files of a work tree that belong to an operation in progress.
const BESIDE: [&str; 6] = [
    "HEAD",
    "index",
    "logs/HEAD",
    "REBASE_HEAD",
    "AUTO_MERGE",
    "refs/rewritten",
];

/// Names of the files of state that are carried over.
pub(super) fn carried() -> impl Iterator<Item = &'static str> {
    CARRIED.iter().map(|(name, _)| *name)
}

/// Whether a file or folder of a work tree belongs to an operation in progress.
pub(super) fn is_private(path: &Path) -> bool {
    let mut private = OPERATIONS.iter().flat_map(|(_, files)| *files).copied();
    private.any(|file| path.starts_with(file))
        || BESIDE.iter().any(|file| path.starts_with(file))
        || carried().any(|file| path == Path::new(file))
}

/// Reads a file of state and checks its form; `None` if it does not exist.
pub(super) fn read(
    git: &GitFolder,
    worktree: &Path,
    name: &str,
) -> Result<Option<Vec<u8>>, RepositoryError> {
    let path = worktree.join(name);
    let Some(content) = git.read(&path, MAX_STATE)? else {
        return Ok(None);
    };
    let form = CARRIED
        .iter()
        .find(|(carried, _)| *carried == name)
        .map(|(_, form)| *form);
    let fits = match form {
        Some(StateForm::Objects) => objects(&content).is_some(),
        Some(StateForm::Message) => is_plain(&content),
        Some(StateForm::Mode) => matches!(content.trim_ascii(), b"" | b"no-ff"),
        None => false,
    };
    if fits {
        return Ok(Some(content));
    }
    Err(RepositoryError::Damaged {
        path: git.path().join(path),
        reason: "it holds something else than git writes there".to_owned(),
    })
}

/// Whether a text is printable, so that it moves no cursor in an editor or a terminal.
fn is_plain(content: &[u8]) -> bool {
    let is_fine = |c: char| !c.is_control() || matches!(c, '\n' | '\r' | '\t');
    std::str::from_utf8(content).is_ok_and(|text| text.chars().all(is_fine))
}

pub(super) fn objects_in(name: &str, content: &[u8]) -> Vec<ObjectId> {
    let names_objects = CARRIED.contains(&(name, StateForm::Objects));
    objects(content)
        .filter(|_| names_objects)
        .unwrap_or_default()
}

fn objects(content: &[u8]) -> Option<Vec<ObjectId>> {
    let text = std::str::from_utf8(content).ok()?;
    let ids: Option<Vec<_>> = text.lines().map(ObjectId::parse).collect();
    ids.filter(|ids| !ids.is_empty() && ids.iter().all(|id| !id.is_null()))
}

/// An operation in several steps that is in progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GitOperation {
    /// Common name of the operation.
    pub(super) name: &'static str,
    /// The existing files and folders of the operation.
    pub(super) files: Vec<PathBuf>,
    /// Digest of all these files.
    pub(super) digest: Digest,
}

/// Returns the operations in progress in a work tree.
pub(super) fn operations(
    git: &GitFolder,
    worktree: &Path,
) -> Result<Vec<GitOperation>, RepositoryError> {
    let mut found = Vec::new();
    for (name, files) in OPERATIONS {
        let mut parts = Vec::new();
        let mut there = Vec::new();
        for file in files {
            let path = worktree.join(file);
            if git.kind(&path)? != PathKind::Missing {
                describe(git, &path, 0, &mut parts)?;
                there.push(PathBuf::from(file));
            }
        }
        // A folder that git left empty is not an operation.
        let is_only_refs = there == [Path::new("refs/bisect")];
        if !(there.is_empty() || is_only_refs && parts.len() <= 1) {
            let digest = Digest::of_json(&parts);
            found.push(GitOperation {
                name,
                files: there,
                digest,
            });
        }
    }
    Ok(found)
}

/// Adds the paths and contents of everything at and below `path` to the digest.
fn describe(
    git: &GitFolder,
    path: &Path,
    depth: usize,
    parts: &mut Vec<(String, Option<Digest>)>,
) -> Result<(), RepositoryError> {
    if parts.len() > MAX_FILES || depth > MAX_DEPTH {
        let path = git.path().join(path);
        return Err(RepositoryError::TooMany {
            path,
            limit: MAX_FILES,
        });
    }
    let name = path.to_string_lossy().into_owned();
    match git.kind(path)? {
        PathKind::Missing => {}
        PathKind::Folder => {
            parts.push((name, None));
            for entry in git.names(path)? {
                describe(git, &path.join(OsStr::from_bytes(&entry)), depth + 1, parts)?;
            }
        }
        PathKind::File => {
            let content = git.read(path, MAX_STATE)?.unwrap_or_default();
            parts.push((name, Some(Digest::of(&content))));
        }
        PathKind::Link | PathKind::Other => parts.push((name, None)),
    }
    Ok(())
}
