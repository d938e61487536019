//! Stages a decision, file by file, before any file of the repository is touched: a lack of space
//! is detected here, when nothing has been done yet.

use std::path::{Path, PathBuf};

use super::{
    carried::CarryError,
    changes::{RefChange, StoreChanges, WorktreeChange},
    decide::{Carry, ChangeFate, StoreDecision},
    folder::{GitFolder, PathKind},
    index,
    locks::Locks,
    names::RefValue,
    reflog::{self, LogChange, MAX_LOG},
    refs, state,
    withheld::FileContent,
};

/// Number of new references below which each is synced separately, rather than all files at once.
const FEW: usize = 32;

/// One change of a file of the repository, which can be repeated.
#[derive(Debug)]
pub(super) enum StageStep {
    /// Move a staged file, or a file that is put aside, to its place.
    Rename {
        from: PathBuf,
        to: PathBuf,
        what: &'static str,
    },
    /// Move a staged log to its place, unless stale logs of other references are in the way.
    Log { from: PathBuf, to: PathBuf },
    /// Remove a file, if one exists.
    Remove { path: PathBuf, what: &'static str },
    /// Remove empty folders from `path` up to, but not including, `top`.
    RemoveEmpty { path: PathBuf, top: PathBuf },
    /// Take the lock of a reference whose folder could not be created before.
    Lock(PathBuf),
}

/// Stages the decisions for one store, in the order in which they are carried out: references,
/// `HEAD`, state, logs, other files, settings, and the index last.
pub(super) fn stage(
    live: &GitFolder,
    changes: &StoreChanges,
    decision: &StoreDecision,
    locks: &Locks<'_>,
) -> Result<Vec<StageStep>, CarryError> {
    let mut stage = CarryStage {
        live,
        changes,
        decision,
        locks,
        steps: Vec::new(),
    };
    stage.removed_refs()?;
    stage.written_refs()?;
    let worktrees = changes.worktrees.iter().zip(&decision.worktrees);
    let worktrees = worktrees.filter_map(|(change, fate)| Some((change, fate.as_ref().ok()?)));
    let worktrees: Vec<(&WorktreeChange, &Carry)> = worktrees.collect();
    for (change, fate) in &worktrees {
        if fate.moves_head {
            stage.write(
                &change.head.1.content(),
                &change.file("HEAD"),
                "HEAD moved",
                true,
            )?;
        }
        stage.state(change)?;
    }
    stage.logs(&worktrees)?;
    stage.files()?;
    if let Some(text) = &decision.config {
        let path = changes.store.join("config");
        stage.write(text.as_bytes(), &path, "settings written", true)?;
    }
    for (change, fate) in &worktrees {
        if let Some(entries) = &fate.index {
            stage.index(change, entries)?;
        }
    }
    Ok(stage.steps)
}

struct CarryStage<'a> {
    live: &'a GitFolder,
    changes: &'a StoreChanges,
    decision: &'a StoreDecision,
    locks: &'a Locks<'a>,
    steps: Vec<StageStep>,
}

