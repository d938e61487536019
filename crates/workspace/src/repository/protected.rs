//! Files of a git directory that are neither references nor state: settings, hooks, and other files
//! that programs may obey. What changed in them is withheld.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use super::{
    RepositoryError,
    changes::{display, plain},
    config::GitConfig,
    config_edit,
    find::{GitDirectory, read_config},
    folder::{GitFolder, PathKind},
    index, pointer, refs,
    settings::{self, SettingChange},
    stamps::Stamps,
    state,
    withheld::{FileContent, MAX_CONTENT, WithheldPath},
    worktree,
};

/// Maximum number of changes of one command in a question or in a text for the model.
const MAX_WITHHELD: usize = 100;
/// Maximum number of settings of one file that are examined separately.
pub(super) const MAX_SETTINGS: usize = 200;

/// Both sides of a comparison.
pub(super) struct Sides<'a> {
    pub(super) directory: &'a GitDirectory,
    pub(super) base: &'a GitFolder,
    pub(super) private: &'a GitFolder,
}

/// Results for the protected files of a repository.
#[derive(Debug, Default)]
pub(super) struct ProtectedFindings {
    pub(super) withheld: Vec<WithheldPath>,
    pub(super) notes: Vec<String>,
    /// Changes of settings, by store.
    pub(super) settings: Vec<(PathBuf, Vec<SettingChange>)>,
}

/// Compares all files other than references, indexes, logs and state.
pub(super) fn compare(sides: &Sides<'_>, base: &Stamps, private: &Stamps) -> ProtectedFindings {
    let mut found = ProtectedFindings::default();
    let paths: BTreeSet<_> = base.entries.keys().chain(private.entries.keys()).collect();
    let mut new_below: Option<&Path> = None;
    for path in paths {
        if new_below.is_some_and(|above| path.starts_with(above)) {
            continue;
        }
        let is_folder = |stamps: &Stamps| {
            stamps
                .entries
                .get(path)
                .is_some_and(|stamp| stamp.kind == PathKind::Folder)
        };
        if let Some(reason) = whole_folder(path, base, private) {
            new_below = Some(path);
            found.not_kept(sides, path, reason);
            continue;
        }
        let new_worktree = new_worktree(path, base);
        if new_worktree == Some(path) && !is_in_workspace(sides, path) {
            new_below = Some(path);
            found.not_kept(sides, path, "the work tree is not in the workspace");
            continue;
        }
        let (store, below) = split(path, &base.stores);
        if (is_folder(base) || !base.entries.contains_key(path))
            && (is_folder(private) || !private.entries.contains_key(path))
        {
            continue;
        }
        if new_worktree.is_none() && is_data(below) {
            continue;
        }
        if found.withheld.len() + found.notes.len() >= MAX_WITHHELD {
            let name = sides.directory.name();
            found.notes.push(format!(
                "more files of `{name}` may have been changed; none was kept"
            ));
            break;
        }
        if path
            .to_str()
            .is_none_or(|path| path.contains(gyrus_text::is_unseen))
        {
            found.not_kept(sides, path, "its name is not plain text");
            continue;
        }
        let compared = match new_worktree {
            Some(worktree) => found.add_worktree_file(sides, path, worktree),
            None => found.compare_file(sides, path, store, below),
        };
        if let Err(error) = compared {
            found.not_kept(sides, path, &error.to_string());
        }
    }
    found
}

/// Returns the reason why a folder is not carried over at all; `None` if its files are examined.
fn whole_folder(path: &Path, base: &Stamps, private: &Stamps) -> Option<&'static str> {
    let is_new = !base.entries.contains_key(path);
    let is_gone = !private.entries.contains_key(path);
    let parts: Vec<_> = path.iter().collect();
    if parts.len() == 2 && parts[0] == "worktrees" && is_gone {
        return Some("a work tree is not removed with it; a person can run `git worktree prune`");
    }
    let is_module = private
        .stores
        .iter()
        .chain(&base.stores)
        .any(|store| store == path);
    if is_module && is_new {
        return Some("a submodule's repository that a command makes stays outside");
    }
    if is_module && is_gone {
        return Some("a submodule's repository is not removed");
    }
    None
}

/// Returns the folder of a linked work tree that is not in `base`, if it contains `path`.
fn new_worktree<'a>(path: &'a Path, base: &Stamps) -> Option<&'a Path> {
    let mut above = path.ancestors();
    let own = above.find(|above| above.parent() == Some(Path::new("worktrees")))?;
    (!base.entries.contains_key(own)).then_some(own)
}

/// Whether the `.git` file of a work tree that a command added is in the workspace.
fn is_in_workspace(sides: &Sides<'_>, worktree: &Path) -> bool {
    let entry = pointer::of_worktree(sides.private, worktree);
    let inside = |entry: PathBuf| {
        let is_plain = !entry.iter().any(|part| part == "..");
        is_plain && entry.starts_with(&sides.directory.workspace)
    };
    entry.ok().flatten().is_some_and(inside)
}

/// Returns the store of a path, and the path below it.
pub(super) fn split<'a>(path: &'a Path, stores: &'a [PathBuf]) -> (&'a Path, &'a Path) {
    let inner = stores.iter().filter(|store| path.starts_with(store));
    let store = inner.max_by_key(|store| store.as_os_str().len());
    let store = store.map_or(Path::new(""), PathBuf::as_path);
    (store, path.strip_prefix(store).unwrap_or(path))
}

