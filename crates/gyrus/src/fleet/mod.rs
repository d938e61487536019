//! Being part of a fleet: its address, and a connection to servers that were looked at.

mod clone;
mod doctor;
mod door;
mod drive;
mod elsewhere;
mod folder;
mod labels;
mod local_server;
mod monitor;
mod status;
mod stopping;
mod submit;
mod upload;
mod worker;

use std::{path::Path, sync::Arc, time::Duration};

use gyrus_fleet::{
    FleetQueue, LogUnreachable, Machine, OsMachine, SharedLog,
    nats::{
        FleetAddress, FleetConnectError, FleetConnection, NatsLog, Requirement, RequirementError,
        StreamError, prepare_streams, requirements,
    },
};
use gyrus_journal::Store;
use gyrus_runtime::queue::{Gateway, QueueWorker};

pub(crate) use self::{
    doctor::diagnose,
    door::FleetDoor,
    drive::drive,
    elsewhere::with_copies,
    labels::{parse as parse_label, this_machine},
    local_server::{LOCAL, LocalAddress},
    status::status,
    stopping::{rearm, stop_all, take_back},
    submit::submit_and_follow,
    worker::{WorkerSettings, work},
};
use crate::{Gyrus, failure::Failure};

/// Time without an answer of the servers after which a person who waits is told.
const PATIENCE: Duration = Duration::from_secs(30);

/// A fleet that this process takes part in.
struct FleetMembership {
    address: FleetAddress,
    connection: FleetConnection,
    log: Arc<dyn SharedLog>,
    machine: Arc<dyn Machine>,
    queue: Arc<FleetQueue>,
}

impl FleetMembership {
    /// Connects to a fleet and reads its queue. A change of the queue is retried for `patience`, or
    /// for ever.
    async fn open(gyrus: &Gyrus, fleet: &str, patience: Option<Duration>) -> Result<Self, Failure> {
        let address = address(gyrus, fleet)?;
        let connection = connect(&address).await?;
        let log: Arc<dyn SharedLog> = Arc::new(NatsLog::new(connection.clone()));
        let machine: Arc<dyn Machine> = Arc::new(OsMachine);
        let queue = FleetQueue::open(Arc::clone(&log), Arc::clone(&machine), patience).await?;
        Ok(Self {
            address,
            connection,
            log,
            machine,
            queue,
        })
    }

    /// Keeps the queue up to date, until the handle is aborted.
    fn follow(&self) -> tokio::task::AbortHandle {
        let queue = Arc::clone(&self.queue);
        tokio::spawn(async move { queue.follow().await }).abort_handle()
    }

    /// Returns the queue for a program that submits commands and carries out none.
    fn client(&self, store: &Store) -> Gateway {
        let client = QueueWorker {
            name: format!("client-{}", gyrus_contract::time_ordered_uuid()),
            machine: labels::machine(),
            build: gyrus::BUILD.to_owned(),
            has: Arc::new(|_| false),
        };
        Gateway::share(store, self.queue.clone(), client)
    }
}

/// Reads the address of a fleet; `local` is the server that `gyrus fleet up` runs.
pub(crate) fn address(gyrus: &Gyrus, given: &str) -> Result<FleetAddress, Failure> {
    FleetAddress::parse(&text(gyrus, given)?).map_err(|error| {
        Failure::usage(error)
            .hint("to try it on this machine: gyrus fleet up, and then --fleet local")
    })
}

/// Returns the whole address of a fleet, with its password, for a process of this program. `@FILE` is
/// what stands in that file, so that no list of processes shows it.
pub(crate) fn text(gyrus: &Gyrus, given: &str) -> Result<String, Failure> {
    if given == LOCAL {
        return LocalAddress::of(&gyrus.home()?).read();
    }
    let Some(path) = given.strip_prefix('@') else {
        return Ok(given.to_owned());
    };
    let read = gyrus_process::read_regular_text(Path::new(path));
    let read = read.map_err(|error| {
        Failure::usage(format!(
            "the address of the fleet cannot be read from {path}"
        ))
        .because(&error)
    })?;
    Ok(read.trim().to_owned())
}

/// Connects to a fleet. Its servers are looked at first: one that could lose what it acknowledged
/// is refused.
pub(crate) async fn connect(address: &FleetAddress) -> Result<FleetConnection, Failure> {
    let connection = FleetConnection::open(address).await?;
    connection.check_server()?;
    check_servers(address).await?;
    prepare_streams(&connection).await?;
    Ok(connection)
}

/// Returns the advice for a request that the servers refused because they are full.
pub(crate) fn room(why: &str) -> &'static str {
    // As JetStream words it: 10002, 10023, 10047, 10077.
    let words = [
        "resource limits exceeded",
        "insufficient",
        "maximum bytes",
        "no space",
    ];
    if words.iter().any(|word| why.contains(word)) {
        "; the servers are full: give them more room (max_file_store, the account's max_file, or a \
         larger disk)"
    } else {
        ""
    }
}

/// Checks the servers by their monitoring pages.
pub(crate) async fn check_servers(address: &FleetAddress) -> Result<Vec<Requirement>, Failure> {
    let mut found = Vec::new();
    for server in monitor::servers(address).await?.servers {
        found.extend(requirements(&server.varz)?);
    }
    Ok(found)
}

impl From<LogUnreachable> for Failure {
    fn from(error: LogUnreachable) -> Self {
        Failure::usage(error).hint("to see what is wrong: gyrus fleet doctor")
    }
}

impl From<FleetConnectError> for Failure {
    fn from(error: FleetConnectError) -> Self {
        let hint = match &error {
            FleetConnectError::Unreachable { .. } => "to start one for trying: gyrus fleet up",
            FleetConnectError::Refused { .. } => {
                "give what the servers know: a token or user:password before the host, or ?creds=FILE"
            }
            FleetConnectError::Encryption { .. } => {
                "the address names what this machine trusts (`ca`) and shows (`cert` and `key`), the \
                 `tls` block of the servers' configuration what they do"
            }
            FleetConnectError::File { .. } => "check the files in the address of the fleet",
        };
        Failure::usage(&error).hint(hint)
    }
}

impl From<RequirementError> for Failure {
    fn from(error: RequirementError) -> Self {
        Failure::usage(error)
    }
}

impl From<StreamError> for Failure {
    fn from(error: StreamError) -> Self {
        Failure::usage(error).hint("to see everything that was tried: gyrus fleet doctor")
    }
}
