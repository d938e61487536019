//! Judging the changes of a call in the workspace when it ends, before any other effect of the run.
//!
//! A command may write whatever it likes while it runs; nothing outside its sandbox checks that. It
//! writes into a layer over the workspace. When it has ended, the gate decides which of its changes
//! may not stay without a person's approval; the others are moved into the workspace, and the call's
//! outcome lists the rest. Then a person is asked (see `withheld.rs`). Where there can be no layer,
//! and for servers of tools, the workspace is compared with a snapshot from before the call, and
//! what may not stay is reverted.

use std::path::{Path, PathBuf};

use gyrus_contract::{BlobId, ChangedPath, EffectId, ResolvedCall, Tool, ToolSpec, Touch};
use gyrus_text::counted;
use gyrus_workspace::{
    ChangeRecord, ChangeSet, ContentStore as _,
    layer::{AppliedLayer, CallLayer, Copies, KeptFiles, changed_at},
    snapshot::{SnapshotError, SnapshotResult},
    undo::UndoRefusal,
};

use super::{
    changed_files::{changed_files, short_hunks},
    file_groups::MAX_NAMED,
    layers, repositories,
    to_undo::keep_for_undo,
    withheld::{WithheldCallChanges, facts, trash},
};
use crate::{EffectError, Ending, Stop, contents, core::Core, log_name, unjudged};

/// The judgement of a call's changes when it has ended.
#[derive(Debug, Default)]
pub(crate) struct JudgedChanges {
    /// The blob for the call's outcome, if changes were reverted.
    pub(crate) withheld: Option<BlobId>,
    /// The blob for the call's outcome with the data that an undo needs beside snapshots, if any.
    pub(crate) to_undo: Option<BlobId>,
    /// Notes for the model, in whole sentences, without secrets.
    notes: Vec<String>,
    /// The line about the files that a command changed, if they are known.
    files: Option<String>,
    /// The hunks of these files, if they are short.
    hunks: String,
}

