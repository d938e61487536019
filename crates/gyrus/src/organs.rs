//! Wiring: which tools, loops and gate the kernel of this program has.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use gyrus_contract::{Gate, RunId, Screen, Tool};
use gyrus_gate::{LivePolicy, OwnPaths, PolicyGate, sandbox::Wall};
use gyrus_journal::Store;
use gyrus_kernel::{Kernel, Live, Organs, Pins, SingleModel, StandingRun, grants};
use gyrus_loops::Strategy;
use gyrus_process::Programs;
use gyrus_screen::Browser;
use gyrus_tools::Registry;
use gyrus_workspace::repository::RealObjects;

use crate::{
    browser,
    config::Config,
    failure::Failure,
    flags::SandboxWord,
    home::Home,
    mcp,
    model_choice::{NoModel, Ready},
    past_runs::ReadJournal,
    sandbox,
};

/// A kernel over the home's journals that asks nobody, with the tools that `run` had: for replaying
/// it.
pub(crate) fn silent_kernel(home: &Home, store: Store, run: RunId) -> Result<Kernel, Failure> {
    let mut tools = own_tools(&StandingRun::read(&store, run)?.started.cognitive_loop);
    tools.extend(mcp::recorded(&store, run)?);
    let nobody = Ready {
        router: Arc::new(SingleModel(Arc::new(NoModel))),
        assessor: None,
        secrets: Vec::new(),
    };
    let gate = Arc::new(PolicyGate::new(own_paths(home)));
    // It is never looked at: what was seen stands in the journals.
    let screen = browser::BrowserOptions::default().browser(home);
    let organs = organs(home, &store, nobody, gate, Some(&screen), tools)?;
    Ok(Kernel::new(store, organs))
}

/// The folder, loop and settings with which the runs of a kernel work.
#[derive(Clone, Copy)]
pub(crate) struct RunContext<'a> {
    /// The folder that they work in, real.
    pub(crate) workspace: &'a Path,
    /// Whether their commands are confined.
    pub(crate) sandbox: SandboxWord,
    /// Under whose trust they work.
    pub(crate) agent: &'a str,
    /// Name of their loop.
    pub(crate) cognitive_loop: &'a str,
    /// Their screen.
    pub(crate) screen: Option<&'a Arc<Browser>>,
    /// The tools of servers that they have.
    pub(crate) served: &'a [Arc<dyn Tool>],
}

/// A kernel over the home's journals for runs on `run_context`. `live` hears its models while they
/// speak.
pub(crate) fn kernel(
    home: &Home,
    store: Store,
    ready: Ready,
    live: Live,
    run_context: RunContext<'_>,
) -> Result<Kernel, Failure> {
    let workspace = run_context.workspace;
    let explain = |error| Failure::from(error).to_string();
    let gate = LivePolicy::over(home.policy_files(workspace), explain, |_| {
        gate(home, &store, run_context)
    })?;
    let gate = Arc::new(gate);
    let mut tools = own_tools(run_context.cognitive_loop);
    tools.extend(run_context.served.iter().cloned());
    let mut organs = organs(home, &store, ready, gate, run_context.screen, tools)?;
    organs.live = Some(live);
    organs.questions_last = Config::read(&home.config)?.approvals.expires();
    Ok(Kernel::new(store, organs))
}

/// Builds the gate that judges the calls of runs on `run_context`.
pub(crate) fn gate(
    home: &Home,
    store: &Store,
    run_context: RunContext<'_>,
) -> Result<PolicyGate, Failure> {
    let standing = grants::in_folder(store, run_context.workspace)?;
    let policy = home.policy_files(run_context.workspace).policy()?;
    policy.check_agent(run_context.agent)?;
    let gate = PolicyGate::new(own_paths(home)).under(policy);
    let gate = gate.finding_programs_in(program_folders(run_context.workspace));
    let gate = gate.with_grants(
        standing
            .into_iter()
            .map(|standing| standing.grant)
            .collect(),
    );
    Ok(match run_context.sandbox {
        SandboxWord::On => gate.confining(sandbox::contain(home)),
        SandboxWord::Off => gate,
    })
}

/// The folders in which the person's shell looks for programs when it stands in the workspace.
fn program_folders(workspace: &Path) -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Relative entries, and the empty one, which means the folder itself, move with the shell.
    let folders = std::env::split_paths(&path).map(|folder| workspace.join(folder));
    folders
        .filter_map(|folder| fs::canonicalize(&folder).ok().or(Some(folder)))
        .collect()
}

fn own_paths(home: &Home) -> OwnPaths {
    OwnPaths {
        own: home.own(),
        person: home.person.clone(),
    }
}

/// The tools that come with gyrus. Those that make a changeset are of no use to other loops.
fn own_tools(cognitive_loop: &str) -> Vec<Arc<dyn Tool>> {
    let registry = Registry::builtin();
    let registry = match cognitive_loop == Strategy::Changeset.loop_name() {
        true => registry
            .with_changesets()
            .expect("their names differ from those of the others"),
        false => registry,
    };
    registry
        .specs()
        .iter()
        .filter_map(|spec| registry.get(&spec.name).cloned())
        .collect()
}

fn organs(
    home: &Home,
    store: &Store,
    ready: Ready,
    gate: Arc<dyn Gate>,
    screen: Option<&Arc<Browser>>,
    mut tools: Vec<Arc<dyn Tool>>,
) -> Result<Organs, Failure> {
    tools.extend(
        screen
            .into_iter()
            .flat_map(|browser| gyrus_screen::tools(browser)),
    );
    tools.push(Arc::new(ReadJournal::new(store.clone())));
    let redactor = Arc::new(home.redactor(ready.secrets)?);
    if let Some(browser) = screen {
        let redactor = redactor.clone();
        browser.cover(Arc::new(move |name, value| {
            redactor.shows_secret(name, value)
        }));
    }
    let mut organs = Organs::new(ready.router, tools, gate, redactor, gyrus_loops::factory());
    organs.assessor = ready.assessor;
    organs.screen = screen.map(|browser| Arc::clone(browser) as Arc<dyn Screen>);
    organs.pins = Pins::from([
        ("gyrus".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
        ("prompts".to_owned(), gyrus_loops::prompts().to_string()),
    ]);
    organs.latch = Some(home.latch());
    organs.outlet = Some(Arc::new(sandbox::Proxy));
    organs.real_objects = real_objects(home);
    Ok(organs)
}

/// Returns a lookup of the real objects of repositories for commands: without namespaces nothing
/// can be bound.
fn real_objects(home: &Home) -> Arc<dyn Fn() -> RealObjects + Send + Sync> {
    let home = home.clone();
    let found = OnceLock::new();
    Arc::new(move || {
        *found.get_or_init(|| match sandbox::proof(&home).map(|proof| proof.wall) {
            Ok(Wall::Landlock) => RealObjects::InPlace,
            Ok(Wall::Namespaces | Wall::Nothing) | Err(_) => RealObjects::Bound,
        })
    })
}

/// The folder that a run may work in.
pub(crate) fn workspace(home: &Home, folder: &Path) -> Result<PathBuf, Failure> {
    let real = gyrus_gate::check_workspace(folder, home.person.as_deref(), &home.state)
        .map_err(Failure::usage)?;
    if real.to_str().is_none() {
        return Err(Failure::usage(format!(
            "the name of the folder {} is not valid UTF-8",
            real.display()
        ))
        .hint("rename it, or name another one: --workdir FOLDER"));
    }
    Programs::of_this_process().keep_out_of(&real);
    Ok(real)
}
