//! Being part of a fleet: its address, and a connection to servers that were looked at.

mod drive;
mod elsewhere;
mod local_server;
mod monitor;
mod submit;
mod worker;

use gyrus_fleet::nats::{
    FleetAddress, FleetConnectError, FleetConnection, Requirement, RequirementError, StreamError,
    prepare_streams, requirements,
};

pub(crate) use self::{
    drive::drive,
    elsewhere::with_copies,
    local_server::{LOCAL, LocalAddress},
    monitor::servers,
    submit::submit_and_follow,
    worker::{WorkerSettings, work},
};
use crate::{Gyrus, failure::Failure};

/// Reads the address of a fleet; `local` is the server that `gyrus fleet up` runs.
pub(crate) fn address(gyrus: &Gyrus, given: &str) -> Result<FleetAddress, Failure> {
    FleetAddress::parse(&text(gyrus, given)?).map_err(|error| {
        Failure::usage(error)
            .hint("to try it on this machine: gyrus fleet up, and then --fleet local")
    })
}

/// Returns the whole address of a fleet, with its password, for a process of this program.
pub(crate) fn text(gyrus: &Gyrus, given: &str) -> Result<String, Failure> {
    if given == LOCAL {
        LocalAddress::of(&gyrus.home()?).read()
    } else {
        Ok(given.to_owned())
    }
}

/// Connects to a fleet. Its servers are looked at first: one that could lose what it acknowledged
/// is refused.
pub(crate) async fn connect(address: &FleetAddress) -> Result<FleetConnection, Failure> {
    let connection = FleetConnection::open(address).await?;
    connection.check_version()?;
    check_servers(address).await?;
    prepare_streams(&connection).await?;
    Ok(connection)
}

/// Checks the servers by their monitoring pages.
pub(crate) async fn check_servers(address: &FleetAddress) -> Result<Vec<Requirement>, Failure> {
    let mut found = Vec::new();
    for server in monitor::servers(address).await? {
        found.extend(requirements(&server.varz)?);
    }
    Ok(found)
}

impl From<FleetConnectError> for Failure {
    fn from(error: FleetConnectError) -> Self {
        let hint = match &error {
            FleetConnectError::Unreachable { .. } => "to start one for trying: gyrus fleet up",
            FleetConnectError::Refused { .. } => {
                "give what the servers know: a token or user:password before the host, or ?creds=FILE"
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
