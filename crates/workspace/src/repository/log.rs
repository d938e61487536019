//! Lists of commits with the files that each changed, as git prints them.

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt as _,
    process::Stdio,
    time::{Duration, Instant},
};

use super::{
    carried::CarryError,
    git::{GitProcess, TIME_LIMIT},
    names::ObjectId,
    objects::{GitOutput, Objects, revisions},
};

/// Maximum time of the search for a file in the history of before.
const SEARCHED_FOR: Duration = Duration::from_secs(10);
/// Maximum number of changes of files in all listed commits.
const MAX_CHANGES: usize = 5_000_000;
/// The mode by which a tree names a commit of another repository.
pub(super) const GITLINK: u32 = 0o160_000;

/// A commit with the files that differ from each of its parents.
#[derive(Debug)]
pub(super) struct Commit {
    pub(super) id: ObjectId,
    pub(super) parents: Vec<ObjectId>,
    pub(super) changes: Vec<RawChange>,
}

/// A change of a file: mode and object before and after; 0 and the null object if there is none.
#[derive(Debug, Clone)]
pub(super) struct RawChange {
    pub(super) path: Vec<u8>,
    pub(super) old: (u32, ObjectId),
    pub(super) new: (u32, ObjectId),
}

/// A git that lists commits.
pub(super) struct CommitLog {
    running: GitProcess,
    deadline: Instant,
}

impl CommitLog {
    /// Starts listing the commits that are reachable from `tips` but not from `known`, children
    /// before parents. Only the real objects are read.
    pub(super) fn start(
        objects: &Objects<'_>,
        tips: &BTreeSet<ObjectId>,
        known: &BTreeSet<ObjectId>,
    ) -> Result<Self, CarryError> {
        let input = revisions(tips, known);
        Self::begin(objects, "log", input, &["-c"], TIME_LIMIT)
    }

    /// Starts listing the commits reachable from `known` that changed one of these files.
    pub(super) fn of_paths(
        objects: &Objects<'_>,
        known: &BTreeSet<ObjectId>,
        paths: &BTreeSet<Vec<u8>>,
    ) -> Result<Self, CarryError> {
        let input = known.iter().map(ToString::to_string);
        let paths = paths.iter().map(|path| OsStr::from_bytes(path));
        let options = ["-m", "--full-history", "--ignore-missing", "--"].map(OsStr::new);
        let arguments: Vec<_> = options.into_iter().chain(paths).collect();
        Self::begin(objects, "log-of-paths", input, &arguments, SEARCHED_FOR)
    }

    fn begin(
        objects: &Objects<'_>,
        name: &str,
        input: impl Iterator<Item = String>,
        arguments: &[impl AsRef<OsStr>],
        limit: Duration,
    ) -> Result<Self, CarryError> {
        let options = [
            "log",
            "--stdin",
            "--topo-order",
            "--raw",
            "-z",
            "--root",
            "--no-renames",
            "--no-abbrev",
            "--ignore-submodules=none",
            "--format=commit %H %P",
        ];
        let mut command = objects.git.command(&objects.real, None, &options);
        let arguments: Vec<OsString> = arguments.iter().map(|one| one.as_ref().into()).collect();
        command
            .args(arguments)
            .env("GIT_LITERAL_PATHSPECS", "1")
            .stdin(objects.git.input(name, input)?)
            .stdout(Stdio::piped());
        Ok(Self {
            running: objects.git.start(command, name)?,
            deadline: Instant::now() + limit,
        })
    }

    /// Reads the list to its end.
    pub(super) fn read(mut self) -> Result<Vec<Commit>, CarryError> {
        let refused = |reason: &str| CarryError::Refused {
            reason: format!("the commits cannot be looked at: {reason}"),
        };
        let mut output = GitOutput::of(&mut self.running, self.deadline);
        let mut commits: Vec<Commit> = Vec::new();
        let mut count = 0;
        while let Some(token) = output.until(0)? {
            let token = token.trim_ascii_start();
            if token.is_empty() {
                continue;
            }
            if token.starts_with(b":") {
                let path = output.until(0)?;
                let change = path.and_then(|path| file_change(token, path));
                let (Some(change), Some(commit)) = (change, commits.last_mut()) else {
                    return Err(refused("git printed something unknown"));
                };
                count += 1;
                if count > MAX_CHANGES {
                    return Err(refused("they change too many files"));
                }
                commit.changes.push(change);
            } else {
                let commit = commit(token).ok_or_else(|| refused("git printed something else"))?;
                commits.push(commit);
            }
        }
        self.running.finish(self.deadline)?;
        Ok(commits)
    }
}

fn commit(line: &[u8]) -> Option<Commit> {
    let line = std::str::from_utf8(line).ok()?.strip_prefix("commit ")?;
    let mut ids = line.split_ascii_whitespace().map(ObjectId::parse);
    Some(Commit {
        id: ids.next()??,
        parents: ids.collect::<Option<_>>()?,
        changes: Vec::new(),
    })
}

/// Reads `:MODE MODE OBJECT OBJECT STATUS`; of a merge, one colon, mode and object for each parent
/// come first.
fn file_change(line: &[u8], path: Vec<u8>) -> Option<RawChange> {
    let line = std::str::from_utf8(line).ok()?;
    let words = line.trim_start_matches(':');
    let parents = line.len() - words.len();
    let words: Vec<&str> = words.split(' ').collect();
    let mode = |at: usize| u32::from_str_radix(words.get(at)?, 8).ok();
    let object = |at: usize| ObjectId::parse(words.get(at)?);
    Some(RawChange {
        path,
        old: (mode(0)?, object(parents + 1)?),
        new: (mode(parents)?, object(2 * parents + 1)?),
    })
}
