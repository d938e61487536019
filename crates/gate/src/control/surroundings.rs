//! The parts of a workspace that decide about the files that change: links, makefiles, and the files that
//! control files say they read.
//!
//! Looked at before a call starts and again when it has ended, each within bounds: entries nearest
//! to the top come first.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fs,
    path::{Path, PathBuf},
};

use super::{
    changes::CallChanges,
    named::ReadByControl,
    named::{self, ControlFileReader},
    table::{ControlTable, embedded, parts},
};

/// Maximum number of entries that are examined.
const MAX_ENTRIES: usize = 5_000;
/// Maximum number of links that are recorded.
const MAX_LINKS: usize = 256;
/// Maximum number of control files that are read, including those that they include.
const MAX_READ: usize = 128;
/// Maximum number of names of a path by links.
const MAX_NAMES: usize = 32;

/// Folders that are not entered: nobody keeps control files or links to them there.
const NOT_ENTERED: [&str; 7] = [
    ".git",
    "node_modules",
    "target",
    ".venv",
    "venv",
    "__pycache__",
    ".gradle",
];

/// Names under which `make` finds its rules. Even `make -n`, by which people look before they run
/// anything, executes what they contain.
pub(super) const MAKEFILES: [&str; 3] = ["gnumakefile", "makefile", "bsdmakefile"];

pub(super) fn is_makefile(name: &str) -> bool {
    MAKEFILES.contains(&name)
}

/// The state of a workspace that decides what a changed file means.
#[derive(Debug, Clone, Default)]
pub(crate) struct WorkspaceState {
    /// Links, with the places below the workspace that they lead to.
    links: BTreeMap<PathBuf, PathBuf>,
    /// Files that others read, each with the file that names it.
    named: BTreeMap<ReadByControl, PathBuf>,
    makefiles: BTreeSet<PathBuf>,
}

impl WorkspaceState {
    /// Looks at a workspace, which is real. `home` is that of the person, whose git configuration
    /// may name files of the workspace. Every folder and file that was read is added to `read`.
    pub(super) fn look(
        workspace: &Path,
        home: Option<&Path>,
        added: &ControlTable,
        read: &mut Vec<PathBuf>,
    ) -> Self {
        let mut found = Self::default();
        let mut to_read = VecDeque::from(named::git_settings(workspace, home));
        read.extend([workspace.join(".git"), workspace.join(".git/hooks")]);
        let mut folders = VecDeque::from([PathBuf::new()]);
        let mut left = MAX_ENTRIES;
        while let Some(folder) = folders.pop_front() {
            read.push(workspace.join(&folder));
            let Ok(entries) = fs::read_dir(workspace.join(&folder)) else {
                continue;
            };
            for entry in entries.flatten().take(left) {
                left -= 1;
                let path = folder.join(entry.file_name());
                let Ok(kind) = entry.file_type() else {
                    continue;
                };
                if kind.is_symlink() && found.links.len() < MAX_LINKS {
                    let target = led_to(workspace, &path);
                    found
                        .links
                        .extend(target.map(|target| (path.clone(), target)));
                } else if kind.is_dir()
                    && !NOT_ENTERED.iter().any(|name| entry.file_name() == *name)
                {
                    folders.push_back(path.clone());
                }
                if !kind.is_dir() {
                    found.sort_in(path, &mut to_read, added);
                }
            }
            if left == 0 {
                break;
            }
        }
        // Whoever begins many makefiles deep in the tree keeps nothing else from being read.
        to_read
            .make_contiguous()
            .sort_by_key(named::ToRead::is_deep_makefile);
        let mut reader = ControlFileReader::new(workspace, home);
        for _ in 0..MAX_READ {
            let Some(file) = to_read.pop_front() else {
                break;
            };
            read.push(workspace.join(file.path()));
            reader.read(file, &mut found.named, &mut to_read);
        }
        found
    }

