//! `gyrus serve`: runs, agents and questions for every surface that speaks HTTP.

mod agents;
mod around;
mod chats;
pub(crate) mod client;
mod configured;
mod connect;
mod hooks;
mod desktop_clipboard;
pub(crate) mod listen;
pub(crate) mod mcp;
mod service;
pub(crate) mod parking;
mod place;
pub(crate) mod workers;

use std::{
    error::Error,
    net::SocketAddr,
    num::NonZeroUsize,
    sync::{Arc, OnceLock},
};

use clap::{Args, Subcommand};
use gyrus_contract::{DEFAULT_AGENT, RunId};
use gyrus_journal::{Error as JournalError, Store};
use gyrus_kernel::{RunState, StandingRun, latch::Latch, log_name};
use gyrus_runtime::{
    BusError,
    agents::AgentError,
    ledger::LedgerError,
    queue::{AtOnce, Dispatcher, Gateway, QueueCommand, QueueError, QueueWork},
    triggers::TriggerError,
};
use gyrus_server::{AccessTokens, App, FoundRuns, Options, TokenError, TokenScope};
use gyrus_surfaces::{
    console::{keep_log, put},
    output,
    projection::goal,
    terminal,
};
use gyrus_text::clip;
use serde_json::json;
use tokio::sync::watch;

use self::{
    around::ServerProgram,
    client::ServerLocation,
    hooks::HookFailures,
    parking::{EndSignals, park},
    place::ServedRuns,
    service::PORT,
};
pub(crate) use self::{around::printed, connect::elsewhere, workers::Processes};
use crate::{Gyrus, drive, exit::Code, failure::Failure, inside_run};

/// Default number of concurrent runs.
const AT_ONCE: NonZeroUsize = NonZeroUsize::new(4).expect("it is not zero");

/// Let programs and a browser start, watch and answer runs
///
/// Prints the address to open, which lets one browser in. Commands, open questions and interrupted
/// runs are taken up again at every start. Ctrl-C parks what is at work; the next start goes on
/// with it.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Serve {
    #[command(subcommand)]
    command: Option<ServeCommand>,
    /// Port on this machine; 0 picks a free one
    #[arg(long, default_value_t = PORT)]
    port: u16,
    /// Secret that programs send as `Authorization: Bearer`, at least 20 characters; it may do
    /// everything
    #[arg(long, value_name = "SECRET")]
    token: Option<String>,
    /// Maximum number of runs at once
    #[arg(long, value_name = "N", default_value_t = AT_ONCE)]
    at_once: NonZeroUsize,
    /// Maximum number of runs of one agent at once (default: as --at-once)
    #[arg(long, value_name = "N")]
    per_agent: Option<NonZeroUsize>,
    /// Leave runs alone that other processes left unfinished
    #[arg(long)]
    no_resume: bool,
    /// Be a door of this fleet: show, start, answer and stop its runs, which its workers drive
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["at_once", "per_agent", "no_resume"])]
    fleet: Option<String>,
}

#[derive(Subcommand)]
enum ServeCommand {
    /// Print an address that lets another browser in
    Open,
    Token(TokenFlags),
    Install(service::InstallService),
    /// End the service that `install` made, and remove its files
    Uninstall,
}

/// Make, list and revoke tokens of programs
#[derive(Args)]
struct TokenFlags {
    /// Name of a token to make; without it, the tokens are listed
    name: Option<String>,
    /// Scopes of its holder: read, act, approve; several, separated by commas
    #[arg(
        long,
        value_name = "SCOPES",
        default_value = "read",
        value_delimiter = ','
    )]
    scope: Vec<String>,
    /// Revoke the token instead
    #[arg(long, requires = "name")]
    revoke: bool,
}

