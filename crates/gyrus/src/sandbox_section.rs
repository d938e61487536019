//! The section `[sandbox]` of the configuration.

use serde::Deserialize;

use crate::time::milliseconds;

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
