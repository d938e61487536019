//! Messages of the Language Server Protocol: their framing, and the few of them that are needed.

use std::path::{Path, PathBuf};

use gyrus_text::{one_line, percent_decoded, percent_encoded, shorten};
use serde_json::{Value, json};
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _};

/// Maximum size of a message and of its head, in bytes.
const MAX_MESSAGE: usize = 8 << 20;
const MAX_HEAD: u64 = 4 << 10;

/// Maximum number of problems of a file that are kept, and of characters of each.
const MAX_PROBLEMS: usize = 100;
const MAX_PROBLEM: usize = 300;

/// The least severity that is told: 1 is an error, 2 a warning.
const LEAST_SEVERITY: u64 = 2;

pub(super) fn framed(message: &Value) -> Vec<u8> {
    let body = message.to_string();
    format!("Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// Reads a message, and returns it with its size in bytes.
///
/// # Errors
/// The input is no message of the protocol, or a message is too long; in words.
pub(super) async fn read(from: &mut (impl AsyncBufRead + Unpin)) -> Result<(Value, usize), String> {
    let mut head = from.take(MAX_HEAD);
    let mut length = None;
    loop {
        let mut line = String::new();
        let read = head.read_line(&mut line).await;
        read.map_err(|error| format!("its output cannot be read: {error}"))?;
        if !line.ends_with('\n') {
            return Err("what it says is not a message".to_owned());
        }
        match line.trim().split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse::<usize>().ok();
            }
            Some(_) => {}
            None if line.trim().is_empty() => break,
            None => return Err("what it says is not a message".to_owned()),
        }
    }
    let length = length.ok_or("a message of it has no length")?;
    if length > MAX_MESSAGE {
        return Err(format!("it sent a message of {length} bytes"));
    }
    let mut body = vec![0; length];
    let whole = from.read_exact(&mut body).await;
    whole.map_err(|error| format!("its output cannot be read: {error}"))?;
    let message = serde_json::from_slice(&body);
    let message = message.map_err(|error| format!("a message of it is not JSON: {error}"))?;
    Ok((message, length))
}

/// Returns the address of a file in the protocol.
pub(super) fn uri(path: &Path) -> String {
    let path = path.to_string_lossy();
    let parts: Vec<String> = path.split('/').map(percent_encoded).collect();
    format!("file://{}", parts.join("/"))
}

fn path(uri: &str) -> Option<PathBuf> {
    let path = percent_decoded(uri.strip_prefix("file://")?)?;
    path.starts_with('/').then(|| PathBuf::from(path))
}

/// Returns the request that begins a conversation. `settings` are those of the server.
pub(super) fn initialize(workspace: &Path, settings: &str) -> Value {
    let uri = uri(workspace);
    let settings: Value = serde_json::from_str(settings).unwrap_or(Value::Null);
    json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "processId": null,
        "rootUri": uri,
        "workspaceFolders": [{ "uri": uri, "name": "workspace" }],
        "initializationOptions": settings,
        "capabilities": {
            "textDocument": {
                "synchronization": { "didSave": true },
                "publishDiagnostics": { "versionSupport": true },
            },
            "window": { "workDoneProgress": true },
            "workspace": { "configuration": true, "workspaceFolders": true },
        },
    }})
}

