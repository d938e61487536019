//! Undoes changes that were carried over, and applies changes that a person has approved: both in
//! the same order and under the same locks as carrying over, and only without conflicting changes.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use super::{
    carried::{CarryError, CarryRecord},
    carry,
    changes::{
        RefChange, RepositoryChanges, RepositoryFileChange, StateChange, StoreChanges,
        WorktreeChange,
    },
    decide,
    folder::GitFolder,
    index::IndexChange,
    names::{ObjectId, RefValue},
    plan::{CarryPlan, PlanPurpose},
    reflog::LogChange,
    settings::SettingChange,
    withheld::WithheldPath,
    withheld_history::WithheldHistory,
};

/// Whether changes that were carried over can be undone now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Restorable {
    /// The changes were undone already.
    Done,
    /// The changes can be undone.
    Yes,
    /// Another process changed the same value since; the description, in a few words.
    No(String),
}

/// Checks whether [`restore`] would undo `carried`. Nothing is changed.
pub fn look_at_restoring(carried: &CarryRecord) -> Result<Restorable, CarryError> {
    let live = GitFolder::open(&carried.repository)?;
    let mut is_done = true;
    for changes in &carried.stores {
        let changes = inverse(changes, 0);
        let decision = decide::decide(&live, &changes, PlanPurpose::Restore)?;
        if !decision.is_whole() {
            return Ok(Restorable::No(
                carry::moved(&changes, &decision).to_string(),
            ));
        }
        is_done &= decision.is_done();
    }
    Ok(if is_done {
        Restorable::Done
    } else {
        Restorable::Yes
    })
}

