//! Files and settings around a server, as its program knows them.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;

/// A file that describes an agent, or fails to.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct AgentFileView {
    /// The file.
    pub path: PathBuf,
    /// The agent that it describes, or described when it was valid last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The folder that the agent's runs work in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workdir: Option<PathBuf>,
    /// The goal of each of its runs.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub instructions: String,
    /// Maximum number of runs of a day (UTC).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most_runs: Option<u64>,
    /// Maximum number of tokens of a day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most_tokens: Option<u64>,
    /// Maximum cost of a day in millionths of a US dollar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most_cost_microdollars: Option<u64>,
    /// Mistakes, each with its line. A file with mistakes changes no agent.
    pub mistakes: Vec<String>,
}

/// A chat by which people use the server.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ChatView {
    /// The name of the messenger.
    pub chat: String,
    /// The people who may use it.
    pub people: Vec<ChatPersonView>,
}

/// A person who may use a chat.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ChatPersonView {
    /// The id by which the messenger knows them.
    pub id: String,
    /// The name that they gave themselves. It proves nothing.
    pub name: String,
    /// The time at which they were paired, in UTC milliseconds.
    pub since_ms: i64,
}

/// A file with rules of the gate.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PolicyFileView {
    /// The file.
    pub path: PathBuf,
    /// Whether it may allow more than what holds without it; that of a project may not.
    pub may_loosen: bool,
    /// The text; `null` if there is no file.
    pub text: Option<String>,
    /// The reason why it cannot be used. Nothing runs until that is fixed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// A server of tools (Model Context Protocol).
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ToolServerView {
    /// Its name.
    pub name: String,
    /// The command or address, without values that may be secret.
    pub starts: String,
    /// Whether it comes from the folder's `.mcp.json`, not from the person's configuration.
    pub of_project: bool,
}

/// An address or command that is told of events.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct HookView {
    /// Its name.
    pub name: String,
    /// Patterns of the topics that it is told of.
    pub events: Vec<String>,
    /// The way in which it is told. Of an address only the host is shown; the rest may be secret.
    pub tells: String,
    /// The last delivery that failed, and the time of it in UTC milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<HookFailure>,
}

/// A delivery to a hook that failed.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct HookFailure {
    /// The time, in UTC milliseconds.
    pub at_ms: i64,
    /// The reason.
    pub why: String,
}

/// Settings in force.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ServerSettings {
    /// The configuration file.
    pub config: PathBuf,
    /// The reason why the configuration cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The mode of runs that name none.
    pub mode: String,
    /// The files of the policy, the person's first.
    pub policies: Vec<PolicyFileView>,
    /// Models that runs ask that name none, in order.
    pub models: Vec<String>,
    /// Servers of tools.
    pub tool_servers: Vec<ToolServerView>,
    /// Remarks on servers of tools that are not started.
    pub notes: Vec<String>,
    /// Hooks.
    pub hooks: Vec<HookView>,
}
