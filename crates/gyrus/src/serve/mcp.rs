//! Runs for clients that speak the Model Context Protocol: behind the server's address `/mcp`, and as
//! `gyrus mcp serve` on standard input and output.

use std::{
    collections::{BTreeSet, HashMap},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use axum::routing::post_service;
use gyrus_contract::{BoxedFuture, OnAsk, Principal, RunId};
use gyrus_journal::{Holder, Store};
use gyrus_kernel::log_name;
use gyrus_mcp_server::{Identify, McpHost, McpServeError, http_service, serve_stdio};
use gyrus_runtime::{
    queue::{Gateway, QueueCommand, QueueWork, RunHost, Workers as _, in_time},
    request::{RefusedRequest, RunRequest},
};
use gyrus_server::{AccessTokens, MountedService, Requester, TokenScope};
use parking_lot::Mutex;
use tokio::sync::watch;

use super::{
    around::{ServerProgram, checked, printed},
    parking::{EndSignals, park_these},
    workers::Processes,
};
use crate::{Gyrus, drive, env::GYRUS_TOKEN, exit::Code, failure::Failure};

const PATH: &str = "/mcp";

/// Maximum number of runs at once of a client that started this process.
const AT_ONCE: usize = 8;

/// Time within which a process must have taken its run.
const BEGINS_WITHIN: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The surface of a client that shows no token.
const SURFACE: &str = "mcp";

/// Returns the MCP service of a server, whose runs are commands of the server's queue.
pub(super) fn mounted(
    around: &Arc<ServerProgram>,
    gateway: &Gateway,
    stopping: watch::Receiver<bool>,
) -> MountedService {
    let host = Arc::new(InQueue {
        around: around.clone(),
        gateway: gateway.clone(),
    });
    let service = http_service(host, stopping);
    MountedService {
        path: PATH,
        route: post_service(service.clone())
            .get_service(service.clone())
            .delete_service(service),
    }
}

/// Serves one client on standard input and output, with runs in or below a folder.
pub(crate) fn serve(gyrus: &Gyrus, folder: PathBuf) -> Result<Code, Failure> {
    let home = gyrus.home()?;
    home.create_state()?;
    let (store, identify) = (home.store()?, identify(gyrus)?);
    let processes = Processes::new(None, Vec::new());
    drive::wait_for(async {
        let host = Arc::new(OfProcess {
            gyrus: gyrus.clone(),
            store,
            folder,
            processes,
            begun: Mutex::default(),
        });
        let mut signals = EndSignals::new()?;
        let served = tokio::select! {
            served = serve_stdio(host.clone(), identify) => served,
            () = signals.next() => Ok(()),
        };
        tokio::select! {
            () = host.park() => {}
            () = signals.next() => {}
        }
        Ok(served.map(|()| Code::Reached)?)
    })?
}

/// Returns how the client of a process is identified: by the token that it was started with, or as
/// somebody who may do what needs no approval.
fn identify(gyrus: &Gyrus) -> Result<Identify, Failure> {
    let Some(secret) = gyrus.environment.token.clone() else {
        return Ok(Arc::new(|name: &str| somebody(name, TokenScope::Act)));
    };
    let store = gyrus.store()?;
    if AccessTokens::holder(&store, &secret)?.is_none() {
        let failure = Failure::usage(format!("the token in {GYRUS_TOKEN} does not count"));
        return Err(failure.hint("make one: gyrus serve token NAME --scope read,act,approve"));
    }
    Ok(Arc::new(move |name: &str| {
        // One that was revoked meanwhile, or cannot be looked up, gives no right.
        let holder = AccessTokens::holder(&store, &secret).ok().flatten();
        holder.unwrap_or_else(|| somebody(name, TokenScope::Read))
    }))
}

fn somebody(name: &str, scope: TokenScope) -> Requester {
    let principal = Principal {
        surface: SURFACE.to_owned(),
        id: name.to_owned(),
    };
    Requester::new(principal, BTreeSet::from([scope]))
}

/// Runs of an MCP client as commands of the server's queue.
struct InQueue {
    around: Arc<ServerProgram>,
    gateway: Gateway,
}

impl RunHost for InQueue {
    fn check(&self, request: RunRequest) -> Result<RunRequest, RefusedRequest> {
        self.around.check(request)
    }

    fn command(&self, arguments: Vec<String>) -> BoxedFuture<'_, Result<String, String>> {
        self.around.command(arguments)
    }
}

impl McpHost for InQueue {
    fn store(&self) -> &Store {
        self.gateway.store()
    }

    fn folder(&self) -> Option<&Path> {
        None
    }

