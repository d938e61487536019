//! Judging what calls of a process that was killed changed, without going on with their run.
//!
//! A command that writes into a layer has changed nothing before it was judged. Where there is no
//! layer, and for servers of tools, the changes stand in the folder, and a mark names the run (see
//! `unjudged.rs`). Whoever works there next, takes the run back or gives it up has it settled first,
//! as resuming it would.

use std::{fs, path::Path};

use gyrus_contract::RunId;
use gyrus_journal::{LockWait, Store};

use crate::{
    DrivableRun, Entry, Kernel, KernelError, log_name, position::RunPosition, runs, unjudged,
};

/// Whether a killed process left calls of the run unfinished.
pub fn has_unfinished_calls(store: &Store, run: RunId) -> Result<bool, KernelError> {
    let position = RunPosition::read(run, &store.reader(&log_name(run))?)?;
    Ok(position.over().is_none() && has_calls(&position))
}

fn has_calls(position: &RunPosition) -> bool {
    let mut open = position.recorded.iter().filter_map(|entry| match entry {
        Entry::ToolStarted(started) => Some(&started.effect),
        _ => None,
    });
    open.any(|effect| {
        let settles =
            |entry: &Entry| matches!(entry, Entry::ToolResulted(one) if one.effect == *effect);
        !position.recorded.iter().any(settles)
    })
}

impl Kernel {
    /// Judges the changes that calls of killed processes left in `workspace`, but for those of
    /// `own`.
    pub(crate) async fn settle_folder(&self, workspace: &Path, own: RunId) {
        let folder = unjudged::folder(self.store(), workspace);
        for mark in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let run = mark.file_name().to_string_lossy().parse::<RunId>();
            let Ok(run) = run else { continue };
            if run == own {
                continue;
            }
            // A run that a process drives judges its calls itself, and what cannot be read stays
            // for a person to look at.
            if Box::pin(self.settle(run)).await.is_ok() {
                let _ = fs::remove_file(mark.path());
            }
        }
    }

    /// Judges the changes of calls that a killed process left unfinished, and records the calls'
    /// outcomes. A command's changes in a layer are dropped. The run is not taken up. Does nothing
    /// for a run that is over.
    ///
    /// # Errors
    /// Returns an error when another process holds the run, or when its journal cannot be read or
    /// written.
    pub async fn settle(&self, run: RunId) -> Result<(), KernelError> {
        if !self.exists(run) {
            return Ok(());
        }
        let (writer, recovery) = runs::take(self.store(), run, LockWait::IfFree)?;
        let position = RunPosition::read(run, &writer.reader()?)?;
        if position.over().is_some() || !has_calls(&position) {
            return Ok(());
        }
        runs::check_workspace(&position.started.workspace)?;
        let other_code = position.other_code(&position.settings.pins);
        let ready = DrivableRun::new(self.clone(), writer, position, Some(recovery), other_code)?;
        ready.settle().await
    }
}
