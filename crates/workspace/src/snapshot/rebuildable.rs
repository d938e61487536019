//! Folders that a snapshot leaves out: build output, which may be gigabytes and which its tools can
//! rebuild.
//!
//! Four conditions must hold, because a folder that is left out cannot be restored: it has the name
//! of build output, a file beside or in it identifies the tool that makes it, a `.gitignore` of the
//! repository ignores it, and git tracks nothing in it. A file is never left out, so an ignored
//! `.env` is kept. The decision of a run's first snapshot about a folder stays: otherwise a run
//! could hide a person's folder by writing a `.gitignore`.

use std::{
    collections::{BTreeMap, HashMap},
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use ignore::{
    Match,
    gitignore::{Gitignore, GitignoreBuilder},
};

use super::{
    manifest::{Skip, SnapshotEntries, SnapshotEntry},
    name,
    tracked::GitTrackedFiles,
};

/// Maximum bytes of a `.gitignore` that is read.
const MAX_IGNORE_BYTES: u64 = 1 << 20;

/// A kind of build output, and the files that distinguish it from a folder that only has the name.
struct BuildOutput {
    name: &'static str,
    /// Names of files, one of which must lie beside the folder.
    beside: &'static [&'static str],
    /// Names of files, one of which must lie inside the folder.
    inside: &'static [&'static str],
}

const fn output(
    name: &'static str,
    beside: &'static [&'static str],
    inside: &'static [&'static str],
) -> BuildOutput {
    BuildOutput {
        name,
        beside,
        inside,
    }
}

const NODE: &[&str] = &["package.json"];
const PYTHON: &[&str] = &[
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "tox.ini",
    "pytest.ini",
];
const GRADLE: &[&str] = &[
    "build.gradle",
    "build.gradle.kts",
    "settings.gradle",
    "settings.gradle.kts",
];
const BUILDERS: &[&str] = &[
    "package.json",
    "pyproject.toml",
    "setup.py",
    "build.gradle",
    "build.gradle.kts",
    "CMakeLists.txt",
];
const TAG: &[&str] = &["CACHEDIR.TAG"];

const OUTPUTS: &[BuildOutput] = &[
    output("target", &["Cargo.toml", "pom.xml", "build.sbt"], TAG),
    output("node_modules", NODE, &[".package-lock.json"]),
    output(".next", NODE, &[]),
    output(".nuxt", NODE, &[]),
    output(".svelte-kit", NODE, &[]),
    output(".turbo", NODE, &[]),
    output(".parcel-cache", NODE, &[]),
    output(".venv", &[], &["pyvenv.cfg"]),
    output("venv", &[], &["pyvenv.cfg"]),
    // Python's own cache may be beside any source; nothing else has its name.
    output("__pycache__", &["."], &[]),
    output(".tox", PYTHON, TAG),
    output(".mypy_cache", PYTHON, TAG),
    output(".pytest_cache", PYTHON, TAG),
    output(".ruff_cache", PYTHON, TAG),
    output(".gradle", GRADLE, &[]),
    output("build", BUILDERS, TAG),
    output("dist", BUILDERS, TAG),
];

/// Earlier decisions whether the folder of a path is left out.
#[derive(Debug, Clone, Default)]
pub(super) struct FolderDecisions(BTreeMap<Vec<u8>, bool>);

impl FolderDecisions {
    pub(super) fn by(entries: &SnapshotEntries) -> Self {
        let decided = entries.iter().filter_map(|(path, entry)| {
            let left_out = match entry {
                SnapshotEntry::Folder { .. } => false,
                SnapshotEntry::Skipped {
                    why: Skip::Rebuildable,
                } => true,
                SnapshotEntry::File { .. }
                | SnapshotEntry::Link { .. }
                | SnapshotEntry::Skipped { .. } => return None,
            };
            let path = name::decode(path)?;
            named(&path).map(|_| (path, left_out))
        });
        Self(decided.collect())
    }
}

/// Whether snapshots of a workspace leave out this path below it, because it is in a folder of
/// build output now.
pub fn is_left_out(workspace: &Path, below: &Path) -> bool {
    let mut rule = RebuildableRule::new(workspace.to_owned(), FolderDecisions::default());
    below
        .ancestors()
        .filter(|part| !part.as_os_str().is_empty())
        .any(|part| rule.leaves_out(part.as_os_str().as_bytes()))
}

