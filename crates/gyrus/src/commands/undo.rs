//! `gyrus undo`

use std::path::Path;

use clap::Args;
use gyrus_contract::RunId;
use gyrus_journal::{LockWait, Store};
use gyrus_kernel::{
    StandingRun, log_name,
    undo::{self, RunUndo, RunUndoError},
};
use gyrus_text::{counted, one_line};
use gyrus_workspace::undo::{
    EntryKind, UndoAction, UndoChange, UndoError, UndoRefusal, UndoResult,
};
use serde_json::json;

use super::run_argument::RunArgument;
use crate::{Gyrus, drive, env, exit::Code, failure::Failure, inside_run, kernels};
use gyrus_surfaces::{console::put, output, terminal};

/// Take back what a run changed in its folder
///
/// Shows first what would be deleted, restored and made again, and asks; away from a terminal it
/// does it only with --yes. What is no longer as the run left it is listed and left alone. What
/// goes or is overwritten is kept in the trash of gyrus's state, whose path is shown at the end;
/// nothing ever empties it by itself.
#[derive(Args)]
pub(crate) struct UndoCommand {
    #[command(flatten)]
    run: RunArgument,
    /// Go back to the end of this step; 0 is before the run
    #[arg(long, value_name = "STEP", default_value_t = 0)]
    to: u32,
    /// Do it without asking
    #[arg(long)]
    yes: bool,
    /// Print one JSON object to standard output, and ask nothing
    #[arg(long)]
    json: bool,
}

impl UndoCommand {
    /// Returns the command that undoes all changes of a run, after a question.
    pub(crate) fn of(run: RunId) -> Self {
        Self {
            run: RunArgument::of(run),
            to: 0,
            yes: false,
            json: false,
        }
    }

    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        inside_run::refuse("undo a run")?;
        let home = gyrus.home()?;
        let store = home.store()?;
        let run = self.run.find_own(gyrus, &store)?;
        must_be_free(&store, run)?;
        drive::runtime()?.block_on(kernels::settle(&home, &store, run))?;
        let found = undo::plan(&store, run, self.to).map_err(|error| failure(error, run))?;
        if !self.json {
            put(&preview(&found))?;
        }
        if found.changes().is_empty() {
            if self.yes {
                found.clean().map_err(|error| failure(error, run))?;
            }
            if self.json {
                print(&found, None)?;
            } else {
                put("there is nothing to take back\n")?;
            }
            return Ok(Code::reached_if(found.plan.refused.is_empty()));
        }
        if !self.yes && !self.may()? {
            if self.json {
                print(&found, None)?;
            } else {
                put(&format!(
                    "nothing was changed; to do it: {} --yes\n",
                    self.itself(run)
                ))?;
            }
            return Ok(Code::Reached);
        }
        self.carry_out(gyrus, &store, &found, &home.state.join("trash"))
    }

    fn itself(&self, run: RunId) -> String {
        let run = run.short();
        match self.to {
            0 => format!("gyrus undo {run}"),
            step => format!("gyrus undo {run} --to {step}"),
        }
    }

    /// Asks for confirmation, if somebody can be asked.
    fn may(&self) -> Result<bool, Failure> {
        if self.json || !terminal::can_ask() {
            return Ok(false);
        }
        Ok(terminal::says_yes("take this back? [y/N] ")?)
    }

    fn carry_out(
        &self,
        gyrus: &Gyrus,
        store: &Store,
        found: &RunUndo,
        trash: &Path,
    ) -> Result<Code, Failure> {
        // Held meanwhile, so that nobody resumes it. A run that is over cannot be resumed.
        let _held = if found.is_over {
            None
        } else {
            Some(store.take(&log_name(found.run), LockWait::IfFree)?)
        };
        let mut crash = crash_after(gyrus.environment.crash_after.as_deref())?;
        let (done, trash) = found
            .carry_out(store, trash, &mut crash)
            .map_err(|error| failure(error, found.run))?;
        if self.json {
            print(found, Some((&done, &trash)))?;
        } else {
            put(&said(found, &done, &trash))?;
        }
        Ok(Code::reached_if(done.refused.is_empty()))
    }
}

/// Returns the changes of a run that were undone, one a line.
pub(super) fn lines(store: &Store, run: RunId) -> Result<Vec<String>, Failure> {
    let undone = undo::undone(store, run).map_err(|error| failure(error, run))?;
    let line = |undone: &undo::Undone| {
        let what = match undone.ended {
            Some((undone, 0)) => format!("{undone} taken back"),
            Some((undone, left)) => format!("{undone} taken back, {left} left alone"),
            None => "cut off".to_owned(),
        };
        format!(
            "undone on {} to {}: {what}; what went is in {}",
            gyrus_text::utc(undone.at_ms),
            moment(undone.to),
            undone.trash.display()
        )
    };
    Ok(undone.iter().map(line).collect())
}

/// Refuses to undo while a process drives the run or the one that started it.
fn must_be_free(store: &Store, run: RunId) -> Result<(), Failure> {
    let mut next = Some(run);
    while let Some(run) = next {
        if let Some(holder) = store.holder(&log_name(run))? {
            let name = run.short();
            return Err(Failure::usage(format!(
                "run {name} is running in process {}; nothing was undone",
                holder.process.pid
            ))
            .hint(format!("stop it first: gyrus stop {name}")));
        }
        next = StandingRun::read(store, run)?
            .started
            .parent
            .as_ref()
            .map(|parent| parent.run);
    }
    Ok(())
}

