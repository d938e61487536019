//! The agent: what a client may call, and the sessions that it has open.

use std::{
    collections::BTreeMap,
    io::{self, Read, Write},
    path::Path,
    sync::Arc,
    time::Duration,
};

use gyrus_contract::RunId;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{
    sync::Semaphore,
    task::{JoinSet, block_in_place},
};

use crate::{
    chains, commands,
    connection::{self, EditorClient, EditorLine},
    host::{AcpHost, SessionSettings},
    message::{self, EditorMessage, Params, RpcError},
    options, prompt,
    session::{self, ClientAbilities, EditorSession, TurnSurroundings},
    turn,
    wire::{
        CancelRequest, Initialize, ListSessions, NamedServer, NamedSession, NewSession, OldSession,
        PROTOCOL_VERSION, PromptSession, SetMode, SetOption,
    },
};

const MAX_SESSIONS: usize = 1_000;

/// Maximum number of turns at work.
const MAX_TURNS: usize = 16;

/// Maximum number of sessions that are read at once.
const READ_AT_ONCE: usize = 4;

/// Maximum number of servers of a session.
const MAX_SERVERS: usize = 32;

/// Time limit for turns to park after the client has gone.
const PARK_WITHIN: Duration = Duration::from_secs(20);

/// Time limit for a departed client to take the remaining output.
const SAY_WITHIN: Duration = Duration::from_secs(1);

/// Serves one client until its input ends or `stop` resolves; then the runs at work are parked.
///
/// # Errors
/// No threads can be started.
pub async fn serve(
    host: Arc<dyn AcpHost>,
    (input, output): (impl Read + Send + 'static, impl Write + Send + 'static),
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let mut lines = connection::read_lines(input)?;
    let (client, writing) = EditorClient::new(output)?;
    let agent = Arc::new(AcpAgent {
        host,
        client: Arc::new(client),
        reading: Semaphore::new(READ_AT_ONCE),
        open: Mutex::default(),
    });
    let mut tasks = JoinSet::new();
    tokio::pin!(stop);
    loop {
        let line = tokio::select! {
            line = lines.recv() => line,
            () = &mut stop => None,
        };
        let Some(line) = line else { break };
        let incoming = match line {
            EditorLine::Whole(line) => block_in_place(|| message::read(&line)),
            EditorLine::TooLong => EditorMessage::Wrong(message::too_long()),
        };
        agent.take(incoming, &mut tasks).await;
        while tasks.try_join_next().is_some() {}
    }
    for session in agent.open.lock().sessions.values() {
        session.park();
    }
    let parked = async { while tasks.join_next().await.is_some() {} };
    // Whoever takes longer is cut off, and can be resumed like any run whose process was killed.
    let _ = tokio::time::timeout(PARK_WITHIN, parked).await;
    drop(tasks);
    drop(agent);
    let written = tokio::task::spawn_blocking(move || writing.join());
    let _ = tokio::time::timeout(SAY_WITHIN, written).await;
    Ok(())
}

struct AcpAgent {
    host: Arc<dyn AcpHost>,
    client: Arc<EditorClient>,
    reading: Semaphore,
    open: Mutex<OpenSessions>,
}

#[derive(Default)]
struct OpenSessions {
    /// The abilities of the client, once it has sent them.
    abilities: Option<ClientAbilities>,
    sessions: BTreeMap<String, Arc<EditorSession>>,
}

impl AcpAgent {
    /// Handles a message. Longer work is done in one of the tasks.
    async fn take(self: &Arc<Self>, incoming: EditorMessage, tasks: &mut JoinSet<()>) {
        match incoming {
            EditorMessage::Nothing => {}
            EditorMessage::Wrong(error) => self.client.send(&error.answer(&Value::Null)).await,
            EditorMessage::Answer { id, outcome } => self.client.answered(id, outcome),
            EditorMessage::Notification { method, params } => self.notified(&method, &params),
            EditorMessage::Request { id, method, params } => {
                self.requested(id, &method, params, tasks).await;
            }
        }
    }

