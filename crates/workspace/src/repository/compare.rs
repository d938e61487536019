//! Compares a private copy with the state it was made from.
//!
//! The copy was written by commands, so its contents are untrusted: data that git would not have
//! written is left out and reported. It is compared with the references as they were when the copy
//! was made, not with those of now: a reference that a person moved meanwhile is not a change of
//! the command.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use super::{
    RepositoryError,
    alternates::{self, RealObjects},
    changes::{
        FinishedOperation, RefChange, RepositoryChanges, StateChange, StoreChanges, WorktreeChange,
        display, plain,
    },
    folder::{GitFolder, PathKind},
    index,
    names::{RefName, RefValue},
    protected::{self, Sides},
    reflog::{self, LogChange, MAX_LOG, TakenOut},
    refs::{self, Refs},
    stamps::Stamps,
    state,
    withheld::{FileContent, WithheldPath},
    worktree,
};

/// Maximum number of references that one command may change.
const MAX_CHANGES: usize = 20_000;
/// Maximum number of notes about one store.
const MAX_NOTES: usize = 30;
/// Files by which git knows that a merge, cherry-pick or revert is in progress.
const MERGES: [&str; 3] = ["MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD"];

/// Compares a private copy with the state from which it was made.
pub(super) fn compare(
    sides: &Sides<'_>,
    live: &GitFolder,
    real: RealObjects,
) -> Result<RepositoryChanges, RepositoryError> {
    let name = sides.directory.name();
    let base = Stamps::take(sides.base)?;
    let private = match Stamps::take(sides.private) {
        Ok(private) => private,
        Err(error) => return Ok(nothing_kept(&name, &error)),
    };
    let mut found = protected::compare(sides, &base, &private);
    let mut changes = RepositoryChanges::default();
    // Submodules first: a commit names theirs.
    for store in base.stores.iter().rev() {
        let mut store_changes = StoreChanges {
            store: store.clone(),
            ..StoreChanges::default()
        };
        let mut comparison = StoreComparison {
            sides,
            store,
            name: display(&name, store),
            notes: Vec::new(),
        };
        let list = alternates::list(live, store, real)?;
        changes.withheld.extend(comparison.alternates(&list)?);
        if super::find::check(&live.path().join(store)).is_err() {
            continue;
        }
        let worktrees = worktree::in_workspace(live, store, sides.directory)?;
        match comparison.store(&worktrees, &mut store_changes) {
            Ok(()) => {
                let settings = found.settings.iter_mut().filter(|(of, _)| of == store);
                store_changes.settings = settings
                    .flat_map(|(_, list)| std::mem::take(list))
                    .collect();
                changes.notes.append(&mut comparison.notes);
                if !store_changes.is_empty() {
                    changes.stores.push(store_changes);
                }
            }
            Err(error) => changes
                .notes
                .append(&mut nothing_kept(&comparison.name, &error).notes),
        }
    }
    changes.withheld.append(&mut found.withheld);
    changes.notes.append(&mut found.notes);
    Ok(changes)
}

fn nothing_kept(name: &str, error: &RepositoryError) -> RepositoryChanges {
    RepositoryChanges {
        notes: vec![format!(
            "nothing that was changed in `{name}` was kept: {error}"
        )],
        ..RepositoryChanges::default()
    }
}

struct StoreComparison<'a> {
    sides: &'a Sides<'a>,
    store: &'a Path,
    /// Name of the store for the model.
    name: String,
    notes: Vec<String>,
}