    fn submit(
        &self,
        run: RunId,
        work: QueueWork,
        from: Principal,
        agent: String,
    ) -> BoxedFuture<'_, Result<(), String>> {
        Box::pin(async move {
            let new = QueueCommand::new(work, Some(run), from, agent);
            let submitted = in_time(self.gateway.submit(new)).await;
            submitted.map_err(|error| gyrus_net::causes(&error))?;
            Ok(())
        })
    }

    fn settled(&self, run: RunId) -> BoxedFuture<'_, String> {
        Box::pin(async move {
            match self.gateway.ended(run).await {
                Some(summary) => summary,
                None => left_by_holder(self.store(), run).await,
            }
        })
    }
}

/// The end of the work for a run, as text, once it has ended.
type WorkEnd = watch::Receiver<Option<String>>;

/// Runs of one MCP client, each in a process of its own, which is parked when the client goes.
struct OfProcess {
    gyrus: Gyrus,
    store: Store,
    folder: PathBuf,
    processes: Processes,
    begun: Mutex<HashMap<RunId, WorkEnd>>,
}

impl OfProcess {
    /// Starts the process of a run, unless too many are at work.
    fn begin(&self, command: QueueCommand) -> Result<(), String> {
        // Locked until it is among them.
        let mut begun = self.begun.lock();
        if begun
            .values()
            .filter(|settled| settled.borrow().is_none())
            .count()
            >= AT_ONCE
        {
            return Err(format!(
                "{AT_ONCE} runs are at work: wait for one, or stop one"
            ));
        }
        let worker = self.processes.start(&command);
        let worker = worker.map_err(|error| format!("no process can be started: {error}"))?;
        let (settle, settled) = watch::channel(None);
        begun.insert(command.run, settled);
        tokio::spawn(async move {
            let said = worker.await.said;
            let _ = settle.send(Some(said.trim().to_owned()));
        });
        Ok(())
    }

    fn at_work(&self) -> Vec<RunId> {
        let begun = self.begun.lock();
        let at_work = begun
            .iter()
            .filter(|(_, settled)| settled.borrow().is_none());
        at_work.map(|(run, _)| *run).collect()
    }

    /// Parks the runs that are at work, and waits until they are parked.
    async fn park(&self) {
        let since = Instant::now();
        loop {
            let at_work = self.at_work();
            let holder = |run: &RunId| self.store.holder(&log_name(*run)).ok().flatten();
            let holders: Vec<Holder> = at_work.iter().filter_map(holder).collect();
            // A process that was just started cannot be interrupted before it has its run.
            if holders.len() == at_work.len() || since.elapsed() > BEGINS_WITHIN {
                return park_these(holders).await;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

impl RunHost for OfProcess {
    fn check(&self, request: RunRequest) -> Result<RunRequest, RefusedRequest> {
        checked(&self.gyrus, request)
    }

    fn command(&self, arguments: Vec<String>) -> BoxedFuture<'_, Result<String, String>> {
        Box::pin(async move { printed(&self.processes, &arguments).await })
    }
}

impl McpHost for OfProcess {
    fn store(&self) -> &Store {
        &self.store
    }

    fn folder(&self) -> Option<&Path> {
        Some(&self.folder)
    }

    fn submit(
        &self,
        run: RunId,
        mut work: QueueWork,
        from: Principal,
        agent: String,
    ) -> BoxedFuture<'_, Result<(), String>> {
        if let QueueWork::Start(request) = &mut work {
            // There is no queue that would have it go on once it has its answer.
            let approvals = &mut request.options.flags.approvals;
            approvals.on_ask.get_or_insert(OnAsk::Wait);
        }
        let done = self.begin(QueueCommand::new(work, Some(run), from, agent));
        Box::pin(async { done })
    }

    fn settled(&self, run: RunId) -> BoxedFuture<'_, String> {
        Box::pin(async move {
            let settled = self.begun.lock().get(&run).cloned();
            let Some(mut settled) = settled else {
                return left_by_holder(&self.store, run).await;
            };
            let said = settled.wait_for(Option::is_some).await;
            said.ok().and_then(|said| said.clone()).unwrap_or_default()
        })
    }
}

/// Waits until no process drives a run that somebody else began.
async fn left_by_holder(store: &Store, run: RunId) -> String {
    let name = log_name(run);
    if !store.exists(&name) {
        return "there is no such run".to_owned();
    }
    if let Ok(Some(holder)) = store.holder(&name) {
        // One that cannot be watched counts as gone: the run is then looked at again.
        let _ = holder.process.ended().await;
    }
    "its process ended".to_owned()
}

impl From<McpServeError> for Failure {
    fn from(error: McpServeError) -> Self {
        Self::failed("the client cannot be served").because(&error)
    }
}