    fn notified(&self, method: &str, params: &Params) {
        match method {
            "session/cancel" => {
                if let Ok(named) = params.read::<NamedSession>()
                    && let Ok(session) = self.session(&named.session_id)
                {
                    session.cancel(self.host.person());
                }
            }
            "$/cancel_request" => {
                let Ok(cancel) = params.read::<CancelRequest>() else {
                    return;
                };
                let open = self.open.lock();
                let is_meant = |session: &&Arc<EditorSession>| {
                    let state = session.state.lock();
                    let turn = state.turn.as_ref();
                    turn.is_some_and(|turn| turn.prompt == cancel.request_id)
                };
                if let Some(session) = open.sessions.values().find(is_meant) {
                    session.cancel(self.host.person());
                }
            }
            // A notification that is not known has no meaning here.
            _ => {}
        }
    }

    async fn requested(
        self: &Arc<Self>,
        id: Value,
        method: &str,
        params: Params,
        tasks: &mut JoinSet<()>,
    ) {
        if method != "initialize" && self.open.lock().abilities.is_none() {
            let error = RpcError::request("`initialize` comes first");
            return self.client.send(&error.answer(&id)).await;
        }
        match method {
            "session/prompt" => return self.prompt(id, &params, tasks).await,
            "session/load" | "session/resume" | "session/list" => {
                let (agent, method) = (self.clone(), method.to_owned());
                tasks.spawn(async move {
                    let _permit = agent.reading.acquire().await;
                    let done = agent.read(&method, &params).await;
                    agent.answer(&id, done).await;
                });
                return;
            }
            _ => {}
        }
        let done = block_in_place(|| match method {
            "initialize" => self.initialize(&params),
            "session/new" => self.create(&params),
            "session/set_mode" => self.set_mode(&params),
            "session/set_config_option" => self.set_option(&params),
            "session/close" => self.close(&params),
            "authenticate" => Err(RpcError::params(
                "there is no way to authenticate; keys of models are stored by: gyrus setup",
            )),
            _ => Err(RpcError::method(method)),
        });
        self.answer(&id, done).await;
    }

    async fn answer(&self, id: &Value, done: Result<RequestResult, RpcError>) {
        match done {
            Ok(RequestResult { result, updates }) => {
                self.client.answer(id, result).await;
                for (session, update) in updates {
                    self.client.update(&session, update).await;
                }
            }
            Err(error) => self.client.send(&error.answer(id)).await,
        }
    }

    fn initialize(&self, params: &Params) -> Result<RequestResult, RpcError> {
        let client: Initialize = params.read()?;
        if !client.protocol_version.is_number() && !client.protocol_version.is_string() {
            return Err(RpcError::params("`protocolVersion` is not a version"));
        }
        let abilities = client.client_capabilities;
        self.open.lock().abilities = Some(ClientAbilities {
            elicits: abilities["elicitation"]["form"].is_object(),
            reads_files: abilities["fs"]["readTextFile"] == true,
        });
        Ok(RequestResult::from(json!({
            "protocolVersion": PROTOCOL_VERSION,
            "agentInfo": {
                "name": "gyrus",
                "title": "gyrus",
                "version": env!("CARGO_PKG_VERSION"),
            },
            "agentCapabilities": {
                "loadSession": true,
                "promptCapabilities": {"image": true, "audio": false, "embeddedContext": true},
                "mcpCapabilities": {"http": true, "sse": false},
                "sessionCapabilities": {"list": {}, "resume": {}, "close": {}},
            },
            "authMethods": [],
        })))
    }

    fn create(&self, params: &Params) -> Result<RequestResult, RpcError> {
        let new: NewSession = params.read()?;
        let folder = self.folder(&new.cwd)?;
        let choices = self.host.choices().map_err(RpcError::internal)?;
        let servers = servers(new.mcp_servers)?;
        let session = EditorSession::new(RunId::new(), folder, servers, choices.chosen);
        let session = self.add(session)?;
        let mut done = self.described(&session)?;
        done.result["sessionId"] = json!(session.id());
        Ok(done)
    }

    fn folder(&self, given: &Path) -> Result<std::path::PathBuf, RpcError> {
        if !given.is_absolute() {
            return Err(RpcError::params("`cwd` is not an absolute path"));
        }
        self.host.folder(given).map_err(RpcError::params)
    }

