//! Judging the changes of a call in the workspace when it ends, before any other effect of the run.
//!
//! A command may write whatever it likes while it runs; nothing outside its sandbox checks that.
//! When it has ended, the gate decides which of its changes may not stay without a person's
//! approval. Those are reverted at once, and the call's outcome lists them. Then a person is asked
//! (see `withheld.rs`).

use gyrus_contract::{BlobId, ChangedPath, EffectId, ResolvedCall, Tool, Touch};
use gyrus_text::counted;
use gyrus_workspace::{
    ChangeSet, Recorded,
    layer::{AppliedLayer, CallLayer, Copies, KeptFiles},
    snapshot::{SnapshotError, Taken},
    undo::Refused,
};

use super::{
    layers,
    named_files::MAX_NAMED,
    repositories,
    to_undo::keep_for_undo,
    withheld::{Withheld, facts, trash},
};
use crate::{EffectError, Stop, contents, core::Core};

/// The judgement of a call's changes when it has ended.
#[derive(Debug, Default)]
pub(crate) struct JudgedChanges {
    /// The blob for the call's outcome, if changes were reverted.
    pub(crate) withheld: Option<BlobId>,
    /// The blob for the call's outcome with the data that an undo needs beside snapshots, if any.
    pub(crate) to_undo: Option<BlobId>,
    /// Notes for the model, in whole sentences, without secrets.
    notes: Vec<String>,
}

impl JudgedChanges {
    /// Returns the notes as the end of an outcome's text; empty if there are none.
    pub(crate) fn told(&self) -> String {
        if self.notes.is_empty() {
            String::new()
        } else {
            format!("\n[{}]", self.notes.join(" "))
        }
    }
}

/// Whether the changes of this call are judged when it ends: those of commands contained in the
/// workspace. A person allowed the commands that run with that person's rights.
pub(super) fn are_judged(tool: &dyn Tool, resolved: &ResolvedCall) -> bool {
    let contained = resolved
        .command
        .as_ref()
        .is_some_and(|command| command.containment.is_some());
    let spec = tool.spec();
    spec.touches(Touch::changes_workspace) && (contained || spec.is_served())
}

/// Takes a snapshot of the workspace before a call, and prepares the private copies of its
/// repositories. Returns the snapshot, which is to be on disk with the call's start; `None` where
/// the folder is too large for one, which the verdict took into account.
///
/// # Errors
/// Returns the reason in words if there can be no snapshot although the verdict relied on one.
pub(super) fn begin(core: &Core, effect: &EffectId) -> Result<Option<BlobId>, EffectError<String>> {
    let mut began = core.judged_calls();
    // Changes during concurrent calls are compared with the workspace before all of them.
    let before = match began.first() {
        Some((_, before)) => *before,
        None => {
            core.repositories().begin(&facts(core)).map_err(|why| {
                EffectError::Failed(format!("the folder's repositories cannot be read: {why}"))
            })?;
            if layers::are_used(core) {
                layers::begin(core, effect).map_err(EffectError::Failed)?;
                None
            } else {
                keep(core)?
            }
        }
    };
    began.push((effect.clone(), before));
    Ok(before)
}

/// Reverts those changes since [`begin`] that may not stay, once the call's processes have ended.
/// `copies` are those of files that it named.
pub(super) fn end(
    core: &Core,
    effect: &EffectId,
    copies: Option<Copies>,
) -> Result<JudgedChanges, Stop> {
    let mut began = core.judged_calls();
    let Some(place) = began.iter().position(|(call, _)| call == effect) else {
        let kept = copies.map(layers::changed).transpose()?;
        return Ok(JudgedChanges {
            to_undo: keep_for_undo(core, Vec::new(), kept)?,
            ..JudgedChanges::default()
        });
    };
    // A private copy is read when no command uses it any more.
    let carried = match began.len() {
        1 => core.repositories().end(&facts(core)),
        _ => repositories::Ended::default(),
    };
    let changed = match layers::take(core) {
        Some(layer) if layers::are_used(core) => of_layer(core, &layer)?,
        // The next snapshot holds what it changed.
        Some(layer) if layer.was_mounted() => ChangedFiles {
            kept: None,
            ..of_layer(core, &layer)?
        },
        Some(_) | None => take_back(core, effect)?,
    };
    began.remove(place);
    judge(core, carried, changed)
}