impl Serve {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        inside_run::refuse("serve")?;
        let runtime = drive::runtime()?;
        let done = match &self.command {
            None => runtime.block_on(self.serve(gyrus)),
            Some(ServeCommand::Open) => runtime.block_on(open(gyrus)),
            Some(ServeCommand::Token(flags)) => runtime.block_on(flags.execute(gyrus)),
            Some(ServeCommand::Install(install)) => install.execute(gyrus),
            Some(ServeCommand::Uninstall) => service::uninstall(gyrus),
        };
        runtime.shutdown_background();
        done
    }

    async fn serve(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        gyrus.home()?.create_state()?;
        let hooks = hooks::configured(gyrus)?;
        let place = ServedRuns::open(gyrus, self.fleet.as_deref()).await?;
        let (gyrus, gateway) = (&place.gyrus, place.gateway.clone());
        let chats = chats::configured(gyrus, &place.latch)?;
        let home = gyrus.home()?;
        let store = home.store()?;
        let tokens = self.tokens(&store).await?;
        let person = terminal::person(gyrus.environment.user.as_deref(), "local socket");
        let (address, listeners) = listen::listen(&home, self.port, person).await?;
        let found = FoundRuns::look(&store)?;
        let taken_up = self.take_up(&place, &found).await?;
        let (stop, stopping) = watch::channel(false);
        let processes = Arc::new(Processes::new(None, place.words.clone()));
        let at_once = self.at_once();
        let dispatcher = place.dispatcher(processes.clone(), at_once);
        let (triggers, agent_files, following) = agents::begin(gyrus, &home, &gateway).await?;
        let bus = triggers.agents().bus();
        gateway.announce_on(bus.clone());
        let failures = HookFailures::default();
        let _hooks = hooks::begin(hooks, bus, &failures).await?;
        let around = Arc::new(ServerProgram {
            gyrus: gyrus.clone(),
            processes,
            agents: triggers.agents().clone(),
            agent_files,
            failures,
            fleet: place.fleet.clone(),
            chats: OnceLock::new(),
        });
        let code = tokens.code(TokenScope::all())?;
        let app = App::new(
            gateway.clone(),
            found,
            triggers,
            tokens,
            around.clone(),
            options(gyrus, address, place.latch.clone(), at_once)?,
            stopping.clone(),
        );
        show_address(&format!("http://{address}/#{code}"))?;
        let mut signals = EndSignals::new()?;
        let _ = keep_log(home.state.join("logs/serve.log"));
        put(&said(&taken_up))?;
        let chats = chats::begin(chats, &gateway, &around).await?;
        tokio::spawn(gyrus_server::announce(Arc::clone(&app)));
        let router =
            gyrus_server::router(app, vec![mcp::mounted(&around, &gateway, stopping.clone())]);
        let serving = gyrus_server::serve(listeners, router, stopping.clone());
        let dispatching = dispatch(dispatcher, stopping);
        tokio::pin!(serving, dispatching);
        let ended: Result<(), Failure> = tokio::select! {
            () = signals.next() => Ok(()),
            failed = &mut serving => failed.map_err(Failure::from),
            failed = &mut dispatching => failed.map_err(Failure::from),
        };
        following.abort();
        let _ = stop.send(true); // Who follows is let go, and nothing more is started.
        if ended.is_ok() {
            // From here on a run that ends is one that the next start goes on with.
            dispatching.await?;
        }
        tokio::select! {
            () = signals.next() => {}
            ((), ()) = async { tokio::join!(leave(&place), chats::stop(chats)) } => {}
        }
        listen::remove_socket(&home);
        ended.map(|()| Code::Reached)
    }

    /// Returns the tokens of the store, including the one given on the command line.
    async fn tokens(&self, store: &Store) -> Result<AccessTokens, Failure> {
        let tokens = AccessTokens::open(store)?;
        if let Some(secret) = &self.token {
            tokens
                .set("command-line", TokenScope::all(), secret)
                .await?;
        }
        Ok(tokens)
    }

    /// Queues runs that have not ended and that no process holds, because their processes died.
    /// Returns a line about each.
    async fn take_up(&self, place: &ServedRuns, found: &FoundRuns) -> Result<Vec<String>, Failure> {
        if !place.is_own() {
            return Ok(Vec::new());
        }
        let (gateway, gyrus) = (&place.gateway, &place.gyrus);
        let mut taken_up = Vec::new();
        let unfinished = found.unfinished().filter(|_| !self.no_resume);
        for (run, state) in unfinished {
            let is_open = gateway.with(|queue| queue.is_open(run));
            // A run of a fleet is gone on with by its workers.
            let is_ours = !gateway.store().needs_replica(&log_name(run));
            if !is_open && is_ours && matches!(state, RunState::CutOff) {
                resume(gateway, gyrus, run).await?;
                taken_up.push(format!(
                    "{}  {}",
                    run.short(),
                    goal_of(gateway.store(), run)
                ));
            }
        }
        Ok(taken_up)
    }

    fn at_once(&self) -> AtOnce {
        AtOnce {
            in_all: self.at_once.get(),
            per_agent: self.per_agent.unwrap_or(self.at_once).get(),
        }
    }
}