    fn add(&self, session: EditorSession) -> Result<Arc<EditorSession>, RpcError> {
        let mut open = self.open.lock();
        if open.sessions.len() >= MAX_SESSIONS {
            let why = format!("{MAX_SESSIONS} sessions are open; close one first");
            return Err(RpcError::request(why));
        }
        let session = Arc::new(session);
        open.sessions.insert(session.id(), session.clone());
        Ok(session)
    }

    /// Returns the settings of a session, and its commands.
    fn described(&self, session: &EditorSession) -> Result<RequestResult, RpcError> {
        let choices = self.host.choices().map_err(RpcError::internal)?;
        let settings = session.state.lock().settings.clone();
        let skills = self.host.skills(&session.folder);
        Ok(RequestResult {
            result: json!({
                "modes": options::modes(&choices, &settings),
                "configOptions": options::options(&choices, &settings),
            }),
            updates: vec![(session.id(), commands::available(&skills))],
        })
    }

    fn session(&self, id: &str) -> Result<Arc<EditorSession>, RpcError> {
        let found = self.open.lock().sessions.get(id).cloned();
        found.ok_or_else(|| {
            let id = gyrus_text::quote(id, 60);
            RpcError::not_found(format!("no session {id} is open"))
        })
    }

    fn set_mode(&self, params: &Params) -> Result<RequestResult, RpcError> {
        let set: SetMode = params.read()?;
        let session = self.session(&set.session_id)?;
        let options = self.set(&session, options::APPROVE, &set.mode_id)?;
        let update = json!({"sessionUpdate": "config_option_update", "configOptions": options});
        Ok(RequestResult {
            result: json!({}),
            updates: vec![(session.id(), update)],
        })
    }

    fn set_option(&self, params: &Params) -> Result<RequestResult, RpcError> {
        let set: SetOption = params.read()?;
        let session = self.session(&set.session_id)?;
        let Some(value) = set.value.as_str() else {
            return Err(RpcError::params("`value` is not a text"));
        };
        let options = self.set(&session, &set.config_id, value)?;
        let mut done = RequestResult::from(json!({"configOptions": options}));
        if set.config_id == options::APPROVE {
            let update = json!({"sessionUpdate": "current_mode_update", "currentModeId": value});
            done.updates.push((session.id(), update));
        }
        Ok(done)
    }

    /// Changes a setting of a session from its next turn on; returns all options.
    fn set(&self, session: &EditorSession, id: &str, value: &str) -> Result<Value, RpcError> {
        let choices = self.host.choices().map_err(RpcError::internal)?;
        let settings: SessionSettings = session.state.lock().settings.clone();
        let settings = options::set(&choices, &settings, id, value).map_err(RpcError::params)?;
        self.host
            .check(&session.folder, &settings)
            .map_err(RpcError::params)?;
        session.state.lock().settings = settings.clone();
        Ok(options::options(&choices, &settings))
    }

    fn close(&self, params: &Params) -> Result<RequestResult, RpcError> {
        let named: NamedSession = params.read()?;
        let session = self.session(&named.session_id)?;
        session.cancel(self.host.person());
        self.open.lock().sessions.remove(&named.session_id);
        Ok(RequestResult::from(json!({})))
    }