/// Returns the topmost folder of a path with the name of build output, without reading it.
pub fn build_output(below: &Path) -> Option<&Path> {
    let parts: Vec<&Path> = below.ancestors().collect();
    let mut parts = parts.into_iter().rev();
    parts.find(|part| named(part.as_os_str().as_bytes()).is_some())
}

fn named(path: &[u8]) -> Option<&'static BuildOutput> {
    let last = path.rsplit(|byte| *byte == b'/').next()?;
    OUTPUTS.iter().find(|output| output.name.as_bytes() == last)
}

/// Decides which folders are build output, and caches the files read for that.
pub(super) struct RebuildableRule {
    workspace: PathBuf,
    decided: FolderDecisions,
    ignores: HashMap<PathBuf, Gitignore>,
    tracked: HashMap<PathBuf, GitTrackedFiles>,
}

impl RebuildableRule {
    /// Creates the rule for one listing of a workspace.
    pub(super) fn new(workspace: PathBuf, decided: FolderDecisions) -> Self {
        Self {
            workspace,
            decided,
            ignores: HashMap::new(),
            tracked: HashMap::new(),
        }
    }

    /// Whether the snapshot omits the folder at this path.
    pub(super) fn leaves_out(&mut self, path: &[u8]) -> bool {
        let Some(output) = named(path) else {
            return false;
        };
        if let Some(left_out) = self.decided.0.get(path) {
            return *left_out;
        }
        let folder = self.workspace.join(OsStr::from_bytes(path));
        shows_its_maker(output, &folder) && self.git_does_without(&folder)
    }

    /// Whether git ignores a folder and tracks nothing in it.
    fn git_does_without(&mut self, folder: &Path) -> bool {
        let repository = folder
            .ancestors()
            .skip(1)
            .find(|above| fs::symlink_metadata(above.join(".git")).is_ok())
            .map(Path::to_owned);
        let top = repository.as_deref().unwrap_or(&self.workspace).to_owned();
        if !self.ignores_folder(&top, folder) {
            return false;
        }
        let Some(repository) = repository else {
            return true;
        };
        let below = folder.strip_prefix(&repository).unwrap_or(folder);
        self.tracked
            .entry(repository.clone())
            .or_insert_with(|| GitTrackedFiles::read(&repository))
            .has_nothing_in(below.as_os_str().as_bytes())
    }

    /// Whether git ignores the folder: the deepest matching `.gitignore` decides, and everything in
    /// an ignored folder is ignored.
    fn ignores_folder(&mut self, top: &Path, folder: &Path) -> bool {
        let mut down: Vec<&Path> = folder
            .ancestors()
            .take_while(|above| above.starts_with(top) && *above != top)
            .collect();
        down.reverse();
        down.into_iter().any(|part| {
            let above = part.ancestors().skip(1);
            for place in above.take_while(|place| place.starts_with(top)) {
                match self.ignore_file(place).matched(part, true) {
                    Match::Ignore(_) => return true,
                    Match::Whitelist(_) => return false,
                    Match::None => {}
                }
            }
            false
        })
    }

    fn ignore_file(&mut self, folder: &Path) -> &Gitignore {
        self.ignores
            .entry(folder.to_owned())
            .or_insert_with(|| read_ignore_file(folder).unwrap_or_else(Gitignore::empty))
    }
}

fn shows_its_maker(output: &BuildOutput, folder: &Path) -> bool {
    let is_there = |path: PathBuf| fs::symlink_metadata(path).is_ok();
    let beside = folder.parent().unwrap_or(folder);
    output.beside.iter().any(|name| is_there(beside.join(name)))
        || output.inside.iter().any(|name| is_there(folder.join(name)))
}

/// Returns the rules of a `.gitignore`; `None` if there is none or it cannot be used. A link is not
/// followed, the same as by git.
fn read_ignore_file(folder: &Path) -> Option<Gitignore> {
    let path = folder.join(".gitignore");
    let about = fs::symlink_metadata(&path).ok()?;
    if !about.is_file() || about.len() > MAX_IGNORE_BYTES {
        return None;
    }
    let text = fs::read(&path).ok()?;
    let mut rules = GitignoreBuilder::new(folder);
    for line in String::from_utf8_lossy(&text).lines() {
        // An invalid pattern has no effect, the same as in git.
        let _ = rules.add_line(None, line);
    }
    rules.build().ok()
}
