//! Control files in what a command committed, staged or stashed.
//!
//! A commit, a stash or an index brings its files into the work tree whenever a person checks it
//! out, resets to it or applies it, and a push brings them elsewhere. So those with a file that a
//! person has to approve wait like the file itself: references, `HEAD` and index that lead to them
//! stay where they were. Their objects are carried over, and nothing names them.
//!
//! A file counts if it is new in a commit: unlike in each of its parents, nowhere at that path in
//! the history that the real references had before, and not what the workspace holds there without
//! the command. So merging, checking out or committing what a person already has asks for nothing.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    os::unix::ffi::OsStrExt as _,
    path::Path,
};

use super::{
    carried::CarryError,
    changes::{StoreChanges, WorktreeChange},
    folder::GitFolder,
    history_rule::{HistoryRule, NewHistoryFile, PathJudge},
    hold::hold,
    index::EntryContent,
    log::{Commit, CommitLog, GITLINK, RawChange},
    names::{ObjectId, RefValue},
    objects::Objects,
    reflog::{self, MAX_LOG},
    refs,
    stamps::Stamps,
    withheld::MAX_CONTENT,
    withheld_history::{HistoryFile, WithheldHistory},
};
use crate::change_set::{DiffSide, diff_of};

/// Maximum number of files of which a card shows the difference.
const MAX_SHOWN: usize = 50;
/// Maximum number of paths that are looked up in the earlier history. Further ones count as new.
const MAX_LOOKED_UP: usize = 500;

/// The state of a store, with the rule about it.
pub(super) struct Examination<'a> {
    pub(super) objects: &'a Objects<'a>,
    pub(super) rule: HistoryRule<'a>,
    /// The real git directory.
    pub(super) live: &'a GitFolder,
    /// The objects to which the real references pointed before.
    pub(super) known: &'a BTreeSet<ObjectId>,
}

