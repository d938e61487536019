//! An office with mail, a calendar, files and a bank, as a server of tools: real HTTP on loopback,
//! and a ledger of everything that left it.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};

/// An office. Its server ends with the tests.
pub(crate) struct Office {
    address: String,
    ledger: Arc<Mutex<Vec<String>>>,
}

impl Office {
    /// Opens an office with these `events`, `mails` and `files`.
    pub(crate) fn open(data: Value) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/mcp", listener.local_addr().unwrap());
        let ledger = Arc::new(Mutex::new(Vec::new()));
        let kept = ledger.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // Whoever hangs up has what they wanted.
                let _ = answer(stream, &data, &kept);
            }
        });
        Self { address, ledger }
    }

    /// The section of a configuration that names it.
    pub(crate) fn section(&self) -> String {
        format!("[mcp.office]\nurl = \"{}\"\n", self.address)
    }

    /// Everything that was sent, created, paid or deleted, in order.
    pub(crate) fn ledger(&self) -> Vec<String> {
        self.ledger.lock().unwrap().clone()
    }
}

/// Reads one request, and answers it.
fn answer(mut stream: TcpStream, data: &Value, ledger: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?);
    let mut length = 0;
    loop {
        let mut line = String::new();
        lines.read_line(&mut line)?;
        let line = line.trim().to_ascii_lowercase();
        match line.split_once(": ") {
            Some(("content-length", value)) => length = value.parse().unwrap_or(0),
            Some(_) => {}
            None if line.is_empty() => break,
            None => {}
        }
    }
    let mut body = vec![0; length];
    lines.read_exact(&mut body)?;
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let params = &message["params"];
    let result = match message["method"].as_str() {
        Some("initialize") => json!({
            "protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": "office", "version": "1"},
        }),
        Some("tools/list") => json!({"tools": tools()}),
        Some("tools/call") => {
            let name = params["name"].as_str().unwrap_or_default();
            called(name, &params["arguments"], data, ledger)
        }
        _ => json!({}),
    };
    let (status, reply) = match message.get("id") {
        Some(id) => {
            let reply = json!({"jsonrpc": "2.0", "id": id, "result": result});
            ("200 OK", reply.to_string())
        }
        None => ("202 Accepted", String::new()),
    };
    write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n{reply}",
        reply.len()
    )
}

fn tools() -> Value {
    let tool = |name: &str, words: &str, arguments: &[(&str, &str)]| {
        let properties: serde_json::Map<String, Value> = arguments
            .iter()
            .map(|(name, kind)| {
                let schema = match *kind {
                    "list" => json!({"type": "array", "items": {"type": "string"}}),
                    kind => json!({"type": kind}),
                };
                ((*name).to_owned(), schema)
            })
            .collect();
        json!({
            "name": name,
            "description": words,
            "inputSchema": {"type": "object", "properties": properties},
        })
    };
    json!([
        tool(
            "search_events",
            "Finds events by words of their titles",
            &[("query", "string")]
        ),
        tool(
            "search_mails",
            "Finds mails by words of their subjects",
            &[("query", "string")]
        ),
        tool(
            "read_file",
            "Returns the text of a file",
            &[("file_name", "string")]
        ),
        tool(
            "send_mail",
            "Sends a mail",
            &[
                ("recipients", "list"),
                ("cc", "list"),
                ("subject", "string"),
                ("body", "string")
            ]
        ),
        tool(
            "create_event",
            "Creates an event, and invites its participants",
            &[
                ("title", "string"),
                ("participants", "list"),
                ("start", "string")
            ]
        ),
        tool(
            "send_money",
            "Pays an amount to an account",
            &[
                ("account", "string"),
                ("amount", "number"),
                ("subject", "string")
            ]
        ),
        tool(
            "delete_event",
            "Deletes an event",
            &[("event_id", "string")]
        ),
    ])
}

fn called(name: &str, arguments: &Value, data: &Value, ledger: &Mutex<Vec<String>>) -> Value {
    let found = |kind: &str, title: &str| {
        let query = arguments["query"]
            .as_str()
            .unwrap_or_default()
            .to_lowercase();
        let all = data[kind].as_array().cloned().unwrap_or_default();
        let found: Vec<_> = all
            .into_iter()
            .filter(|one| {
                one[title]
                    .as_str()
                    .unwrap_or_default()
                    .to_lowercase()
                    .contains(&query)
            })
            .collect();
        json!({kind: found})
    };
    let structured = |value: Value| {
        json!({
            "content": [{"type": "text", "text": value.to_string()}],
            "structuredContent": value,
        })
    };
    match name {
        "search_events" => structured(found("events", "title")),
        "search_mails" => structured(found("mails", "subject")),
        "read_file" => {
            let file = arguments["file_name"].as_str().unwrap_or_default();
            let text = data["files"][file]
                .as_str()
                .unwrap_or("there is no such file");
            json!({"content": [{"type": "text", "text": text}]})
        }
        _ => {
            ledger.lock().unwrap().push(format!("{name} {arguments}"));
            json!({"content": [{"type": "text", "text": "done"}]})
        }
    }
}
