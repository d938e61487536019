//! The settings in force, for whoever asks a server about them.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use gyrus::runtime::{Confinement, Home};
use gyrus_contract::OnAsk;
use gyrus_process::read_regular_text;
use gyrus_runtime::request::ModelFlags;
use gyrus_server::{HookFailure, HookView, PolicyFileView, ServerSettings, ToolServerView};
use reqwest::Url;

use crate::{
    Gyrus,
    config::{Config, HookSection},
    failure::Failure,
    mcp::{self, ServerSource, StartSurroundings},
    model_choice::ModelChoice,
    new_run,
};

/// Returns the settings in force, and the policy for runs in this folder; without one, for runs in
/// the folder of the configuration, where no project's policy is.
pub(super) fn configured(
    gyrus: &Gyrus,
    workdir: Option<&Path>,
    failures: &BTreeMap<String, HookFailure>,
) -> Result<ServerSettings, Failure> {
    let home = gyrus.home()?;
    let workspace = match workdir {
        Some(folder) => Some(new_run::workspace(&home, Some(folder))?),
        None => None,
    };
    let (config, mut problem) = match gyrus.config() {
        Ok(config) => (config, None),
        Err(failure) => (Config::default(), Some(failure.to_string())),
    };
    let models = match ModelChoice::named(gyrus, &config, &ModelFlags::default()) {
        Ok(choice) => choice.map(|choice| choice.names().collect()),
        Err(failure) => {
            problem.get_or_insert_with(|| failure.to_string());
            None
        }
    };
    let (tool_servers, notes) = tool_servers(&home, &config, workspace.as_deref());
    let hooks = config.hooks.iter();
    Ok(ServerSettings {
        mode: config.approve.unwrap_or_default().to_string(),
        policies: policies(&home, workspace.as_deref()),
        models: models.unwrap_or_default(),
        tool_servers,
        notes,
        hooks: hooks
            .map(|(name, section)| hook(name, section, failures.get(name)))
            .collect(),
        config: home.config,
        problem,
    })
}

fn policies(home: &Home, workspace: Option<&Path>) -> Vec<PolicyFileView> {
    let files = home.policy_files(workspace.unwrap_or(&home.state));
    let here = |(path, may_loosen): (PathBuf, bool)| {
        let read = files.read(&path, may_loosen);
        PolicyFileView {
            text: read_regular_text(&path).ok(),
            problem: read.err().map(|error| error.to_string()),
            may_loosen,
            path,
        }
    };
    let has_project = workspace.is_some();
    let paths = files.paths().into_iter();
    let paths = paths.filter(|(_, may_loosen)| has_project || *may_loosen);
    paths.map(here).collect()
}

fn tool_servers(
    home: &Home,
    config: &Config,
    workspace: Option<&Path>,
) -> (Vec<ToolServerView>, Vec<String>) {
    let around = StartSurroundings {
        home,
        config,
        workspace: workspace.unwrap_or(&home.state),
        confinement: Confinement::Sandboxed,
        on_ask: OnAsk::Deny,
    };
    match mcp::find(&around) {
        Ok(found) => {
            let servers = found.wanted.iter().map(|server| ToolServerView {
                name: server.name.clone(),
                starts: server.section.shown(),
                of_project: server.source == ServerSource::Project,
            });
            (servers.collect(), found.notes)
        }
        Err(failure) => (Vec::new(), vec![failure.to_string()]),
    }
}

fn hook(name: &str, section: &HookSection, failure: Option<&HookFailure>) -> HookView {
    let host = section.url.as_ref().map(|url| {
        let url = Url::parse(url).ok();
        let host = url.as_ref().and_then(Url::host_str).unwrap_or("?");
        format!("posts to {host}")
    });
    HookView {
        name: name.to_owned(),
        events: section.events.clone(),
        tells: host.unwrap_or_else(|| "runs a command".to_owned()),
        last_failure: failure.cloned(),
    }
}