/// Whether a path of a store is git's own data, which is compared as such or is of no interest.
pub(super) fn is_data(below: &Path) -> bool {
    let own = below.strip_prefix("worktrees").ok();
    let beside = match own {
        // Below the work tree's name.
        Some(own) => own.iter().skip(1).collect::<PathBuf>(),
        None => below.to_owned(),
    };
    let first = beside
        .iter()
        .next()
        .and_then(|part| part.to_str())
        .unwrap_or_default();
    matches!(first, "refs" | "logs" | "packed-refs" | "rr-cache")
        || state::is_private(&beside)
        || state::WRITTEN_ANEW.contains(&first)
        || first.starts_with("sharedindex.")
        || beside == Path::new("info/refs")
}

impl ProtectedFindings {
    fn not_kept(&mut self, sides: &Sides<'_>, path: &Path, reason: &str) {
        let path = plain(&display(&sides.directory.name(), path));
        self.notes.push(format!("`{path}` was not kept: {reason}"));
    }

    fn compare_file(
        &mut self,
        sides: &Sides<'_>,
        path: &Path,
        store: &Path,
        below: &Path,
    ) -> Result<(), RepositoryError> {
        let old = FileContent::read(sides.base, path)?;
        let new = FileContent::read(sides.private, path)?;
        if old == new {
            return Ok(());
        }
        let is_config = below == Path::new("config") || below.ends_with("config.worktree");
        let both_files = |kind| kind == PathKind::File || kind == PathKind::Missing;
        if is_config && both_files(sides.private.kind(path)?) && new.is_some() {
            let is_main = below == Path::new("config");
            let store = is_main.then_some(store);
            return self.compare_config(sides, path, store);
        }
        self.withheld.push(WithheldPath {
            repository: sides.directory.path.clone(),
            path: path.to_owned(),
            reason: reason(below).to_owned(),
            old,
            new,
            settings: Vec::new(),
        });
        Ok(())
    }

    /// Adds a file that git needs for a linked work tree added by a command; the others are left
    /// out.
    fn add_worktree_file(
        &mut self,
        sides: &Sides<'_>,
        path: &Path,
        worktree: &Path,
    ) -> Result<(), RepositoryError> {
        let name = path.strip_prefix(worktree).ok().and_then(Path::to_str);
        let new = match name {
            Some("gitdir" | "commondir") => FileContent::read(sides.private, path)?,
            Some("HEAD") => {
                let head = refs::read_head(sides.private, worktree)?;
                Some(FileContent::of(head.content(), 0))
            }
            Some("index") => {
                let entries = worktree::read_index(sides.private, worktree)?;
                let bytes = index::cleaned(entries).map_err(|error| RepositoryError::Damaged {
                    path: path.to_owned(),
                    reason: error.to_string(),
                })?;
                if bytes.len() as u64 > MAX_CONTENT {
                    self.not_kept(sides, path, "it is too large; `git reset` makes it anew");
                    return Ok(());
                }
                Some(FileContent::of(bytes, 0))
            }
            Some(_) | None => return Ok(()),
        };
        self.withheld.push(WithheldPath {
            repository: sides.directory.path.clone(),
            path: path.to_owned(),
            reason: reason(path).to_owned(),
            old: None,
            new,
            settings: Vec::new(),
        });
        Ok(())
    }

    /// Compares a configuration. `store` is the one whose settings may be carried over; `None` if
    /// those of this file never may.
    fn compare_config(
        &mut self,
        sides: &Sides<'_>,
        path: &Path,
        store: Option<&Path>,
    ) -> Result<(), RepositoryError> {
        let old = read_config(sides.base, path)?;
        let new = read_config(sides.private, path)?;
        let remotes = settings::remotes(&old);
        let changes = settings::compare(&old, &new);
        if changes.len() > MAX_SETTINGS {
            self.not_kept(sides, path, "too many settings were changed at once");
            return Ok(());
        }
        let changes = changes.into_iter();
        let (carried, asked): (Vec<_>, Vec<_>) =
            changes.partition(|change| store.is_some() && settings::is_allowed(change, &remotes));
        if let Some(store) = store.filter(|_| !carried.is_empty()) {
            self.settings.push((store.to_owned(), carried));
        }
        if asked.is_empty() {
            return Ok(());
        }
        let after = after(&old, &asked).unwrap_or(new.text);
        let text = |text| FileContent::Text {
            text,
            executable: false,
        };
        self.withheld.push(WithheldPath {
            repository: sides.directory.path.clone(),
            path: path.to_owned(),
            reason: "a setting may name a program, or a place".to_owned(),
            old: Some(text(old.text)),
            new: Some(text(after)),
            settings: asked,
        });
        Ok(())
    }
}

/// Returns the text of the configuration for a person: the present one with these settings changed,
/// without other changes by a command.
fn after(old: &GitConfig, changes: &[SettingChange]) -> Option<String> {
    let changes: Vec<_> = changes.iter().collect();
    config_edit::edit(&old.text, &changes).ok()
}

/// Returns the reason why a file is withheld.
pub(super) fn reason(below: &Path) -> &'static str {
    let parts: Vec<_> = below.iter().filter_map(|part| part.to_str()).collect();
    match parts.as_slice() {
        ["hooks", ..] => "git runs hooks as the person",
        ["info", "attributes"] => "attributes choose which programs see a file's content",
        ["info", "exclude"] => "it hides files from the person's `git status`",
        ["info", "sparse-checkout"] => "it decides which files are checked out",
        ["info", "grafts"] | ["shallow"] => "it changes what history looks like",
        ["objects", "info", ..] => "it makes git read objects of another place",
        ["worktrees", _, ..] => "a work tree is a place that git trusts",
        ["commondir" | "gitdir"] => "it makes git use another place",
        _ => "it is not among the files that are known to be harmless",
    }
}
