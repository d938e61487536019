//! Takes changes that wait for a person's approval out of those that are carried over, so that both
//! parts are consistent.

use std::collections::BTreeSet;

use super::{
    changes::{StoreChanges, WorktreeChange},
    names::{ObjectId, RefName, RefValue},
    reflog::LogChange,
};

/// Removes the changes that lead to `tainted` objects, and the index entries of the paths in
/// `staged`, from what is carried over. Returns `None` if there are none. Lines of logs that alone
/// name such objects are dropped.
pub(super) fn hold(
    changes: &mut StoreChanges,
    tainted: &BTreeSet<ObjectId>,
    staged: &BTreeSet<Vec<u8>>,
) -> Option<StoreChanges> {
    let (refs, worktrees) = held(changes, tainted);
    let mut held = StoreChanges {
        store: changes.store.clone(),
        ..StoreChanges::default()
    };
    (held.refs, changes.refs) = std::mem::take(&mut changes.refs)
        .into_iter()
        .partition(|change| refs.contains(&change.name));
    let is_held = |change: &WorktreeChange| worktrees.contains(&change.worktree);
    (held.worktrees, changes.worktrees) = std::mem::take(&mut changes.worktrees)
        .into_iter()
        .partition(is_held);
    for change in &mut changes.refs {
        clean(&mut change.log, tainted);
    }
    for change in &mut changes.worktrees {
        clean(&mut change.log, tainted);
        for file in &mut change.state {
            if file.objects().iter().any(|id| tainted.contains(id)) {
                file.after.clone_from(&file.before);
            }
        }
        held.worktrees.extend(unstage(change, staged));
    }
    changes
        .refs
        .retain(|change| change.before != change.after || change.log.is_some());
    changes.worktrees.retain(|change| !change.is_empty());
    (!held.is_empty()).then_some(held)
}

/// Returns the references and the work trees that are held: those that lead to a tainted object,
/// and those that only move together with them.
fn held(
    changes: &StoreChanges,
    tainted: &BTreeSet<ObjectId>,
) -> (BTreeSet<RefName>, BTreeSet<std::path::PathBuf>) {
    let is_tainted = |id: &ObjectId| tainted.contains(id);
    let mut refs = BTreeSet::new();
    for change in &changes.refs {
        let after = change.after.as_ref().and_then(RefValue::object);
        let is_stash = change.name.as_str() == "refs/stash";
        let stashed = change.log.iter().filter(|_| is_stash);
        let mut stashed = stashed.flat_map(LogChange::new_objects);
        if after.as_ref().is_some_and(is_tainted) || stashed.any(|id| is_tainted(&id)) {
            refs.insert(change.name.clone());
        }
    }
    let mut worktrees = BTreeSet::new();
    loop {
        let before = (refs.len(), worktrees.len());
        for change in &changes.worktrees {
            let leads = match &change.head.1 {
                RefValue::Object(id) => is_tainted(id),
                RefValue::Symbolic(name) => refs.contains(name),
            };
            if leads || change.merged_objects().iter().any(is_tainted) {
                worktrees.insert(change.worktree.clone());
                refs.extend(change.branches.iter().map(|(name, ..)| name.clone()));
            }
        }
        if before == (refs.len(), worktrees.len()) {
            return (refs, worktrees);
        }
    }
}

fn clean(log: &mut Option<LogChange>, tainted: &BTreeSet<ObjectId>) {
    if let Some(change) = log
        && change.objects().any(|id| tainted.contains(&id))
    {
        change.retain(|id| !tainted.contains(id));
        if change.is_empty() {
            *log = None;
        }
    }
}

/// Removes the entries of these paths from a work tree's changes.
fn unstage(change: &mut WorktreeChange, staged: &BTreeSet<Vec<u8>>) -> Option<WorktreeChange> {
    let (held, carried): (Vec<_>, Vec<_>) = std::mem::take(&mut change.index)
        .into_iter()
        .partition(|entry| staged.contains(&entry.path));
    change.index = carried;
    let named = |name: &RefName| change.head.1 == RefValue::Symbolic(name.clone());
    let branches = change.branches.iter().filter(|(name, ..)| named(name));
    (!held.is_empty()).then(|| WorktreeChange {
        worktree: change.worktree.clone(),
        head: (change.head.1.clone(), change.head.1.clone()),
        branches: branches
            .map(|(name, _, after)| (name.clone(), *after, *after))
            .collect(),
        index: held,
        state: Vec::new(),
        finished: Vec::new(),
        log: None,
    })
}
