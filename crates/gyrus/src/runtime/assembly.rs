//! Assembles a kernel: the gate with its policy and sandbox, the tools, and what keeps secrets out.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use gyrus_contract::{Gate, Router, Tool};
use gyrus_gate::{LivePolicy, OwnPaths, PolicyGate, policy::PolicyFileError, sandbox::Wall};
use gyrus_journal::Store;
use gyrus_kernel::{CodePins, Organs, grants, redact::Secret};
use gyrus_loops::ThinkingStrategy;
use gyrus_memory::Vault;
use gyrus_process::Programs;
pub use gyrus_runtime::request::Confinement;
use gyrus_tools::ToolRegistry;
use gyrus_workspace::repository::RealObjects;

use super::{GitWorktrees, Home, RunScreen, RuntimeError, sandbox};

/// The parts that differ between kernels.
pub struct KernelParts<'a> {
    /// Chooses the models.
    pub router: Arc<dyn Router>,
    /// Chooses the model for a second look at calls, if one is wanted.
    pub assessor: Option<Arc<dyn Router>>,
    /// Secrets beside those of the environment.
    pub secrets: Vec<Secret>,
    /// Decides which calls may run.
    pub gate: Arc<dyn Gate>,
    /// The screen that runs look at.
    pub screen: Option<&'a RunScreen>,
    /// The tools, without those of the screen.
    pub tools: Vec<Arc<dyn Tool>>,
}

/// Returns the organs of a kernel whose runs belong to `home`.
///
/// # Errors
/// The state folder cannot be used.
pub fn organs(home: &Home, parts: KernelParts<'_>) -> Result<Organs, RuntimeError> {
    let mut tools = parts.tools;
    tools.extend(parts.screen.map(RunScreen::tools).into_iter().flatten());
    let redactor = Arc::new(home.redactor(parts.secrets)?);
    if let Some(browser) = parts.screen.and_then(RunScreen::browser) {
        let redactor = redactor.clone();
        browser.cover(Arc::new(move |name, value| {
            redactor.shows_secret(name, value)
        }));
    }
    let loops = gyrus_loops::factory();
    let mut organs = Organs::new(parts.router, tools, parts.gate, redactor, loops);
    organs.assessor = parts.assessor;
    organs.screen = parts.screen.map(RunScreen::shown);
    organs.pins = CodePins::from([
        ("gyrus".to_owned(), crate::BUILD.to_owned()),
        ("prompts".to_owned(), gyrus_loops::prompts().to_string()),
    ]);
    organs.latch = Some(home.latch());
    organs.worktrees = Some(Arc::new(GitWorktrees));
    organs.outlet = Some(Arc::new(sandbox::Proxy));
    organs.real_objects = real_objects(home);
    organs.travels = home.travels.clone();
    Ok(organs)
}

/// Returns the places in which commands find a repository's real objects: without namespaces
/// nothing can be bound.
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

/// Returns the tools that come with gyrus, for this loop. Those that make a changeset are of no use
/// to other loops.
pub fn built_in_tools(cognitive_loop: &str) -> ToolRegistry {
    let registry = ToolRegistry::builtin();
    if cognitive_loop == ThinkingStrategy::Changeset.loop_name() {
        registry
            .with_changesets()
            .expect("their names differ from those of the others")
    } else {
        registry
    }
}

/// Returns the tools over the memory: none, if the home has no memory, or for an ephemeral run,
/// which leaves nothing behind.
pub fn memory_tools(home: &Home) -> Vec<Arc<dyn Tool>> {
    let is_wanted = |vault: &&Vault| home.beside.is_none() && vault.is_wanted();
    let vault = home.vault.as_ref().filter(is_wanted);
    vault.map(gyrus_memory::tools).unwrap_or_default()
}

/// Returns a gate without policy, grants or sandbox, under which nothing runs without a question:
/// for replaying and for explaining.
pub fn bare_gate(home: &Home) -> PolicyGate {
    PolicyGate::new(OwnPaths {
        own: home.own(),
        person: home.person.clone(),
    })
}

/// Returns the gate for runs of `agent` in `workspace`, with the person's present policy and
/// standing grants for that folder.
///
/// # Errors
/// The policy or the grants cannot be read, or the policy does not name the agent.
pub fn gate(
    home: &Home,
    store: &Store,
    workspace: &Path,
    agent: &str,
    confinement: Confinement,
) -> Result<PolicyGate, RuntimeError> {
    let standing = grants::in_folder(store, workspace)?;
    let policy = home.policy_files(workspace).policy()?;
    policy.check_agent(agent)?;
    let grants = standing.into_iter().map(|standing| standing.grant);
    let gate = bare_gate(home)
        .under(policy)
        .finding_programs_in(program_folders(workspace))
        .with_grants(grants.collect());
    Ok(match confinement {
        Confinement::Sandboxed => gate.confining(sandbox::contain(home)),
        Confinement::Unsandboxed => gate,
    })
}

/// Creates a gate as [`gate`] does, for which a policy that becomes stricter takes effect at once.
/// `explain` says what is wrong with a policy file, as a person is told.
///
/// # Errors
/// As for [`gate`].
pub fn live_gate(
    home: &Home,
    store: &Store,
    workspace: &Path,
    agent: &str,
    confinement: Confinement,
    explain: fn(PolicyFileError) -> String,
) -> Result<LivePolicy, RuntimeError> {
    LivePolicy::over(home.policy_files(workspace), explain, |_| {
        gate(home, store, workspace, agent, confinement)
    })
}

/// Returns the folders in which the person's shell finds programs when its current folder is the
/// workspace.
fn program_folders(workspace: &Path) -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Relative entries, and the empty one, which means the folder itself, move with the shell.
    let folders = std::env::split_paths(&path).map(|folder| workspace.join(folder));
    folders
        .filter_map(|folder| fs::canonicalize(&folder).ok().or(Some(folder)))
        .collect()
}

/// Returns the real path of a folder for runs, and keeps this process from starting programs in it.
///
/// # Errors
/// The folder cannot be a workspace.
pub fn workspace(home: &Home, folder: &Path) -> Result<PathBuf, RuntimeError> {
    let real = gyrus_gate::check_workspace(folder, home.person.as_deref(), &home.state)?;
    if real.to_str().is_none() {
        return Err(RuntimeError::FolderName { folder: real });
    }
    let person = home.person.as_deref();
    if gyrus_gate::is_of_system(&real, person) && !home.agrees_to(&real) {
        return Err(RuntimeError::SystemFolder { folder: real });
    }
    let vault = home.vault.as_ref().filter(|vault| vault.is_wanted());
    let vault = vault.and_then(|vault| vault.folder().canonicalize().ok());
    if vault.is_some_and(|vault| real.starts_with(vault)) {
        return Err(RuntimeError::WorkspaceInVault { folder: real });
    }
    Programs::of_this_process().keep_out_of(&real);
    Ok(real)
}
