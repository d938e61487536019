//! The monitoring pages of the servers: the only place where they say whether they put on disk what
//! they acknowledge.

use std::{
    path::Path,
    time::{Duration, SystemTime},
};

use gyrus_fleet::nats::{FleetAddress, RequirementError};
use gyrus_net::{causes, client_builder, trusting_client_builder};
use jiff::Timestamp;
use reqwest::Url;
use serde_json::Value;
use tokio::task::JoinSet;

/// Time limit for one page.
const PAGE: Duration = Duration::from_secs(5);

pub(crate) struct ServerView {
    /// The page `/varz`.
    pub(crate) varz: Value,
    /// Milliseconds by which the server's clock is ahead of this machine's.
    pub(crate) ahead_ms: i64,
}

/// The servers whose monitoring pages were read, and the failures.
pub(crate) struct SeenServers {
    /// The servers whose pages could be read.
    pub(crate) servers: Vec<ServerView>,
    /// The reasons why other servers' pages could not be read.
    pub(crate) unseen: Vec<String>,
}

/// Reads the pages of all servers that the address names.
///
/// # Errors
/// Those of half of them or more cannot be read. Of a cluster that works, a server may be down: nothing
/// is acknowledged without most of them.
pub(crate) async fn servers(address: &FleetAddress) -> Result<SeenServers, RequirementError> {
    let pages = address.monitor_addresses();
    let unseen = |why: String| RequirementError::Unseen { why };
    if pages.is_empty() {
        let why = "the address of the fleet names no monitoring page";
        return Err(unseen(why.to_owned()));
    }
    let mut reading = JoinSet::new();
    for (number, page) in pages.into_iter().enumerate() {
        let authority = address.authority.clone();
        reading.spawn(async move {
            let read = server(&page, authority.as_deref()).await;
            (
                number,
                read.map_err(|why| format!("{page} cannot be read: {why}")),
            )
        });
    }
    let mut read = reading.join_all().await;
    read.sort_by_key(|(number, _)| *number);
    let mut seen = SeenServers {
        servers: Vec::new(),
        unseen: Vec::new(),
    };
    for (_, read) in read {
        match read {
            Ok(server) => seen.servers.push(server),
            Err(why) => seen.unseen.push(why),
        }
    }
    if seen.unseen.len() >= seen.servers.len() {
        return Err(unseen(seen.unseen.join("; ")));
    }
    Ok(seen)
}

async fn server(page: &str, authority: Option<&Path>) -> Result<ServerView, String> {
    let address = format!("{page}/varz");
    let address = Url::parse(&address).map_err(|error| error.to_string())?;
    let client = match authority {
        Some(file) if address.scheme() == "https" => {
            trusting_client_builder(&address, PAGE, "`ca`", file)
        }
        _ => client_builder(&address, PAGE),
    };
    let client = client.map_err(|error| error.to_string())?;
    let client = client.timeout(PAGE).build();
    let client = client.map_err(|error| causes(&error))?;
    let answer = client.get(address).send().await;
    let answer = answer.map_err(|error| causes(&error))?;
    let text = answer.text().await.map_err(|error| causes(&error))?;
    let varz: Value = serde_json::from_str(&text)
        .map_err(|_| "it is not the page of a NATS server".to_owned())?;
    let now = varz["now"].as_str().and_then(|now| now.parse().ok());
    let ahead_ms = now.map_or(0, ahead_of_us);
    Ok(ServerView { varz, ahead_ms })
}

fn ahead_of_us(now: Timestamp) -> i64 {
    let ours = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let ours = ours.map_or(0, |time| {
        i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
    });
    now.as_millisecond() - ours
}
