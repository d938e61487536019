//! Repositories without a `.git`: git obeys any folder that has the parts of one.

use std::path::{Path, PathBuf};

use gyrus_contract::{ChangedPath, PathChange};

use super::changes::CallChanges;

/// Entries by which a folder becomes a repository, or that git obeys in one.
const PARTS: [&str; 8] = [
    "HEAD",
    "config",
    "config.worktree",
    "objects",
    "refs",
    "hooks",
    "info",
    "commondir",
];

/// Returns the folders that these changes made into repositories, or nearer to one.
pub(super) fn repositories(changes: &CallChanges<'_>, workspace: &Path) -> Vec<PathBuf> {
    let mut folders: Vec<&Path> = changes
        .all
        .iter()
        .filter(|change| change.change != PathChange::Deleted)
        .flat_map(|change| change.path.ancestors())
        .filter(|path| {
            let name = path.file_name();
            PARTS.iter().any(|part| name == Some(part.as_ref()))
        })
        .filter_map(Path::parent)
        .collect();
    folders.sort_unstable();
    folders.dedup();
    let has = |folder: &Path, name: &str| {
        let part = folder.join(name);
        match changes.at(&part) {
            Some(PathChange::Deleted) => false,
            Some(_) => true,
            None => changes.below(&part) || workspace.join(&part).symlink_metadata().is_ok(),
        }
    };
    let is_one = |folder: &&Path| {
        has(folder, "HEAD")
            && (has(folder, "commondir") || (has(folder, "objects") && has(folder, "refs")))
    };
    folders
        .into_iter()
        .filter(is_one)
        .map(Path::to_path_buf)
        .collect()
}

/// Whether git obeys this change in one of these repositories. Without its `HEAD`, or without what
/// was missing before, a folder is not one.
pub(super) fn is_obeyed(change: &ChangedPath, changes: &CallChanges<'_>, bare: &[PathBuf]) -> bool {
    let made = |path: PathBuf| changes.at(&path) == Some(PathChange::Created);
    bare.iter().any(|folder| {
        let below = change.path.strip_prefix(folder).ok();
        let first = below.and_then(|below| below.iter().next());
        let Some(first) = first.and_then(|name| name.to_str()) else {
            return false;
        };
        match first {
            "HEAD" | "config" | "config.worktree" | "hooks" | "info" | "commondir" => true,
            part @ ("refs" | "objects") => !made(folder.join("HEAD")) && made(folder.join(part)),
            _ => false,
        }
    })
}
