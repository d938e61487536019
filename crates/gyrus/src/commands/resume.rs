//! `gyrus resume`

use std::path::PathBuf;

use clap::Args;
use gyrus_contract::{OnAsk, Origin, RunId, Text};
use gyrus_journal::{LockWait, Store};
use gyrus_kernel::{StandingRun, Stop, check_workspace, is_record, log_name};

use super::run::Run;
use super::run_argument::RunArgument;
use gyrus_runtime::request::RunFlags;

use crate::{
    Gyrus,
    drive::{self, Drive},
    exit::Code,
    failure::Failure,
    flags::{self, ChangeFlags, OutputFlags, ServerFlags},
    hooks, inside_run,
    kernels::{self, RunContext},
    mcp::{ServerSet, StartSurroundings},
    screen::ScreenOptions,
    setup, stopped,
};
use gyrus_surfaces::{console::put, terminal, trace_file::TracePurpose, watching::live_replies};

/// Go on with a run where it was left
///
/// Without RUN you choose among the sessions of this folder. From one that is over, a conversation
/// goes on.
///
/// A run can go on after a crash, a limit, a pause, a stop or an answered question. What was done is
/// not done again.
///
/// From a record, a run that was imported or copied from elsewhere, a new run of yours begins in the
/// folder that you name, under your settings. It knows the old one's goal and conversation as untrusted
/// text; answers and grants do not count.
#[derive(Args)]
pub(crate) struct Resume {
    #[command(flatten)]
    run: RunArgument,
    /// If another process holds the run, end that process first
    #[arg(long)]
    take: bool,
    /// The folder for the new run that begins from a record
    #[arg(long, value_name = "FOLDER")]
    workdir: Option<PathBuf>,
    /// The value of a variable whose value the run was given with --env, NAME=VALUE
    #[arg(long, value_name = "NAME=VALUE")]
    env: Vec<String>,
    #[command(flatten)]
    servers: ServerFlags,
    #[command(flatten)]
    changes: ChangeFlags,
    #[command(flatten)]
    output: OutputFlags,
    /// The id that ties the run to what caused it.
    #[arg(skip)]
    correlation: Option<String>,
}

impl Resume {
    pub(crate) fn of_queue(run: RunId, on_ask: OnAsk, correlation: Option<String>) -> Self {
        let mut changes = ChangeFlags::default();
        changes.approvals.on_ask = Some(on_ask);
        Self {
            run: RunArgument::of(run),
            take: false,
            workdir: None,
            env: Vec::new(),
            servers: ServerFlags::default(),
            changes,
            output: OutputFlags::as_json(),
            correlation,
        }
    }

    /// Whether a person may choose the run: none is named, and the folder is the present one.
    pub(crate) fn chooses(&self) -> bool {
        !self.run.is_given() && self.workdir.is_none() && !self.output.json()
    }

    /// Sets the run that is resumed.
    pub(crate) fn with(mut self, run: RunId) -> Self {
        self.run = RunArgument::of(run);
        self
    }

    /// Starts a new run that continues the memory of a record.
    fn begin_from(
        self,
        gyrus: &Gyrus,
        store: &Store,
        record: &StandingRun,
    ) -> Result<Code, Failure> {
        let run = record.started.run;
        store.check_not_copied()?;
        let name = run.short();
        let Some(workdir) = &self.workdir else {
            return Err(Failure::usage(format!(
                "run {name} was imported or copied from elsewhere: it is a record, which does not go \
                 on; a new run can begin with what it remembers, in a folder that you name"
            ))
            .hint(format!("gyrus resume {name} --workdir FOLDER")));
        };
        let reader = store.reader(&log_name(run))?;
        let goal = record
            .started
            .goal
            .read(|id| reader.blob(id).map_err(Stop::from))?;
        put(&format!(
            "run {name} is a record: a new run begins in {} with what it remembers\n",
            workdir.display()
        ))?;
        // It is not a person's word here, and vouches for nothing.
        let goal = Text::new(goal.text, Origin::Run);
        let (flags, output, servers) = self.run_flags();
        let mut begun = Run::after(run, goal, flags, output);
        begun.servers = servers;
        begun.execute(gyrus)
    }

    /// Returns the flags for new runs that begin instead.
    pub(crate) fn run_flags(self) -> (RunFlags, OutputFlags, ServerFlags) {
        let flags = RunFlags {
            model: self.changes.model,
            workdir: self.workdir,
            approvals: self.changes.approvals,
            limits: self.changes.limits,
            ..RunFlags::default()
        };
        (flags, self.output, self.servers)
    }

    /// Checks that a run's own folder is there, and that no other is named for it.
    fn check_folder(&self, before: &StandingRun) -> Result<(), Failure> {
        if self.workdir.is_none() {
            return Ok(check_workspace(&before.started.workspace)?);
        }
        let failure = Failure::usage("a run goes on in its own folder");
        Err(failure.hint("leave --workdir out; it is for records from elsewhere"))
    }

    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        inside_run::refuse("resume a run")?;
        stopped::check(gyrus)?;
        flags::announce(&self.changes.approvals)?;
        let (home, config) = (gyrus.home()?, self.servers.config(gyrus)?);
        let store = home.store()?;
        let run = self.run.find(gyrus, &store)?;
        let before = StandingRun::read(&store, run)?;
        if is_record(&store, run) {
            return self.begin_from(gyrus, &store, &before);
        }
        self.check_folder(&before)?;
        let runtime = drive::runtime()?;
        let model = setup::models_again(&runtime, gyrus, &config, &self.changes.model, &before)?;
        let at_terminal = terminal::can_ask() && !self.output.json();
        hooks::settle(gyrus, &home, &before.started.workspace, at_terminal)?;
        let mut changes = self.changes.changes(before.on_ask, at_terminal);
        changes.pins = Some(model.pins());
        let on_ask = changes.on_ask.unwrap_or(before.on_ask);
        let how = if self.take {
            LockWait::KillHolder
        } else {
            LockWait::IfFree
        };
        let trace = drive::open_trace(&self.output, TracePurpose::Resumed)?;
        let options = ScreenOptions::of(before.started.screen.as_ref());
        options.as_ref().map_or(Ok(()), ScreenOptions::warn)?;
        let code = runtime.block_on(async {
            let around = StartSurroundings {
                home: &home,
                config: &config,
                workspace: &before.started.workspace,
                confinement: self.changes.approvals.confinement(),
                on_ask,
            };
            let mut connected = ServerSet::start(&around)?;
            let thinks = &*before.started.loop_config;
            let mut ready = model.start_for(gyrus, (&config, &store, thinks)).await?;
            ready.secrets.extend(connected.secrets());
            let served = connected.tools_of(&store, run)?;
            let (live, replies) = live_replies();
            let screen = ScreenOptions::open(before.started.screen.as_ref(), &around)?;
            let run_context = RunContext {
                agent: &before.started.agent,
                cognitive_loop: &before.started.cognitive_loop,
                screen: screen.as_ref(),
                served: &served,
                sandbox: &before.started.sandbox,
                typed: &self.env,
            };
            let kernel = kernels::kernel(&around, store.clone(), ready, live, run_context)?;
            let ready = kernel.take(run, how, changes)?;
            let drive = Drive {
                gyrus,
                store,
                on_ask,
                output: &self.output,
                trace,
                ephemeral: false,
                replies,
                screen,
                correlation: self.correlation.clone(),
            };
            let code = drive.drive_and_leave(ready).await;
            connected.leave().await;
            code
        });
        runtime.shutdown_background();
        code
    }
}