impl Examination<'_> {
    /// Removes the parts of `changes` that need a person's approval. `log` lists the new commits;
    /// their objects have been checked.
    pub(super) fn examine(
        &self,
        changes: &mut StoreChanges,
        log: Option<CommitLog>,
    ) -> Result<Option<WithheldHistory>, CarryError> {
        let commits = log.map_or(Ok(Vec::new()), CommitLog::read)?;
        let mut paths = PathJudge::new(self.rule, self.live.path(), &changes.store);
        let mut found = Vec::new();
        for commit in &commits {
            found.extend(paths.judge(Some(commit.id), &commit.changes));
        }
        for worktree in &changes.worktrees {
            found.extend(paths.judge(None, &staged(worktree)));
        }
        let files = paths.files.take();
        if !found.is_empty() {
            found.retain(|one| {
                !self.stands(files.as_deref(), one) && !self.is_of_submodule(files.as_deref(), one)
            });
            self.drop_old(&changes.store, &mut found)?;
        }
        let tags = self.tags(changes, &commits)?;
        let unread = tags.iter().filter(|(_, commit)| commit.is_none());
        found.extend(unread.map(|(tip, _)| NewHistoryFile::unread(*tip)));
        if found.is_empty() {
            return Ok(None);
        }
        let tainted = tainted(&commits, &found, &tags);
        let staged: BTreeSet<Vec<u8>> = found
            .iter()
            .filter(|one| one.commit.is_none())
            .map(|one| one.change.path.clone())
            .collect();
        let Some(held) = hold(changes, &tainted, &staged) else {
            return Ok(None);
        };
        let reached = reached(&held, &commits, &tags);
        found.retain(|one| one.commit.is_none_or(|commit| reached.contains(&commit)));
        let files = self.shown(files.as_deref(), found)?;
        Ok(Some(WithheldHistory {
            repository: self.live.path().to_owned(),
            changes: held,
            files,
        }))
    }

    /// Whether the workspace contains the file in this state without the command.
    fn stands(&self, files: Option<&Path>, found: &NewHistoryFile) -> bool {
        let (path, mode, object) = found.content();
        let Some(files) = files else {
            return false;
        };
        let path = files.join(OsStr::from_bytes(path));
        self.rule.untouched(&path) == Some((mode, object))
    }

    /// Whether a reference of the submodule names its new commit: then that does not wait.
    fn is_of_submodule(&self, files: Option<&Path>, found: &NewHistoryFile) -> bool {
        let RawChange { path, old, new } = &found.change;
        if old.0 != GITLINK || new.0 != GITLINK {
            return false;
        }
        let names = |git: &GitFolder, store: &Path| {
            refs::named(git, store).is_ok_and(|named| named.contains(&new.1))
        };
        let within = Stamps::take(self.live).map(|stamps| stamps.stores);
        let mut within = within.unwrap_or_default().into_iter();
        let tree = files.map(|files| self.rule.workspace.join(files));
        let beside = tree.map(|tree| tree.join(OsStr::from_bytes(path)).join(".git"));
        let beside = beside.and_then(|git| GitFolder::open(&git).ok());
        within.any(|store| !store.as_os_str().is_empty() && names(self.live, &store))
            || beside.is_some_and(|git| names(&git, Path::new("")))
    }

    /// Drops the files that the earlier history has at the same path.
    fn drop_old(&self, store: &Path, found: &mut Vec<NewHistoryFile>) -> Result<(), CarryError> {
        let paths: BTreeSet<_> = found.iter().map(|one| one.change.path.clone()).collect();
        let mut known = self.known.clone();
        // A person can go back to what only these name: stashes below the first.
        for log in ["logs/HEAD", "logs/refs/stash"] {
            let log = self.live.read(&store.join(log), MAX_LOG)?;
            known.extend(reflog::objects_in(&log.unwrap_or_default()));
        }
        if paths.is_empty() || paths.len() > MAX_LOOKED_UP || known.is_empty() {
            return Ok(());
        }
        let log = CommitLog::of_paths(self.objects, &known, &paths)?;
        let mut old = BTreeSet::new();
        // What cannot be found in time counts as new.
        for commit in log.read().unwrap_or_default() {
            let contents = commit.changes.into_iter();
            old.extend(contents.map(|change| (change.path, change.new)));
        }
        found.retain(|one| !old.contains(&(one.change.path.clone(), one.change.new)));
        Ok(())
    }

    /// Returns the new objects that are not commits, each with the commit that a tag leads to.
    fn tags(
        &self,
        changes: &StoreChanges,
        commits: &[Commit],
    ) -> Result<Vec<(ObjectId, Option<ObjectId>)>, CarryError> {
        let listed: BTreeSet<_> = commits.iter().map(|commit| commit.id).collect();
        let mut others = changes.commit_tips();
        others.retain(|id| !listed.contains(id) && !self.known.contains(id));
        if others.is_empty() {
            return Ok(Vec::new());
        }
        let others: Vec<ObjectId> = others.into_iter().collect();
        let leads = self.objects.commits_of(&others)?;
        Ok(others.into_iter().zip(leads).collect())
    }

    fn shown(
        &self,
        files: Option<&Path>,
        found: Vec<NewHistoryFile>,
    ) -> Result<Vec<HistoryFile>, CarryError> {
        let mut seen = BTreeSet::new();
        let first = |one: &NewHistoryFile| seen.insert((one.change.path.clone(), one.change.new));
        let found: Vec<_> = found.into_iter().filter(first).collect();
        let shown = found.iter().take(MAX_SHOWN);
        let sides = shown.flat_map(|one| [one.change.old, one.change.new]);
        let blobs = sides.filter(|(mode, id)| *mode != GITLINK && !id.is_null());
        let contents = self.objects.contents(&blobs.map(|(_, id)| id).collect())?;
        let side = |(mode, id): (u32, ObjectId)| side(mode, id, &contents);
        let named = found.into_iter().enumerate().map(|(number, one)| {
            let below = files.unwrap_or(Path::new(""));
            let path = below.join(OsStr::from_bytes(&one.change.path));
            let (old, new) = (side(one.change.old), side(one.change.new));
            HistoryFile {
                commit: one.commit,
                diff: if number < MAX_SHOWN {
                    diff_of(&path.display().to_string(), &old, &new)
                } else {
                    "(not shown)\n".to_owned()
                },
                path,
                reason: one.reason,
            }
        });
        Ok(named.collect())
    }
}

