//! Layers over the workspace, in which commands change files, and copies of files that other calls
//! change in a workspace that is too large for snapshots.
//!
//! Each call has a folder of its own below the run's. In a large workspace the folder keeps the
//! previous content; the call's outcome names it, so an undo can restore it. There, calls that change
//! something run one after the other. Elsewhere calls that run at once each have a layer, and of a
//! file that several change the version of the last one counts.

use std::{
    fs, mem,
    path::{Path, PathBuf},
};

use gyrus_contract::{
    ChangedPath, Containment, EffectId, Mode, ResolvedCall, RunId, ToolSpec, Touch,
};
use gyrus_journal::{
    Store,
    os::mounts::{MOUNTINFO, holds_mount},
};
use gyrus_text::counted;
use gyrus_workspace::{
    layer::{self, AppliedLayer, CallLayer, Copies, KeptFiles, LayerChanges, LayerError},
    repository::RealObjects,
};
use tokio::sync::MutexGuard;

use crate::{Stop, core::Core, log_name};

/// The folder below the run's own that holds the layers and copies of its calls.
pub(crate) const FOLDER: &str = "layers";

/// Whether the changes of a call are kept so that they can be judged and reverted.
pub(crate) fn is_undoable(core: &Core, resolved: &ResolvedCall, spec: &ToolSpec) -> bool {
    if !is_large(core) {
        return true;
    }
    let is_bare = resolved
        .command
        .as_ref()
        .is_some_and(|command| command.containment.is_none());
    !is_bare && !spec.touches(Touch::changes_unrecorded) && are_used(core)
}

/// Whether the workspace is too large for snapshots.
fn is_large(core: &Core) -> bool {
    core.shared().state.not_undoable.is_some()
}

/// Whether calls keep the previous content of changed files, because there are no snapshots.
pub(crate) fn keep_files(core: &Core) -> bool {
    is_large(core) && are_used(core)
}

/// Whether an undo needs the layers of calls whose changes were moved into the workspace.
pub(super) fn keeps_applied(core: &Core) -> bool {
    core.layers.lock().is_settling || keep_files(core)
}

/// Whether the run's commands change the workspace in layers. They cannot where namespaces are
/// refused, and where no file can be renamed from the run's folder into the workspace.
fn are_used(core: &Core) -> bool {
    let mut layers = core.layers.lock();
    let is_near = *layers.is_near.get_or_insert_with(|| {
        let run = core.kernel.store().folder(&log_name(core.started.run));
        is_possible(&run, &core.started.workspace)
    });
    is_near
        && layers.refused.is_none()
        && (core.kernel.organs().real_objects)() == RealObjects::Bound
}

/// Whether commands can change a folder in layers that lie in the folder of their run. What is mounted in
/// it would be hidden below one.
pub(super) fn is_possible(run: &Path, folder: &Path) -> bool {
    let mounts = fs::read_to_string(MOUNTINFO).unwrap_or_default();
    layer::is_possible(run, folder) && !holds_mount(&mounts, folder)
}

/// Whether the command of a call can change the workspace, and does so in a layer.
pub(super) fn has_layer(core: &Core, resolved: &ResolvedCall) -> bool {
    let command = resolved.command.as_ref();
    let containment = command.and_then(|command| command.containment.as_ref());
    let workspace = &core.started.workspace;
    containment.is_some_and(|containment| containment.writable.contains(workspace))
        && are_used(core)
}

/// Whether the command of a call changes the workspace in a layer of its own, which counts by itself.
pub(super) fn has_current(core: &Core, effect: &EffectId) -> bool {
    let layers = core.layers.lock();
    let current = layers.current.get(effect);
    current.is_some_and(|layer| !layer.is_undecided())
}

/// Waits until no other call changes the workspace, if this call does and each call keeps the
/// previous content of its files.
pub(super) async fn turn<'a>(core: &'a Core, spec: &ToolSpec) -> Option<MutexGuard<'a, ()>> {
    if spec.touches(Touch::changes_workspace) && keep_files(core) {
        Some(core.layer_turn.lock().await)
    } else {
        None
    }
}

/// Creates the layer of a command.
pub(super) fn begin(core: &Core, effect: &EffectId, spec: &ToolSpec) -> Result<(), String> {
    remove_spent(core);
    let made = CallLayer::create(&new_folder(core, effect), &core.started.workspace);
    let made = made.and_then(|layer| {
        if is_conditional(spec) {
            layer.leave_undecided()?;
        }
        Ok(layer)
    });
    let mut layers = core.layers.lock();
    match made {
        Ok(layer) => {
            if layers.current.is_empty() {
                layers.moved.clear();
            }
            layers.current.insert(effect.clone(), layer);
            Ok(())
        }
        Err(error) => {
            let why = error.to_string();
            layers.refused = Some(why.clone());
            Err(format!(
                "changes of commands cannot be kept apart here ({why}); call it again"
            ))
        }
    }
}

