//! The changes of a run's calls that were withheld, for a person who looks at them later or brings
//! them back.

use std::path::{Path, PathBuf};

use gyrus_contract::{BlobId, EffectId, RunId};
use gyrus_journal::Store;
use gyrus_workspace::undo::UndoResult;

use crate::{
    Entry, KernelError, Stop, contents,
    effects::withheld::{APPLIED, WithheldCallChanges, asking},
    log_name, parse,
};

/// The changes of one call that were withheld.
#[derive(Debug)]
pub struct WithheldChanges {
    pub effect: EffectId,
    /// The changed files, each with the reason why it was withheld.
    pub files: Vec<(String, String)>,
    /// The changes in repositories, each with the reason. They are applied by an answer to their
    /// card only.
    pub in_repositories: Vec<(String, String)>,
    /// The result of applying the changes after a person's approval; `None` if they were not
    /// applied.
    pub applied: Option<String>,
    withheld: WithheldCallChanges,
}

/// Returns the withheld changes of a run, in their order.
///
/// # Errors
/// Returns an error when the journal or a blob of it cannot be read.
pub fn withheld_changes(store: &Store, run: RunId) -> Result<Vec<WithheldChanges>, KernelError> {
    let reader = store.reader(&log_name(run))?;
    let mut found: Vec<WithheldChanges> = Vec::new();
    let mut workspace = PathBuf::new();
    for entry in reader.entries(1)? {
        match parse(&entry?).map_err(Stop::from)? {
            Entry::RunStarted(started) => workspace.clone_from(&started.workspace),
            Entry::ToolResulted(resulted) => {
                let Some(blob) = resulted.withheld else {
                    continue;
                };
                let bytes = reader.blob(&blob)?;
                let withheld: WithheldCallChanges = serde_json::from_slice(&bytes)
                    .map_err(|error| Stop::Failed(format!("the changes {blob}: {error}")))?;
                found.push(WithheldChanges {
                    effect: resulted.effect,
                    files: withheld.reasons.clone(),
                    in_repositories: withheld
                        .repositories
                        .iter()
                        .map(|change| (change.name(&workspace), change.reason.clone()))
                        .collect(),
                    applied: None,
                    withheld,
                });
            }
            Entry::Noted { kind, fact, .. } if kind == APPLIED => {
                let of = found
                    .iter_mut()
                    .find(|changes| asking(&changes.effect) == fact.effect);
                if let Some(changes) = of {
                    changes.applied = fact.fact.as_str().map(str::to_owned);
                }
            }
            _ => {}
        }
    }
    Ok(found)
}

impl WithheldChanges {
    /// Whether the content of a file was stored, so that it can be restored.
    pub fn is_kept(&self, path: &str) -> bool {
        let is_lost = |lost: &Path| lost == Path::new(path);
        let changes = self.withheld.changes.as_ref();
        changes.is_some_and(|changes| changes.paths().contains(&path))
            && !self.withheld.not_kept.iter().any(|lost| is_lost(lost))
    }

    /// Makes the changes of these files again in the folder `workspace`, after a person approved.
    /// Files that changed since are left alone and reported; overwritten ones are copied below
    /// `trash`.
    ///
    /// # Errors
    /// Returns an error when a content cannot be read, or the trash cannot be written.
    pub fn bring_back(
        &self,
        store: &Store,
        run: RunId,
        (workspace, files): (&Path, &[String]),
        trash: &Path,
    ) -> Result<UndoResult, KernelError> {
        let Some(changes) = &self.withheld.changes else {
            return Ok(UndoResult::default());
        };
        let others = changes
            .below()
            .into_iter()
            .filter(|path| !files.contains(&path.display().to_string()));
        let others: Vec<_> = others
            .chain(self.withheld.not_kept.iter().cloned())
            .collect();
        let reader = store.reader(&log_name(run))?;
        let load = |id: &BlobId| contents::load(&reader, id);
        let done = changes.without(&others).apply(workspace, &load, trash);
        done.map_err(|error| Stop::Failed(error.to_string()).into())
    }
}