impl StoreComparison<'_> {
    fn note(&mut self, what: &str, why: &str) {
        let what = plain(&format!("{}/{what}", self.name));
        if self.notes.len() < MAX_NOTES {
            self.notes.push(format!("`{what}` was not kept: {why}"));
        } else if self.notes.len() == MAX_NOTES {
            let name = &self.name;
            self.notes.push(format!(
                "more of `{name}` was not kept, for the like reasons"
            ));
        }
    }

    fn alternates(&self, list: &[u8]) -> Result<Option<WithheldPath>, RepositoryError> {
        if alternates::is_intact(self.sides.private, self.store, list) {
            return Ok(None);
        }
        let path = alternates::path(self.store);
        let new = FileContent::read(self.sides.private, &path)?;
        // Every command finds its own list there, which is not the real one's.
        Ok(new.map(|new| WithheldPath {
            repository: self.sides.directory.path.clone(),
            reason: protected::reason(Path::new("objects/info/alternates")).to_owned(),
            path,
            old: None,
            new: Some(new),
            settings: Vec::new(),
        }))
    }

    fn store(
        &mut self,
        worktrees: &[PathBuf],
        changes: &mut StoreChanges,
    ) -> Result<(), RepositoryError> {
        // Without it this is not a repository any more, and all references would seem to be
        // removed.
        let head = refs::read_head(self.sides.private, self.store)?;
        let base = refs::read_all(self.sides.base, self.store)?;
        let private = refs::read_all(self.sides.private, self.store)?;
        for (name, why) in &private.odd {
            if !base.odd.contains(&(name.clone(), why)) {
                self.note(name, why);
            }
        }
        let names: BTreeSet<_> = base.all.keys().chain(private.all.keys()).collect();
        for name in names {
            if head == RefValue::Symbolic(name.clone())
                && base.all.contains_key(name)
                && !private.all.contains_key(name)
            {
                self.note(name.as_str(), "it is checked out, and was removed");
                continue;
            }
            self.reference(name, &base, &private, changes)?;
        }
        if changes.refs.len() > MAX_CHANGES {
            let path = self.sides.private.path().join(self.store).join("refs");
            return Err(RepositoryError::TooMany {
                path,
                limit: MAX_CHANGES,
            });
        }
        for worktree in worktrees {
            match self.worktree(worktree, &base, &private) {
                Ok(change) => changes
                    .worktrees
                    .extend(change.filter(|change| !change.is_empty())),
                Err(error) => {
                    let what = if worktree == self.store {
                        Path::new("HEAD")
                    } else {
                        worktree
                    };
                    self.note(&what.display().to_string(), &error.to_string());
                }
            }
        }
        Ok(())
    }

    fn reference(
        &mut self,
        name: &RefName,
        base: &Refs,
        private: &Refs,
        changes: &mut StoreChanges,
    ) -> Result<(), RepositoryError> {
        let (before, after) = (base.all.get(name), private.all.get(name));
        let is_stash = name.as_str() == "refs/stash";
        if before == after && !(is_stash && before.is_some()) {
            return Ok(());
        }
        // References below a link, or unreadable ones, were not removed.
        let is_hidden = |(odd, _): &(String, _)| Path::new(name.as_str()).starts_with(odd);
        if private.odd.iter().any(is_hidden) {
            return Ok(());
        }
        if let Some(why) = name.obstacle() {
            // Those of an operation in progress are spoken of with the operation.
            if !name.as_str().starts_with("refs/bisect/") {
                self.note(name.as_str(), why);
            }
            return Ok(());
        }
        if before.is_none() {
            let is_taken =
                |other: &RefName| base.all.contains_key(other) || private.all.contains_key(other);
            let misleads = name.namesakes().iter().any(is_taken);
            let misleads = misleads.then_some("another reference has the same short name");
            if let Some(why) = name.odd_name().or(misleads) {
                self.note(name.as_str(), why);
                return Ok(());
            }
        }
        if let Some(RefValue::Symbolic(target)) = after
            && !is_remote_head(name, target)
        {
            self.note(name.as_str(), "it stands for another reference");
            return Ok(());
        }
        let log = Path::new("logs").join(name.as_str());
        let log = match after {
            // Even where the list is gone: it may be recreated.
            _ if is_stash => self.log(&log, TakenOut::Go)?,
            Some(_) => self.log(&log, TakenOut::Stay)?,
            None => None,
        };
        if before != after || log.is_some() {
            changes.refs.push(RefChange {
                name: name.clone(),
                before: before.cloned(),
                after: after.cloned(),
                log,
            });
        }
        Ok(())
    }

    /// Compares a file; `path` is below the store.
    fn log(
        &mut self,
        path: &Path,
        taken_out: TakenOut,
    ) -> Result<Option<LogChange>, RepositoryError> {
        let whole = self.store.join(path);
        // A folder in its place is of references below one of that name.
        let read = |git: &GitFolder| -> Result<_, RepositoryError> {
            match git.kind(&whole)? {
                PathKind::Folder => Ok(Vec::new()),
                PathKind::Missing | PathKind::File | PathKind::Link | PathKind::Other => {
                    Ok(git.read(&whole, MAX_LOG)?.unwrap_or_default())
                }
            }
        };
        let before = read(self.sides.base)?;
        match read(self.sides.private) {
            Ok(after) => Ok(reflog::compare(&before, &after, taken_out)),
            Err(error) => {
                self.note(&path.display().to_string(), &error.to_string());
                Ok(None)
            }
        }
    }

    fn worktree(
        &mut self,
        own: &Path,
        base: &Refs,
        private: &Refs,
    ) -> Result<Option<WorktreeChange>, RepositoryError> {
        let (old, new) = (self.sides.base, self.sides.private);
        let (begun, now) = (state::operations(old, own)?, state::operations(new, own)?);
        if let Some(unfinished) = now.iter().find(|operation| !begun.contains(operation)) {
            self.notes.push(format!(
                "an unfinished {} stays private: `HEAD`, the index and its state in `{}` are kept when it is finished or aborted",
                unfinished.name, self.name,
            ));
            return Ok(None);
        }
        let head = (refs::read_head(old, own)?, refs::read_head(new, own)?);
        let mut branches: Vec<(RefName, _, _)> = Vec::new();
        for head in [&head.0, &head.1] {
            if let RefValue::Symbolic(name) = head
                && !branches.iter().any(|(known, ..)| known == name)
            {
                let before = base.all.get(name).and_then(RefValue::object);
                let after = private.all.get(name).and_then(RefValue::object);
                branches.push((name.clone(), before, after));
            }
        }
        let finished = begun
            .into_iter()
            .filter(|operation| !now.contains(operation));
        let finished = finished.map(|operation| FinishedOperation {
            files: operation.files,
            digest: operation.digest,
        });
        let log = own
            .strip_prefix(self.store)
            .unwrap_or(own)
            .join("logs/HEAD");
        Ok(Some(WorktreeChange {
            worktree: own.to_owned(),
            head,
            branches,
            index: self.index(own)?,
            state: self.state(own)?,
            finished: finished.collect(),
            log: self.log(&log, TakenOut::Stay)?,
        }))
    }

    fn index(&mut self, own: &Path) -> Result<Vec<index::IndexChange>, RepositoryError> {
        let path = own.join("index");
        let bytes = |git: &GitFolder| git.read(&path, index::MAX_INDEX);
        if bytes(self.sides.base)? == bytes(self.sides.private)? {
            return Ok(Vec::new());
        }
        let before = worktree::read_index(self.sides.base, own)?;
        let after = worktree::read_index(self.sides.private, own)?;
        let marked = index::newly_marked(&before, &after);
        if marked > 0 {
            let why = "the marks `assume-unchanged` and `skip-worktree` hide changes from a person";
            self.note(&format!("index ({marked} marks)"), why);
        }
        index::compare(&before, &after).map_err(|error| RepositoryError::Damaged {
            path: self.sides.private.path().join(path),
            reason: error.to_string(),
        })
    }

    fn state(&mut self, own: &Path) -> Result<Vec<StateChange>, RepositoryError> {
        let mut changes = Vec::new();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        for name in state::carried() {
            let before = state::read(self.sides.base, own, name)
                .ok()
                .flatten()
                .map(text);
            let after = state::read(self.sides.private, own, name)?.map(text);
            if before != after || MERGES.contains(&name) {
                let name = name.to_owned();
                changes.push(StateChange {
                    name,
                    before,
                    after,
                });
            }
        }
        Ok(changes)
    }
}

/// Whether a reference is the default branch of a remote, as `git clone` and `git remote` set it.
fn is_remote_head(name: &RefName, target: &RefName) -> bool {
    let remote = name.as_str().strip_suffix("/HEAD");
    let remote = remote.filter(|remote| remote.starts_with("refs/remotes/"));
    remote.is_some_and(|remote| {
        let below = target.as_str().strip_prefix(remote);
        below.is_some_and(|below| below.starts_with('/'))
    })
}