/// Whether a call changes files and starts a command to verify that. The changes of the command
/// count only if the call succeeds.
fn is_conditional(spec: &ToolSpec) -> bool {
    let changes_files = |touch: &Touch| touch.paths().is_some_and(|paths| paths.is_changed);
    spec.touches(Touch::starts_processes) && spec.touches(changes_files)
}

/// Records that the command of the call in progress begins, so that changes by the call itself
/// before are not attributed to others.
pub(super) fn command_begins(core: &Core, effect: &EffectId) {
    if let Some(layer) = core.layers.lock().current.get(effect) {
        // Otherwise those files stay as the call left them, and the outcome says so.
        let _ = layer.begin();
    }
}

/// Whether the changes of the command of the call in progress count only if the call succeeds.
pub(super) fn changes_follow(core: &Core, effect: &EffectId) -> bool {
    let layers = core.layers.lock();
    let current = layers.current.get(effect);
    current.is_some_and(|layer| layer.is_undecided() && layer.was_mounted())
}

/// Discards the layer of a call that failed, if its changes count only if it succeeds.
pub(super) fn discard(core: &Core, effect: &EffectId) {
    let mut layers = core.layers.lock();
    if layers
        .current
        .get(effect)
        .is_some_and(CallLayer::is_undecided)
        && let Some(layer) = layers.current.remove(effect)
    {
        // What cannot be removed now is removed with the run.
        let _ = layer.remove();
    }
}

/// Mounts the layer over the workspace for the command of a call.
pub(super) fn stand_in(core: &Core, effect: &EffectId, containment: &mut Containment) {
    let workspace = &core.started.workspace;
    let layers = core.layers.lock();
    let Some(layer) = layers.current.get(effect) else {
        return;
    };
    if containment.writable.contains(workspace) {
        // Paths with a rule of their own below the workspace would be the real ones.
        containment
            .writable
            .retain(|folder| !folder.starts_with(workspace));
        containment.layered.push(over(workspace, layer, true));
    }
}

fn over(workspace: &Path, layer: &CallLayer, required: bool) -> gyrus_contract::Layer {
    gyrus_contract::Layer {
        lower: workspace.to_owned(),
        upper: layer.upper(),
        work: layer.work(),
        required,
    }
}

/// Allows a command of a read-only run to change the workspace in a layer that is discarded.
/// Without layers the workspace is read-only.
pub(super) fn to_throw_away(
    core: &Core,
    effect: &EffectId,
    containment: &mut Containment,
) -> Option<CallLayer> {
    let workspace = &core.started.workspace;
    if core.settings.mode != Mode::ReadOnly || !containment.read_only.contains(workspace) {
        return None;
    }
    let layer = CallLayer::create(&new_folder(core, effect), workspace).ok()?;
    // After a crash, too.
    layer.leave_undecided().ok()?;
    containment.read_only.retain(|folder| folder != workspace);
    containment.layered.push(over(workspace, &layer, false));
    Some(layer)
}

/// Discards a layer. Returns the text for the model about it; empty if the layer was empty.
pub(super) fn throw_away(layer: CallLayer) -> String {
    let changed = layer.list().map(|listed| listed.changed.len());
    let told = match changed {
        Ok(0) => String::new(),
        Ok(1) => "1 change was thrown away".to_owned(),
        Ok(changes) => format!("{} were thrown away", counted(changes, "change")),
        Err(error) => format!("all changes were thrown away ({error})"),
    };
    // What cannot be removed now is removed with the run.
    let _ = layer.remove();
    if told.is_empty() {
        told
    } else {
        format!("\n[mode `read-only`: {told} when the command ended]")
    }
}

/// Records that a command was not started because it could not have its layer.
pub(super) fn refuse(core: &Core, effect: &EffectId, why: &str) {
    let mut layers = core.layers.lock();
    let current = layers.current.get(effect);
    if current.is_some_and(|layer| !layer.was_mounted()) {
        layers.refused = Some(why.to_owned());
    }
}

/// Takes the layer of a call whose command has ended; `None` if it had none.
pub(super) fn take(core: &Core, effect: &EffectId) -> Option<CallLayer> {
    core.layers.lock().current.remove(effect)
}

/// Removes a layer whose changes do not count. If that fails now, the layer is removed with the
/// run, and is not used again.
pub(super) fn remove(layer: CallLayer) {
    let _ = layer.leave_undecided();
    let _ = layer.remove();
}

/// Releases a layer whose changes were moved into the workspace. Where snapshots hold the previous
/// content, no undo needs it.
pub(super) fn release(core: &Core, layer: CallLayer) {
    if !keeps_applied(core) {
        core.layers.lock().spent.push(layer);
    }
}

/// Ends all processes of a run. Their changes since the last judgement are dropped.
pub(crate) async fn end_processes(core: &Core) {
    let processes = mem::take(&mut *core.background.processes.lock());
    for process in processes.into_values() {
        process.end().await;
        let layer = process.layer.lock().take();
        layer.into_iter().for_each(remove);
    }
}

