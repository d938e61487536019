//! Servers and their states: started in the background, restarted once, closed at the end.

use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError},
    time::Duration,
};

use gyrus_contract::{Tool, ToolSpec, Touch};
use tokio::{
    sync::Mutex,
    task::JoinHandle,
    time::{Instant, sleep, timeout, timeout_at},
};

use crate::{
    LeftOut, OfferedPrompt, Setup, Way,
    connection::{Connection, NoAnswer, START_LIMIT},
    definition, find,
    http::{self, NotReached},
    login, pages, prompts, resources,
    tool::Served,
};

/// Maximum number of starts: a server that ended is started once more.
const STARTS: u32 = 2;

/// Time to wait before a server is started again.
const PAUSE: Duration = Duration::from_secs(1);

/// A configured server, whether it runs or not.
pub struct Server {
    setup: Setup,
    life: Mutex<Life>,
    /// The last connection, so that closing it need not wait for a lock.
    last: std::sync::Mutex<Option<Arc<Connection>>>,
}

#[derive(Default)]
struct Life {
    starts: u32,
    connection: Option<Arc<Connection>>,
    why: String,
}

/// State of a server.
#[derive(Debug, Clone)]
pub enum State {
    /// The server answers.
    Ready {
        /// The server's name and protocol version, in its own words.
        about: String,
        /// The usable tools, in order of name.
        tools: Vec<ToolSpec>,
        /// The tools that cannot be used.
        left_out: Vec<LeftOut>,
        /// Time from the start until the server was ready.
        took: Duration,
    },
    /// The server is not available, for this reason.
    Missing(String),
}

/// Things that a server offers beside its tools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Offers {
    /// A line about each resource and each template of resources.
    pub resources: Vec<String>,
    /// The prompts.
    pub prompts: Vec<OfferedPrompt>,
}

impl Server {
    fn new(setup: Setup) -> Self {
        Self {
            setup,
            life: Mutex::default(),
            last: std::sync::Mutex::default(),
        }
    }

    /// Returns the configuration of the server.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Returns the current connection, or a new one. The error is the reason as text.
    pub(crate) async fn connection(&self) -> Result<Arc<Connection>, String> {
        let mut life = self.life.lock().await;
        if let Some(connection) = &life.connection {
            match connection.ended() {
                None => return Ok(connection.clone()),
                Some(why) => life.why = why,
            }
            life.connection = None;
        }
        if life.starts == STARTS {
            return Err(format!(
                "it failed, was started again, and failed again: {}; gyrus mcp test {} shows more",
                life.why, self.setup.name
            ));
        }
        if life.starts > 0 {
            sleep(PAUSE).await;
        }
        life.starts += 1;
        match Connection::open(&self.setup).await {
            Ok(connection) => {
                let connection = Arc::new(connection);
                life.connection = Some(connection.clone());
                let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
                *last = Some(connection.clone());
                Ok(connection)
            }
            Err(why) => {
                life.why.clone_from(&why);
                Err(why)
            }
        }
    }

    async fn state(&self) -> State {
        match self.connection().await {
            Ok(connection) => {
                let (name, reach) = (&self.setup.name, self.setup.reach);
                let (mut tools, left_out) = definition::read(name, reach, &connection.list);
                if connection.offers(|offers| offers.resources.is_some()) {
                    resources::add_to(&mut tools, name, reach);
                }
                State::Ready {
                    about: connection.about.clone(),
                    tools,
                    left_out,
                    took: connection.took,
                }
            }
            Err(why) => State::Missing(why),
        }
    }

    /// Returns the challenge of a server that asks for a login, or the reason in words why there is
    /// none to answer.
    pub async fn challenge(setup: &Setup) -> Result<String, String> {
        let Way::Http { url, headers, .. } = &setup.way else {
            return Err("it is started here, and asks for no login".to_owned());
        };
        match timeout(START_LIMIT, http::connect(url, headers, None)).await {
            Ok(Ok(_)) => Err("it asks for no login".to_owned()),
            Ok(Err(NotReached::Login(challenge))) => Ok(challenge),
            Ok(Err(NotReached::Other(why))) => Err(why),
            Err(_) => Err(setup.too_slow(START_LIMIT)),
        }
    }

    /// Returns what it offers beside its tools.
    async fn offers(&self) -> Result<Offers, String> {
        let connection = self.connection().await?;
        let (mut resources, mut prompts) = (Vec::new(), Vec::new());
        if connection.offers(|offers| offers.resources.is_some()) {
            let listed = connection.list_of(pages::RESOURCES).await;
            resources.extend(
                listed
                    .iter()
                    .filter_map(|said| resources::line(said, "uri")),
            );
            let listed = connection.list_of(pages::TEMPLATES).await;
            resources.extend(
                listed
                    .iter()
                    .filter_map(|said| resources::line(said, "uriTemplate")),
            );
        }
        if connection.offers(|offers| offers.prompts.is_some()) {
            let listed = connection.list_of(pages::PROMPTS).await;
            prompts.extend(listed.iter().filter_map(OfferedPrompt::read));
        }
        Ok(Offers { resources, prompts })
    }

