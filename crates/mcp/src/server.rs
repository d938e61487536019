//! A server and its state: restarted once, closed at the end.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use gyrus_contract::{ToolSpec, Touch};
use tokio::{
    sync::Mutex,
    time::{sleep, timeout},
};

use crate::{
    LeftOut, OfferedPrompt, ServerSetup, ServerWay,
    connection::{START_LIMIT, ServerConnection, UnansweredCall},
    definition,
    http::{self, NotReached},
    login, pages, prompts, resources,
};

/// Maximum number of starts: a server that ended is started once more.
const STARTS: u32 = 2;

/// Maximum time in which a cycle waits for the changed tools of a server.
const REFRESH_LIMIT: Duration = Duration::from_secs(2);

/// Time to wait before a server is started again.
const PAUSE: Duration = Duration::from_secs(1);

/// A configured server, whether it runs or not.
pub struct McpServer {
    setup: ServerSetup,
    life: Mutex<Life>,
    /// The last connection, so that closing it need not wait for a lock.
    last: parking_lot::Mutex<Option<Arc<ServerConnection>>>,
}

#[derive(Default)]
struct Life {
    starts: u32,
    connection: Option<Arc<ServerConnection>>,
    why: String,
}

/// State of a server.
#[derive(Debug, Clone)]
pub enum ServerState {
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

/// The prompts and resources of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Offers {
    /// A line about each resource and each template of resources.
    pub resources: Vec<String>,
    pub prompts: Vec<OfferedPrompt>,
}

impl McpServer {
    pub(crate) fn new(setup: ServerSetup) -> Self {
        Self {
            setup,
            life: Mutex::default(),
            last: parking_lot::Mutex::default(),
        }
    }

    /// Returns the configuration of the server.
    pub fn setup(&self) -> &ServerSetup {
        &self.setup
    }

    /// Returns the current connection, or a new one. The error is the reason as text.
    pub(crate) async fn connection(&self) -> Result<Arc<ServerConnection>, String> {
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
        match ServerConnection::open(&self.setup).await {
            Ok(connection) => {
                let connection = Arc::new(connection);
                life.connection = Some(connection.clone());
                let mut last = self.last.lock();
                *last = Some(connection.clone());
                Ok(connection)
            }
            Err(why) => {
                life.why.clone_from(&why);
                Err(why)
            }
        }
    }

    fn read(&self, connection: &ServerConnection) -> (Vec<ToolSpec>, Vec<LeftOut>) {
        let (name, reach) = (&self.setup.name, self.setup.reach);
        let (mut tools, left_out) = definition::read(name, reach, &connection.list());
        if connection.offers(|offers| offers.resources.is_some()) {
            resources::add_to(&mut tools, name, reach);
        }
        for touch in tools.iter_mut().flat_map(|tool| &mut tool.touches) {
            if let Touch::Serves(service) = touch {
                service.setup = Some(self.setup.digest);
            }
        }
        (tools, left_out)
    }

    fn last(&self) -> Option<Arc<ServerConnection>> {
        let last = self.last.lock();
        last.clone().filter(|last| last.ended().is_none())
    }

    /// Returns the presently known tools of the server; none if it is not available.
    pub(crate) fn listed(&self) -> Vec<ToolSpec> {
        let last = self.last();
        last.map_or_else(Vec::new, |connection| self.read(&connection).0)
    }

    /// Lists the server's tools again if it announced a change of them.
    pub(crate) async fn refresh(&self) {
        if let Some(connection) = self.last() {
            connection.refresh(REFRESH_LIMIT).await;
        }
    }

    pub(crate) async fn state(&self) -> ServerState {
        match self.connection().await {
            Ok(connection) => {
                let (tools, left_out) = self.read(&connection);
                ServerState::Ready {
                    about: connection.about.clone(),
                    tools,
                    left_out,
                    took: connection.took,
                }
            }
            Err(why) => ServerState::Missing(why),
        }
    }

    /// Returns the challenge of a server that requires a login, or the reason why it requires none.
    pub async fn challenge(setup: &ServerSetup) -> Result<String, String> {
        let ServerWay::Http { url, headers, .. } = &setup.way else {
            return Err("it is started here, and asks for no login".to_owned());
        };
        match timeout(
            START_LIMIT,
            http::connect(url, headers, None, setup.requests),
        )
        .await
        {
            Ok(Ok(_)) => Err("it asks for no login".to_owned()),
            Ok(Err(NotReached::Login(challenge))) => Ok(challenge),
            Ok(Err(NotReached::Other(why))) => Err(why),
            Err(_) => Err(setup.too_slow(START_LIMIT)),
        }
    }

    pub(crate) async fn offers(&self) -> Result<Offers, String> {
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

    pub(crate) async fn prompt(
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
        match connection.ask(request, self.setup.silence, None).await {
            Ok(answer) => {
                let mut text = prompts::text(&answer);
                login::scrub_text(&mut text, &self.setup.tokens());
                Ok(text)
            }
            Err(UnansweredCall::Refused(why)) => Err(format!("it refused: {why}")),
            Err(UnansweredCall::Silent(limit)) => {
                Err(format!("it said nothing for {} s", limit.as_secs()))
            }
            Err(UnansweredCall::Gone(why)) => Err(why),
        }
    }

    pub(crate) async fn leave(&self) {
        let last = self.last.lock().take();
        if let Some(connection) = last {
            connection.leave().await;
        }
    }
}
