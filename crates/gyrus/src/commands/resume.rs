//! `gyrus resume`

use clap::Args;
use gyrus_journal::Take;

use gyrus_kernel::StandingRun;

use crate::{
    Gyrus,
    drive::{self, Drive},
    exit::Code,
    failure::Failure,
    flags::{ChangeFlags, OutputFlags},
    inside_run,
    kernels::{self, RunContext},
    mcp::{Around, Connected},
    model_choice::ModelChoice,
    screen::ScreenOptions,
    setup, stopped,
};
use gyrus_surfaces::{terminal, trace_file::For, watching::live_replies};

/// Go on with a run where it was left
///
/// After a crash, a limit, a pause, a stop or an answered question. What was done is not done
/// again.
#[derive(Args)]
pub(crate) struct Resume {
    /// The run: `last`, its id, or the start or end of it
    run: String,
    /// If another process holds the run, end that process first
    #[arg(long)]
    take: bool,
    #[command(flatten)]
    changes: ChangeFlags,
    #[command(flatten)]
    output: OutputFlags,
    /// The id that ties the run to what caused it.
    #[arg(skip)]
    pub(crate) correlation: Option<String>,
}

impl Resume {
    /// Returns what happens to a process that still drives the run.
    fn how(&self) -> Take {
        if self.take {
            Take::KillHolder
        } else {
            Take::IfFree
        }
    }

    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        inside_run::refuse("resume a run")?;
        stopped::check(gyrus)?;
        self.changes.approvals.announce()?;
        let (home, config) = (gyrus.home()?, gyrus.config()?);
        let store = home.store()?;
        let run = gyrus_kernel::find_run(&store, &self.run)?;
        let before = StandingRun::read(&store, run)?;
        let runtime = drive::runtime()?;
        let model = match ModelChoice::again(&self.changes.model, &before)? {
            // One may have been set up since.
            none if none.is_none() => setup::model_if_any(&runtime, gyrus, &config, &[])?,
            named => named,
        };
        let at_terminal = terminal::can_ask() && !self.output.json();
        let mut changes = self.changes.changes(before.on_ask, at_terminal);
        changes.pins = Some(model.pins());
        let on_ask = changes.on_ask.unwrap_or(before.on_ask);
        let trace = drive::open_trace(&self.output, For::Resumed)?;
        let options = ScreenOptions::of(before.started.screen.as_ref());
        options.as_ref().map_or(Ok(()), ScreenOptions::warn)?;
        let code = runtime.block_on(async {
            let around = Around {
                home: &home,
                config: &config,
                workspace: &before.started.workspace,
                confinement: self.changes.approvals.confinement(),
                on_ask,
            };
            let mut connected = Connected::start(&around)?;
            let thinks = &*before.started.loop_config;
            let mut ready = model.start_for(gyrus, (&config, &store, thinks)).await?;
            ready.secrets.extend(connected.secrets());
            let served = connected.tools_of(&store, run)?;
            let (live, replies) = live_replies();
            let screen = options
                .map(|options| options.screen(&home, around.workspace, around.confinement))
                .transpose()?;
            let run_context = RunContext {
                workspace: &before.started.workspace,
                confinement: self.changes.approvals.confinement(),
                agent: &before.started.agent,
                cognitive_loop: &before.started.cognitive_loop,
                screen: screen.as_ref(),
                served: &served,
            };
            let kernel = kernels::kernel(&home, store.clone(), ready, live, run_context)?;
            let ready = kernel.take(run, self.how(), changes)?;
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