impl JudgedChanges {
    /// Returns the notes, the changed files and their changes as the end of an outcome's text;
    /// empty if there are none.
    pub(crate) fn told(&self) -> String {
        let notes = (!self.notes.is_empty()).then(|| self.notes.join(" "));
        let told = notes.iter().chain(&self.files);
        let told: String = told.map(|words| format!("\n[{words}]")).collect();
        told + &self.hunks
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

/// Prepares the judgement of a call's changes: the private copies of the workspace's repositories,
/// and a layer for its command. Where there can be none, a snapshot of the workspace is taken and
/// returned, which is to be on disk with the call's start.
///
/// # Errors
/// A message if neither is possible although the verdict relied on one.
pub(super) fn begin(
    core: &Core,
    effect: &EffectId,
    resolved: &ResolvedCall,
    spec: &ToolSpec,
) -> Result<Option<BlobId>, EffectError<String>> {
    let mut began = core.judged_calls.lock();
    if began.is_empty() {
        core.repositories
            .lock()
            .begin(&facts(core))
            .map_err(|why| {
                EffectError::Failed(format!("the folder's repositories cannot be read: {why}"))
            })?;
    }
    let before = if layers::has_layer(core, resolved) {
        layers::begin(core, effect, spec).map_err(EffectError::Failed)?;
        None
    } else if let Some(before) = began.iter().find_map(|(_, before)| *before) {
        // Changes during concurrent calls are compared with the workspace before all of them.
        Some(before)
    } else if layers::keep_files(core) {
        None
    } else {
        keep(core)?
    };
    if before.is_some() {
        unjudged::mark(core)?;
    }
    began.push((effect.clone(), before));
    Ok(before)
}

/// Makes the end of this call judge the layer of a process that an earlier call started.
pub(super) fn take_over(core: &Core, effect: &EffectId, layer: CallLayer) -> Result<(), String> {
    layer.decide().map_err(|error| error.to_string())?;
    let mut began = core.judged_calls.lock();
    if began.is_empty() {
        let begun = core.repositories.lock().begin(&facts(core));
        begun.map_err(|why| format!("the folder's repositories cannot be read: {why}"))?;
    }
    if !began.iter().any(|(call, _)| call == effect) {
        began.push((effect.clone(), None));
    }
    core.layers.lock().current.insert(effect.clone(), layer);
    Ok(())
}

/// Withholds the changes since [`begin`] that may not stay, once the call's processes have ended.
/// `copies` are copies of files that the call named.
pub(super) fn end(
    core: &Core,
    effect: &EffectId,
    copies: Option<Copies>,
) -> Result<JudgedChanges, Stop> {
    let mut began = core.judged_calls.lock();
    let Some(place) = began.iter().position(|(call, _)| call == effect) else {
        let kept = copies.map(layers::changed).transpose()?;
        return Ok(JudgedChanges {
            to_undo: keep_for_undo(core, Vec::new(), kept)?,
            ..JudgedChanges::default()
        });
    };
    // A private copy is read when no command uses it any more.
    let carried = match began.len() {
        1 => core.repositories.lock().end(&facts(core)),
        _ => repositories::CarryOverResult::default(),
    };
    let mut changed = match layers::take(core, effect) {
        Some(layer) => of_layer(core, layer)?,
        None if began[place].1.is_some() => take_back(core, effect, None)?,
        None => ChangedFiles::default(),
    };
    if began.len() > 1 {
        // What it did to a repository is not known yet.
        changed.applied = changed.applied.filter(|applied| !applied.is_empty());
    }
    began.remove(place);
    let judged = judge(core, carried, changed)?;
    if began.is_empty() {
        unjudged::unmark(core);
    }
    Ok(judged)
}

/// Does the same as [`end`], for a call of an earlier process.
pub(super) fn end_of_the_dead(
    core: &Core,
    effect: &EffectId,
    before: Option<&BlobId>,
) -> Result<JudgedChanges, Stop> {
    let carried = core.repositories.lock().end(&facts(core));
    let layer = layers::of_the_dead(core, effect);
    let mut changed = match (layer, before) {
        (Some(layer), _) => of_dead_layer(core, layer)?,
        (None, Some(_)) => ChangedFiles::default(),
        (None, None) => ChangedFiles {
            kept: match layers::copies_of_the_dead(core, effect) {
                Some(copies) => Some(layers::changed(copies)?),
                None => None,
            },
            ..ChangedFiles::default()
        },
    };
    if let Some(before) = before {
        go_on_from(core, before)?;
        changed = take_back(core, effect, ended_at(core, effect))?;
    }
    let judged = judge(core, carried, changed)?;
    unjudged::unmark(core);
    Ok(judged)
}

/// Settles the layer of a call that an earlier process did not finish.
fn of_dead_layer(core: &Core, layer: CallLayer) -> Result<ChangedFiles, Stop> {
    if let Some(applied) = layers::recover(&layer)? {
        let judgement = layer.judgement();
        let withheld = judgement.and_then(|json| serde_json::from_slice(&json).ok());
        let mut changed = ChangedFiles::applied(core, applied);
        changed.withheld = withheld.unwrap_or_default();
        layers::release(core, layer);
        return Ok(changed);
    }
    if layer.is_undecided() || core.layers.lock().is_settling {
        layers::remove(layer);
        return Ok(ChangedFiles::default());
    }
    of_layer(core, layer)
}

/// Parks the run, because the folder contains changes of a command that nobody has judged. Resuming
/// it tries again.
fn park_unjudged(error: &dyn std::error::Error) -> Stop {
    let what = format!(
        "what a command changed could not be judged, so it must not be used: {error}. Mend that \
         (is the disk full?), then resume"
    );
    Ending::Stuck { what }.into()
}

fn keep(core: &Core) -> Result<Option<BlobId>, EffectError<String>> {
    match core.snapshots.lock().take(&mut core.contents()) {
        Ok(SnapshotResult::New(id) | SnapshotResult::Same(id)) => Ok(Some(id)),
        Ok(SnapshotResult::TooLarge { files, bytes }) => {
            let known = core.shared().state.not_undoable.is_some();
            let why = format!(
                "the folder has become too large ({}, {})",
                counted(files, "file"),
                counted(bytes, "byte")
            );
            core.shared().state.not_undoable = Some(why.clone());
            if known {
                Ok(None)
            } else {
                Err(EffectError::Failed(format!(
                    "{why}, so its changes cannot be undone; call it again"
                )))
            }
        }
        Err(SnapshotError::Store(stop)) => Err(stop.into()),
        Err(_) if core.shared().state.not_undoable.is_some() => Ok(None),
        Err(error) => Err(EffectError::Failed(error.to_string())),
    }
}

/// Continues from the snapshot that an earlier process took before a call.
fn go_on_from(core: &Core, before: &BlobId) -> Result<(), Stop> {
    let load = |id: &BlobId| contents::load(core.log.reader(), id);
    core.snapshots
        .lock()
        .go_on_from(before, load)
        .map_err(|error| Stop::Failed(format!("what the folder held before a command: {error}")))
}

/// The handling of the files that a call changed.
#[derive(Debug, Default)]
struct ChangedFiles {
    withheld: WithheldCallChanges,
    /// The previous content, where no snapshot holds it.
    kept: Option<KeptFiles>,
    /// Files that another program changed in the meantime.
    refused: Vec<UndoRefusal>,
    /// The reason why all changes were dropped.
    dropped: Option<String>,
    /// The changes of a command that were applied, if it had a layer.
    applied: Option<Vec<ChangedPath>>,
    /// The hunks of files, if they are short.
    hunks: Vec<(PathBuf, String)>,
}

impl ChangedFiles {
    fn applied(core: &Core, applied: AppliedLayer) -> Self {
        Self {
            kept: layers::keeps_applied(core).then_some(applied.kept),
            refused: applied.refused,
            ..Self::default()
        }
    }

    /// Returns the changes that were not applied, for the model.
    fn notes(&self) -> Option<String> {
        if let Some(why) = &self.dropped {
            return Some(format!("All that the command changed was dropped: {why}."));
        }
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
    carried: repositories::CarryOverResult,
    changed: ChangedFiles,
) -> Result<JudgedChanges, Stop> {
    let not_applied = changed.notes();
    let nothing_else = carried.carried.is_empty() && carried.withheld.is_empty();
    let files = changed.applied.as_deref().filter(|applied| {
        let is_known = nothing_else && not_applied.is_none() && changed.withheld.is_empty();
        is_known || !applied.is_empty()
    });
    let is_one = changed.hunks.len() == 1;
    let hunks = changed.hunks.iter().map(|(path, hunks)| {
        if is_one {
            format!("\n{hunks}")
        } else {
            format!("\n{}:\n{hunks}", path.display())
        }
    });
    let hunks: String = hunks.collect();
    let files = files.map(changed_files).filter(|words| !words.is_empty());
    let mut withheld = changed.withheld;
    withheld.repositories.extend(carried.withheld);
    withheld.history = carried.history;
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
        files,
        hunks: redactor.redact(hunks.trim_end()).into_owned(),
    })
}

/// Moves a command's changes from its layer into the workspace, except those that may not stay. If
/// they cannot be judged, because the disk is full or a path is too long, all changes are dropped.
fn of_layer(core: &Core, layer: CallLayer) -> Result<ChangedFiles, Stop> {
    if !layer.was_mounted() {
        layers::remove(layer);
        return Ok(ChangedFiles::default());
    }
    match judge_layer(core, &layer) {
        Ok(changed) => {
            layers::release(core, layer);
            Ok(changed)
        }
        Err(stop) if layer.is_being_applied() => Err(stop),
        Err(stop) => {
            let dropped = Some(stop.to_string());
            layers::remove(layer);
            Ok(ChangedFiles {
                dropped,
                ..ChangedFiles::default()
            })
        }
    }
}

fn judge_layer(core: &Core, layer: &CallLayer) -> Result<ChangedFiles, Stop> {
    let mut listed = layer.list().map_err(layers::failed)?;
    let mut withheld = WithheldCallChanges::default();
    let examined = core
        .repositories
        .lock()
        .examine(&facts(core), &listed.changed, &layer.upper());
    if !examined.git_directories.is_empty() {
        listed = layer.list().map_err(layers::failed)?;
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
    if !withheld.is_empty() {
        let json = serde_json::to_vec(&withheld);
        let json = json.map_err(|error| Stop::Failed(error.to_string()))?;
        layer.keep_judgement(&json).map_err(layers::failed)?;
    }
    // The changes of a command that verifies those of its call are told by the call itself.
    let is_told = !layer.is_undecided();
    layer.decide().map_err(layers::failed)?;
    let mut hunks = if is_told {
        let contents = core.contents();
        let workspace = &core.started.workspace;
        short_hunks(workspace, &layer.upper(), &of_gate, contents.secrecy())
    } else {
        Vec::new()
    };
    let applied = layers::apply(core, layer, listed, &paths)?;
    let mut changed = ChangedFiles::applied(core, applied);
    changed.withheld = withheld;
    if is_told {
        let left: Vec<PathBuf> = paths.iter().map(|change| change.path.clone()).collect();
        let refused = changed.refused.iter().map(|one| PathBuf::from(&one.path));
        let left: Vec<PathBuf> = left.into_iter().chain(refused).collect();
        // A folder that was replaced is one unit.
        let stayed = |path: &Path| {
            let mut left = left.iter();
            left.any(|left| path.starts_with(left) || left.starts_with(path))
        };
        core.shared()
            .know_changed(&core.started.workspace, &of_gate);
        of_gate.retain(|change| !stayed(&change.path));
        hunks.retain(|(path, _)| !stayed(path));
        changed.hunks = hunks;
        changed.applied = Some(of_gate);
    }
    Ok(changed)
}

/// The file that a keeper writes when the process tree of a call has ended.
pub(super) fn end_mark(core: &Core, effect: &EffectId) -> PathBuf {
    let run = core.kernel.store().folder(&log_name(core.started.run));
    run.join(format!("ended-{effect}"))
}

/// Returns when the process tree of a call of an earlier process had ended, in nanoseconds by the
/// clock of the file system; `None` if that is not known.
fn ended_at(core: &Core, effect: &EffectId) -> Option<i64> {
    changed_at(&end_mark(core, effect)).ok()
}

/// Reverts the files changed since the last snapshot whose changes may not stay. Changes after
/// `ended` were not made by the call.
fn take_back(core: &Core, effect: &EffectId, ended: Option<i64>) -> Result<ChangedFiles, Stop> {
    let mut changed_files = ChangedFiles::default();
    let withheld = &mut changed_files.withheld;
    let snapshots = core.snapshots.lock();
    let failed = |error: std::io::Error| park_unjudged(&error);
    let Some(mut changed) = snapshots.changed_paths().map_err(failed)? else {
        return Ok(changed_files);
    };
    let workspace = &core.started.workspace;
    let examined = core
        .repositories
        .lock()
        .examine(&facts(core), &changed, workspace);
    withheld.repositories = examined.withheld;
    let settled = examined.git_directories;
    changed.retain(|change| !settled.iter().any(|git| change.path.starts_with(git)));
    let mut found = core.withhold(&changed);
    found.retain(|withheld| {
        let path = changed
            .get(withheld.index)
            .map(|change| workspace.join(&change.path));
        let at = path.and_then(|path| changed_at(&path).ok());
        !matches!((at, ended), (Some(at), Some(ended)) if at > ended)
    });
    if found.is_empty() {
        return Ok(changed_files);
    }
    let paths: Vec<_> = found
        .iter()
        .filter_map(|withheld| changed.get(withheld.index))
        .collect();
    let trash = trash(core, effect);
    let recorded = ChangeSet::record(&snapshots, &paths, &mut core.contents(), &trash);
    let recorded = recorded.map_err(|stop| park_unjudged(&stop))?;
    let Some(ChangeRecord { changes, not_kept }) = recorded else {
        return Ok(changed_files);
    };
    if changes.is_empty() && not_kept.is_empty() {
        return Ok(changed_files);
    }
    let load = |id: &BlobId| contents::load(core.log.reader(), id);
    let done = changes
        .take_back(&core.started.workspace, &load, &trash)
        .map_err(|error| park_unjudged(&error))?;
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
