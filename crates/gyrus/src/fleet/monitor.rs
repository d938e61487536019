//! The monitoring pages of the servers: the only place where they say whether they put on disk what
//! they acknowledge.

use std::time::{Duration, SystemTime};

use gyrus_fleet::nats::{FleetAddress, RequirementError};
use gyrus_net::{causes, client_builder};
use jiff::Timestamp;
use reqwest::Url;
use serde_json::Value;

/// Time for one page.
const PAGE: Duration = Duration::from_secs(5);

/// A server, by its page.
pub(crate) struct ServerView {
    /// The page `/varz`.
    pub(crate) varz: Value,
    /// Milliseconds by which its clock is ahead of this machine's.
    pub(crate) ahead_ms: i64,
}

/// Reads the pages of all servers that the address names.
pub(crate) async fn servers(address: &FleetAddress) -> Result<Vec<ServerView>, RequirementError> {
    let pages = address.monitor_addresses();
    if pages.is_empty() {
        return Err(RequirementError::Unseen {
            why: "the address of the fleet names no monitoring page".to_owned(),
        });
    }
    let mut servers = Vec::new();
    for page in pages {
        let unseen = |why: String| RequirementError::Unseen {
            why: format!("{page} cannot be read: {why}"),
        };
        servers.push(server(&page).await.map_err(unseen)?);
    }
    Ok(servers)
}

async fn server(page: &str) -> Result<ServerView, String> {
    let address = format!("{page}/varz");
    let address = Url::parse(&address).map_err(|error| error.to_string())?;
    let client = client_builder(&address, PAGE).map_err(|error| error.to_string())?;
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
