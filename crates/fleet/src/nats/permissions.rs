//! The rights that a worker needs on the servers, and no more.

use super::{
    connection::inbox_prefix,
    streams::{STREAMS, stream_name},
};

/// The rights of a user of the servers who works for a fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetPermissions {
    /// Subjects to which the user publishes.
    pub publish: Vec<String>,
    /// Subjects to which the user subscribes.
    pub subscribe: Vec<String>,
}

impl FleetPermissions {
    /// Returns the rights for the fleet of this name.
    pub fn of(fleet: &str) -> Self {
        let own = format!("gyrus.{fleet}.>");
        let mut publish = vec![own.clone()];
        for kind in STREAMS {
            let stream = stream_name(fleet, kind);
            // A stream's name is one word of a subject: there is no pattern for the four of a fleet.
            let requests = ["STREAM.INFO", "STREAM.CREATE", "DIRECT.GET"];
            publish.extend(requests.map(|request| format!("$JS.API.{request}.{stream}")));
        }
        Self {
            publish,
            subscribe: vec![own, format!("{}.>", inbox_prefix(fleet))],
        }
    }

    /// Returns the `permissions` block of a user in the configuration of a server.
    pub fn configuration(&self) -> String {
        let lines = |subjects: &[String]| -> String {
            let lines = subjects.iter().map(|one| format!("    \"{one}\"\n"));
            lines.collect()
        };
        format!(
            "permissions {{\n  publish: [\n{}  ]\n  subscribe: [\n{}  ]\n}}\n",
            lines(&self.publish),
            lines(&self.subscribe)
        )
    }

    /// Returns the command that creates a user with these rights and a credentials file, for
    /// accounts managed by `nsc`.
    pub fn nsc_command(&self) -> String {
        format!(
            "nsc add user --name worker --allow-pub '{}' --allow-sub '{}'\n",
            self.publish.join(","),
            self.subscribe.join(",")
        )
    }
}