impl TokenFlags {
    async fn execute(&self, gyrus: &Gyrus) -> Result<Code, Failure> {
        let home = gyrus.home()?;
        home.create_state()?;
        // A server that is at work holds them; without one they are changed here.
        let store = home.store()?;
        let own = AccessTokens::open(&store).ok();
        let server = ServerLocation::of(&home);
        match (&self.name, self.revoke) {
            (None, _) => {
                let tokens = match own {
                    Some(_) => json!(AccessTokens::list(&store)?),
                    None => server.get("/api/tokens").await?,
                };
                for token in tokens.as_array().into_iter().flatten() {
                    output::standard().json(token)?;
                }
            }
            (Some(name), true) => {
                if let Some(own) = own {
                    if own.revoke(name).await? == 0 {
                        return Err(Failure::usage(format!("there is no token `{name}`")));
                    }
                } else {
                    server.delete(&format!("/api/tokens/{name}")).await?;
                }
                put(&format!("the token `{name}` does not count any more\n"))?;
            }
            (Some(name), false) if matches!(name.as_str(), "list" | "make" | "revoke") => {
                let error = format!("`{name}` would be the name of a new token");
                return Err(Failure::usage(error)
                    .hint("to list them, give no name; to revoke one: NAME --revoke"));
            }
            (Some(name), false) => {
                let token = if let Some(own) = own {
                    let scopes = self.scope.iter().map(|scope| scope_named(scope));
                    json!(own.make(name, scopes.collect::<Result<_, _>>()?).await?)
                } else {
                    let body = json!({"name": name, "scopes": self.scope});
                    server.post("/api/tokens", &body).await?["token"].take()
                };
                writeln!(output::standard(), "{}", token.as_str().unwrap_or_default())?;
                put("it is not shown again; send it as `Authorization: Bearer`\n")?;
            }
        }
        Ok(Code::Reached)
    }
}

fn scope_named(given: &str) -> Result<TokenScope, Failure> {
    let scope = serde_json::from_value(json!(given));
    scope.map_err(|_| {
        let failure = Failure::usage(format!("there is no scope `{given}`"));
        failure.hint("the scopes are read, act and approve")
    })
}

/// Prints an address that admits another browser.
async fn open(gyrus: &Gyrus) -> Result<Code, Failure> {
    let home = gyrus.home()?;
    let invitation = ServerLocation::of(&home)
        .post("/api/invitations", &json!({}))
        .await?;
    let code = invitation["code"].as_str().unwrap_or_default();
    let address = listen::address(&home)?;
    writeln!(output::standard(), "{address}/#{code}")?;
    Ok(Code::Reached)
}

fn show_address(address: &str) -> Result<(), Failure> {
    let mut out = output::standard();
    writeln!(out, "{address}")?;
    Ok(out.flush()?)
}