    /// Records a file if a program obeys it, with the other files that it names.
    fn sort_in(
        &mut self,
        path: PathBuf,
        to_read: &mut VecDeque<named::ToRead>,
        added: &ControlTable,
    ) {
        let parts = parts(&path);
        let Some(name) = parts.last() else {
            return;
        };
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        if is_makefile(name) {
            self.makefiles.insert(path.clone());
            to_read.push_back(named::ToRead::makefile(path, folder));
        } else if let Some(tool) = embedded().find(&parts).chain(added.find(&parts)).next() {
            to_read.push_back(named::ToRead::obeyed(path, tool.acts));
        }
    }

    /// Adds the findings of another look.
    pub(crate) fn extend(&mut self, other: &Self) {
        self.links.extend(other.links.clone());
        self.named.extend(other.named.clone());
        self.makefiles.extend(other.makefiles.iter().cloned());
    }

    /// Whether the folder contained a makefile before the changes.
    pub(super) fn has_makefile(&self, folder: &Path, changes: &CallChanges<'_>) -> bool {
        let mut makefiles = self.makefiles.iter();
        makefiles.any(|one| one.parent() == Some(folder) && changes.was_there(one))
    }

    /// Returns the control file that reads this one, and existed before the changes.
    pub(super) fn reader_of(&self, path: &Path, changes: &CallChanges<'_>) -> Option<&Path> {
        let made: Vec<PathBuf> = sources(path).collect();
        let remade =
            |named: &ReadByControl| named.by_make && made.iter().any(|made| named.is(made));
        let mut named = self.named.iter();
        let found = named
            .find(|(named, reader)| (named.is(path) || remade(named)) && changes.was_there(reader));
        let remade = || {
            let mut made = made.iter();
            made.find(|made| self.makefiles.contains(*made) && changes.was_there(made))
        };
        found.map(|(_, reader)| reader.as_path()).or_else(|| {
            remade()
                .and_then(|made| self.makefiles.get(made))
                .map(PathBuf::as_path)
        })
    }

    /// Returns the other names of a path by links to it or to a folder around it.
    pub(super) fn other_names(&self, path: &Path) -> Vec<PathBuf> {
        let mut names = vec![path.to_owned()];
        let mut next = 0;
        while let Some(name) = names.get(next).cloned() {
            next += 1;
            for (link, target) in &self.links {
                let Ok(rest) = name.strip_prefix(target) else {
                    continue;
                };
                let other = if rest.as_os_str().is_empty() {
                    link.clone()
                } else {
                    link.join(rest)
                };
                if names.len() < MAX_NAMES && !names.contains(&other) {
                    names.push(other);
                }
            }
        }
        names.remove(0);
        names
    }
}

/// Returns the place below a workspace to which a link leads, whether it exists or not.
fn led_to(workspace: &Path, link: &Path) -> Option<PathBuf> {
    let path = workspace.join(link);
    if let Ok(real) = fs::canonicalize(&path) {
        return real.strip_prefix(workspace).ok().map(Path::to_owned);
    }
    let target = fs::read_link(&path).ok()?;
    match target.strip_prefix(workspace) {
        Ok(below) => Some(below.to_owned()),
        Err(_) => named::below(link.parent()?, target.to_str()?),
    }
}

/// Returns the files that make builds from this one by itself, by its rules for endings, RCS and
/// SCCS. It remakes what it reads before anything else, even with `-n`.
pub(super) fn sources(path: &Path) -> impl Iterator<Item = PathBuf> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut folder = path.parent().unwrap_or(Path::new(""));
    if folder.ends_with("RCS") || folder.ends_with("SCCS") {
        folder = folder.parent().unwrap_or(Path::new(""));
    }
    let name = name.strip_suffix(",v").unwrap_or(&name);
    let name = name.strip_prefix("s.").unwrap_or(name);
    let mut made = vec![folder.join(name)];
    made.extend(name.rsplit_once('.').map(|(stem, _)| folder.join(stem)));
    made.retain(|made| made != path);
    made.into_iter()
}

impl ReadByControl {
    pub(super) fn file(path: PathBuf) -> Self {
        Self {
            path,
            is_folder: false,
            by_make: false,
        }
    }
}
