//! Layers for workspaces that are too large for snapshots: commands change files in a layer, and
//! files that other calls change are copied before.
//!
//! Each call has a folder of its own below the run's, which holds the previous content; its outcome
//! names the folder, so an undo can restore it. Calls of that kind run one after the other: the
//! folder below a layer must not change.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use gyrus_contract::{ChangedPath, Containment, EffectId, Mode, ResolvedCall, ToolSpec, Touch};
use gyrus_text::counted;
use gyrus_workspace::layer::{AppliedLayer, CallLayer, Copies, KeptFiles, LayerError, Listed};

use crate::{Stop, core::Core, log_name};

/// The folder below the run's own that holds the previous content of the workspace for each call.
pub(crate) const FOLDER: &str = "layers";

/// Whether the changes of a call are kept so that they can be judged and reverted.
pub(crate) fn is_undoable(core: &Core, resolved: &ResolvedCall, spec: &ToolSpec) -> bool {
    if core.shared().not_undoable.is_none() {
        return true;
    }
    let is_bare = resolved
        .command
        .as_ref()
        .is_some_and(|command| command.containment.is_none());
    !is_bare && !spec.touches(Touch::changes_unrecorded) && are_used(core)
}

/// Whether the run's calls use layers and copies instead of snapshots.
pub(crate) fn are_used(core: &Core) -> bool {
    if core.shared().not_undoable.is_none() {
        return false;
    }
    let mut layers = core.layers();
    let device = |path: &Path| fs::metadata(path).ok().map(|data| data.dev());
    let is_near = *layers.is_near.get_or_insert_with(|| {
        let run = core.kernel.store().folder(&log_name(core.started.run));
        device(&run).is_some_and(|near| Some(near) == device(&core.started.workspace))
    });
    is_near && layers.refused.is_none()
}

/// Creates the layer of a command.
///
/// # Errors
/// Returns the reason for the model if there can be none.
pub(super) fn begin(core: &Core, effect: &EffectId) -> Result<(), String> {
    let made = CallLayer::create(&new_folder(core, effect), &core.started.workspace);
    let mut layers = core.layers();
    match made {
        Ok(layer) => {
            layers.current = Some(layer);
            Ok(())
        }
        Err(error) => {
            let why = error.to_string();
            layers.refused = Some(why.clone());
            Err(format!(
                "changes of so large a folder cannot be kept apart here ({why}), so they cannot \
                 be undone; call it again"
            ))
        }
    }
}

/// Makes the layer of a call conditional if the call changes files and starts a command to verify
/// that: the changes of the command count if the call succeeds. In a folder that is not too large
/// for snapshots the command has a layer where that is possible; otherwise it changes the workspace
/// itself.
pub(super) fn make_conditional(core: &Core, effect: &EffectId, spec: &ToolSpec) {
    let changes_files = |touch: &Touch| touch.paths().is_some_and(|paths| paths.is_changed);
    if !spec.touches(Touch::starts_processes) || !spec.touches(changes_files) {
        return;
    }
    let folder = new_folder(core, effect);
    let mut layers = core.layers();
    if layers.current.is_none() && layers.refused.is_none() {
        layers.current = CallLayer::create(&folder, &core.started.workspace).ok();
    }
    layers.is_conditional = layers.current.is_some();
}

/// Records that the command of the call in progress begins, so that files which the call itself
/// changed until now are not taken for somebody else's.
pub(super) fn command_begins(core: &Core) {
    if let Some(layer) = &core.layers().current {
        // Otherwise those files stay as the call left them, and the outcome says so.
        let _ = layer.begin();
    }
}

/// Whether the command of the call in progress ran in a conditional layer.
pub(super) fn changes_follow(core: &Core) -> bool {
    let layers = core.layers();
    let current = layers.current.as_ref();
    layers.is_conditional && current.is_some_and(CallLayer::was_mounted)
}

/// Discards the layer of a call that failed, if it is conditional.
pub(super) fn discard(core: &Core) {
    if std::mem::take(&mut core.layers().is_conditional)
        && let Some(layer) = take(core)
    {
        // What cannot be removed now is removed with the run.
        let _ = layer.remove();
    }
}

/// Mounts the layer over the workspace for a command, where it could change it.
pub(super) fn stand_in(core: &Core, containment: &mut Containment) {
    let workspace = &core.started.workspace;
    let required = are_used(core);
    let layers = core.layers();
    let Some(layer) = &layers.current else {
        return;
    };
    if containment.writable.contains(workspace) {
        // Paths with a rule of their own below the workspace would be the real ones.
        containment
            .writable
            .retain(|folder| !folder.starts_with(workspace) || (!required && folder == workspace));
        containment.layered.push(gyrus_contract::Layer {
            lower: workspace.clone(),
            upper: layer.upper(),
            work: layer.work(),
            required,
        });
    }
}

/// Lets a command of a read-only run change the workspace in a layer that is discarded. Without
/// layers the workspace is read-only.
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
    containment.read_only.retain(|folder| folder != workspace);
    containment.layered.push(gyrus_contract::Layer {
        lower: workspace.clone(),
        upper: layer.upper(),
        work: layer.work(),
        required: false,
    });
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

/// Records that a command could not have its layer.
pub(super) fn refuse(core: &Core, why: &str) {
    let required = are_used(core);
    let mut layers = core.layers();
    if required && layers.current.is_some() {
        layers.refused = Some(why.to_owned());
    }
}

/// Takes the layer of the command that has ended; `None` if it had none.
pub(super) fn take(core: &Core) -> Option<CallLayer> {
    let mut layers = core.layers();
    layers.is_conditional = false;
    layers.current.take()
}

/// Returns the layer of an earlier process's call.
pub(super) fn of_the_dead(core: &Core, effect: &EffectId) -> Option<CallLayer> {
    CallLayer::find(&last_folder(core, effect)?, &core.started.workspace)
}

/// Lists the contents of a layer.
pub(super) fn list(layer: &CallLayer) -> Result<Listed, Stop> {
    layer.list().map_err(failed)
}

/// Moves the contents of a layer into the workspace, except the paths that were withheld.
pub(super) fn apply(
    layer: &CallLayer,
    mut listed: Listed,
    withheld: &[&ChangedPath],
) -> Result<AppliedLayer, Stop> {
    let paths: Vec<&Path> = withheld
        .iter()
        .map(|change| change.path.as_path())
        .collect();
    layer.leave_out(&mut listed, &paths).map_err(failed)?;
    layer.apply(listed, &mut || {}).map_err(failed)
}

/// Continues moving contents that a kill interrupted; returns `None` if that had not begun.
pub(super) fn recover(layer: &CallLayer) -> Result<Option<AppliedLayer>, Stop> {
    layer.recover(&mut || {}).map_err(failed)
}

fn failed(error: LayerError) -> Stop {
    Stop::Failed(format!("changes of a command cannot be applied: {error}"))
}

/// Copies the files that a call names and is about to change; returns `None` if it needs no copies.
pub(super) fn copy_before(
    core: &Core,
    effect: &EffectId,
    resolved: &ResolvedCall,
    spec: &ToolSpec,
) -> Result<Option<Copies>, Stop> {
    let paths = spec.touches.iter().filter_map(Touch::paths);
    let changed = paths.filter(|paths| paths.is_changed);
    let arguments: Vec<&str> = changed.map(|paths| paths.name).collect();
    if arguments.is_empty() || !are_used(core) {
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