fn said(taken_up: &[String]) -> String {
    let mut text = "open this address; it lets one browser in, within ten minutes\n".to_owned();
    if !taken_up.is_empty() {
        let runs = gyrus_text::counted(taken_up.len(), "interrupted run");
        text.push_str(&format!(
            "going on with {runs}; next time without: --no-resume\n"
        ));
    }
    for line in taken_up {
        text.push_str(&format!("  {line}\n"));
    }
    text
}

fn goal_of(store: &Store, run: RunId) -> String {
    let read = || {
        let started = StandingRun::read(store, run).ok()?.started;
        let reader = store.reader(&log_name(run)).ok()?;
        Some(clip(&goal(&started.goal, &reader), GOAL))
    };
    read().unwrap_or_default()
}

/// Maximum length of a goal in a line about a resumed run, in characters.
const GOAL: usize = 70;

/// Returns the settings of a server at this address. A browser on this machine may mean it by
/// several names.
fn options(
    gyrus: &Gyrus,
    address: SocketAddr,
    latch: Latch,
    at_once: AtOnce,
) -> Result<Options, Failure> {
    let port = address.port();
    Ok(Options {
        build: gyrus::BUILD,
        hosts: ["127.0.0.1", "localhost", "[::1]"]
            .map(|host| format!("{host}:{port}"))
            .into(),
        origins: gyrus.config()?.serve.origins().map_err(Failure::usage)?,
        cookie: format!("gyrus-{port}"),
        latch,
        state: gyrus.home()?.state,
        at_once,
    })
}

/// Starts commands until `stopping`, if there is a dispatcher.
async fn dispatch(
    dispatcher: Option<Dispatcher>,
    mut stopping: watch::Receiver<bool>,
) -> Result<(), QueueError> {
    match dispatcher {
        Some(dispatcher) => dispatcher.run(stopping).await,
        None => {
            let _ = stopping.wait_for(|stops| *stops).await;
            Ok(())
        }
    }
}

/// Parks the runs at work, unless workers of a fleet drive them.
async fn leave(place: &ServedRuns) {
    if place.is_own() {
        // Whoever does not see this sees the runs parked.
        let _ = put("parking what is at work; again: leave it\n");
        park(&place.gateway).await;
    }
}

/// Queues a run whose process died.
async fn resume(gateway: &Gateway, gyrus: &Gyrus, run: RunId) -> Result<(), Failure> {
    let agent = StandingRun::read(gateway.store(), run).map_or_else(
        |_| DEFAULT_AGENT.to_owned(),
        |standing| standing.started.agent,
    );
    let from = terminal::person(gyrus.environment.user.as_deref(), "serve");
    let new = QueueCommand::new(QueueWork::Resume, Some(run), from, agent);
    gateway.submit(new).await?;
    Ok(())
}

impl From<QueueError> for Failure {
    fn from(error: QueueError) -> Self {
        let unusable = |error: &(dyn Error + 'static)| {
            Self::failed("the queue of commands cannot be used").because(error)
        };
        match error {
            // The queue is written by one process.
            QueueError::Ledger(LedgerError::Journal(held @ JournalError::Held { .. })) => unusable(&held)
                .hint("one server serves one state folder; end the other, or name another with GYRUS_HOME"),
            QueueError::Ledger(error) => error.into(),
            error => unusable(&error),
        }
    }
}

impl From<AgentError> for Failure {
    fn from(error: AgentError) -> Self {
        Self::failed("the agents cannot be used").because(&error)
    }
}

impl From<TriggerError> for Failure {
    fn from(error: TriggerError) -> Self {
        Self::failed("the triggers cannot be used").because(&error)
    }
}

impl From<BusError> for Failure {
    fn from(error: BusError) -> Self {
        Self::failed("the event bus cannot be used").because(&error)
    }
}

impl From<TokenError> for Failure {
    fn from(error: TokenError) -> Self {
        match error {
            TokenError::Weak | TokenError::BadName { .. } | TokenError::Exists { .. } => {
                Self::usage(error)
            }
            _ => Self::failed("the tokens cannot be used").because(&error),
        }
    }
}
