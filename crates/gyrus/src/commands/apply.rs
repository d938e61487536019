//! `gyrus apply`

use std::path::PathBuf;

use clap::Args;
use gyrus_contract::{ChangedPath, Gate as _, Judgement, PathChange};
use gyrus_kernel::undo;
use gyrus_text::{counted, one_line};
use gyrus_workspace::undo::{UndoAction, UndoPlan};

use super::run_argument::RunArgument;
use super::undo::{left_alone, line_of};
use crate::{Gyrus, exit::Code, failure::Failure, inside_run, new_run};
use gyrus::runtime;
use gyrus_surfaces::{console::put, terminal};

/// Change this folder as a run changed its own
///
/// For a run that worked in a copy of this folder: gyrus --fleet ADDRESS apply last. Nothing is changed
/// if something here is not as it was when the folder was uploaded. Left alone are git's own files, and
/// files by which other programs run things. What goes or is overwritten is kept in the trash of
/// gyrus's state.
#[derive(Args)]
pub(crate) struct Apply {
    #[command(flatten)]
    run: RunArgument,
    /// The folder, if it is not this one
    #[arg(long, value_name = "FOLDER")]
    workdir: Option<PathBuf>,
    /// Change what is as it was, and leave the rest alone
    #[arg(long)]
    rest: bool,
    /// Do it without asking
    #[arg(long)]
    yes: bool,
}

impl Apply {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        inside_run::refuse("apply the changes of a run")?;
        let home = gyrus.home()?;
        let store = home.store()?;
        let run = self.run.find(gyrus, &store)?;
        let folder = new_run::workspace(&home, self.workdir.as_deref())?;
        let failed = |error| super::undo::failure(error, run);
        let mut plan = undo::plan_in(&store, run, &folder).map_err(failed)?;
        let conflicts = plan.refused.clone();
        protect(&mut plan, &runtime::bare_gate(&home));
        put(&preview(&plan))?;
        if !conflicts.is_empty() && !self.rest {
            return Err(Failure::failed(format!(
                "{} in {} {} not as the run found {}; nothing was changed",
                counted(conflicts.len(), "path"),
                folder.display(),
                if conflicts.len() == 1 { "is" } else { "are" },
                if conflicts.len() == 1 { "it" } else { "them" },
            ))
            .hint("to change the rest: --rest; to see all as a patch: gyrus diff"));
        }
        if plan.changes.is_empty() {
            put("there is nothing to change\n")?;
            return Ok(Code::Reached);
        }
        let may = self.yes || terminal::can_ask() && terminal::says_yes("change this? [y/N] ")?;
        if !may {
            put("nothing was changed; to do it: --yes\n")?;
            return Ok(Code::Reached);
        }
        let unique = gyrus_contract::time_ordered_uuid();
        let trash = home.state.join("trash").join(format!("{run}-{unique}"));
        let done = undo::make(&store, run, &plan, &trash).map_err(failed)?;
        let later = done.refused.len().saturating_sub(plan.refused.len());
        put(&format!(
            "{} made; what went or was overwritten is kept in {}\n",
            counted(done.undone.len(), "change"),
            trash.display()
        ))?;
        for refused in done
            .refused
            .iter()
            .filter(|one| !plan.refused.contains(one))
        {
            put(&line_of(refused))?;
        }
        Ok(Code::reached_if(later == 0))
    }
}

/// Leaves files alone through which other programs run code: at a run's end, a person was asked
/// about them for the folder of the run only.
fn protect(plan: &mut UndoPlan, gate: &gyrus_gate::PolicyGate) {
    let change = |action: UndoAction| match action {
        UndoAction::Create => PathChange::Created,
        UndoAction::Delete => PathChange::Deleted,
        UndoAction::Restore | UndoAction::Mode => PathChange::Changed,
    };
    let changes: Vec<ChangedPath> = plan
        .changes
        .iter()
        .map(|one| ChangedPath {
            path: PathBuf::from(&one.path),
            change: change(one.action),
        })
        .collect();
    let workspace = plan.workspace.clone();
    let under = Judgement::outside_of_runs(&workspace);
    let withheld = gate.withhold(&changes, &under);
    for one in withheld {
        if let Some(changed) = changes.get(one.index) {
            plan.leave_alone(&changed.path.display().to_string(), &one.reason);
        }
    }
}

fn preview(plan: &UndoPlan) -> String {
    let mut text = format!("in {}:\n", plan.workspace.display());
    for change in &plan.changes {
        let action = match change.action {
            UndoAction::Delete => "delete",
            UndoAction::Restore => "change",
            UndoAction::Create => "create",
            UndoAction::Mode => "mode of",
        };
        text.push_str(&format!("  {action:<9} {}\n", one_line(&change.path)));
    }
    if plan.already > 0 {
        text.push_str(&format!("already so: {}\n", counted(plan.already, "path")));
    }
    text.push_str(&left_alone(&plan.refused));
    for git in &plan.apart {
        text.push_str(&format!(
            "commits and branches stay in the run's copy: {}\n",
            one_line(&git.display().to_string())
        ));
    }
    text
}
