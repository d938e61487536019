//! The servers of this program: which there are, how they run, and the tools that runs have from
//! them.
//!
//! `start` is how a server is kept and confined.

mod folders;
mod judged_start;
pub(crate) mod start;

use std::{collections::BTreeMap, fmt, path::Path, sync::Arc, time::Duration};

use gyrus_contract::{Arguments, FindToolsCall, LateTools, Origin, RunId, Text, Tool, ToolSpec};
use gyrus_journal::Store;
use gyrus_kernel::{Attachment, StandingRun, grants, log_name, redact::Secret};
use gyrus_mcp::{Offers, PROJECT_FILE, ProjectServers, ServerState, Servers, is_server_name};

pub(crate) use self::start::{ServerSource, ServerWish, StartSurroundings};
use gyrus_text::visible;

use crate::{failure::Failure, keys::KeyLookup, model_choice::ReadyModels, plugins};
use gyrus_surfaces::console::put;

/// Time that a new run waits for its servers.
const READY_WITHIN: Duration = Duration::from_secs(10);

/// A prompt, as a person names it: `SERVER:PROMPT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PromptName {
    pub(crate) server: String,
    pub(crate) name: String,
}

impl PromptName {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some((server, name)) if is_server_name(server) && !name.is_empty() => Ok(Self {
                server: server.to_owned(),
                name: name.to_owned(),
            }),
            _ => Err("a prompt is named SERVER:PROMPT".to_owned()),
        }
    }
}

impl fmt::Display for PromptName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.server, visible(&self.name))
    }
}

/// Reads an argument of a prompt: `NAME=VALUE`.
pub(crate) fn prompt_argument(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("an argument of a prompt is NAME=VALUE".to_owned()),
    }
}

/// All servers that may be started for a folder, with the notes about the others.
pub(crate) struct ServerCandidates {
    pub(crate) wanted: Vec<ServerWish>,
    pub(crate) notes: Vec<String>,
}

/// Finds the servers of a folder: those of the person, and those of the project where the person
/// allowed them.
pub(crate) fn find(around: &StartSurroundings<'_>) -> Result<ServerCandidates, Failure> {
    let mut found = ServerCandidates {
        wanted: Vec::new(),
        notes: Vec::new(),
    };
    for (name, section) in &around.config.mcp {
        section.check(name).map_err(|why| {
            let path = around.home.config.display();
            Failure::usage(format!("{path}: [mcp.{name}] {why}"))
        })?;
        found.wanted.push(ServerWish {
            name: name.clone(),
            section: section.clone(),
            source: ServerSource::Person,
            package: None,
        });
    }
    add_plugins(around, &mut found)?;
    let project = match ProjectServers::read(around.workspace) {
        Ok(Some(project)) => project,
        Ok(None) => return Ok(found),
        // A project's file can add servers; broken, it adds none.
        Err(error) => {
            let failure = Failure::from(error);
            let parts = [&[failure.message][..], &failure.causes[..]].concat();
            found
                .notes
                .push(format!("{}; its servers are not started", parts.join(": ")));
            return Ok(found);
        }
    };
    if !is_allowed(&project, &around.home.store()?, around.workspace)? {
        let names: Vec<_> = project.servers.keys().map(String::as_str).collect();
        found.notes.push(format!(
            "{PROJECT_FILE} of this folder names servers that you have not allowed ({}); look at them: \
             gyrus mcp allow",
            names.join(", ")
        ));
        return Ok(found);
    }
    found.notes.extend(project.left_out);
    for (name, section) in project.servers {
        if found.wanted.iter().any(|known| known.name == name) {
            let whose = if around.config.mcp.contains_key(&name) {
                "your own"
            } else {
                "a plugin's"
            };
            found.notes.push(format!(
                "the server `{name}` of {PROJECT_FILE} is not started: {whose} of that name is"
            ));
            continue;
        }
        found.wanted.push(ServerWish {
            name,
            section,
            source: ServerSource::Project,
            package: None,
        });
    }
    Ok(found)
}