/// Does the same as [`end`], for a call of an earlier process.
pub(super) fn end_of_the_dead(
    core: &Core,
    effect: &EffectId,
    before: Option<&BlobId>,
) -> Result<JudgedChanges, Stop> {
    let carried = core.repositories().end(&facts(core));
    let changed = match (before, layers::of_the_dead(core, effect)) {
        (Some(before), layer) => {
            // Its changes count if they were being moved, for then the call had succeeded.
            if let Some(layer) = layer
                && layers::recover(&layer)?.is_none()
            {
                let _ = layer.remove();
            }
            go_on_from(core, before)?;
            take_back(core, effect)?
        }
        (None, Some(layer)) => match layers::recover(&layer)? {
            Some(applied) => ChangedFiles::applied(applied),
            None => of_layer(core, &layer)?,
        },
        (None, None) => ChangedFiles {
            kept: match layers::copies_of_the_dead(core, effect) {
                Some(copies) => Some(layers::changed(copies)?),
                None => None,
            },
            ..ChangedFiles::default()
        },
    };
    judge(core, carried, changed)
}

fn keep(core: &Core) -> Result<Option<BlobId>, EffectError<String>> {
    match core.snapshots().take(&mut core.contents()) {
        Ok(Taken::New(id) | Taken::Same(id)) => Ok(Some(id)),
        Ok(Taken::TooLarge { files, bytes }) => {
            let known = core.shared().not_undoable.is_some();
            let why = format!(
                "the folder has become too large ({}, {})",
                counted(files, "file"),
                counted(bytes, "byte")
            );
            core.shared().not_undoable = Some(why.clone());
            if known {
                Ok(None)
            } else {
                Err(EffectError::Failed(format!(
                    "{why}, so its changes cannot be undone; call it again"
                )))
            }
        }
        Err(SnapshotError::Store(stop)) => Err(stop.into()),
        Err(_) if core.shared().not_undoable.is_some() => Ok(None),
        Err(error) => Err(EffectError::Failed(error.to_string())),
    }
}

/// Continues from the snapshot that an earlier process took before a call.
fn go_on_from(core: &Core, before: &BlobId) -> Result<(), Stop> {
    let load = |id: &BlobId| contents::load(core.log.reader(), id);
    core.snapshots()
        .go_on_from(before, load)
        .map_err(|error| Stop::Failed(format!("what the folder held before a command: {error}")))
}

/// The handling of the files that a call changed.
#[derive(Debug, Default)]
struct ChangedFiles {
    withheld: Withheld,
    /// The previous content, where no snapshot holds it.
    kept: Option<KeptFiles>,
    /// Files that another program changed meanwhile.
    refused: Vec<Refused>,
}

impl ChangedFiles {
    fn applied(applied: AppliedLayer) -> Self {
        Self {
            withheld: Withheld::default(),
            kept: Some(applied.kept),
            refused: applied.refused,
        }
    }

