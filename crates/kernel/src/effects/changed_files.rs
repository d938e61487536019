//! The lines with which a command's result ends: the files of the workspace that it changed, and how,
//! where that is short.
//!
//! They name only what the command's layer held and what was moved into the workspace. Little is read
//! for them, so they cost little time.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use gyrus_contract::{ChangedPath, PathChange};
use gyrus_text::one_line;
use gyrus_workspace::{RootFolder, Secrecy, patch, snapshot::build_output};

/// Maximum number of names after each of the words for changes.
const MAX_NAMES: usize = 8;

/// Maximum number of files of a folder that are named where there are more than [`MAX_NAMES`].
const MAX_OF_FOLDER: usize = 3;

/// Maximum number of changed files whose hunks are shown, of lines of these hunks, and of bytes of
/// a file and of the hunks.
const MAX_FILES: usize = 3;
const MAX_LINES: usize = 24;
const MAX_FILE_BYTES: i64 = 64 << 10;
const MAX_BYTES: usize = 1_600;

/// Maximum time for comparing files.
const MAX_TIME: Duration = Duration::from_millis(20);

/// Returns the hunks of the files that a command changed in its layer, before they are moved into the
/// workspace; none of more files than a model can look at, and none of a file that is or holds a secret:
/// its lines around the change are nothing that the command printed. A model that does not see what its
/// command did believes that it did what it meant.
pub(super) fn short_hunks(
    workspace: &Path,
    layer: &Path,
    changes: &[ChangedPath],
    secrecy: &dyn Secrecy,
) -> Vec<(PathBuf, String)> {
    let is_changed = |change: &&ChangedPath| {
        change.change == PathChange::Changed && build_output(&change.path).is_none()
    };
    let changed: Vec<&ChangedPath> = changes.iter().filter(is_changed).collect();
    if changed.len() > MAX_FILES {
        return Vec::new();
    }
    let (Ok(before), Ok(after)) = (RootFolder::open(workspace), RootFolder::open(layer)) else {
        return Vec::new();
    };
    let until = Instant::now() + MAX_TIME;
    let text = |root: &RootFolder, path: &Path| {
        let stat = root.stat(path).ok()??;
        let (content, _) = (stat.st_size <= MAX_FILE_BYTES).then(|| root.read(path).ok())??;
        let is_shown = !secrecy.is_secret(path, &content);
        is_shown.then(|| String::from_utf8(content).ok())?
    };
    let (mut lines, mut bytes) = (MAX_LINES, MAX_BYTES);
    let hunks = changed.into_iter().filter_map(|change| {
        let (old, new) = (text(&before, &change.path)?, text(&after, &change.path)?);
        let hunks = patch::hunks(&old, &new, until);
        lines = lines.checked_sub(hunks.lines().count())?;
        bytes = bytes.checked_sub(hunks.len())?;
        Some((change.path.clone(), hunks))
    });
    hunks.filter(|(_, hunks)| !hunks.is_empty()).collect()
}

/// Returns the line about sorted changes.
pub(super) fn changed_files(changes: &[ChangedPath]) -> String {
    let kinds = [
        ("created", PathChange::Created),
        ("changed", PathChange::Changed),
        ("deleted", PathChange::Deleted),
    ];
    let of_kind = kinds.into_iter().filter_map(|(word, kind)| {
        let paths: Vec<&Path> = changes
            .iter()
            .filter(|change| change.change == kind)
            .map(|change| change.path.as_path())
            .collect();
        // A folder is named by what is in it.
        let holds_next = |at: usize| {
            paths
                .get(at + 1)
                .is_some_and(|next| next.starts_with(paths[at]))
        };
        let files = (0..paths.len()).filter(|at| !holds_next(*at));
        let files: Vec<&Path> = files.map(|at| paths[at]).collect();
        (!files.is_empty()).then(|| format!("{word}: {}", names(&files)))
    });
    let told: Vec<String> = of_kind.collect();
    match told.is_empty() {
        true if changes.is_empty() => "no file of the workspace changed".to_owned(),
        true => String::new(),
        false => told.join("; "),
    }
}

/// Returns the names of files. Build output is summed up by folder, and so are the files of top
/// folders where there are many.
fn names(files: &[&Path]) -> String {
    let mut groups: BTreeMap<&Path, Vec<&Path>> = BTreeMap::new();
    for file in files {
        let top = file
            .components()
            .next()
            .map(|top| Path::new(top.as_os_str()));
        let top = top.filter(|top| files.len() > MAX_NAMES && top != file);
        let group = build_output(file).or(top).unwrap_or(file);
        groups.entry(group).or_default().push(file);
    }
    let named = groups.iter().flat_map(|(group, files)| {
        if files.len() > MAX_OF_FOLDER || (build_output(group).is_some() && files[0] != *group) {
            vec![(
                format!("{}/ ({})", group.display(), files.len()),
                files.len(),
            )]
        } else {
            files
                .iter()
                .map(|file| (file.display().to_string(), 1))
                .collect()
        }
    });
    let named: Vec<(String, usize)> = named.collect();
    let shown = named.iter().take(MAX_NAMES);
    let mut words: Vec<String> = shown.map(|(name, _)| one_line(name).into_owned()).collect();
    let more: usize = named.iter().skip(MAX_NAMES).map(|(_, files)| files).sum();
    if more > 0 {
        words.push(format!("{more} more"));
    }
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(changes: &[(PathChange, &str)], expected: &str) {
        let mut changes: Vec<ChangedPath> = changes
            .iter()
            .map(|(change, path)| ChangedPath {
                path: path.into(),
                change: *change,
            })
            .collect();
        changes.sort_by(|one, other| one.path.cmp(&other.path));
        assert_eq!(changed_files(&changes), expected);
    }

    #[test]
    fn a_line_names_what_changed() {
        use PathChange::{Changed, Created, Deleted, Special};
        check(&[], "no file of the workspace changed");
        check(&[(Special, "pipe")], "");
        check(
            &[
                (Changed, "b.rs"),
                (Changed, "a.txt"),
                (Created, "new"),
                (Created, "new/c\nd"),
            ],
            "created: new/c⏎d; changed: a.txt, b.rs",
        );
        check(
            &[
                (Deleted, "old"),
                (Created, "target"),
                (Created, "target/debug/x"),
                (Created, "target/y"),
                (Created, "a/__pycache__/m.pyc"),
            ],
            "created: a/__pycache__/ (1), target/ (2); deleted: old",
        );
    }

    #[test]
    fn many_files_are_summed_up() {
        let many: Vec<String> = (10..40).map(|n| format!("src/{n}.rs")).collect();
        let changes = |all: &[String]| {
            let changes = all.iter().map(|path| ChangedPath {
                path: path.into(),
                change: PathChange::Changed,
            });
            changed_files(&changes.collect::<Vec<_>>())
        };
        let some = ["Cargo.toml".to_owned(), "docs/a.md".to_owned()];
        assert_eq!(
            changes(&[&some[..], &many].concat()),
            "changed: Cargo.toml, docs/a.md, src/ (30)"
        );
        let flat: Vec<String> = (10..20).map(|n| format!("{n}.txt")).collect();
        assert_eq!(
            changes(&flat),
            "changed: 10.txt, 11.txt, 12.txt, 13.txt, 14.txt, 15.txt, 16.txt, 17.txt, 2 more"
        );
    }
}
