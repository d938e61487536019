//! `gyrus fork`

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::Args;
use gyrus::runtime::{self, Home};
use gyrus_contract::{MessageBody, Principal, RunId};
use gyrus_journal::Store;
use gyrus_kernel::{ForkInto, ForkedFiles, StandingRun, approvals};
use gyrus_text::one_line;
use gyrus_workspace::snapshot::ChangeSinceSnapshot;

use super::run_argument::RunArgument;
use crate::{
    Gyrus,
    drive::{self, Drive},
    exit::Code,
    failure::Failure,
    flags::{self, ChangeFlags, OutputFlags},
    hooks, inside_run,
    kernels::{self, RunContext},
    mcp::{ServerSet, StartSurroundings},
    model_choice::ModelChoice,
    screen::ScreenOptions,
    stopped,
};
use gyrus_surfaces::{console::put, terminal, trace_file::TracePurpose, watching::live_replies};

/// Maximum number of differences of a workspace that are listed.
const SHOWN_DIFFERENCES: usize = 20;

/// Go on from an earlier step of a run, as a new run
///
/// The new run knows what the old one knew at the end of that step and goes its own way. Answers,
/// messages and grants are not inherited. A record from elsewhere has no steps to go on from: see
/// `gyrus resume`.
#[derive(Args)]
pub(crate) struct ForkCommand {
    #[command(flatten)]
    run: RunArgument,
    /// The last step that both runs share; 0 is the start
    #[arg(long, value_name = "STEP")]
    at: u32,
    /// A new folder, which gets the files as they were at that step
    #[arg(long, value_name = "NEW", required_unless_present = "in_place")]
    workdir: Option<PathBuf>,
    /// Work in the run's folder as it is now
    #[arg(long, conflicts_with = "workdir")]
    in_place: bool,
    /// Words that amend the goal, told before its first own step
    #[arg(long, value_name = "TEXT")]
    steer: Option<String>,
    /// The person whose words they are, as JSON, where a server passes them on
    #[arg(long, value_name = "PRINCIPAL", hide = true, value_parser = principal)]
    steer_as: Option<Principal>,
    #[command(flatten)]
    changes: ChangeFlags,
    #[command(flatten)]
    output: OutputFlags,
}

impl ForkCommand {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        inside_run::refuse("fork a run")?;
        stopped::check(gyrus)?;
        flags::announce(&self.changes.approvals)?;
        let (home, config, store) = (gyrus.home()?, gyrus.config()?, gyrus.store()?);
        let run = self.run.find_own(gyrus, &store)?;
        let before = StandingRun::read(&store, run)?;
        let started = &before.started;
        let model = ModelChoice::again(&self.changes.model, &before)?;
        let at_terminal = terminal::can_ask() && !self.output.json();
        hooks::settle(gyrus, &home, &started.workspace, at_terminal)?;
        let mut changes = self.changes.changes(before.on_ask, at_terminal);
        changes.pins = Some(model.pins());
        let on_ask = changes.on_ask.unwrap_or(before.on_ask);
        let trace = drive::open_trace(&self.output, TracePurpose::NewRun)?;
        let options = ScreenOptions::of(started.screen.as_ref());
        options.as_ref().map_or(Ok(()), ScreenOptions::warn)?;
        drive::wait_for(async {
            let into = match &self.workdir {
                Some(folder) => ForkInto::Folder(new_folder(&home, folder)?),
                None => ForkInto::InPlace,
            };
            let workspace = match &into {
                ForkInto::Folder(folder) => folder.as_path(),
                ForkInto::InPlace => &started.workspace,
            };
            let around = StartSurroundings {
                home: &home,
                config: &config,
                workspace,
                confinement: self.changes.approvals.confinement(),
                on_ask,
            };
            let model = model.start_for(gyrus, (&config, &store, &started.loop_config));
            let (connected, ready, served) = ServerSet::beside(&around, model).await?;
            let (live, replies) = live_replies();
            let screen = ScreenOptions::open(started.screen.as_ref(), &around)?;
            let run_context = RunContext {
                agent: &started.agent,
                cognitive_loop: &started.cognitive_loop,
                screen: screen.as_ref(),
                served: &served,
                sandbox: &started.sandbox,
                typed: &[],
            };
            let kernel = kernels::kernel(&around, store.clone(), ready, live, run_context)?;
            let forked = kernel.fork(run, self.at, into, changes)?;
            self.amend(gyrus, &store, forked.ready.id())?;
            put(&forked_from(run, self.at, &forked.files))?;
            let drive = Drive {
                gyrus,
                store,
                on_ask,
                output: &self.output,
                trace,
                ephemeral: false,
                replies,
                screen,
                correlation: None,
            };
            let code = drive.drive_and_leave(forked.ready).await;
            connected.leave().await;
            code
        })?
    }

    /// Sends the words that amend the goal. Before the run is driven: a fast one would be over before it
    /// heard them.
    fn amend(&self, gyrus: &Gyrus, store: &Store, forked: RunId) -> Result<(), Failure> {
        let Some(words) = self.steer.clone() else {
            return Ok(());
        };
        let user = gyrus.environment.user.as_deref();
        let given = self.steer_as.clone();
        let from = given.unwrap_or_else(|| terminal::person(user, "console"));
        approvals::send(store, forked, from, MessageBody::steer(words))?;
        Ok(())
    }
}

