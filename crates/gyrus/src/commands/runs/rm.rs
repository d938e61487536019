//! `gyrus runs rm`

use clap::Args;
use gyrus::runtime::sandbox_folders;
use gyrus_kernel::{family, log_name, undo};

use super::super::run_argument::find;
use crate::{Gyrus, exit::Code, failure::Failure, inside_run, question::confirm};
use gyrus_surfaces::console::put;

/// Remove runs for good, with the runs that they started
///
/// What `gyrus undo` took away stays in the trash, which is yours to empty; where it is, is said.
#[derive(Args)]
pub(crate) struct Rm {
    /// The runs: `last`, an id, or the start or end of one
    #[arg(required = true)]
    runs: Vec<String>,
    /// Do it without asking
    #[arg(long)]
    yes: bool,
    /// Let `last` be the newest run of this machine, whatever its folder
    #[arg(long)]
    anywhere: bool,
}

impl Rm {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        inside_run::refuse("remove runs")?;
        let store = gyrus.store()?;
        // All are understood before one is removed.
        let mut runs = Vec::new();
        for given in &self.runs {
            runs.extend(family(&store, find(gyrus, &store, given, self.anywhere)?)?);
        }
        runs.dedup();
        for run in &runs {
            if let Some(holder) = store.holder(&log_name(*run))? {
                let name = run.short();
                return Err(Failure::failed(format!(
                    "run {name} is running in process {}; nothing was removed",
                    holder.process.pid
                ))
                .hint(format!("stop it first: gyrus stop {name}")));
            }
        }
        let names: Vec<String> = runs.iter().map(|run| run.short()).collect();
        let all = gyrus_text::counted(names.len(), "run");
        confirm(
            &format!("remove {all} for good ({})", names.join(", ")),
            self.yes,
        )?;
        let home = gyrus.home()?;
        for run in runs {
            let trash = undo::forget(&store, run).map_err(Failure::failed)?;
            store.remove(&log_name(run))?;
            sandbox_folders::remove(&home, &[run]);
            put(&format!("removed {run}\n"))?;
            for folder in trash {
                let folder = folder.display();
                put(&format!("  what undoing it took away stays in {folder}\n"))?;
            }
        }
        store.sweep()?;
        Ok(Code::Reached)
    }
}
