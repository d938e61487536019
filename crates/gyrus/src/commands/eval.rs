//! `gyrus eval`

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::{Args, Subcommand};
use gyrus_contract::Strength;
use gyrus_lab::eval::{self, EvalOptions};

use crate::{
    Gyrus, drive,
    exit::Code,
    failure::Failure,
    flags::strength,
    lab::{Installed, Streams},
    model_flags::ModelFlags,
    setup, stopped, time,
};

/// The folder of the state with copies of reports, and the most of them.
const KEPT_IN: &str = "evals";
const MOST_KEPT: usize = 500;

/// Attempts under way at once, when nobody says.
const JOBS: u32 = 1;

/// The most of each.
const MOST_JOBS: i64 = 64;
const MOST_REPEATS: i64 = 100;

/// Make attempts at tasks whose outcome is checked, and report what became of them
///
/// Each attempt is a run of its own: `gyrus show RUN` tells what happened in it. A suite is a TOML
/// file, a folder of them, or `everyday` (work in folders), `demo-site`, `skills` or `desktop`, which
/// come with gyrus. What a run asks is allowed when it is about the pages that gyrus serves for it, or
/// about the programs of its task on a desktop in its sandbox, and denied otherwise. Nobody is asked.
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
    evaluation: Evaluation,
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

#[derive(Args)]
struct Evaluation {
    /// Files or folders of tasks, `everyday`, `demo-site`, `skills`, or `desktop`
    #[arg(required_unless_present = "miniwob", value_name = "SUITE")]
    suites: Vec<String>,
    /// The pages of MiniWoB++ in this folder of the Python package; the Nth attempt has the seed N
    #[arg(long, value_name = "FOLDER", conflicts_with = "suites")]
    miniwob: Option<PathBuf>,
    /// Model to ask, as in `gyrus run`
    #[arg(long, value_name = "MODEL")]
    model: Vec<String>,
    /// Attempts under way at once, each with a browser of its own
    #[arg(long, value_name = "N", default_value_t = JOBS, value_parser = clap::value_parser!(u32).range(1..=MOST_JOBS))]
    jobs: u32,
    /// Attempts at each task
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=MOST_REPEATS))]
    repeat: u32,
    /// Only tasks whose id fits; `*` stands for anything
    #[arg(long, value_name = "PATTERN")]
    only: Option<String>,
    /// Write report.json, a page and a film of each run into this new folder
    #[arg(long, value_name = "FOLDER")]
    report: Option<PathBuf>,
    /// Print a line of JSON for each attempt, then one with the totals
    #[arg(long)]
    json: bool,
    /// The least that passes on a screen: claimed, checked or verified
    #[arg(long, value_name = "STRENGTH", default_value = "checked", value_parser = strength())]
    require: Strength,
    /// Start the browsers without their own sandbox, where the system does not let them have one
    #[arg(long)]
    browser_without_its_sandbox: bool,
}

impl Eval {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        let evaluation = match self.command {
            Some(EvalCommand::Compare { old, new }) => {
                return Ok(eval::compare(&old, &new, &Streams::new(gyrus))?.into());
            }
            None => self.evaluation,
        };
        stopped::check(gyrus)?;
        let folder = evaluation.report.clone();
        let (model, options) = evaluation.options();
        let evaluation = eval::Evaluation::prepare(options)?;
        let runtime = drive::runtime()?;
        let choice =
            setup::model_choice(&runtime, gyrus, &gyrus.config()?, &ModelFlags::named(model))?;
        let models: Vec<String> = choice.names().collect();
        let (installed, streams) = (Installed::here(gyrus)?, Streams::new(gyrus));
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

/// Keeps a copy of a report with the state, where a server finds it, and forgets the oldest copies.
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

impl Evaluation {
    /// The models to ask, and what is to be evaluated.
    fn options(self) -> (Vec<String>, EvalOptions) {
        let options = EvalOptions {
            suites: self.suites,
            miniwob: self.miniwob,
            jobs: usize::try_from(self.jobs).unwrap_or(1),
            repeat: self.repeat,
            only: self.only,
            report: self.report,
            json: self.json,
            required: self.require,
            arguments: if self.browser_without_its_sandbox {
                vec!["--browser-without-its-sandbox".to_owned()]
            } else {
                Vec::new()
            },
        };
        (self.model, options)
    }
}
