//! Control files: files by which other programs run things, or from which agents take
//! instructions, without a person starting that by name.
//!
//! Changing one plainly is asked about before it happens. What a command did to one while it ran
//! is known only afterwards: the change is withheld from the workspace until a person has seen it.
//! The names stand in `control_files.txt`; what cannot be told by a name is here.

use std::{
    path::{Path, PathBuf},
    sync::OnceLock,
};

use gyrus_contract::{ChangedPath, PathChange, WithheldChange};
use gyrus_text::fits;

const TABLE: &str = include_str!("control_files.txt");

/// Names under which `make` finds its rules. Even `make -n`, by which people look before they run
/// anything, executes what they contain.
const MAKEFILES: [&str; 3] = ["gnumakefile", "makefile", "bsdmakefile"];

/// Entries of a folder that git takes for a repository although it is not called `.git`.
const PARTS: [&str; 7] = [
    "HEAD",
    "config",
    "config.worktree",
    "objects",
    "refs",
    "hooks",
    "commondir",
];

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
                .all(|(part, wanted)| fits(wanted, part))
        })
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
        let reason = by_name(change)
            .or_else(|| makefile(change))
            .or_else(|| in_program_folder(change, workspace, programs))
            .or_else(|| in_bare_repository(change, changes, &bare))
            .or_else(|| special(change))?;
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

/// Folders that these changes made into repositories without a `.git`, or into more of one.
fn bare_repositories(changes: &[ChangedPath], workspace: &Path) -> Vec<PathBuf> {
    let parts = changes.iter().filter(|change| {
        let name = change.path.file_name();
        change.change != PathChange::Deleted && PARTS.iter().any(|part| name == Some(part.as_ref()))
    });
    let mut folders: Vec<&Path> = parts.filter_map(|change| change.path.parent()).collect();
    folders.sort_unstable();
    folders.dedup();
    let is_one = |folder: &&Path| {
        let has = |name: &str| workspace.join(folder).join(name).symlink_metadata().is_ok();
        has("HEAD") && (has("commondir") || (has("objects") && has("refs")))
    };
    folders
        .into_iter()
        .filter(is_one)
        .map(Path::to_path_buf)
        .collect()
}

/// Without its `HEAD`, or without what was missing before, the folder is not a repository.
fn in_bare_repository(
    change: &ChangedPath,
    changes: &[ChangedPath],
    bare: &[PathBuf],
) -> Option<String> {
    let made = |path: PathBuf| {
        changes
            .iter()
            .any(|other| other.path == path && other.change == PathChange::Created)
    };
    let counts = |folder: &PathBuf| {
        let below = change.path.strip_prefix(folder).ok();
        let first = below.and_then(|below| below.iter().next());
        let Some(first) = first.and_then(|name| name.to_str()) else {
            return false;
        };
        match first {
            "HEAD" | "config" | "config.worktree" | "hooks" | "info" | "commondir" => true,
            "refs" => !made(folder.join("HEAD")) && made(folder.join("refs")),
            "objects" => !made(folder.join("HEAD")) && made(folder.join("objects")),
            _ => false,
        }
    };
    bare.iter()
        .any(counts)
        .then(|| "git takes the folder for a repository, and obeys it there".to_owned())
}

/// A pipe makes whatever reads it wait for ever, and a socket is of no use without its process.
fn special(change: &ChangedPath) -> Option<String> {
    (change.change == PathChange::Special).then(|| "it is a pipe, a socket or a device".to_owned())
}

/// Whether git reads its configuration or hooks below this path, in any letter case.
pub(crate) fn has_git_part(path: &Path) -> bool {
    path.iter().any(|part| part.eq_ignore_ascii_case(".git"))
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
        assert_eq!(found, [0, 1]);
        let completed = ["bare/objects", "bare/objects/aa", "other/objects"];
        let changes = completed.map(|path| changed(path, Created));
        assert_eq!(withheld(&changes, workspace, &[]).len(), 2);
        let pipe = [changed(".gitignore", PathChange::Special)];
        assert_eq!(withheld(&pipe, workspace, &[]).len(), 1);
    }
}
