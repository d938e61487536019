//! The requirements on the servers of a fleet, without which an acknowledged entry could be lost.
//! Each is tried, and none assumed.

use std::time::Duration;

use serde_json::Value;

use super::FleetConnection;

/// The oldest server with which appends are fenced across a change of the leader.
pub const OLDEST_SERVER: [u32; 3] = [2, 14, 6];

/// The largest message of a fleet in bytes: a piece of a blob, with room for what says where it belongs.
const LARGEST_MESSAGE: usize = 640 << 10;

/// Description of a requirement that is met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    pub name: &'static str,
    pub found: String,
}

/// The error of a server that does not fulfil a requirement.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequirementError {
    #[error(
        "the server {server} is version {found}, and a fleet needs {}.{}.{} or newer: before it, two \
         writers could both be told that they are right while the leader changes; update it",
        OLDEST_SERVER[0], OLDEST_SERVER[1], OLDEST_SERVER[2]
    )]
    TooOld { server: String, found: String },
    /// A server does not write messages to disk before it acknowledges them.
    #[error(
        "the server {server} puts messages on disk every {every_s} s only, so an entry that it \
         acknowledged can be lost with the power; write `sync_interval: always` into the \
         `jetstream` block of its configuration and start it again"
    )]
    LazySync {
        server: String,
        /// Time between two syncs, in seconds.
        every_s: u64,
    },
    /// A server does not take messages as large as a fleet's.
    #[error(
        "the server {server} takes messages of up to {limit} bytes from this user, and a fleet sends up \
         to {LARGEST_MESSAGE}; leave `max_payload` at its default of 1 MB"
    )]
    SmallMessages {
        server: String,
        /// The server's limit in bytes.
        limit: usize,
    },
    #[error("the server {server} keeps no streams; add a `jetstream` block to its configuration")]
    NoStreams { server: String },
    #[error(
        "it cannot be seen whether the servers put on disk what they acknowledge: {why}; name the \
         port of their monitoring page in the address, as in ?monitor=8222, or with TLS \
         ?monitor=https://HOST:8222"
    )]
    Unseen { why: String },
}

/// Checks one server by its monitoring page (`/varz`).
///
/// # Errors
/// A requirement does not hold.
pub fn requirements(varz: &Value) -> Result<Vec<Requirement>, RequirementError> {
    let text = |field: &str| varz[field].as_str().unwrap_or("unknown").to_owned();
    let (server, version) = (text("server_name"), text("version"));
    if !is_new_enough(&version) {
        return Err(RequirementError::TooOld {
            server,
            found: version,
        });
    }
    let config = &varz["jetstream"]["config"];
    if config.is_null() {
        return Err(RequirementError::NoStreams { server });
    }
    if config["sync_always"] != Value::Bool(true) {
        let nanoseconds = config["sync_interval"].as_u64().unwrap_or(0);
        return Err(RequirementError::LazySync {
            server,
            every_s: Duration::from_nanos(nanoseconds).as_secs(),
        });
    }
    Ok(vec![
        Requirement {
            name: "version",
            found: format!("{server} is {version}"),
        },
        Requirement {
            name: "sync",
            found: format!("{server} puts each message on disk before it acknowledges it"),
        },
    ])
}

impl FleetConnection {
    /// Checks the connected server by the information that it sends.
    ///
    /// # Errors
    /// The server is too old, or accepts small messages only.
    pub fn check_server(&self) -> Result<(), RequirementError> {
        let info = self.client.server_info();
        let (server, found) = (info.server_name, info.version);
        if !is_new_enough(&found) {
            return Err(RequirementError::TooOld { server, found });
        }
        if info.max_payload < LARGEST_MESSAGE {
            let limit = info.max_payload;
            return Err(RequirementError::SmallMessages { server, limit });
        }
        Ok(())
    }
}

fn is_new_enough(version: &str) -> bool {
    // A candidate is older than what it is a candidate for.
    let (numbers, is_candidate) = match version.split_once('-') {
        Some((numbers, _)) => (numbers, true),
        None => (version, false),
    };
    let mut parsed = [0; 3];
    let mut words = numbers.split('.');
    for number in &mut parsed {
        match words.next().map(str::parse) {
            Some(Ok(value)) => *number = value,
            _ => return false,
        }
    }
    parsed > OLDEST_SERVER || (parsed == OLDEST_SERVER && !is_candidate)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn old_servers_and_lazy_ones_are_refused() {
        for (version, fits) in [
            ("2.14.6", true),
            ("2.15.1", true),
            ("2.14.7-RC.1", true),
            ("3.0.0", true),
            ("2.14.6-RC.1", false),
            ("2.14.5", false),
            ("2.9.10", false),
            ("2.14", false),
            ("", false),
            ("new", false),
        ] {
            assert_eq!(is_new_enough(version), fits, "{version}");
        }
        let server = |jetstream: Value| json!({"server_name": "s", "version": "2.15.1", "jetstream": jetstream});
        let lazy = json!({"config": {"sync_interval": 120_000_000_000_u64}});
        assert_eq!(
            requirements(&server(lazy)),
            Err(RequirementError::LazySync {
                server: "s".to_owned(),
                every_s: 120
            })
        );
        assert!(requirements(&server(json!({"config": {"sync_always": true}}))).is_ok());
        assert!(matches!(
            requirements(&server(json!({}))),
            Err(RequirementError::NoStreams { .. })
        ));
        assert!(requirements(&json!([])).is_err());
    }
}
