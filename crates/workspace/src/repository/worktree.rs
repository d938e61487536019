//! State of one work tree: its `HEAD`, the commit of that, and its index.

use std::path::{Path, PathBuf};

use super::{
    RepositoryError,
    config::GitConfig,
    find::{GitDirectory, read_config},
    folder::{GitFolder, PathKind},
    index::{self, EntryContent, IndexEntries, MAX_INDEX},
    names::{ObjectId, RefValue},
    pointer, refs,
    refs::Refs,
};

/// Content of an index by path, without times and sizes of files, which git updates at will.
pub(super) type IndexContents = Vec<(Vec<u8>, Vec<EntryContent>)>;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct HeadAndIndex {
    pub(super) head: RefValue,
    pub(super) commit: Option<ObjectId>,
    index: IndexContents,
}

pub(super) fn standing(
    git: &GitFolder,
    worktree: &Path,
    refs: &Refs,
) -> Result<HeadAndIndex, RepositoryError> {
    let head = refs::read_head(git, worktree)?;
    Ok(HeadAndIndex {
        commit: refs.resolve(&head),
        head,
        index: entries(git, worktree)?,
    })
}

/// Returns the content of a work tree's index by path.
pub(super) fn entries(git: &GitFolder, worktree: &Path) -> Result<IndexContents, RepositoryError> {
    let entries = read_index(git, worktree)?;
    let contents = entries.into_iter().map(|(path, sides)| {
        let contents = index::contents(Some(&sides));
        (path, contents)
    });
    Ok(contents.collect())
}

/// Returns the entries of a work tree's index; none if there is no index yet.
pub(super) fn read_index(
    git: &GitFolder,
    worktree: &Path,
) -> Result<IndexEntries, RepositoryError> {
    let path = worktree.join("index");
    match git.read(&path, MAX_INDEX)? {
        None => Ok(IndexEntries::new()),
        Some(bytes) => index::parse(&bytes).map_err(|error| RepositoryError::Damaged {
            path: git.path().join(path),
            reason: error.to_string(),
        }),
    }
}

/// Returns the work trees of a store whose files are in the workspace, by the folders of their own
/// files: the store itself, or `worktrees/NAME` in it.
///
/// Only the real git directory may be used: in a private copy these files are untrusted.
pub(super) fn in_workspace(
    live: &GitFolder,
    store: &Path,
    directory: &GitDirectory,
) -> Result<Vec<PathBuf>, RepositoryError> {
    let workspace = &directory.workspace;
    let mut found = Vec::new();
    let by_link = directory.by_link && store.as_os_str().is_empty();
    if by_link || main_is_inside(live, store, workspace)? {
        found.push(store.to_owned());
    }
    for own in refs::linked_worktrees(live, store)? {
        let entry = pointer::of_worktree(live, &own)?;
        let real = entry.and_then(|entry| std::fs::canonicalize(entry.parent()?).ok());
        if real.is_some_and(|real| real.starts_with(workspace)) {
            found.push(own);
        }
    }
    Ok(found)
}

fn main_is_inside(
    live: &GitFolder,
    store: &Path,
    workspace: &Path,
) -> Result<bool, RepositoryError> {
    let path = live.path().join(store);
    let config = read_config(live, &store.join("config"))?;
    let extra = read_config(live, &store.join("config.worktree"))?;
    let setting = |name: &str| {
        let has_extra = config
            .last("extensions", "worktreeconfig")
            .is_some_and(is_true);
        let extra: Option<&GitConfig> = has_extra.then_some(&extra);
        extra
            .and_then(|extra| extra.last("core", name))
            .or_else(|| config.last("core", name))
    };
    if setting("bare").is_some_and(is_true) {
        return Ok(false);
    }
    let folder = match setting("worktree") {
        Some(folder) => path.join(folder),
        None => match path.parent() {
            // Elsewhere than in `.git` it could be anywhere: where a `.git` file or link leads here.
            Some(above) if path.ends_with(".git") => above.to_owned(),
            Some(_) | None => return Ok(true),
        },
    };
    let real = std::fs::canonicalize(folder);
    Ok(real.is_ok_and(|real| real.starts_with(workspace)))
}

/// Whether a Boolean setting is on.
pub(super) fn is_true(value: &str) -> bool {
    ["", "true", "yes", "on", "1"].contains(&value.to_ascii_lowercase().as_str())
}

/// Returns the branches that are checked out or being rebased in work trees other than `carried`.
/// If one were moved, a person's next commit there would undo the move.
pub(super) fn checked_out_elsewhere(
    live: &GitFolder,
    store: &Path,
    carried: &[&Path],
) -> Result<Vec<String>, RepositoryError> {
    let mut branches = Vec::new();
    let mut worktrees = refs::linked_worktrees(live, store)?;
    let config = read_config(live, &store.join("config"))?;
    if !config.last("core", "bare").is_some_and(is_true) {
        worktrees.push(store.to_owned());
    }
    for own in worktrees
        .iter()
        .filter(|own| !carried.contains(&own.as_path()))
    {
        if live.kind(&own.join("HEAD"))? == PathKind::File {
            let head = refs::read_head(live, own).ok();
            branches.extend(head.map(|head| head.to_string()));
        }
        for operation in ["rebase-merge", "rebase-apply"] {
            let name = live.read(&own.join(operation).join("head-name"), 4_096)?;
            let name = name.map(|name| String::from_utf8_lossy(&name).trim().to_owned());
            branches.extend(name);
        }
    }
    Ok(branches)
}
