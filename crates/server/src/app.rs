//! The state that the handlers share, and the program around the server.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use gyrus_contract::{Answer, BoxedFuture, RunId};
use gyrus_journal::{LogReader, Store};
use gyrus_kernel::{approvals::OpenQuestion, latch::Latch};
use gyrus_runtime::{
    agents::Agents,
    queue::{AtOnce, Gateway, RunHost},
    triggers::Triggers,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::watch;

use crate::{
    costs::Costs,
    error::ApiError,
    fleet::FleetView,
    heads::{FoundRuns, Heads},
    leases::Leases,
    overview::Overviews,
    state_folder::LastLook,
    surroundings::{AgentFileView, ChatView, ServerSettings},
    tokens::AccessTokens,
    topics::Topics,
};

/// A piece of what a command of the command line does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CommandPiece {
    /// It printed this.
    Stdout(String),
    /// It said this beside.
    Stderr(String),
    /// It ended with this exit code; `null` if a signal ended it.
    Ended(Option<i32>),
}

/// The output of a command, in pieces, the end last. Dropping it interrupts the command.
pub type CommandPieces = tokio::sync::mpsc::Receiver<CommandPiece>;

#[derive(Debug, Clone, Default)]
pub(crate) struct CommandOutput {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// The program around a server.
pub trait HostProgram: RunHost {
    /// Checks an answer before it is given.
    fn check_answer(&self, open: &OpenQuestion, answer: &Answer) -> Result<(), ApiError>;

    /// Returns the files that describe agents, as last read.
    fn agent_files(&self) -> Vec<AgentFileView>;

    /// Returns the settings, and the policy for runs in this folder. May block for the disk.
    ///
    /// # Errors
    /// The folder cannot be worked in.
    fn configured(&self, workdir: Option<&Path>) -> Result<ServerSettings, ApiError>;

    /// Begins to carry out a command of the command line, in a process of its own.
    ///
    /// # Errors
    /// The command cannot be started, or may not be started in this way.
    fn begin_command(
        &self,
        arguments: Vec<String>,
        stdin: Vec<u8>,
    ) -> Result<CommandPieces, ApiError>;

    /// Returns the fleet to which the server belongs, if any.
    fn fleet(&self) -> Option<FleetView>;

    /// Returns the chats of the server.
    fn chats(&self) -> Vec<ChatView>;

    /// Creates a one-time code with which a person is paired with a chat.
    ///
    /// # Errors
    /// There is no such chat.
    fn pairing_code(&self, chat: &str) -> Result<String, ApiError>;

    /// Withdraws a person's right to use a chat.
    ///
    /// # Errors
    /// There is no such chat, or no such person in it.
    fn unpair<'a>(
        &'a self,
        chat: &'a str,
        person: &'a str,
    ) -> BoxedFuture<'a, Result<(), ApiError>>;

    /// Returns a picture of the page in a run's browser at this moment, as PNG.
    ///
    /// # Errors
    /// The run has no browser, or it shows nothing at this moment.
    fn picture(&self, run: RunId) -> BoxedFuture<'_, Result<Vec<u8>, ApiError>>;
}

/// Settings of a server.
#[derive(Debug, Clone)]
pub struct Options {
    /// The program's version and commit.
    pub build: &'static str,
    /// Accepted values of the header `Host`, with port: `127.0.0.1:7717`.
    pub hosts: BTreeSet<String>,
    /// Other origins whose pages may show and answer runs: `https://wiki.example`.
    pub origins: BTreeSet<String>,
    /// Name of the server's cookie. Browsers keep one of each name for all ports of a host.
    pub cookie: String,
    /// The emergency stop that the server shows, sets and lifts.
    pub latch: Latch,
    /// The state folder.
    pub state: PathBuf,
    /// The limits of concurrent runs.
    pub at_once: AtOnce,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) requests: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) streams: AtomicU64,
}

impl Counters {
    pub(crate) fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// Maximum size of a command's output that is kept, in bytes.
const MAX_OUTPUT: usize = 16 << 20;

/// The state of a server.
pub struct App {
    pub(crate) store: Store,
    pub(crate) gateway: Gateway,
    pub(crate) agents: Agents,
    pub(crate) triggers: Triggers,
    pub(crate) tokens: AccessTokens,
    pub(crate) program: Arc<dyn HostProgram>,
    pub(crate) heads: Heads,
    pub(crate) overviews: Overviews,
    pub(crate) leases: Leases,
    pub(crate) topics: Topics,
    pub(crate) costs: Costs,
    pub(crate) state_folder: LastLook,
    pub(crate) counters: Counters,
    pub(crate) options: Options,
    /// The time at which the state was created, in UTC milliseconds.
    pub(crate) started_ms: i64,
    /// The OpenAPI document, set when the router is built.
    pub(crate) document: OnceLock<Value>,
    /// True once the server stops: streams end then.
    pub(crate) stopping: watch::Receiver<bool>,
}

impl App {
    /// Creates a server's state, and begins to follow the runs found in the store.
    pub fn new(
        gateway: Gateway,
        found: FoundRuns,
        triggers: Triggers,
        tokens: AccessTokens,
        program: Arc<dyn HostProgram>,
        options: Options,
        stopping: watch::Receiver<bool>,
    ) -> Arc<Self> {
        let store = gateway.store().clone();
        Arc::new(Self {
            heads: Heads::follow(&store, found),
            overviews: Overviews::default(),
            leases: Leases::default(),
            topics: Topics::default(),
            costs: Costs::default(),
            state_folder: LastLook::default(),
            store,
            gateway,
            agents: triggers.agents().clone(),
            triggers,
            tokens,
            program,
            counters: Counters::default(),
            options,
            started_ms: gyrus_kernel::now_ms(),
            document: OnceLock::new(),
            stopping,
        })
    }

    pub(crate) async fn command(&self, arguments: Vec<String>) -> Result<CommandOutput, ApiError> {
        let mut pieces = self.program.begin_command(arguments, Vec::new())?;
        let mut output = CommandOutput::default();
        while let Some(piece) = pieces.recv().await {
            match piece {
                CommandPiece::Stdout(text) => output.stdout.push_str(&text),
                CommandPiece::Stderr(text) => output.stderr.push_str(&text),
                CommandPiece::Ended(code) => output.code = code,
            }
            if output.stdout.len() + output.stderr.len() > MAX_OUTPUT {
                return Err(ApiError::internal(format!(
                    "the command printed more than {MAX_OUTPUT} bytes"
                )));
            }
        }
        Ok(output)
    }

    /// Returns the number of the last entry of a run that is on disk.
    pub(crate) fn end_of(&self, run: RunId, reader: &LogReader) -> Result<u64, ApiError> {
        let end = reader.end()?;
        Ok(self.heads.of(run).map_or(end, |head| head.seq.min(end)))
    }

    /// Returns the processes that drive runs at this moment.
    pub(crate) fn drivers(&self) -> BTreeSet<u32> {
        let holder = |run: RunId| {
            let holder = self.store.holder(&gyrus_kernel::log_name(run)).ok()??;
            Some(holder.process.pid)
        };
        self.heads.live().into_iter().filter_map(holder).collect()
    }
}
