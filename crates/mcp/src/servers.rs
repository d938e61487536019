//! All servers of a process: started in the background, and the tools that runs have of them.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use gyrus_contract::{Arguments, BoxedFuture, FindToolsCall, LateTools, Tool, ToolSpec, Touch};
use tokio::{
    task::JoinHandle,
    time::{Instant, timeout_at},
};

use crate::{
    ServerSetup,
    find::{self, ServerToolsNow},
    server::{McpServer, Offers, ServerState},
    tool::ServerTool,
};

/// The servers of one process.
#[derive(Default)]
pub struct Servers {
    servers: Vec<(Arc<McpServer>, Option<JoinHandle<ServerState>>)>,
    states: BTreeMap<String, ServerState>,
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
    pub fn start(setups: Vec<ServerSetup>) -> Self {
        let start = |setup| {
            let server = Arc::new(McpServer::new(setup));
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
    /// not ready by then goes on getting ready, and is not waited for again.
    pub async fn states(&mut self, limit: Duration) -> &BTreeMap<String, ServerState> {
        let limit = if self.states.is_empty() {
            limit
        } else {
            Duration::ZERO
        };
        let deadline = Instant::now() + limit;
        for (server, task) in &mut self.servers {
            let Some(mut starting) = task.take() else {
                continue;
            };
            let state = match timeout_at(deadline, &mut starting).await {
                Ok(Ok(state)) => state,
                Ok(Err(error)) => ServerState::Missing(error.to_string()),
                Err(_) => {
                    let why = server.setup().too_slow(limit);
                    let state = ServerState::Missing(format!("{why}; it joins once it is ready"));
                    *task = Some(starting);
                    self.states.insert(server.setup().name.clone(), state);
                    continue;
                }
            };
            self.states.insert(server.setup().name.clone(), state);
        }
        &self.states
    }

    /// Returns the tools of the servers that were ready at the last call of [`Self::states`]. If
    /// they are too large for every prompt, `find_tools` is one of them.
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let ready = self.states.values().flat_map(|state| match state {
            ServerState::Ready { tools, .. } => tools.as_slice(),
            ServerState::Missing(_) => &[],
        });
        let mut tools = self.tools_as(ready.cloned());
        tools.extend(find::if_large(&tools, self.late_specs()));
        tools
    }

    fn named(&self, name: &str) -> Result<&Arc<McpServer>, String> {
        let mut servers = self.servers.iter().map(|(server, _)| server);
        let server = servers.find(|server| server.setup().name == name);
        server.ok_or_else(|| "there is no server of this name for this folder".to_owned())
    }

    /// Returns the prompts and resources of a server.
    ///
    /// # Errors
    /// A message with the reason why the server is not there.
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
        self.late().tools_as(pinned)
    }

    /// Returns the tools of [`Self::tools_as`] with the one that finds them.
    pub fn findable_tools_as(
        &self,
        pinned: impl IntoIterator<Item = ToolSpec>,
    ) -> Vec<Arc<dyn Tool>> {
        let mut tools = self.tools_as(pinned);
        tools.push(find::over(&tools, self.late_specs()));
        tools
    }

    /// Returns these servers as the source of the tools that may join a run.
    pub fn late_tools(&self) -> Arc<dyn LateTools> {
        Arc::new(self.late())
    }

    fn late(&self) -> Late {
        Late {
            servers: self
                .servers
                .iter()
                .map(|(server, _)| server.clone())
                .collect(),
        }
    }

    fn late_specs(&self) -> ServerToolsNow {
        let late = self.late();
        Arc::new(move || {
            late.servers
                .iter()
                .flat_map(|server| server.listed())
                .collect()
        })
    }

    /// Closes all connections, and waits briefly for the servers to end by themselves.
    pub async fn leave(&self) {
        let mut leaving = tokio::task::JoinSet::new();
        for (server, _) in &self.servers {
            let server = server.clone();
            leaving.spawn(async move { server.leave().await });
        }
        while leaving.join_next().await.is_some() {}
    }
}

/// The servers, whether they are ready or not.
struct Late {
    servers: Vec<Arc<McpServer>>,
}

impl Late {
    fn tools_as(&self, specs: impl IntoIterator<Item = ToolSpec>) -> Vec<Arc<dyn Tool>> {
        let tool = |spec| self.tool_as(spec);
        specs.into_iter().filter_map(tool).collect()
    }

    fn tool_as(&self, mut spec: ToolSpec) -> Option<Arc<dyn Tool>> {
        let [Touch::Serves(service)] = spec.touches.as_mut_slice() else {
            return None;
        };
        let mut servers = self.servers.iter();
        let server = servers
            .find(|server| server.setup().name == service.server)
            .cloned();
        // The reach is today's, not the recorded one, and so is the server.
        if let Some(server) = &server {
            service.reach = server.setup().reach;
            service.setup = Some(server.setup().digest);
        }
        let service = service.clone();
        Some(Arc::new(ServerTool {
            spec,
            service,
            server,
        }))
    }
}

impl LateTools for Late {
    fn present(&self) -> BoxedFuture<'_, Vec<Arc<dyn Tool>>> {
        Box::pin(async move {
            let mut refreshing = tokio::task::JoinSet::new();
            for server in &self.servers {
                let server = server.clone();
                refreshing.spawn(async move { server.refresh().await });
            }
            while refreshing.join_next().await.is_some() {}
            let mut tools = self.tools_as(self.servers.iter().flat_map(|server| server.listed()));
            tools.extend(find::if_large(&tools, Arc::new(Vec::new)));
            tools
        })
    }

    fn recorded(&self, spec: ToolSpec) -> Option<Arc<dyn Tool>> {
        if spec.name == FindToolsCall::TOOL {
            let servers = self.servers.clone();
            let listed = move || servers.iter().flat_map(|server| server.listed()).collect();
            return Some(find::recorded(spec, Arc::new(listed)));
        }
        self.tool_as(spec)
    }
}
