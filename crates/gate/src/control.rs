//! Control files: files by which other programs run things, or from which agents take
//! instructions, without a person starting that by name.
//!
//! Changing one plainly is asked about before it happens. What a command did to one while it ran
//! is known only afterwards: the change is withheld from the workspace until a person has seen it.
//! The names stand in `control_files.txt`; what cannot be told by a name is here.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use gyrus_contract::{ChangedPath, PathChange, WithheldChange};

use crate::weigh::has_git_part;

const TABLE: &str = include_str!("control_files.txt");

/// Names under which `make` finds its rules. Even `make -n`, by which people look before they run
/// anything, executes what they contain.
const MAKEFILES: [&str; 3] = ["gnumakefile", "makefile", "bsdmakefile"];

/// The files and folders by which git takes a folder for a repository without a `.git`.
const BARE: [&str; 3] = ["HEAD", "objects", "refs"];

/// One line of the table.
struct Pattern {
    /// Neighbouring parts of a path, in lower case.
    parts: Vec<String>,
    obeyed_by: &'static str,
}

impl Pattern {
    fn matches(&self, path: &[String]) -> bool {
        path.windows(self.parts.len()).any(|parts| {
            parts
                .iter()
                .zip(&self.parts)
                .all(|(part, wanted)| like(part, wanted))
        })
    }
}

/// Whether a name is like a pattern, in which `*` stands for any characters.
fn like(name: &str, pattern: &str) -> bool {
    match pattern.split_once('*') {
        None => name == pattern,
        Some((start, end)) => {
            name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
        }
    }
}

fn table() -> &'static [Pattern] {
    static PATTERNS: OnceLock<Vec<Pattern>> = OnceLock::new();
    PATTERNS.get_or_init(|| {
        let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
        lines
            .filter_map(|line| line.split_once(char::is_whitespace))
            .map(|(pattern, obeyed_by)| Pattern {
                parts: pattern
                    .to_lowercase()
                    .split('/')
                    .map(str::to_owned)
                    .collect(),
                obeyed_by: obeyed_by.trim(),
            })
            .collect()
    })
}

/// The program that obeys a file at this path, absolute or below a workspace, by its name alone;
/// `None` for ordinary files.
pub(crate) fn obeyed_by(path: &Path) -> Option<&'static str> {
    let parts: Vec<String> = path
        .iter()
        .map(|part| part.to_string_lossy().to_lowercase())
        .collect();
    let pattern = table().iter().find(|pattern| pattern.matches(&parts))?;
    Some(pattern.obeyed_by)
}

/// Decides which changes that a command made may not stay without a person's yes. `programs` are
/// the folders in which the person's shell looks for programs; `workspace` is real.
pub(crate) fn withheld(
    changes: &[ChangedPath],
    workspace: &Path,
    programs: &[PathBuf],
) -> Vec<WithheldChange> {
    let bare = bare_repositories(changes, workspace);
    let found = changes.iter().enumerate().filter_map(|(index, change)| {
        if has_git_part(&change.path) {
            // Guarded as a whole while the command runs.
            return None;
        }
        let reason = by_name(change)
            .or_else(|| makefile(change))
            .or_else(|| in_program_folder(change, workspace, programs))
            .or_else(|| in_bare_repository(change, &bare))?;
        Some(WithheldChange { index, reason })
    });
    found.collect()
}

fn by_name(change: &ChangedPath) -> Option<String> {
    obeyed_by(&change.path).map(|who| format!("it is obeyed by {who}"))
}

/// A new makefile deep in the tree is build output; one at the top, or in the place of one that a
/// person knows, is what they run next.
fn makefile(change: &ChangedPath) -> Option<String> {
    let name = change.path.file_name()?.to_string_lossy().to_lowercase();
    let at_the_top = change.path.components().count() == 1;
    let known = change.change == PathChange::Changed;
    let is_one = MAKEFILES.contains(&name.as_str());
    (is_one && change.change != PathChange::Deleted && (at_the_top || known))
        .then(|| "it is obeyed by make, even by `make -n`".to_owned())
}

fn in_program_folder(
    change: &ChangedPath,
    workspace: &Path,
    programs: &[PathBuf],
) -> Option<String> {
    let real = workspace.join(&change.path);
    let folder = programs.iter().find(|folder| real.starts_with(folder))?;
    // A folder of programs that is the workspace itself holds everything else, too.
    let direct = *folder != workspace || change.path.components().count() == 1;
    (direct && change.change != PathChange::Deleted).then(|| {
        let folder = folder.strip_prefix(workspace).unwrap_or(folder).display();
        format!("your shell finds programs in `{folder}`, which is in your PATH")
    })
}