    /// Returns the text of one of its prompts.
    async fn prompt(
        &self,
        name: &str,
        arguments: &BTreeMap<String, String>,
    ) -> Result<String, String> {
        let offered = self.offers().await?.prompts;
        let Some(prompt) = offered.iter().find(|prompt| prompt.name == name) else {
            let names: Vec<String> = offered
                .iter()
                .map(|prompt| definition::clean(&prompt.name))
                .collect();
            return Err(match names.as_slice() {
                [] => "it has no prompts".to_owned(),
                names => format!("it has no such prompt, but {}", names.join(", ")),
            });
        };
        prompt.check(arguments)?;
        let request = prompts::getting(name, arguments);
        let connection = self.connection().await?;
        match connection.ask(request, self.setup.silence, |_| {}).await {
            Ok(answer) => {
                let mut text = prompts::text(&answer);
                login::scrub_text(&mut text, &self.setup.tokens());
                Ok(text)
            }
            Err(NoAnswer::Refused(why)) => Err(format!("it refused: {why}")),
            Err(NoAnswer::Silent(limit)) => {
                Err(format!("it said nothing for {} s", limit.as_secs()))
            }
            Err(NoAnswer::Gone(why)) => Err(why),
        }
    }

    async fn leave(&self) {
        let last = self
            .last
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(connection) = last {
            connection.leave().await;
        }
    }
}

/// The servers of one process.
#[derive(Default)]
pub struct Servers {
    servers: Vec<(Arc<Server>, Option<JoinHandle<State>>)>,
    states: BTreeMap<String, State>,
}

impl Drop for Servers {
    fn drop(&mut self) {
        for starting in self.servers.iter().filter_map(|(_, task)| task.as_ref()) {
            starting.abort();
        }
    }
}

impl Servers {
    /// Starts all servers at once, without waiting for them.
    pub fn start(setups: Vec<Setup>) -> Self {
        let start = |setup| {
            let server = Arc::new(Server::new(setup));
            let starting = server.clone();
            let task = tokio::spawn(async move { starting.state().await });
            (server, Some(task))
        };
        Self {
            servers: setups.into_iter().map(start).collect(),
            states: BTreeMap::new(),
        }
    }

    /// Returns the states by name, after waiting for all servers for at most `limit`. One that is
    /// not ready by then is abandoned.
    pub async fn states(&mut self, limit: Duration) -> &BTreeMap<String, State> {
        let deadline = Instant::now() + limit;
        for (server, task) in &mut self.servers {
            let Some(mut starting) = task.take() else {
                continue;
            };
            let state = match timeout_at(deadline, &mut starting).await {
                Ok(Ok(state)) => state,
                Ok(Err(error)) => State::Missing(error.to_string()),
                Err(_) => {
                    starting.abort();
                    State::Missing(server.setup.too_slow(limit))
                }
            };
            self.states.insert(server.setup.name.clone(), state);
        }
        &self.states
    }

    /// Returns the tools of the servers that were ready at the last call of [`Self::states`]. If
    /// they are too large for every prompt, `find_tools` is one of them.
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let ready = self.states.values().flat_map(|state| match state {
            State::Ready { tools, .. } => tools.as_slice(),
            State::Missing(_) => &[],
        });
        let mut tools = self.tools_as(ready.cloned());
        tools.extend(find::if_large(&tools));
        tools
    }

    fn named(&self, name: &str) -> Result<&Arc<Server>, String> {
        let mut servers = self.servers.iter().map(|(server, _)| server);
        let server = servers.find(|server| server.setup.name == name);
        server.ok_or_else(|| "there is no server of this name for this folder".to_owned())
    }

    /// Returns what a server offers beside its tools.
    ///
    /// # Errors
    /// Returns the reason in words when the server is not there.
    pub async fn offers(&self, server: &str) -> Result<Offers, String> {
        self.named(server)?.offers().await
    }

    /// Returns the text of a prompt of a server, bounded: that server's words.
    ///
    /// # Errors
    /// Returns the reason in words when there is no such server or prompt, or its arguments are
    /// wrong.
    pub async fn prompt(
        &self,
        server: &str,
        name: &str,
        arguments: &BTreeMap<String, String>,
    ) -> Result<String, String> {
        self.named(server)?.prompt(name, arguments).await
    }

    /// Returns the tools that a run began with, as described then, whether or not their servers are
    /// available.
    pub fn tools_as(&self, pinned: impl IntoIterator<Item = ToolSpec>) -> Vec<Arc<dyn Tool>> {
        let tool = |spec| self.tool_as(spec);
        pinned.into_iter().filter_map(tool).collect()
    }

    fn tool_as(&self, mut spec: ToolSpec) -> Option<Arc<dyn Tool>> {
        let [Touch::Serves(service)] = spec.touches.as_mut_slice() else {
            return None;
        };
        let mut servers = self.servers.iter().map(|(server, _)| server);
        let server = servers
            .find(|server| server.setup.name == service.server)
            .cloned();
        // The reach is today's, not the recorded one.
        if let Some(server) = &server {
            service.reach = server.setup.reach;
        }
        let service = service.clone();
        Some(Arc::new(Served {
            spec,
            service,
            server,
        }))
    }

    /// Returns the tools of [`Self::tools_as`] with the one that finds them.
    pub fn findable_tools_as(
        &self,
        pinned: impl IntoIterator<Item = ToolSpec>,
    ) -> Vec<Arc<dyn Tool>> {
        let mut tools = self.tools_as(pinned);
        tools.push(find::over(&tools));
        tools
    }

    /// Closes all connections, and gives the servers a moment to end by themselves.
    pub async fn leave(&self) {
        let mut leaving = tokio::task::JoinSet::new();
        for (server, _) in &self.servers {
            let server = server.clone();
            leaving.spawn(async move { server.leave().await });
        }
        while leaving.join_next().await.is_some() {}
    }
}