/// Adds the servers of plugins to those of the person. A plugin's server never replaces another one
/// of its name.
fn add_plugins(
    around: &StartSurroundings<'_>,
    found: &mut ServerCandidates,
) -> Result<(), Failure> {
    for standing in plugins::all(around.home)? {
        found.notes.extend(standing.note());
        let Ok(plugin) = standing.plugin else {
            continue;
        };
        for server in plugin.servers {
            let (name, of) = (server.name.clone(), &standing.name);
            if found.wanted.iter().any(|known| known.name == name) {
                found.notes.push(format!(
                    "the server `{name}` of the plugin `{of}` is not started: another one has its name"
                ));
                continue;
            }
            found.wanted.push(ServerWish {
                section: server.at(&standing.package),
                name,
                source: ServerSource::Plugin,
                package: Some(standing.package.clone()),
            });
        }
    }
    Ok(())
}

/// Whether the person allowed exactly this content in a folder.
fn is_allowed(project: &ProjectServers, store: &Store, workspace: &Path) -> Result<bool, Failure> {
    let standing = grants::in_folder(store, workspace)?;
    Ok(standing
        .iter()
        .any(|standing| standing.grant == project.grant()))
}

pub(crate) struct ServedTools {
    /// The tools with which the run begins, or began.
    pub(crate) tools: Vec<Arc<dyn Tool>>,
    /// The tools that may join the run later.
    pub(crate) late: Arc<dyn LateTools>,
}

/// The servers of this process, running or getting ready.
pub(crate) struct ServerSet {
    servers: Servers,
    secrets: Vec<Secret>,
    notes: Vec<String>,
    /// Folders of the servers' pipes and temporary files; dropping this deletes them.
    _folders: Vec<tempfile::TempDir>,
}

impl ServerSet {
    /// Begins to start all servers of a folder. Needs a runtime around it.
    pub(crate) fn start(around: &StartSurroundings<'_>) -> Result<Self, Failure> {
        let ServerCandidates { wanted, notes } = find(around)?;
        Self::start_these(around, &wanted, notes)
    }

    pub(crate) fn start_these(
        around: &StartSurroundings<'_>,
        wanted: &[ServerWish],
        mut notes: Vec<String>,
    ) -> Result<Self, Failure> {
        let keys = KeyLookup::new(&around.config.keys);
        let (mut setups, mut secrets, mut folders) = (Vec::new(), Vec::new(), Vec::new());
        for server in wanted {
            match start::setup(around, server, &keys, &mut secrets) {
                Ok((setup, folder)) => {
                    setups.push(setup);
                    folders.extend(folder);
                }
                // One that cannot be had takes no run along.
                Err(why) => notes.push(missing(&server.name, &why)),
            }
        }
        secrets.extend(keys.secrets());
        Ok(Self {
            servers: Servers::start(setups),
            secrets,
            notes,
            _folders: folders,
        })
    }

    /// Starts the servers for a new run while its model is looked up. Reports missing servers.
    pub(crate) async fn beside(
        around: &StartSurroundings<'_>,
        model: impl Future<Output = Result<ReadyModels, Failure>>,
    ) -> Result<(Self, ReadyModels, ServedTools), Failure> {
        Self::start(around)?.ready(model).await
    }

    /// Returns the tools for a new run, once its model is ready. What is missing is said.
    pub(crate) async fn ready(
        self,
        model: impl Future<Output = Result<ReadyModels, Failure>>,
    ) -> Result<(Self, ReadyModels, ServedTools), Failure> {
        let mut connected = self;
        let mut ready = model.await?;
        ready.secrets.extend(connected.secrets());
        let tools = connected.tools().await?;
        Ok((connected, ready, tools))
    }

    /// Returns the secrets that were passed to the servers, which no run may see.
    pub(crate) fn secrets(&self) -> Vec<Secret> {
        let copy = |secret: &Secret| Secret {
            name: secret.name.clone(),
            value: secret.value.clone(),
        };
        self.secrets.iter().map(copy).collect()
    }

    /// Returns the servers' states, after waiting for at most `limit`.
    pub(crate) async fn states(&mut self, limit: Duration) -> &BTreeMap<String, ServerState> {
        self.servers.states(limit).await
    }

    /// Returns the notes about servers that are not available.
    pub(crate) fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The tools for a new run. What is missing is said.
    pub(crate) async fn tools(&mut self) -> Result<ServedTools, Failure> {
        for (name, state) in self.servers.states(READY_WITHIN).await {
            match state {
                ServerState::Missing(why) => self.notes.push(missing(name, why)),
                ServerState::Ready { left_out, .. } => {
                    self.notes.extend(left_out.iter().map(|left| {
                        format!(
                            "the server `{name}`: its tool `{}` is left out: {}",
                            left.tool, left.why
                        )
                    }));
                }
            }
        }
        self.say()?;
        Ok(ServedTools {
            tools: self.servers.tools(),
            late: self.servers.late_tools(),
        })
    }

