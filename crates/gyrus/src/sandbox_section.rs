//! The section `[sandbox]` of the configuration.

use std::path::PathBuf;

use serde::Deserialize;

use crate::{env, time::milliseconds};

/// The section `[sandbox]`, and the content of a project's file.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(crate) struct SandboxSection {
    /// Variables that commands see. Their values count as secrets.
    pub(crate) env: Vec<String>,
    /// Variables that commands see and whose values are not secret.
    pub(crate) env_shown: Vec<String>,
    /// Ports of this machine's loopback that commands may connect to.
    pub(crate) ports: Vec<u16>,
    /// Sockets of this machine that commands may connect to: `ssh-agent`, `docker`, or a path.
    pub(crate) sockets: Vec<String>,
    /// Folders beside the workspace; `:ro` at the end of one means that it is only read.
    pub(crate) folders: Vec<String>,
    /// `run`: changes of package managers' caches stay with the run. `shared`: they last.
    pub(crate) caches: Caches,
    #[serde(deserialize_with = "milliseconds")]
    pub(crate) command_time: Option<u64>,
    /// The time after which a command goes on in the background, at a terminal.
    #[serde(deserialize_with = "milliseconds")]
    pub(crate) background_after: Option<u64>,
    /// Megabytes of memory that each process may write to.
    pub(crate) memory_mb: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Caches {
    #[default]
    Run,
    Shared,
}

/// Names of sockets that stand for the path in a variable, each with the path where it is not set.
const NAMED_SOCKETS: [(&str, &str, Option<&str>); 2] = [
    ("ssh-agent", "SSH_AUTH_SOCK", None),
    ("docker", "DOCKER_HOST", Some("/var/run/docker.sock")),
];

impl SandboxSection {
    /// Returns the variables by which programs find the named sockets.
    pub(crate) fn socket_variables(&self) -> impl Iterator<Item = &'static str> {
        let named = NAMED_SOCKETS.iter();
        let named = named.filter(|(name, ..)| self.sockets.iter().any(|socket| socket == name));
        named.map(|(_, variable, _)| *variable)
    }

    /// Returns the paths of the sockets, as programs name them.
    pub(crate) fn socket_files(&self) -> Vec<PathBuf> {
        let file = |socket: &String| {
            let mut named = NAMED_SOCKETS.iter();
            let Some((_, variable, usual)) = named.find(|(name, ..)| socket == name) else {
                return Some(PathBuf::from(socket));
            };
            let set = env::variable(variable).or_else(|| usual.map(str::to_owned))?;
            Some(PathBuf::from(set.strip_prefix("unix://").unwrap_or(&set)))
        };
        let files = self.sockets.iter().filter_map(file);
        files.filter(|path| path.is_absolute()).collect()
    }

    /// Returns a socket that is neither known by name nor a path, if there is one.
    pub(crate) fn unknown_socket(&self) -> Option<&str> {
        let is_known = |socket: &&String| {
            socket.starts_with('/') || NAMED_SOCKETS.iter().any(|(name, ..)| socket == name)
        };
        let unknown = self.sockets.iter().find(|socket| !is_known(socket));
        unknown.map(String::as_str)
    }
}