    async fn read(&self, method: &str, params: &Params) -> Result<RequestResult, RpcError> {
        if method == "session/list" {
            return block_in_place(|| self.list(params));
        }
        let old: OldSession = params.read()?;
        let unknown = || {
            let id = gyrus_text::quote(&old.session_id, 60);
            RpcError::not_found(format!("there is no session {id}"))
        };
        let first: RunId = old.session_id.parse().map_err(|_| unknown())?;
        let store = self.host.store();
        let chain = block_in_place(|| chains::of(store, first));
        let chain = chain.map_err(|error| RpcError::internal(error.to_string()))?;
        let Some(chain) = chain else {
            // One that was just opened has no run yet.
            let session = self.session(&first.to_string()).map_err(|_| unknown())?;
            return block_in_place(|| self.described(&session));
        };
        let folder = block_in_place(|| self.folder(&old.cwd))?;
        if folder != chain.last.workspace {
            let (theirs, given) = (chain.last.workspace.display(), folder.display());
            return Err(RpcError::params(format!(
                "the session works in {theirs}, not in {given}"
            )));
        }
        let is_at_work = |session: Arc<EditorSession>| session.state.lock().turn.is_some();
        if self.session(&first.to_string()).is_ok_and(is_at_work) {
            return Err(RpcError::request("a turn is at work in this session"));
        }
        let choices = block_in_place(|| self.host.choices()).map_err(RpcError::internal)?;
        let session = EditorSession::new(first, folder, servers(old.mcp_servers)?, choices.chosen);
        session.state.lock().last = chain.runs.last().copied();
        let around = self.surroundings();
        let waits_for = if method == "session/load" {
            session::replay(&around, &session, &chain.runs).await?
        } else {
            match chain.runs.last() {
                Some(last) => block_in_place(|| session::left(&around, *last))?.1,
                None => None,
            }
        };
        session.state.lock().waits_for = waits_for;
        let session = self.add(session)?;
        block_in_place(|| self.described(&session))
    }

    fn list(&self, params: &Params) -> Result<RequestResult, RpcError> {
        let list: ListSessions = params.read()?;
        let folder = list.cwd.as_deref();
        // One that does not exist has no sessions.
        let folder = folder.map(|folder| folder.canonicalize().unwrap_or(folder.to_owned()));
        let after = match list.cursor.as_deref().map(str::parse::<RunId>) {
            Some(Err(_)) => {
                return Err(RpcError::params(
                    "`cursor` is not a value that this agent returned",
                ));
            }
            Some(Ok(after)) => Some(after),
            None => None,
        };
        chains::list(self.host.store(), folder.as_deref(), after)
            .map(RequestResult::from)
            .map_err(|error| RpcError::internal(error.to_string()))
    }

    fn surroundings(&self) -> TurnSurroundings {
        let none = ClientAbilities {
            elicits: false,
            reads_files: false,
        };
        TurnSurroundings {
            host: self.host.clone(),
            client: self.client.clone(),
            abilities: self.open.lock().abilities.unwrap_or(none),
        }
    }

    /// Begins a turn, which is answered when it ends.
    async fn prompt(self: &Arc<Self>, id: Value, params: &Params, tasks: &mut JoinSet<()>) {
        let begun = block_in_place(|| {
            let given: PromptSession = params.read()?;
            let session = self.session(&given.session_id)?;
            let prompt = prompt::read(self.host.as_ref(), given.prompt)?;
            let at_work = self
                .open
                .lock()
                .sessions
                .values()
                .filter(|session| session.state.lock().turn.is_some())
                .count();
            if at_work >= MAX_TURNS {
                let why = format!("{MAX_TURNS} turns are at work; wait for the end of one");
                return Err(RpcError::request(why));
            }
            let controls = session.begin(&id)?;
            Ok((session, prompt, controls))
        });
        let (session, prompt, controls) = match begun {
            Ok(begun) => begun,
            Err(error) => return self.client.send(&error.answer(&id)).await,
        };
        let agent = self.clone();
        tasks.spawn(async move {
            let around = agent.surroundings();
            let ended = session.prompt(&around, prompt, controls).await;
            // Before the answer: the client may send the next prompt as soon as it has it.
            session.state.lock().turn = None;
            let done = ended.map(|reason| RequestResult::from(turn::answer(reason)));
            agent.answer(&id, done).await;
        });
    }
}

struct RequestResult {
    result: Value,
    /// Updates to send after the answer, with their sessions.
    updates: Vec<(String, Value)>,
}

impl From<Value> for RequestResult {
    fn from(result: Value) -> Self {
        let updates = Vec::new();
        Self { result, updates }
    }
}

fn servers(named: Option<Vec<NamedServer>>) -> Result<Vec<crate::host::EditorServer>, RpcError> {
    let named = named.unwrap_or_default();
    if named.len() > MAX_SERVERS {
        let why = format!("more than {MAX_SERVERS} servers are named");
        return Err(RpcError::params(why));
    }
    let servers = named.into_iter().map(NamedServer::server);
    servers.collect::<Result<_, _>>().map_err(RpcError::params)
}