    /// Returns the changes that were not applied, for the model.
    fn notes(&self) -> Option<String> {
        let named = self.refused.iter().take(MAX_NAMED);
        let named: Vec<String> = named
            .map(|one| format!("`{}` ({})", one.path, one.why))
            .collect();
        let more = match self.refused.len().saturating_sub(MAX_NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        (!named.is_empty()).then(|| {
            format!(
                "What the command did to {}{more} was not applied.",
                named.join(", ")
            )
        })
    }
}

/// Records the judgement of a call's changes.
fn judge(
    core: &Core,
    carried: repositories::Ended,
    changed: ChangedFiles,
) -> Result<JudgedChanges, Stop> {
    let not_applied = changed.notes();
    let mut withheld = changed.withheld;
    withheld.repositories.extend(carried.withheld);
    withheld.leave_out_secrets(core)?;
    let blob = if withheld.is_empty() {
        None
    } else {
        let json = serde_json::to_vec(&withheld);
        let json = json.map_err(|error| Stop::Failed(error.to_string()))?;
        Some(core.log.put_blob(&json)?)
    };
    let redactor = &core.kernel.organs().redactor;
    let notes = carried.notes.iter().chain(&not_applied);
    let notes = notes.map(|note| redactor.redact(note).into_owned());
    Ok(JudgedChanges {
        withheld: blob,
        to_undo: keep_for_undo(core, carried.carried, changed.kept)?,
        notes: notes.collect(),
    })
}

/// Moves a command's changes from its layer into the workspace, except those that may not stay.
fn of_layer(core: &Core, layer: &CallLayer) -> Result<ChangedFiles, Stop> {
    let mut withheld = Withheld::default();
    let mut listed = layers::list(layer)?;
    let examined = core
        .repositories()
        .examine(&facts(core), &listed.changed, &layer.upper());
    if !examined.git_directories.is_empty() {
        listed = layers::list(layer)?;
    }
    withheld.repositories = examined.withheld;
    let mut of_gate = listed.changed.clone();
    let settled = examined.git_directories;
    of_gate.retain(|change| !settled.iter().any(|git| change.path.starts_with(git)));
    let found = core.withhold(&of_gate);
    let paths: Vec<&ChangedPath> = found
        .iter()
        .filter_map(|withheld| of_gate.get(withheld.index))
        .collect();
    let recorded = ChangeSet::record_layer(layer, &paths, &mut core.contents())?;
    let reasons = found.iter().filter_map(|withheld| {
        let path = &of_gate.get(withheld.index)?.path;
        Some((path.display().to_string(), withheld.reason.clone()))
    });
    withheld.reasons = reasons.collect();
    withheld.changes = (!recorded.changes.is_empty()).then_some(recorded.changes);
    withheld.not_kept = recorded.not_kept;
    let applied = layers::apply(layer, listed, &paths)?;
    Ok(ChangedFiles {
        withheld,
        ..ChangedFiles::applied(applied)
    })
}

/// Reverts those of the files changed since the last snapshot that may not stay.
fn take_back(core: &Core, effect: &EffectId) -> Result<ChangedFiles, Stop> {
    let mut changed_files = ChangedFiles::default();
    let withheld = &mut changed_files.withheld;
    let snapshots = core.snapshots();
    let failed = |error: std::io::Error| {
        Stop::Failed(format!(
            "what a command changed cannot be looked at: {error}"
        ))
    };
    let Some(mut changed) = snapshots.changed_paths().map_err(failed)? else {
        return Ok(changed_files);
    };
    let workspace = &core.started.workspace;
    let examined = core
        .repositories()
        .examine(&facts(core), &changed, workspace);
    withheld.repositories = examined.withheld;
    let settled = examined.git_directories;
    changed.retain(|change| !settled.iter().any(|git| change.path.starts_with(git)));
    let found = core.withhold(&changed);
    if found.is_empty() {
        return Ok(changed_files);
    }
    let paths: Vec<_> = found
        .iter()
        .filter_map(|withheld| changed.get(withheld.index))
        .collect();
    let recorded = ChangeSet::record(&snapshots, &paths, &mut core.contents())?;
    let Some(Recorded { changes, not_kept }) = recorded else {
        return Ok(changed_files);
    };
    if changes.is_empty() && not_kept.is_empty() {
        return Ok(changed_files);
    }
    let load = |id: &BlobId| contents::load(core.log.reader(), id);
    let done = changes
        .take_back(&core.started.workspace, &load, &trash(core, effect))
        .map_err(|error| Stop::Failed(format!("changes of a command remain: {error}")))?;
    let really = changes.paths();
    let reasons = found.iter().filter_map(|withheld| {
        let path = &changed.get(withheld.index)?.path;
        let text = path.display().to_string();
        let differs = really.contains(&text.as_str()) || not_kept.contains(path);
        differs.then(|| (text, withheld.reason.clone()))
    });
    withheld.reasons = reasons.collect();
    let refused = done.refused.into_iter();
    withheld.left = refused.map(|refused| (refused.path, refused.why)).collect();
    withheld.changes = Some(changes);
    withheld.not_kept = not_kept;
    Ok(changed_files)
}