fn principal(json: &str) -> Result<Principal, String> {
    serde_json::from_str(json).map_err(|error| error.to_string())
}

/// Creates the folder, if it may be a workspace; the kernel fills it.
fn new_folder(home: &Home, folder: &Path) -> Result<PathBuf, Failure> {
    let made = match fs::create_dir(folder) {
        Ok(()) => true,
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => false,
        Err(error) => {
            return Err(
                Failure::usage(format!("{} cannot be made", folder.display()))
                    .because(&error)
                    .hint("name a new folder in one that exists: --workdir NEW"),
            );
        }
    };
    let checked = runtime::workspace(home, folder)
        .map_err(Failure::from)
        .and_then(|real| {
            let mut entries = fs::read_dir(&real)?;
            match entries.next() {
                None => Ok(real),
                Some(_) => Err(Failure::usage(format!("{} is not empty", real.display()))
                    .hint("name a new folder: --workdir NEW")),
            }
        });
    if checked.is_err() && made {
        // It was empty a moment ago; if something is in it now, it stays.
        let _ = fs::remove_dir(folder);
    }
    checked
}

fn forked_from(run: RunId, step: u32, files: &ForkedFiles) -> String {
    let (from, files) = (run.short(), said(files));
    format!("forked from run {from} after step {step}\n{files}")
}

fn said(files: &ForkedFiles) -> String {
    let differences = match files {
        ForkedFiles::LaidOut { left_out } if left_out.is_empty() => return String::new(),
        ForkedFiles::LaidOut { left_out } => {
            let names: Vec<_> = left_out
                .iter()
                .take(SHOWN_DIFFERENCES)
                .map(|path| one_line(path))
                .collect();
            return format!(
                "not in the new folder ({}): {}; they are or held secrets, and what was kept of \
                 them is gone, or was never in the export\n",
                left_out.len(),
                names.join(", ")
            );
        }
        ForkedFiles::Unknown(why) => {
            return format!("the state of the folder at that step is unknown: {why}\n");
        }
        ForkedFiles::Differ(differences) => differences,
    };
    if differences.is_empty() {
        return "the folder is as it was at that step\n".to_owned();
    }
    let mut text = format!(
        "the folder differs from what it was ({}):\n",
        differences.len()
    );
    for difference in differences.iter().take(SHOWN_DIFFERENCES) {
        let what = match difference.change {
            ChangeSinceSnapshot::Added => "added",
            ChangeSinceSnapshot::Changed => "changed",
            ChangeSinceSnapshot::Removed => "removed",
        };
        text.push_str(&format!("  {what} {}\n", one_line(&difference.path)));
    }
    if differences.len() > SHOWN_DIFFERENCES {
        text.push_str(&format!(
            "  … {} more\n",
            differences.len() - SHOWN_DIFFERENCES
        ));
    }
    text
}