impl CarryStage<'_> {
    fn write(
        &mut self,
        content: &[u8],
        to: &Path,
        what: &'static str,
        durable: bool,
    ) -> Result<(), CarryError> {
        let from = self.locks.stage(content, durable)?;
        let to = to.to_owned();
        self.steps.push(StageStep::Rename { from, to, what });
        Ok(())
    }

    fn remove(&mut self, path: PathBuf, what: &'static str) {
        self.steps.push(StageStep::Remove { path, what });
    }

    fn carried_refs(&self) -> impl Iterator<Item = &RefChange> {
        let refs = self.changes.refs.iter().zip(&self.decision.refs);
        refs.filter(|(_, fate)| **fate == ChangeFate::Carried)
            .map(|(change, _)| change)
    }

    fn removed_refs(&mut self) -> Result<(), CarryError> {
        let store = &self.changes.store;
        let gone = self.carried_refs().filter(|change| change.after.is_none());
        let gone: Vec<_> = gone.map(|change| change.name.clone()).collect();
        // First the line, which the file hides: the other way round an old value would be seen.
        let packed = refs::packed_without(self.live, store, &gone.iter().collect())?;
        if let Some(content) = packed {
            self.write(
                &content,
                &store.join(refs::PACKED),
                "packed references removed",
                true,
            )?;
        }
        for name in gone {
            self.remove(store.join(name.as_str()), "reference removed");
        }
        Ok(())
    }

    fn written_refs(&mut self) -> Result<(), CarryError> {
        let store = &self.changes.store;
        let new = self.carried_refs().filter_map(|change| {
            let value: &RefValue = change.after.as_ref()?;
            Some((store.join(change.name.as_str()), value.content()))
        });
        let new: Vec<_> = new.collect();
        let is_few = new.len() < FEW;
        for (path, content) in new {
            self.steps.push(StageStep::Lock(path.clone()));
            self.write(&content, &path, "reference written", is_few)?;
        }
        if !is_few {
            self.live.sync_all()?;
        }
        Ok(())
    }

    fn state(&mut self, change: &WorktreeChange) -> Result<(), CarryError> {
        for file in change.state.iter().filter(|file| file.before != file.after) {
            let path = change.file(&file.name);
            match &file.after {
                Some(content) => self.write(content.as_bytes(), &path, "state written", false)?,
                None => self.remove(path, "state removed"),
            }
        }
        let now = state::operations(self.live, &change.worktree)?;
        let finished = change.finished.iter().filter(|finished| {
            now.iter()
                .any(|operation| operation.digest == finished.digest)
        });
        for file in finished.flat_map(|finished| &finished.files) {
            self.steps.push(StageStep::Rename {
                from: change.worktree.join(file),
                to: self.locks.stage_name(),
                what: "operation ended",
            });
        }
        Ok(())
    }

    fn logs(&mut self, worktrees: &[(&WorktreeChange, &Carry)]) -> Result<(), CarryError> {
        let logs = self.changes.store.join("logs");
        let refs = self.changes.refs.iter().zip(&self.decision.refs);
        let refs = refs.filter(|(_, fate)| !matches!(fate, ChangeFate::Kept(_)));
        let (gone, there): (Vec<_>, Vec<_>) = refs
            .map(|(change, _)| change)
            .partition(|change| change.after.is_none());
        // A log that goes may be in the way of one that comes.
        for change in gone {
            let path = logs.join(change.name.as_str());
            let above = path.parent().unwrap_or(Path::new("")).to_owned();
            self.remove(path, "log removed");
            self.steps.push(StageStep::RemoveEmpty {
                path: above,
                top: logs.join("refs"),
            });
        }
        for change in there {
            if let Some(log) = &change.log {
                self.log(&logs.join(change.name.as_str()), log)?;
            }
        }
        for (change, _) in worktrees {
            if let Some(log) = &change.log {
                self.log(&change.file("logs/HEAD"), log)?;
            }
        }
        Ok(())
    }

    fn log(&mut self, path: &Path, change: &LogChange) -> Result<(), CarryError> {
        let now = match self.live.kind(path)? {
            // The folder contains logs of references below one of that name.
            PathKind::Folder => Vec::new(),
            PathKind::Missing | PathKind::File | PathKind::Link | PathKind::Other => {
                self.live.read(path, MAX_LOG)?.unwrap_or_default()
            }
        };
        if let Some(log) = reflog::apply(&now, change) {
            let (from, to) = (self.locks.stage(&log, false)?, path.to_owned());
            self.steps.push(StageStep::Log { from, to });
        }
        Ok(())
    }

    fn files(&mut self) -> Result<(), CarryError> {
        let files = self.changes.files.iter().zip(&self.decision.files);
        for (change, _) in files.filter(|(_, fate)| **fate == ChangeFate::Carried) {
            let Some((bytes, executable)) = change.after.as_ref().and_then(FileContent::bytes)
            else {
                self.remove(change.path.clone(), "file removed");
                continue;
            };
            let from = self.locks.stage(&bytes, true)?;
            if executable {
                self.live.make_executable(&from)?;
            }
            self.steps.push(StageStep::Rename {
                from,
                to: change.path.clone(),
                what: "file written",
            });
        }
        Ok(())
    }

    fn index(
        &mut self,
        change: &WorktreeChange,
        entries: &index::IndexEntries,
    ) -> Result<(), CarryError> {
        let path = change.file("index");
        let from = self.locks.stage(&index::serialise(entries), true)?;
        // Entries that did not change are as sure as they were: git compares their times with that
        // of the index.
        if let Some(time) = self.live.modified(&path)? {
            self.live.set_modified(&from, time)?;
        }
        self.steps.push(StageStep::Rename {
            from,
            to: path,
            what: "index written",
        });
        Ok(())
    }
}
