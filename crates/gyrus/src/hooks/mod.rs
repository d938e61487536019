//! Hooks: commands that may refuse what a run is about to do. A person's own stand in `hooks.json`
//! beside the configuration and run with the person's rights; those of a project stand in its files,
//! count once the person agreed to them, and run in a sandbox in which they can change nothing.

mod file;
mod project;
mod runner;

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use gyrus::runtime::{self, Home};
use gyrus_contract::{Hook, HookEvent, Hooks};
use serde_json::Value;

pub(crate) use self::project::ProjectHooks;
use self::{
    file::{HookRule, read_rules},
    runner::{OwnHook, SandboxedHook, Sandboxes},
};
use crate::{
    Gyrus, agreement, failure::Failure, language_servers::LanguageServers, mcp::StartSurroundings,
};

/// The file of a person's own hooks, beside the configuration.
const OWN_FILE: &str = "hooks.json";

struct LoadedHooks {
    rules: Vec<(HookRule, Box<dyn Hook>)>,
    language_servers: Option<Arc<LanguageServers>>,
}

impl Hooks for LoadedHooks {
    fn matching(&self, event: HookEvent, subject: &str, told: &Value) -> Vec<&dyn Hook> {
        let fitting = self
            .rules
            .iter()
            .filter(|(rule, _)| rule.fits(event, subject));
        let servers = self.language_servers.as_ref();
        let server = servers.and_then(|servers| servers.after(event, subject, told));
        fitting.map(|(_, hook)| &**hook).chain(server).collect()
    }

    fn are_about_runs(&self) -> bool {
        !self.rules.is_empty()
    }
}

/// Returns the hooks for runs in a folder, of which language servers are the last; `None` if there are
/// none.
///
/// # Errors
/// The person's own file is wrong: without it more could happen than they want.
pub(crate) fn of_runs(around: &StartSurroundings<'_>) -> Result<Option<Arc<dyn Hooks>>, Failure> {
    let (home, workspace) = (around.home, around.workspace);
    let language_servers = LanguageServers::of_folder(around)?;
    let workspace = &agreed_folder(workspace);
    let mut hooks: Vec<(HookRule, Box<dyn Hook>)> = Vec::new();
    for rule in own_rules(home)? {
        let hook = OwnHook::new(&rule, workspace);
        hooks.push((rule, Box::new(hook)));
    }
    if let Ok(Some(project)) = ProjectHooks::read(workspace)
        && agreement::said(home, workspace, |yes| project.grant(yes))? == Some(true)
    {
        let sandboxes = Arc::new(Sandboxes::new(home, workspace)?);
        for rule in project.rules {
            let hook = SandboxedHook::new(&rule, sandboxes.clone());
            hooks.push((rule, Box::new(hook)));
        }
    }
    let is_empty = hooks.is_empty() && language_servers.is_none();
    let loaded = LoadedHooks {
        rules: hooks,
        language_servers,
    };
    Ok((!is_empty).then(|| Arc::new(loaded) as Arc<dyn Hooks>))
}

/// Returns the folder whose hooks apply to a run in this folder: what a person agreed to holds in
/// the work trees of the folder, too.
fn agreed_folder(workspace: &Path) -> PathBuf {
    runtime::stands_for(workspace).unwrap_or_else(|| workspace.to_owned())
}

fn own_rules(home: &Home) -> Result<Vec<HookRule>, Failure> {
    let path = home.config.with_file_name(OWN_FILE);
    let text = match gyrus_process::read_regular_text(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        text => text.map_err(|error| {
            Failure::usage(format!("{} cannot be read", path.display())).because(&error)
        })?,
    };
    let wrong = |why: String| Failure::usage(format!("{}: {why}", path.display()));
    let (rules, left_out) = read_rules(&text).map_err(wrong)?;
    match left_out.into_iter().next() {
        None => Ok(rules),
        Some(why) => {
            Err(wrong(why).hint("there are: type `command`, for the events in docs/hooks.md"))
        }
    }
}

/// Asks the person at the terminal once about the hooks of a project, before a run begins or is
/// resumed. Without a terminal, prints how to agree.
pub(crate) fn settle(
    gyrus: &Gyrus,
    home: &Home,
    workspace: &Path,
    at_terminal: bool,
) -> Result<(), Failure> {
    let workspace = &agreed_folder(workspace);
    match ProjectHooks::read(workspace) {
        Ok(Some(project)) => project.settle((gyrus, home, workspace), at_terminal),
        Ok(None) => Ok(()),
        Err(why) => project::tell_unusable(&why),
    }
}