/// Undoes changes that were carried over: references, `HEAD`, index, state and settings are
/// restored, or nothing is changed. Objects stay, as do files of the work tree. `folder` is one of
/// the run's own; after a kill, [`carry::recover`] finishes the undo there.
///
/// An operation in progress that a command had ended does not come back, nor do logs of branches
/// that it had removed.
///
/// # Errors
/// [`CarryError::Moved`] if another process changed the same since.
pub fn restore(
    carried: &CarryRecord,
    folder: &Path,
    git: &Path,
    steps: &mut dyn FnMut(&'static str),
) -> Result<(), CarryError> {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs();
    let stores = carried
        .stores
        .iter()
        .rev()
        .map(|changes| inverse(changes, now));
    execute(
        &carried.repository,
        stores.collect(),
        PlanPurpose::Restore,
        folder,
        git,
        steps,
    )?;
    Ok(())
}

/// Applies withheld changes after a person's approval: all of them or none. They are of one
/// repository. `folder` is that of the private copy, which may have objects that they need.
///
/// # Errors
/// [`CarryError::Moved`] if one of the files was changed since the person saw it, or if one of the
/// changes is of a kind that cannot be applied.
pub fn apply_withheld(
    withheld: &[WithheldPath],
    folder: &Path,
    git: &Path,
    steps: &mut dyn FnMut(&'static str),
) -> Result<Option<CarryRecord>, CarryError> {
    let Some(first) = withheld.first() else {
        return Ok(None);
    };
    let mut stores: BTreeMap<PathBuf, StoreChanges> = BTreeMap::new();
    for change in withheld {
        if change.repository != first.repository || !change.can_be_applied() {
            return Err(CarryError::Moved {
                what: change.path.display().to_string(),
                reason: "it cannot be applied".to_owned(),
            });
        }
        let is_config = !change.settings.is_empty() && change.path.ends_with("config");
        let store = store_of(&change.path, is_config);
        let entry = stores.entry(store.clone()).or_insert_with(|| StoreChanges {
            store,
            ..StoreChanges::default()
        });
        if is_config {
            entry.settings.extend(change.settings.iter().cloned());
        } else {
            entry.files.push(RepositoryFileChange {
                path: change.path.clone(),
                before: change.old.clone(),
                after: change.new.clone(),
            });
        }
    }
    let stores = stores.into_values().collect();
    execute(
        &first.repository,
        stores,
        PlanPurpose::Approved,
        folder,
        git,
        steps,
    )
    .map(Some)
}

/// Applies withheld changes of references, `HEAD` and indexes after a person's approval: all of
/// them or none. `folder` is that of the private copy.
///
/// # Errors
/// [`CarryError::Moved`] if one of them was changed since the person saw it.
pub fn apply_history(
    history: &WithheldHistory,
    folder: &Path,
    git: &Path,
    steps: &mut dyn FnMut(&'static str),
) -> Result<CarryRecord, CarryError> {
    let stores = vec![history.changes.clone()];
    let purpose = PlanPurpose::Approved;
    execute(&history.repository, stores, purpose, folder, git, steps)
}

/// Returns the store of a file whose settings, or the objects of whose work tree, matter.
fn store_of(path: &Path, is_config: bool) -> PathBuf {
    let parts = path.iter().take_while(|part| *part != "worktrees");
    match path.parent() {
        Some(above) if is_config => above.to_owned(),
        _ if path.iter().any(|part| part == "worktrees") => parts.collect(),
        _ => PathBuf::new(),
    }
}

fn execute(
    repository: &Path,
    stores: Vec<StoreChanges>,
    purpose: PlanPurpose,
    folder: &Path,
    git: &Path,
    steps: &mut dyn FnMut(&'static str),
) -> Result<CarryRecord, CarryError> {
    if CarryPlan::read(folder)?.is_some() {
        return Err(CarryError::Unfinished);
    }
    let live = GitFolder::open(repository)?;
    // Before the first of several is touched.
    for changes in &stores {
        let decision = decide::decide(&live, changes, purpose)?;
        if !decision.is_whole() {
            return Err(carry::moved(changes, &decision));
        }
    }
    let changes = RepositoryChanges {
        stores,
        ..RepositoryChanges::default()
    };
    let plan = CarryPlan::new(purpose, repository, "undo", changes);
    plan.write(folder)?;
    steps("plan written");
    carry::execute(folder, plan, git, None, steps)
}

fn inverse(changes: &StoreChanges, now: u64) -> StoreChanges {
    StoreChanges {
        store: changes.store.clone(),
        refs: changes
            .refs
            .iter()
            .map(|change| inverse_ref(change, now))
            .collect(),
        worktrees: changes
            .worktrees
            .iter()
            .map(|change| inverse_worktree(change, now))
            .collect(),
        settings: changes
            .settings
            .iter()
            .map(|change| SettingChange {
                name: change.name.clone(),
                before: change.after.clone(),
                after: change.before.clone(),
            })
            .collect(),
        files: changes
            .files
            .iter()
            .map(|change| RepositoryFileChange {
                path: change.path.clone(),
                before: change.after.clone(),
                after: change.before.clone(),
            })
            .collect(),
    }
}

fn inverse_ref(change: &RefChange, now: u64) -> RefChange {
    let object = |value: &Option<RefValue>| value.as_ref().and_then(RefValue::object);
    let log = match &change.log {
        Some(log) if log.lists_stashes() => Some(log.inverse()),
        Some(_) | None => undo_line(object(&change.after), object(&change.before), now),
    };
    RefChange {
        name: change.name.clone(),
        before: change.after.clone(),
        after: change.before.clone(),
        log,
    }
}

fn inverse_worktree(change: &WorktreeChange, now: u64) -> WorktreeChange {
    let commit = |value: &RefValue, is_after: bool| match value {
        RefValue::Object(id) => Some(*id),
        RefValue::Symbolic(name) => {
            let branch = change.branches.iter().find(|(branch, ..)| branch == name);
            branch.and_then(|(_, before, after)| if is_after { *after } else { *before })
        }
    };
    let branches = change.branches.iter();
    WorktreeChange {
        worktree: change.worktree.clone(),
        head: (change.head.1.clone(), change.head.0.clone()),
        branches: branches
            .map(|(name, before, after)| (name.clone(), *after, *before))
            .collect(),
        index: change
            .index
            .iter()
            .map(|path| IndexChange {
                path: path.path.clone(),
                before: path.after.clone(),
                after: path.before.clone(),
            })
            .collect(),
        state: change
            .state
            .iter()
            .map(|file| StateChange {
                name: file.name.clone(),
                before: file.after.clone(),
                after: file.before.clone(),
            })
            .collect(),
        finished: Vec::new(),
        log: undo_line(
            commit(&change.head.1, true),
            commit(&change.head.0, false),
            now,
        ),
    }
}

fn undo_line(from: Option<ObjectId>, to: Option<ObjectId>, now: u64) -> Option<LogChange> {
    let (from, to) = (from?, to?);
    let line = format!("{from} {to} gyrus <gyrus@localhost> {now} +0000\tgyrus: undo");
    (from != to).then(|| LogChange::appending(line))
}
