//! Folders that the person added beside the workspace. A command changes a layer over each; when it
//! has ended, what may stay is moved into the folder, and what may not is dropped. Repositories there
//! stay as they are. No snapshot holds these folders, so an undo does not reach them.

use std::{
    fs,
    path::{Component, Path, PathBuf},
};

use gyrus_contract::{ChangedPath, Containment, EffectId, Layer};
use gyrus_text::one_line;
use gyrus_workspace::layer::{CallLayer, LayerError, MovedPaths};

use super::{
    changed_files::changed_files,
    file_groups::MAX_NAMED,
    layers::{FOLDER, is_possible},
};
use crate::{core::Core, log_name};

/// Name of the folder in which git keeps a repository.
const GIT: &str = ".git";

/// The layers of one command over added folders.
#[derive(Default)]
pub(super) struct AddedLayers(Vec<(PathBuf, CallLayer)>);

impl AddedLayers {
    /// Puts a layer over each added folder that the command may change. Where that is impossible,
    /// the folder is read-only.
    pub(super) fn mount(core: &Core, effect: &EffectId, containment: &mut Containment) -> Self {
        let run = core.kernel.store().folder(&log_name(core.started.run));
        let mut mounted = Self::default();
        for (number, folder) in core.started.sandbox.folders.iter().enumerate() {
            if !containment.writable.contains(&folder.path) {
                continue;
            }
            containment.writable.retain(|path| *path != folder.path);
            let place = run.join(FOLDER).join(format!("added-{effect}-{number}"));
            // One of an earlier attempt of this call counts for nothing.
            let _ = fs::remove_dir_all(&place);
            let made = CallLayer::create(&place, &folder.path);
            let made = made.and_then(|layer| layer.leave_undecided().map(|()| layer));
            let Some(made) = made.ok().filter(|_| is_possible(&run, &folder.path)) else {
                containment.read_only.push(folder.path.clone());
                continue;
            };
            containment.layered.push(Layer {
                lower: folder.path.clone(),
                upper: made.upper(),
                work: made.work(),
                required: true,
            });
            let git = folder.path.join(GIT);
            if git.exists() {
                containment.read_only.push(git);
            }
            mounted.0.push((folder.path.clone(), made));
        }
        mounted
    }

    /// Moves the changes that may stay into the folders. Returns the text for the model.
    pub(super) fn settle(self, core: &Core) -> String {
        let mut told = String::new();
        for (folder, layer) in self.0 {
            let shown = folder.display().to_string();
            let shown = one_line(&shown);
            match settled(core, &folder, &layer) {
                Ok(words) if words.is_empty() => {}
                Ok(words) => told.push_str(&format!("\n[in {shown}: {words}]")),
                Err(error) => told.push_str(&format!(
                    "\n[all that the command changed in {shown} was dropped: {error}]"
                )),
            }
            // What cannot be removed now is removed with the run.
            let _ = layer.remove();
        }
        told
    }
}

/// Returns a description of the changes in one folder.
fn settled(core: &Core, folder: &Path, layer: &CallLayer) -> Result<String, LayerError> {
    if !layer.was_mounted() {
        return Ok(String::new());
    }
    let mut listed = layer.list()?;
    let changed = listed.changed.clone();
    let in_repository = |change: &ChangedPath| {
        let mut parts = change.path.components();
        parts.any(|part| matches!(part, Component::Normal(name) if name.eq_ignore_ascii_case(GIT)))
    };
    let withheld = core.withhold_in(folder, &changed).into_iter();
    let mut left: Vec<(&Path, String)> = withheld
        .filter_map(|one| Some((changed.get(one.index)?.path.as_path(), one.reason)))
        .collect();
    let of_git = changed.iter().filter(|change| in_repository(change));
    left.extend(of_git.map(|change| {
        (
            change.path.as_path(),
            "it is part of a repository".to_owned(),
        )
    }));
    let paths: Vec<&Path> = left.iter().map(|(path, _)| *path).collect();
    layer.leave_out(&mut listed, &paths)?;
    layer.decide()?;
    let applied = layer.apply(listed, &MovedPaths::new(), &mut || {})?;
    let stays = |change: &&ChangedPath| {
        let refused = applied.refused.iter().map(|one| Path::new(&one.path));
        let mut left = paths.iter().copied().chain(refused);
        !left.any(|left| change.path.starts_with(left) || left.starts_with(&change.path))
    };
    let stayed: Vec<ChangedPath> = changed.iter().filter(stays).cloned().collect();
    core.shared().know_changed(folder, &stayed);
    let mut words = Vec::new();
    words.extend(
        Some(changed_files(&stayed)).filter(|words| !words.is_empty() && !stayed.is_empty()),
    );
    let refused = applied
        .refused
        .iter()
        .map(|one| (Path::new(&one.path), one.why.clone()));
    for (path, why) in left.iter().cloned().chain(refused).take(MAX_NAMED) {
        let path = path.display().to_string();
        let path = one_line(&path);
        words.push(format!(
            "`{path}` was dropped: {why}; `write` asks the person"
        ));
    }
    Ok(words.join("; "))
}
