//! Decides each change, under the locks, by the present state of the real repository.
//!
//! Three states are compared: before the command, after it, and now. A value that is now as before
//! is carried over; one that is now as after is done; one that others moved stays, and the
//! command's is kept apart. `HEAD`, its branch and the index go together: a branch that moved under
//! an index that did not would make the next commit undo the command's.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use super::{
    carried::CarryError,
    changes::{StoreChanges, WorktreeChange},
    config_edit,
    find::read_config,
    folder::{GitFolder, PathKind},
    index::{self, IndexEntries, IndexEntry},
    names::{ObjectId, RefName, RefValue},
    plan::PlanPurpose,
    refs,
    settings::{self, SettingChange},
    state,
    withheld::FileContent,
    worktree,
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ChangeFate {
    /// The change was carried over already.
    Done,
    Carried,
    /// The change is stored under another name, for this reason.
    Kept(&'static str),
}

const MOVED: &str = "somebody else moved it meanwhile";
const ELSEWHERE: &str = "it is checked out in a work tree that was not changed with it";
const CLASH: &str = "another reference of that name is in the way";
const HEAD_MOVED: &str = "somebody else moved `HEAD` meanwhile";
const INDEX_MOVED: &str = "somebody else staged a change of the same file meanwhile";
const STATE_MOVED: &str = "somebody else began or ended a merge meanwhile";
const NOT_EDITED: &str = "the configuration cannot be changed without changing more of it";
const BRANCH_KEPT: &str = "its branch was not carried over";

/// Decisions about the changes of a store, in the order of the changes.
pub(super) struct StoreDecision {
    pub(super) refs: Vec<ChangeFate>,
    pub(super) worktrees: Vec<WorktreeFate>,
    /// The new text of the configuration, if it changes.
    pub(super) config: Option<String>,
    /// Decisions about the settings.
    pub(super) settings: Vec<ChangeFate>,
    /// Decisions about the other files.
    pub(super) files: Vec<ChangeFate>,
    pub(super) packed: BTreeMap<RefName, ObjectId>,
}

/// Decision about the changes of a work tree. The error is the reason why they are kept apart.
type WorktreeFate = Result<Carry, &'static str>;

/// The work tree whose changes are carried over.
pub(super) struct Carry {
    /// Whether `HEAD` has yet to be moved.
    pub(super) moves_head: bool,
    /// The new index, if it changes.
    pub(super) index: Option<IndexEntries>,
}

impl StoreDecision {
    /// Whether everything was already carried over.
    pub(super) fn is_done(&self) -> bool {
        let mut fates = self.refs.iter().chain(&self.settings).chain(&self.files);
        let mut worktrees = self.worktrees.iter();
        fates.all(|fate| *fate == ChangeFate::Done)
            && worktrees.all(
                |carry| matches!(carry, Ok(carry) if !carry.moves_head && carry.index.is_none()),
            )
    }

    /// Whether everything is or was carried over.
    pub(super) fn is_whole(&self) -> bool {
        let fates = self.refs.iter().chain(&self.settings).chain(&self.files);
        fates
            .into_iter()
            .all(|fate| !matches!(fate, ChangeFate::Kept(_)))
            && self.worktrees.iter().all(Result::is_ok)
    }
}

/// Decides about all changes. `purpose` says whether only those settings may change that need no
/// approval.
pub(super) fn decide(
    live: &GitFolder,
    changes: &StoreChanges,
    purpose: PlanPurpose,
) -> Result<StoreDecision, CarryError> {
    let store = &changes.store;
    let packed = refs::read_packed(live, store)?;
    let read = |name: &RefName| refs::read_one(live, store, name, &packed);
    let mut fates = Vec::new();
    for change in &changes.refs {
        let now = read(&change.name)?;
        fates.push(fate(&now, &change.before, &change.after));
    }
    let mut worktrees = Vec::new();
    for change in &changes.worktrees {
        worktrees.push(judge_worktree(live, change, &|name| Ok(read(name)?))?);
    }
    let judge = ChangeJudge {
        live,
        changes,
        packed: &packed,
    };
    judge.settle(&mut fates, &mut worktrees)?;
    let (config, settings) = judge_settings(live, changes, purpose)?;
    let files = changes.files.iter().map(|change| {
        let now = FileContent::read(live, &change.path)?;
        Ok(fate(&now, &change.before, &change.after))
    });
    let files = files.collect::<Result<_, CarryError>>()?;
    Ok(StoreDecision {
        refs: fates,
        worktrees,
        config,
        settings,
        files,
        packed,
    })
}

fn fate<T: PartialEq>(now: &T, before: &T, after: &T) -> ChangeFate {
    if now == after {
        ChangeFate::Done
    } else if now == before {
        ChangeFate::Carried
    } else {
        ChangeFate::Kept(MOVED)
    }
}

/// Names of references to be removed and to be written.
#[derive(Default)]
struct ReferenceNames {
    leaving: BTreeSet<String>,
    arriving: BTreeSet<String>,
}

struct ChangeJudge<'a> {
    live: &'a GitFolder,
    changes: &'a StoreChanges,
    packed: &'a BTreeMap<RefName, ObjectId>,
}