    fn say(&mut self) -> Result<(), Failure> {
        let mut notes = self.notes.drain(..);
        Ok(notes.try_for_each(|note| put(&format!("{}\n", visible(&note))))?)
    }

    /// The text of a server's prompt, to be read with a goal: that server's words.
    pub(crate) async fn prompt(
        &mut self,
        prompt: &PromptName,
        arguments: &BTreeMap<String, String>,
    ) -> Result<Attachment, Failure> {
        self.servers.states(READY_WITHIN).await;
        let got = self.servers.prompt(&prompt.server, &prompt.name, arguments);
        let text = got.await.map_err(|why| {
            Failure::usage(format!(
                "the prompt `{prompt}` cannot be had: {}",
                visible(&why)
            ))
            .hint(format!(
                "see what there is: gyrus mcp test {}",
                prompt.server
            ))
        })?;
        let words = format!("The prompt `{prompt}`, in the words of that server:\n{text}");
        let name = format!("the prompt {prompt}");
        Ok(Attachment::Text(Text::new(words, Origin::Tool { name })))
    }

    pub(crate) async fn offers(&self, server: &str) -> Offers {
        self.servers.offers(server).await.unwrap_or_default()
    }

    /// Returns the tools that a run began with, whether their servers are ready yet or not.
    pub(crate) fn tools_of(&mut self, store: &Store, run: RunId) -> Result<ServedTools, Failure> {
        self.say()?;
        Ok(ServedTools {
            tools: tools_as(&self.servers, store, run)?,
            late: self.servers.late_tools(),
        })
    }

    pub(crate) async fn leave(self) {
        self.servers.leave().await;
    }
}

/// Timeout for a server that a person waits for by name.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) async fn tools_of(
    around: &StartSurroundings<'_>,
    name: &str,
) -> Result<Vec<ToolSpec>, Failure> {
    let found = find(around)?;
    let Some(server) = found.wanted.into_iter().find(|server| server.name == name) else {
        return Err(no_such_server(name, &found.notes));
    };
    let mut connected = ServerSet::start_these(around, &[server], Vec::new())?;
    let state = connected.states(PATIENCE).await.get(name).cloned();
    let notes = connected.notes().join("; ");
    connected.leave().await;
    let why = match state {
        Some(ServerState::Ready { tools, .. }) => return Ok(tools),
        Some(ServerState::Missing(why)) => why,
        None => notes,
    };
    let why = format!("the server `{name}` is not there: {}", visible(&why));
    Err(Failure::failed(why).hint(format!("see more: gyrus mcp test {name}")))
}

pub(crate) fn no_such_server(name: &str, notes: &[String]) -> Failure {
    let failure = Failure::usage(format!("there is no server `{name}` for this folder"));
    match notes.first() {
        Some(note) => failure.hint(visible(note)),
        None => failure.hint("see which there are: gyrus mcp list"),
    }
}

fn missing(name: &str, why: &str) -> String {
    format!("the server `{name}` is not there, and its tools are missing: {why}")
}

/// Returns the tools of servers that a run began with, without the servers: for reading and
/// replaying.
pub(crate) fn recorded(store: &Store, run: RunId) -> Result<Vec<Arc<dyn Tool>>, Failure> {
    tools_as(&Servers::default(), store, run)
}

/// Returns the tools that joined a run, without their servers.
pub(crate) fn recorded_late() -> Arc<dyn LateTools> {
    Servers::default().late_tools()
}

/// Returns the tools that a run began with, and the one that finds them if the run had that.
fn tools_as(servers: &Servers, store: &Store, run: RunId) -> Result<Vec<Arc<dyn Tool>>, Failure> {
    let started = StandingRun::read(store, run)?.started;
    let pinned = started.served_tools(&store.reader(&log_name(run))?);
    let pinned = pinned.map_err(|stop| Failure::failed(stop.to_string()))?;
    let pinned = pinned.iter().map(|spec| ToolSpec::clone(spec));
    let had_to_find = started.tools.iter().any(|name| name == FindToolsCall::TOOL);
    Ok(if had_to_find {
        servers.findable_tools_as(pinned)
    } else {
        servers.tools_as(pinned)
    })
}
