//! The kernels of this program: over a person's home, with the tools of their servers.

use std::sync::Arc;

use gyrus::runtime::{self, Confinement, Home, KernelParts, RunScreen};
use gyrus_contract::{RunId, SandboxOptions, Tool};
use gyrus_gate::PolicyGate;
use gyrus_journal::Store;
use gyrus_kernel::{Kernel, Live, RunStarted, SingleModel, StandingRun};

use crate::{
    browser::BrowserOptions,
    config::Config,
    configured_secrets,
    failure::Failure,
    hooks,
    mcp::{self, ServedTools, StartSurroundings},
    model_choice::ReadyModels,
    past_runs::ReadJournal,
    sandbox_settings,
    screen::ScreenOptions,
    telemetry, web_search,
};

/// Returns a kernel over the home's journals that asks nobody, with the tools that `run` had: for
/// replaying it.
pub(crate) fn silent_kernel(home: &Home, store: Store, run: RunId) -> Result<Kernel, Failure> {
    silent_kernel_with(home, store, run, runtime::bare_gate(home))
}

/// Judges the changes of calls that a killed process left unfinished, and drops what these calls
/// wrote into layers.
pub(crate) async fn settle(home: &Home, store: &Store, run: RunId) -> Result<(), Failure> {
    if !gyrus_kernel::has_unfinished_calls(store, run)? {
        return Ok(());
    }
    let started = StandingRun::read(store, run)?.started;
    let (workspace, agent) = (&started.workspace, &started.agent);
    let gate = runtime::gate(home, store, workspace, agent, Confinement::Sandboxed)?;
    let kernel = silent_kernel_with(home, store.clone(), run, gate)?;
    Ok(kernel.settle(run).await?)
}

fn silent_kernel_with(
    home: &Home,
    store: Store,
    run: RunId,
    gate: PolicyGate,
) -> Result<Kernel, Failure> {
    let started = StandingRun::read(&store, run)?.started;
    let tools = recorded_tools(home, &store, run, &started)?;
    // It is never looked at: what was seen stands in the journals.
    let options = ScreenOptions::of(started.screen.as_ref());
    let options = options.unwrap_or_else(|| ScreenOptions::Browser(BrowserOptions::default()));
    let screen = options.screen(home, &started.workspace, Confinement::Sandboxed)?;
    let parts = KernelParts {
        router: Arc::new(SingleModel(Arc::new(runtime::NoModel))),
        assessor: None,
        secrets: Vec::new(),
        gate: Arc::new(gate),
        screen: Some(&screen),
        tools,
    };
    let mut organs = runtime::organs(home, parts)?;
    organs.late_tools = Some(mcp::recorded_late());
    Ok(Kernel::new(store, organs))
}

/// Returns the tools that a run had, but for those of the screen.
pub(crate) fn recorded_tools(
    home: &Home,
    store: &Store,
    run: RunId,
    started: &RunStarted,
) -> Result<Vec<Arc<dyn Tool>>, Failure> {
    let mut tools = own_tools(home, store, &started.cognitive_loop);
    if started.tools.iter().any(|name| name == web_search::NAME) {
        tools.push(web_search::recorded());
    }
    tools.extend(mcp::recorded(store, run)?);
    Ok(tools)
}

/// Returns the tools that need no configuration.
fn own_tools(home: &Home, store: &Store, cognitive_loop: &str) -> Vec<Arc<dyn Tool>> {
    let mut tools = runtime::built_in_tools(cognitive_loop).all();
    tools.extend(runtime::memory_tools(home));
    tools.push(ReadJournal::tool(home, store));
    tools
}

/// The agent, loop and tools with which the runs of a kernel work.
#[derive(Clone, Copy)]
pub(crate) struct RunContext<'a> {
    /// Name of the agent under whose trust the runs work.
    pub(crate) agent: &'a str,
    pub(crate) cognitive_loop: &'a str,
    pub(crate) screen: Option<&'a RunScreen>,
    /// The tools of the runs beside gyrus's own, from servers above all, and those that may join
    /// later. A tool replaces another one of the same name.
    pub(crate) served: &'a ServedTools,
    pub(crate) sandbox: &'a SandboxOptions,
    /// The words of `--env` of this command line.
    pub(crate) typed: &'a [String],
}

/// Returns a kernel over the home's journals for runs on `run_context`. `live` hears its models while
/// they speak.
pub(crate) fn kernel(
    around: &StartSurroundings<'_>,
    store: Store,
    models: ReadyModels,
    live: Live,
    run_context: RunContext<'_>,
) -> Result<Kernel, Failure> {
    let explain = |error| Failure::from(error).to_string();
    let config = Config::read(&around.home.config)?;
    let home = &Home {
        sockets: config.sandbox.socket_files(),
        ..around.home.clone()
    };
    let (workspace, agent) = (around.workspace, run_context.agent);
    let gate = runtime::live_gate(home, &store, workspace, agent, around.confinement, explain)?;
    let mut tools = own_tools(home, &store, run_context.cognitive_loop);
    tools.extend(web_search::configured(&config)?);
    tools.extend(run_context.served.tools.iter().cloned());
    let mut secrets = models.secrets;
    secrets.extend(telemetry::secrets(&config.telemetry));
    secrets.extend(configured_secrets::read(&config, &secrets));
    let (options, typed) = (run_context.sandbox, run_context.typed);
    let (variables, values) = sandbox_settings::values(&config, &home.travels, options, typed);
    secrets.extend(values);
    let parts = KernelParts {
        router: models.router,
        assessor: models.assessor,
        secrets,
        gate: Arc::new(gate),
        screen: run_context.screen,
        tools,
    };
    let mut organs = runtime::organs(home, parts)?;
    organs.child_routers = models.children;
    organs.hooks = hooks::of_runs(around)?;
    organs.variables = variables;
    organs.live = Some(live);
    organs.late_tools = Some(run_context.served.late.clone());
    organs.questions_last = config.approvals.expires();
    Ok(Kernel::new(store, organs))
}