/// Folders that have become, or may have become, repositories without a `.git`.
fn bare_repositories(changes: &[ChangedPath], workspace: &Path) -> Vec<PathBuf> {
    let mut parts: BTreeMap<&Path, usize> = BTreeMap::new();
    for change in changes
        .iter()
        .filter(|change| change.change != PathChange::Deleted)
    {
        let named = change.path.file_name().and_then(|name| name.to_str());
        if let (Some(name), Some(folder)) = (named, change.path.parent())
            && BARE.contains(&name)
        {
            *parts.entry(folder).or_default() += 1;
        }
    }
    let is_whole = |folder: &Path| {
        let holds = |name: &&str| workspace.join(folder).join(name).symlink_metadata().is_ok();
        BARE.iter().all(holds)
    };
    let candidates = parts.into_keys().filter(|folder| is_whole(folder));
    candidates.map(Path::to_path_buf).collect()
}

fn in_bare_repository(change: &ChangedPath, bare: &[PathBuf]) -> Option<String> {
    let below = bare
        .iter()
        .find_map(|folder| change.path.strip_prefix(folder).ok())?;
    let first = below.iter().next()?;
    let names_programs = ["HEAD", "config", "hooks", "info"]
        .iter()
        .any(|name| first == *name);
    // What was there before becomes a repository's by the last part that was missing.
    let completes =
        change.change == PathChange::Created && BARE.iter().any(|name| below == Path::new(name));
    (names_programs || completes)
        .then(|| "git takes the folder for a repository, and obeys it there".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(path: &str, change: PathChange) -> ChangedPath {
        ChangedPath {
            path: path.into(),
            change,
        }
    }

    #[test]
    fn control_files_are_known_by_name() {
        for (path, expected) in [
            (".envrc", true),
            ("a/b/.ENVRC", true),
            (".vscode/tasks.json", true),
            ("sub/.github/workflows/ci.yml", true),
            (".github/ISSUE_TEMPLATE.md", false),
            ("x.code-workspace", true),
            (".git/hooks/pre-commit", true),
            ("sub/.git", true),
            ("agents.md", true),
            ("src/agents.rs", false),
            ("package.json", false),
            ("lefthook-local.yml", true),
            ("envrc", false),
        ] {
            assert_eq!(obeyed_by(Path::new(path)).is_some(), expected, "{path}");
        }
    }

    #[test]
    fn every_line_of_the_table_says_who_obeys() {
        let lines = TABLE
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'));
        assert_eq!(lines.count(), table().len());
        assert!(table().iter().all(|pattern| !pattern.obeyed_by.is_empty()));
    }

    #[test]
    fn changes_by_commands_are_withheld() {
        use PathChange::{Changed, Created, Deleted};
        let folder = tempfile::tempdir().unwrap();
        let workspace = folder.path();
        for name in ["bare/HEAD", "bare/config", "half/HEAD"] {
            let path = workspace.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        for name in ["bare/objects", "bare/refs"] {
            std::fs::create_dir_all(workspace.join(name)).unwrap();
        }
        let programs = [workspace.join(".venv/bin"), PathBuf::from("/usr/bin")];
        for (path, change, expected) in [
            (".envrc", Deleted, true),
            ("Makefile", Changed, true),
            ("Makefile", Created, true),
            ("build/Makefile", Created, false),
            ("build/GNUmakefile", Changed, true),
            (".venv/bin/ls", Created, true),
            (".venv/lib/x.py", Created, false),
            ("src/main.rs", Changed, false),
        ] {
            let found = withheld(&[changed(path, change)], workspace, &programs);
            assert_eq!(!found.is_empty(), expected, "{path} {change:?}");
        }
        let bare = [
            "bare/HEAD",
            "bare/config",
            "bare/objects",
            "half/HEAD",
            "half/config",
        ];
        let changes = bare.map(|path| changed(path, Created));
        let found: Vec<_> = withheld(&changes, workspace, &[])
            .into_iter()
            .map(|withheld| withheld.index)
            .collect();
        assert_eq!(found, [0, 1, 2]);
    }
}
