//! The server of tools that a task brings: a copy of it for each attempt, and the comparison of its
//! data with what the expected calls make of them.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use super::copies::copy;
use crate::{CommandEnd, Installation, LabError};

/// Name of the server in its runs, and what the names of its tools begin with there.
const NAME: &str = "tools";
pub(super) const PREFIX: &str = "tools__";

/// Version of the protocol in which the expected calls are made.
const PROTOCOL: &str = "2025-06-18";

/// File with the expected calls, as the protocol has them, a line each.
const CALLS: &str = "gyrus-expected-calls.jsonl";

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TaskServer {
    /// Command line that starts it in a copy of its folder. It speaks the Model Context Protocol on
    /// its standard streams.
    pub(super) command: String,
    /// Folder with its program and data; in a file, relative to it.
    pub(super) folder: PathBuf,
    /// The file of JSON in its folder in which it keeps its state.
    pub(super) data: Option<PathBuf>,
    /// The calls that leave the data as the run must leave them. A server answers them in order.
    #[serde(default)]
    pub(super) expected: Vec<ExpectedCall>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExpectedCall {
    pub(super) tool: String,
    #[serde(default)]
    pub(super) with: Map<String, Value>,
}

pub(super) struct AttemptServer(TempDir);

impl AttemptServer {
    /// Copies the server, and writes down for its run how it is started.
    pub(super) fn new(server: &TaskServer) -> Result<Self, LabError> {
        let made = || -> io::Result<Self> {
            let made = Self(
                tempfile::Builder::new()
                    .prefix("gyrus-eval-server-")
                    .tempdir()?,
            );
            let folder = made.folder();
            fs::create_dir(&folder)?;
            copy(&server.folder, &folder)?;
            let line = format!("cd \"$TASK_SERVER\" && {}", server.command);
            let section = json!({
                "command": "sh",
                "args": ["-c", line],
                "env": {"TASK_SERVER": &folder},
                "folders": [&folder],
            });
            let servers = json!({"mcpServers": {NAME: section}});
            fs::write(made.description(), servers.to_string())?;
            Ok(made)
        };
        made().map_err(|error| {
            let folder = server.folder.display();
            LabError::failed(format!("the server in {folder} cannot be copied")).because(error)
        })
    }

    fn folder(&self) -> PathBuf {
        self.0.path().join("server")
    }

    /// Returns the file that describes the server to `gyrus run`.
    pub(super) fn description(&self) -> PathBuf {
        self.0.path().join("servers.json")
    }

    /// Returns the reason why the run did not leave the data as the expected calls do.
    pub(super) async fn mismatch(
        &self,
        server: &TaskServer,
        gyrus: &dyn Installation,
    ) -> Result<Option<String>, LabError> {
        let Some(data) = &server.data else {
            return Ok(None);
        };
        let other = Self::new(server)?;
        let folder = other.folder();
        fs::write(folder.join(CALLS), requests(&server.expected))?;
        let line = format!("{} < {CALLS}", server.command);
        if let CommandEnd::Failed(said) = gyrus.run_command(&folder, &line).await? {
            return Err(LabError::usage(format!(
                "the server `{}` did not take the expected calls: {said}",
                server.command
            )));
        }
        let (is, expected) = (read(&self.folder().join(data)), read(&folder.join(data)));
        let difference = match (is, expected) {
            (_, Err(why)) => return Err(LabError::usage(why)),
            (Err(why), Ok(_)) => Some(why),
            (Ok(is), Ok(expected)) => difference(&is, &expected, String::new()),
        };
        Ok(difference.map(|at| format!("the data of the server are not as expected: {at}")))
    }
}

fn read(path: &Path) -> Result<Value, String> {
    let text = gyrus_process::read_regular_text(path);
    let text = text.map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
    serde_json::from_str(&text).map_err(|error| format!("{} is not JSON: {error}", path.display()))
}

/// Returns the messages of a client that makes these calls.
fn requests(calls: &[ExpectedCall]) -> String {
    let client = json!({"name": "gyrus", "version": env!("CARGO_PKG_VERSION")});
    let begin = [
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client,
        }}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
    ];
    let calls = (1..).zip(calls).map(|(id, call)| {
        let params = json!({"name": call.tool, "arguments": call.with});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    });
    let lines = begin.into_iter().chain(calls);
    lines.map(|message| format!("{message}\n")).collect()
}

/// Returns the first place where two values differ, with both; nothing if they are equal.
fn difference(is: &Value, expected: &Value, at: String) -> Option<String> {
    let below = |key: &str| format!("{at}/{key}");
    match (is, expected) {
        (Value::Object(is), Value::Object(expected)) => {
            let keys: std::collections::BTreeSet<_> = is.keys().chain(expected.keys()).collect();
            keys.into_iter().find_map(|key| {
                let null = &Value::Null;
                let (is, expected) = (
                    is.get(key).unwrap_or(null),
                    expected.get(key).unwrap_or(null),
                );
                difference(is, expected, below(key))
            })
        }
        (Value::Array(is), Value::Array(expected)) if is.len() == expected.len() => {
            let pairs = is.iter().zip(expected).enumerate();
            pairs
                .into_iter()
                .find_map(|(at, (is, expected))| difference(is, expected, below(&at.to_string())))
        }
        _ if is == expected => None,
        _ => {
            let is = gyrus_text::shorten(&is.to_string(), 80).into_owned();
            let expected = gyrus_text::shorten(&expected.to_string(), 80).into_owned();
            Some(format!("{at} is {is}, not {expected}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_named() {
        let differs = |a: Value, b: Value| difference(&a, &b, String::new()).unwrap_or_default();
        let order = |state: &str| json!({"orders": [{"id": 1, "state": state}], "x": null});
        assert_eq!(
            differs(
                order("open"),
                json!({"orders": [{"state": "open", "id": 1}]})
            ),
            ""
        );
        assert_eq!(
            differs(order("open"), order("cancelled")),
            "/orders/0/state is \"open\", not \"cancelled\""
        );
        assert!(differs(json!([1]), json!([1, 2])).contains("is [1], not [1,2]"));
    }
}