impl ChangeJudge<'_> {
    /// Drops changes that depend on others which are not carried over, until the rest is
    /// consistent.
    fn settle(
        &self,
        fates: &mut [ChangeFate],
        worktrees: &mut [WorktreeFate],
    ) -> Result<(), CarryError> {
        loop {
            let carried = self.changes.worktrees.iter().zip(worktrees.iter());
            let carried = carried.filter(|(_, fate)| fate.is_ok());
            let carried: Vec<_> = carried
                .map(|(change, _)| change.worktree.as_path())
                .collect();
            let elsewhere =
                worktree::checked_out_elsewhere(self.live, &self.changes.store, &carried)?;
            let mut changed = false;
            let names = self.names(fates);
            for (change, fate) in self.changes.refs.iter().zip(fates.iter_mut()) {
                if *fate != ChangeFate::Carried {
                    continue;
                }
                let is_new = change.before.is_none() && change.after.is_some();
                if elsewhere.iter().any(|name| name == change.name.as_str()) {
                    *fate = ChangeFate::Kept(ELSEWHERE);
                    changed = true;
                } else if is_new && self.clashes(&change.name, &names)? {
                    *fate = ChangeFate::Kept(CLASH);
                    changed = true;
                }
            }
            for (change, fate) in self.changes.worktrees.iter().zip(worktrees.iter_mut()) {
                if fate.is_ok() && !self.branch_arrives(change, fates)? {
                    *fate = Err(BRANCH_KEPT);
                    changed = true;
                }
            }
            if !changed {
                return Ok(());
            }
        }
    }

    /// Whether the branch that `HEAD` will name has the commit from which the index was made.
    fn branch_arrives(
        &self,
        change: &WorktreeChange,
        fates: &[ChangeFate],
    ) -> Result<bool, CarryError> {
        let RefValue::Symbolic(name) = &change.head.1 else {
            return Ok(true);
        };
        let expected = change.branches.iter().find(|(branch, ..)| branch == name);
        let expected = expected.and_then(|(_, _, after)| *after);
        let at = self
            .changes
            .refs
            .iter()
            .position(|change| change.name == *name);
        if at.is_some_and(|at| fates[at] == ChangeFate::Carried) {
            return Ok(true);
        }
        let now = refs::read_one(self.live, &self.changes.store, name, self.packed)?;
        Ok(now.and_then(|now| now.object()) == expected)
    }

    fn names(&self, fates: &[ChangeFate]) -> ReferenceNames {
        let mut names = ReferenceNames::default();
        for (change, fate) in self.changes.refs.iter().zip(fates) {
            if *fate == ChangeFate::Carried {
                let set = match change.after {
                    Some(_) => &mut names.arriving,
                    None => &mut names.leaving,
                };
                set.insert(change.name.as_str().to_owned());
            }
        }
        names
    }

    /// Whether a new reference would need a folder where there is a file, or the other way round.
    fn clashes(&self, name: &RefName, names: &ReferenceNames) -> Result<bool, CarryError> {
        for above in Path::new(name.as_str()).ancestors().skip(1) {
            let Some(above) = above.to_str().and_then(|above| RefName::parse(above).ok()) else {
                continue;
            };
            let path = self.changes.store.join(above.as_str());
            let is_there =
                self.packed.contains_key(&above) || self.live.kind(&path)? == PathKind::File;
            let stays = is_there && !names.leaving.contains(above.as_str());
            if stays || names.arriving.contains(above.as_str()) {
                return Ok(true);
            }
        }
        let folder = format!("{name}/");
        let mut below = names.arriving.range(folder.clone()..);
        if below.next().is_some_and(|next| next.starts_with(&folder)) {
            return Ok(true);
        }
        let mut packed = self.packed.keys().filter(|other| name.is_above(other));
        if packed.any(|other| !names.leaving.contains(other.as_str())) {
            return Ok(true);
        }
        self.holds_other(name.as_str(), names)
    }

    /// Whether the folder `name` contains a reference that is not about to be removed.
    fn holds_other(&self, name: &str, names: &ReferenceNames) -> Result<bool, CarryError> {
        let path = self.changes.store.join(name);
        if self.live.kind(&path)? != PathKind::Folder {
            return Ok(false);
        }
        for entry in self.live.names(&path)? {
            let below = format!("{name}/{}", String::from_utf8_lossy(&entry));
            let kind = self.live.kind(&self.changes.store.join(&below))?;
            let is_lock = below.ends_with(".lock");
            let stays =
                kind == PathKind::File && !is_lock && !names.leaving.contains(below.as_str());
            if stays || self.holds_other(&below, names)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Whether a work tree is as it was before or after the command.
fn judge_worktree(
    live: &GitFolder,
    change: &WorktreeChange,
    read: &dyn Fn(&RefName) -> Result<Option<RefValue>, CarryError>,
) -> Result<WorktreeFate, CarryError> {
    let own = &change.worktree;
    if live.kind(&own.join("HEAD"))? != PathKind::File {
        return Ok(Err(HEAD_MOVED));
    }
    let head = refs::read_head(live, own)?;
    if head != change.head.0 && head != change.head.1 {
        return Ok(Err(HEAD_MOVED));
    }
    if let RefValue::Symbolic(name) = &head {
        let now = read(name)?.and_then(|value| value.object());
        let known = change.branches.iter().find(|(branch, ..)| branch == name);
        if known.is_none_or(|(_, before, after)| now != *before && now != *after) {
            return Ok(Err(HEAD_MOVED));
        }
    }
    for file in &change.state {
        let now = state::read(live, own, &file.name)?;
        let now = now.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        if now != file.before && now != file.after {
            return Ok(Err(STATE_MOVED));
        }
    }
    let moves_head = head != change.head.1;
    if change.index.is_empty() {
        return Ok(Ok(Carry {
            moves_head,
            index: None,
        }));
    }
    let entries = worktree::read_index(live, own)?;
    Ok(merge(entries, change).map(|index| Carry { moves_head, index }))
}

/// Returns the real index with the command's changes; `None` if it has them already.
fn merge(
    mut entries: IndexEntries,
    change: &WorktreeChange,
) -> Result<Option<IndexEntries>, &'static str> {
    let mut changed = false;
    for path in &change.index {
        let now = index::contents(entries.get(&path.path));
        if now == path.after {
            continue;
        }
        if now != path.before {
            return Err(INDEX_MOVED);
        }
        changed = true;
        let old = entries.remove(&path.path).unwrap_or_default();
        if path.after.is_empty() {
            continue;
        }
        // A person's own marks stay.
        let marks = old.first().map_or((false, false), IndexEntry::marks);
        let sides = path
            .after
            .iter()
            .map(|content| IndexEntry::new(*content, marks));
        entries.insert(path.path.clone(), sides.collect());
    }
    if change
        .index
        .iter()
        .any(|path| index::clashes(&path.path, &entries))
    {
        return Err(INDEX_MOVED);
    }
    Ok(changed.then_some(entries))
}

fn judge_settings(
    live: &GitFolder,
    changes: &StoreChanges,
    purpose: PlanPurpose,
) -> Result<(Option<String>, Vec<ChangeFate>), CarryError> {
    if changes.settings.is_empty() {
        return Ok((None, Vec::new()));
    }
    let config = read_config(live, &changes.store.join("config"))?;
    let values = config.values();
    let remotes = settings::remotes(&config);
    let is_allowed = |change: &SettingChange| match purpose {
        PlanPurpose::Carry => settings::is_allowed(change, &remotes),
        PlanPurpose::Approved | PlanPurpose::Restore => true,
    };
    let fates = changes.settings.iter().map(|change| {
        let now = values.get(&change.name).cloned().unwrap_or_default();
        match fate(&now, &change.before, &change.after) {
            ChangeFate::Carried if !is_allowed(change) => ChangeFate::Kept(MOVED),
            fate => fate,
        }
    });
    let fates: Vec<_> = fates.collect();
    let carried = changes.settings.iter().zip(&fates);
    let carried = carried
        .filter(|(_, fate)| **fate == ChangeFate::Carried)
        .map(|(change, _)| change);
    let carried: Vec<_> = carried.collect();
    if carried.is_empty() {
        return Ok((None, fates));
    }
    match config_edit::edit(&config.text, &carried) {
        Ok(text) => Ok((Some(text), fates)),
        Err(_) => {
            let kept = changes
                .settings
                .iter()
                .map(|_| ChangeFate::Kept(NOT_EDITED));
            Ok((None, kept.collect()))
        }
    }
}

/// Returns the files of a store that a carry-over locks, in this order.
pub(super) fn files_to_lock(changes: &StoreChanges) -> Vec<PathBuf> {
    let store = &changes.store;
    let mut files = Vec::new();
    for name in ["index", "HEAD"] {
        files.extend(changes.worktrees.iter().map(|change| change.file(name)));
    }
    let refs = changes.refs.iter().map(|change| &change.name);
    files.extend(refs.map(|name| store.join(name.as_str())));
    if changes.refs.iter().any(|change| change.after.is_none()) {
        files.push(store.join(refs::PACKED));
    }
    if !changes.settings.is_empty() {
        files.push(store.join("config"));
    }
    files
}