pub(super) fn failure(error: RunUndoError, run: RunId) -> Failure {
    let name = run.short();
    match error {
        RunUndoError::Journal(error) => error.into(),
        RunUndoError::Stop(stop) => (*stop).into(),
        RunUndoError::Moved(moved) => moved.into(),
        RunUndoError::NoStep { .. } => {
            Failure::usage(error).hint(format!("see its steps: gyrus show {name}"))
        }
        RunUndoError::NotKept { .. } => Failure::usage(error).hint(format!(
            "what the run did stands in its journal: gyrus show {name}"
        )),
        RunUndoError::Workspace(error) => match error {
            UndoError::Snapshot(_) | UndoError::Content { .. } => Failure::failed(error).hint(
                "`gyrus runs prune` drops what was kept of folders, and an export has it only with \
                 --with-files; then nothing can be undone",
            ),
            UndoError::Folder { .. } => Failure::failed(error),
        },
    }
}

fn moment(to: u32) -> String {
    match to {
        0 => "before the run".to_owned(),
        step => format!("the end of step {step}"),
    }
}

fn preview(found: &RunUndo) -> String {
    let mut text = format!(
        "run {}: {} back to {}\n",
        found.run.short(),
        found.plan.workspace.display(),
        moment(found.to)
    );
    for change in &found.changes() {
        text.push_str(&line(change));
    }
    if found.plan.already > 0 {
        text.push_str(&format!("already as before: {}\n", found.plan.already));
    }
    text.push_str(&left_alone(&found.plan.refused));
    if !found.plan.not_kept.is_empty() {
        let folders: Vec<String> = found
            .plan
            .not_kept
            .iter()
            .map(|folder| format!("{}/", one_line(folder)))
            .collect();
        text.push_str(&format!(
            "not touched, because git ignores it and it can be built again: {}\n",
            folders.join(", ")
        ));
    }
    if let Some(step) = found.unfinished {
        text.push_str(&format!(
            "the run was cut off in step {step}; what it changed in that step cannot be told from \
             what others changed\n"
        ));
    }
    if !found.changes().is_empty() {
        text.push_str(
            "what somebody else changed while the run went on counts as the run's: look before \
             you say yes\n",
        );
    }
    text
}

fn line(change: &UndoChange) -> String {
    let action = match change.action {
        UndoAction::Delete => "delete",
        UndoAction::Restore => "restore",
        UndoAction::Create => "re-create",
        UndoAction::Mode => "mode of",
    };
    let path = one_line(&change.path);
    match change.kind {
        EntryKind::File => format!("  {action:<9} {path} ({})\n", counted(change.bytes, "byte")),
        EntryKind::Link => format!("  {action:<9} {path} (link)\n"),
        EntryKind::Folder => format!("  {action:<9} {path}/\n"),
        EntryKind::Repository => {
            format!("  {action:<9} {path} (branches, HEAD, index and settings)\n")
        }
    }
}

pub(super) fn left_alone(refused: &[UndoRefusal]) -> String {
    if refused.is_empty() {
        return String::new();
    }
    let lines: String = refused.iter().map(line_of).collect();
    format!("left alone ({}):\n{lines}", refused.len())
}

pub(super) fn line_of(refused: &UndoRefusal) -> String {
    let (path, why) = (one_line(&refused.path), one_line(&refused.why));
    format!("  {path}: {why}\n")
}

fn said(found: &RunUndo, done: &UndoResult, trash: &Path) -> String {
    // Those that were refused from the start stand in the preview.
    let later: Vec<UndoRefusal> = done
        .refused
        .iter()
        .filter(|refused| !found.plan.refused.contains(refused))
        .cloned()
        .collect();
    let mut text = left_alone(&later);
    text.push_str(&format!(
        "{} taken back, {} left alone; what went is kept in {}\n",
        done.undone.len(),
        done.refused.len(),
        trash.display()
    ));
    if !found.is_over {
        let run = found.run.short();
        text.push_str(&format!(
            "the run is not over and does not know this; before it goes on, tell it: gyrus steer \
             {run} TEXT\n"
        ));
    }
    text
}

/// Prints one JSON object: the plan, and what came of it.
fn print(found: &RunUndo, done: Option<(&UndoResult, &Path)>) -> Result<(), Failure> {
    let (changes, refused) = match done {
        Some((done, _)) => (&done.undone, &done.refused),
        None => (&found.changes(), &found.plan.refused),
    };
    let object = json!({
        "run": found.run,
        "to": found.to,
        "workspace": found.plan.workspace,
        "done": done.is_some(),
        "changes": changes,
        "left_alone": refused,
        "already": found.plan.already,
        "not_kept": found.plan.not_kept,
        "unfinished_step": found.unfinished,
        "trash": done.map(|(_, trash)| trash),
    });
    Ok(output::standard().json(&object)?)
}

/// Kills the process after this many changes on disk; for tests of recovery.
fn crash_after(given: Option<&str>) -> Result<impl FnMut(), Failure> {
    let given = given.map(|given| {
        given.parse().map_err(|_| {
            Failure::usage(format!(
                "{}={given} is not a number",
                env::GYRUS_CRASH_AFTER
            ))
        })
    });
    let last: Option<u64> = given.transpose()?;
    let mut steps = 0;
    Ok(move || {
        steps += 1;
        if last == Some(steps) {
            // It cannot fail for one's own process.
            let _ = rustix::process::kill_process(
                rustix::process::getpid(),
                rustix::process::Signal::KILL,
            );
        }
    })
}