fn side(mode: u32, id: ObjectId, contents: &BTreeMap<ObjectId, Vec<u8>>) -> DiffSide {
    match (mode, contents.get(&id)) {
        (0, _) => DiffSide::Nothing,
        (GITLINK, _) => DiffSide::Other(format!("the commit {id} of a repository in this folder")),
        (0o120_000, Some(target)) => {
            DiffSide::Other(format!("a link to {}", String::from_utf8_lossy(target)))
        }
        (_, Some(bytes)) => match String::from_utf8(bytes.clone()) {
            Ok(text) => DiffSide::Text(text),
            Err(_) => DiffSide::Other(format!("a file of {} bytes", bytes.len())),
        },
        (_, None) => DiffSide::Other(format!("a file of more than {MAX_CONTENT} bytes, {id}")),
    }
}

/// Returns the changed entries of an index as changes of files.
fn staged(worktree: &WorktreeChange) -> Vec<RawChange> {
    let nothing = (0, ObjectId::NULL);
    let entries = worktree.index.iter().flat_map(|change| {
        let old = change.before.first();
        let old = old.map_or(nothing, |entry| (entry.mode, entry.object));
        let new = change.after.iter().filter(|entry| {
            let same =
                |before: &&EntryContent| (before.mode, before.object) == (entry.mode, entry.object);
            !change.before.iter().any(|before| same(&before))
        });
        let mut new: Vec<_> = new.map(|entry| (entry.mode, entry.object)).collect();
        if change.after.is_empty() {
            new.push(nothing);
        }
        new.into_iter().map(move |new| RawChange {
            path: change.path.clone(),
            old,
            new,
        })
    });
    entries.collect()
}

/// Returns the objects that lead to such a file.
fn tainted(
    commits: &[Commit],
    found: &[NewHistoryFile],
    tags: &[(ObjectId, Option<ObjectId>)],
) -> BTreeSet<ObjectId> {
    let mut tainted: BTreeSet<_> = found.iter().filter_map(|one| one.commit).collect();
    // Parents follow their children.
    for commit in commits.iter().rev() {
        if commit.parents.iter().any(|one| tainted.contains(one)) {
            tainted.insert(commit.id);
        }
    }
    for (tip, commit) in tags {
        if commit.is_some_and(|commit| tainted.contains(&commit)) {
            tainted.insert(*tip);
        }
    }
    tainted
}

/// Returns the new objects to which the references lead.
fn reached(
    held: &StoreChanges,
    commits: &[Commit],
    tags: &[(ObjectId, Option<ObjectId>)],
) -> BTreeSet<ObjectId> {
    let mut reached = held.commit_tips();
    let tagged = tags.iter().filter(|(tip, _)| reached.contains(tip));
    let tagged: Vec<ObjectId> = tagged.filter_map(|(_, commit)| *commit).collect();
    reached.extend(tagged);
    for commit in commits {
        if reached.contains(&commit.id) {
            reached.extend(commit.parents.iter().copied());
        }
    }
    reached
}

impl StoreChanges {
    /// Returns the objects that references, `HEAD`, state and logs name: commits, and tags.
    pub(super) fn commit_tips(&self) -> BTreeSet<ObjectId> {
        let refs = self.refs.iter().filter_map(|change| change.after.as_ref());
        let heads = self.worktrees.iter().map(|change| &change.head.1);
        let mut tips: BTreeSet<_> = refs.chain(heads).filter_map(RefValue::object).collect();
        for change in &self.worktrees {
            tips.extend(change.state_objects());
        }
        tips.extend(self.logged());
        tips
    }
}