pub(super) fn notification(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

/// Returns the answer to a request of a server: it has no settings here, and everything else that it asks
/// for may be, or is unknown.
pub(super) fn answer(id: &Value, method: &str, params: &Value) -> Value {
    let result = match method {
        "workspace/configuration" => {
            let items = params["items"].as_array().map_or(0, Vec::len);
            json!(vec![Value::Null; items.min(100)])
        }
        "client/registerCapability"
        | "client/unregisterCapability"
        | "window/workDoneProgress/create" => Value::Null,
        _ => {
            let error = json!({ "code": -32601, "message": "not supported" });
            return json!({ "jsonrpc": "2.0", "id": id, "error": error });
        }
    };
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

#[derive(Clone)]
pub(super) struct FileProblems {
    pub(super) path: PathBuf,
    /// The version of the file that they are about, if the server says it.
    pub(super) version: Option<i64>,
    /// Errors and warnings, one a line, errors first.
    pub(super) problems: Vec<String>,
}

impl FileProblems {
    /// Reads them; `None` if they are not what they should be.
    pub(super) fn read(params: &Value) -> Option<Self> {
        let all = params["diagnostics"].as_array()?;
        let told = all.iter().filter_map(|one| {
            let severity = one["severity"].as_u64().unwrap_or(1);
            (severity <= LEAST_SEVERITY).then(|| Some((severity, problem(severity, one)?)))?
        });
        let mut told: Vec<(u64, String)> = told.take(MAX_PROBLEMS).collect();
        told.sort_by_key(|(severity, _)| *severity);
        Some(Self {
            path: path(params["uri"].as_str()?)?,
            version: params["version"].as_i64(),
            problems: told.into_iter().map(|(_, line)| line).collect(),
        })
    }
}

fn problem(severity: u64, one: &Value) -> Option<String> {
    let at = &one["range"]["start"];
    let (line, column) = (at["line"].as_u64()?, at["character"].as_u64()?);
    let kind = if severity == 1 { "error" } else { "warning" };
    let code = match &one["code"] {
        Value::String(code) => format!(" [{code}]"),
        Value::Number(code) => format!(" [{code}]"),
        _ => String::new(),
    };
    let message = one["message"].as_str()?;
    let (line, column) = (line.saturating_add(1), column.saturating_add(1));
    let text = format!("{line}:{column} {kind}: {}{code}", message.trim());
    Some(shorten(&one_line(&text), MAX_PROBLEM).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read_all(mut bytes: &[u8]) -> Result<(Value, usize), String> {
        read(&mut bytes).await
    }

    #[tokio::test]
    async fn what_is_not_a_message_is_an_error() {
        let long = format!("{}\r\n\r\n", "x".repeat(10_000));
        for wrong in [
            "",
            "{}",
            "\r\n",
            "Content-Length: x\r\n\r\n",
            "Content-Length: -1\r\n\r\n{}",
            "Content-Length: 99999999999\r\n\r\n{}",
            "Content-Length: 3\r\n\r\n{}",
            "Content-Length: 2\r\n\r\n{{",
            "panic: no such thing\n",
            &long,
        ] {
            assert!(read_all(wrong.as_bytes()).await.is_err(), "{wrong}");
        }
        let sent = framed(&json!({ "a": "é" }));
        let read = read_all(&sent).await;
        assert_eq!(read, Ok((json!({ "a": "é" }), 10)));
    }

    #[test]
    fn problems_are_lines_and_nothing_else() {
        let one = |severity: u64, message: &str| {
            json!({ "severity": severity, "code": 7, "message": message,
                "range": { "start": { "line": 2, "character": u64::MAX } } })
        };
        let params = json!({ "uri": "file:///a%20b/c.go", "version": 3, "diagnostics": [
            one(2, "unused"), one(1, "bad\nline\u{1b}[2J"), one(3, "hint"), {}, null, one(1, "x"),
        ]});
        let read = FileProblems::read(&params).unwrap();
        assert_eq!((read.path, read.version), ("/a b/c.go".into(), Some(3)));
        assert_eq!(read.problems.len(), 3);
        assert!(read.problems[0].contains("error: bad⏎line␛[2J [7]"));
        assert!(read.problems[2].contains("warning: unused"));
        for wrong in [
            json!(null),
            json!({ "uri": "http://x/", "diagnostics": [] }),
        ] {
            assert!(FileProblems::read(&wrong).is_none());
        }
        assert_eq!(path(&uri(Path::new("/a b/ü.c"))), Some("/a b/ü.c".into()));
    }
}