/// Removes the layers that no undo needs. They hold what files of the workspace held before.
pub(crate) fn remove_spent(core: &Core) {
    for spent in std::mem::take(&mut core.layers.lock().spent) {
        // What cannot be removed now is removed with the run.
        let _ = spent.remove();
    }
}

/// Drops the layers of commands without an outcome, as the next process of the run would.
pub(crate) fn drop_unfinished(core: &Core) {
    for layer in std::mem::take(&mut core.layers.lock().current).into_values() {
        remove(layer);
    }
}

/// Returns the layer of an earlier process's call.
pub(super) fn of_the_dead(core: &Core, effect: &EffectId) -> Option<CallLayer> {
    CallLayer::find(&last_folder(core, effect)?, &core.started.workspace)
}

/// Moves the contents of a layer into the workspace, except the paths that were withheld.
pub(super) fn apply(
    core: &Core,
    layer: &CallLayer,
    mut listed: LayerChanges,
    withheld: &[&ChangedPath],
) -> Result<AppliedLayer, Stop> {
    let paths: Vec<&Path> = withheld
        .iter()
        .map(|change| change.path.as_path())
        .collect();
    layer.leave_out(&mut listed, &paths).map_err(failed)?;
    let others = core.layers.lock().moved.clone();
    let applied = layer.apply(listed, &others, &mut || {}).map_err(failed)?;
    core.layers.lock().moved.extend(applied.moved.clone());
    Ok(applied)
}

/// Continues an interrupted move of contents; returns `None` if the move had not begun.
pub(super) fn recover(layer: &CallLayer) -> Result<Option<AppliedLayer>, Stop> {
    layer.recover(&mut || {}).map_err(failed)
}

pub(super) fn failed(error: LayerError) -> Stop {
    Stop::Failed(format!("changes of a command cannot be applied: {error}"))
}

/// Copies the files that a call names and is about to change; returns `None` if no copies are
/// needed.
pub(super) fn copy_before(
    core: &Core,
    effect: &EffectId,
    resolved: &ResolvedCall,
    spec: &ToolSpec,
) -> Result<Option<Copies>, Stop> {
    let paths = spec.touches.iter().filter_map(Touch::paths);
    let changed = paths.filter(|paths| paths.is_changed);
    let arguments: Vec<&str> = changed.map(|paths| paths.name).collect();
    if arguments.is_empty() || !keep_files(core) {
        return Ok(None);
    }
    let is_named = |name: &str| {
        let mut arguments = arguments.iter();
        arguments.any(|argument| {
            let rest = name.strip_prefix(argument);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    };
    let named = resolved.paths.iter().filter(|(name, _)| is_named(name));
    let below = named.filter_map(|(_, path)| {
        let below = path.real.strip_prefix(&core.started.workspace).ok()?;
        Some(below.to_path_buf())
    });
    copy(core, effect, &below.collect::<Vec<_>>()).map(Some)
}

/// Copies the files at paths below the workspace.
pub(super) fn copy(core: &Core, effect: &EffectId, paths: &[PathBuf]) -> Result<Copies, Stop> {
    let folder = new_folder(core, effect);
    Copies::make(&folder, &core.started.workspace, paths)
        .map_err(|error| Stop::Failed(format!("a file cannot be kept before it changes: {error}")))
}

/// Returns the changes of a call to the files that were copied before it.
pub(super) fn changed(copies: Copies) -> Result<KeptFiles, Stop> {
    copies
        .changed()
        .map_err(|error| Stop::Failed(format!("a file cannot be looked at: {error}")))
}

/// Returns the copies that a call of an earlier process made.
pub(super) fn copies_of_the_dead(core: &Core, effect: &EffectId) -> Option<Copies> {
    Copies::find(&last_folder(core, effect)?)
}

/// Returns the folder that receives the changes of a call in progress, if it has a layer.
pub fn layer_of(store: &Store, run: RunId, effect: &EffectId) -> Option<PathBuf> {
    let layers = store.folder(&log_name(run)).join(FOLDER);
    let numbers = (0..).map(|number| layers.join(format!("{effect}-{number}")));
    let last = numbers.take_while(|folder| folder.exists()).last()?;
    Some(CallLayer::find(&last, Path::new("/"))?.upper())
}

fn folder(core: &Core, effect: &EffectId, number: u32) -> PathBuf {
    let run = core.kernel.store().folder(&log_name(core.started.run));
    run.join(FOLDER).join(format!("{effect}-{number}"))
}

fn new_folder(core: &Core, effect: &EffectId) -> PathBuf {
    let mut numbers = (0..).map(|number| folder(core, effect, number));
    let free = numbers.find(|folder| !folder.exists());
    free.expect("numbers do not end")
}

fn last_folder(core: &Core, effect: &EffectId) -> Option<PathBuf> {
    let numbers = (0..).map(|number| folder(core, effect, number));
    numbers.take_while(|folder| folder.exists()).last()
}
