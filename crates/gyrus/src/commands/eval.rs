//! `gyrus eval`

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::{Args, Subcommand};
use gyrus_lab::{
    LabConsole,
    eval::{self, EvalOptions},
};
use gyrus_runtime::request::ModelFlags;

use crate::{
    Gyrus, drive, exit::Code, failure::Failure, lab::DemoInstallation, setup, stopped, time,
};

/// The folder in the state with copies of reports.
const KEPT_IN: &str = "evals";
const MOST_KEPT: usize = 500;

/// Make attempts at tasks whose outcome is checked, and report what became of them
///
/// Each attempt is a run of its own: `gyrus show RUN` tells what happened in it. A suite is a TOML
/// file, a folder of them, tasks of Terminal-Bench, SWE-bench or τ²-bench as they are, or `everyday` (work in folders), `demo-site`, `skills` or `desktop`, which
/// come with gyrus. What a run asks is allowed when it is about the pages that gyrus serves for it, the
/// programs of its task on a desktop in its sandbox, or the server of tools that its task brings, and
/// denied otherwise. Nobody is asked.
#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Exit codes: 0 all passed; 1 some failed; 2 wrong usage; 130 interrupted."
)]
pub(crate) struct Eval {
    #[command(subcommand)]
    command: Option<EvalCommand>,
    #[command(flatten)]
    options: EvalOptions,
    /// Model to ask, as in `gyrus run`
    #[arg(long, value_name = "MODEL")]
    model: Vec<String>,
}

#[derive(Subcommand)]
enum EvalCommand {
    /// Tell which tasks got worse or better between two reports
    ///
    /// Exit code 1 if a task passes less often than it did.
    Compare {
        /// The earlier report: its folder, or report.json
        old: PathBuf,
        /// The later one
        new: PathBuf,
    },
}

impl Eval {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        if let Some(EvalCommand::Compare { old, new }) = self.command {
            return Ok(
                eval::compare(&old, &new, &LabConsole::new(gyrus.environment.plain))?.into(),
            );
        }
        stopped::check(gyrus)?;
        let folder = self.options.report.clone();
        let evaluation = eval::Evaluation::prepare(self.options)?;
        let runtime = drive::runtime()?;
        let models: Vec<String> = if !evaluation.varies_models() {
            let named = ModelFlags::named(self.model);
            let choice = setup::model_choice(&runtime, gyrus, &gyrus.config()?, &named)?;
            choice.names().collect()
        } else if self.model.is_empty() {
            Vec::new()
        } else {
            return Err(Failure::usage(
                "`--over` varies the models, so `--model` would name others",
            ));
        };
        let (installed, streams) = (
            DemoInstallation::here(gyrus)?,
            LabConsole::new(gyrus.environment.plain),
        );
        let run = evaluation.run(&models, &installed, &streams, time::now_ms());
        let ended = runtime.block_on(run);
        runtime.shutdown_background();
        let ended = ended?;
        if let Some(folder) = folder {
            keep(gyrus, &folder)?;
        }
        Ok(ended.into())
    }
}

/// Stores a copy of a report in the state, where a server finds it, and removes the oldest copies.
fn keep(gyrus: &Gyrus, folder: &Path) -> Result<(), Failure> {
    let kept = gyrus.home()?.state.join(KEPT_IN);
    fs::create_dir_all(&kept)?;
    // Ids of this kind sort by their time.
    let name = format!("{}.json", gyrus_contract::time_ordered_uuid());
    let unfinished = kept.join(format!(".{name}"));
    fs::copy(folder.join("report.json"), &unfinished)?;
    fs::rename(&unfinished, kept.join(name))?;
    let entries = fs::read_dir(&kept)?.collect::<Result<Vec<_>, _>>()?;
    let mut names: Vec<_> = entries.iter().map(fs::DirEntry::path).collect();
    names.sort();
    let many = names.len().saturating_sub(MOST_KEPT);
    for old in &names[..many] {
        fs::remove_file(old)?;
    }
    Ok(())
}
