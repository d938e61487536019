//! What an editor writes to `gyrus acp`: lines that may be messages of the protocol.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Write},
    net::Shutdown,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use gyrus_acp::{
    AcpHost, SessionSettings, SettingChoice, SettingChoices, TurnAtWork, TurnControls, TurnRequest,
    TurnWork,
};
use gyrus_contract::{BoxedFuture, Principal, RunId};
use gyrus_journal::Store;
use gyrus_kernel::{Attachment, Ending};
use gyrus_surfaces::watching::live_replies;
use serde::Deserialize;
use serde_json::Value;
use tokio::{runtime::Runtime, sync::oneshot};

use crate::Target;

/// Time in which all is answered.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The words in an input that stand for the session.
const SESSION: &str = "SESSION";

/// The goal of a prompt whose run does not begin.
const FAILS: &str = "fails";

/// A conversation, from the first message to the last.
const SEED: &str = r#"{"jsonrpc":"2.0","id":1,"method":"session/set_mode","params":{"sessionId":"SESSION","modeId":"auto"}}
{"jsonrpc":"2.0","id":"a","method":"session/set_config_option","params":{"sessionId":"SESSION","configId":"loop","value":"react"}}
{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"SESSION","prompt":[{"type":"text","text":"go"},{"type":"resource","resource":{"uri":"file:///a","text":"x"}},{"type":"resource_link","name":"n","uri":"u"},{"type":"image","data":"AAAA","mimeType":"image/png"}]}}
{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"SESSION","prompt":[{"type":"text","text":"/status"}]}}
{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"SESSION"}}
{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":2}}
{"jsonrpc":"2.0","id":1,"result":{"outcome":{"outcome":"selected","optionId":"allow_once"}}}
{"jsonrpc":"2.0","id":4,"method":"session/prompt","params":{"sessionId":"SESSION","prompt":[{"type":"text","text":"fails"}]}}
"#;

const MORE: &str = r#"{"jsonrpc":"2.0","id":5,"method":"session/new","params":{"cwd":"/w","mcpServers":[{"name":"s","command":"c","args":["a"],"env":[{"name":"N","value":"v"}]},{"type":"http","name":"h","url":"http://x","headers":[]}]}}
{"jsonrpc":"2.0","id":6,"method":"session/list","params":{"cwd":"/w","cursor":"01980000-0000-7000-8000-00000000aaaa"}}
{"jsonrpc":"2.0","id":7,"method":"session/load","params":{"sessionId":"01980000-0000-7000-8000-00000000aaaa","cwd":"/w","mcpServers":[]}}
{"jsonrpc":"2.0","id":8,"method":"session/resume","params":{"sessionId":"SESSION","cwd":"/w"}}
{"jsonrpc":"2.0","id":9,"method":"session/close","params":{"sessionId":"SESSION"}}
{"jsonrpc":"2.0","id":10,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{"elicitation":{"form":{}}}}}
{"jsonrpc":"2.0","id":11,"method":"authenticate","params":{"methodId":"m"}}
"#;

const WORDS: [&str; 30] = [
    "\n",
    "\r\n",
    "\0",
    "\u{feff}",
    "\u{2028}",
    "{",
    "}",
    "[",
    "]",
    "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
    "\"",
    "\\",
    "\\ud800",
    ",",
    ":",
    "null",
    "-1",
    "18446744073709551616",
    "1e999",
    "{}",
    "SESSION",
    "\"id\":1",
    "\"id\":null",
    "\"jsonrpc\":\"2.0\"",
    "\"method\":\"session/prompt\"",
    "\"method\":\"session/cancel\"",
    "\"result\":{}",
    "\"error\":{}",
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":1}}\n",
    "{\"jsonrpc\":\"2.0\",\"method\":\"session/cancel\",\"params\":{\"sessionId\":\"SESSION\"}}\n",
];

/// The agent, with a host whose runs wait until they are cut off.
pub struct Editor {
    runtime: Runtime,
    host: Arc<WaitingHost>,
    _folder: tempfile::TempDir,
    messages: AtomicU64,
}

impl Editor {
    /// Creates the agent's surroundings.
    ///
    /// # Errors
    /// There is no place for its journals, or no thread.
    pub fn new() -> std::io::Result<Self> {
        let folder = tempfile::tempdir()?;
        let store = Store::open(&folder.path().join("journal"));
        let host = WaitingHost {
            store: store.map_err(std::io::Error::other)?,
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()?;
        Ok(Self {
            runtime,
            host: Arc::new(host),
            _folder: folder,
            messages: AtomicU64::new(0),
        })
    }

    /// Returns the number of lines that were written so far.
    pub fn messages(&self) -> u64 {
        self.messages.load(Ordering::Relaxed)
    }
}

impl Target for Editor {
    const NAME: &'static str = "editor";

    fn seeds(&self) -> Vec<Vec<u8>> {
        [SEED, MORE].map(|seed| seed.as_bytes().to_vec()).to_vec()
    }

    fn words(&self) -> Vec<Vec<u8>> {
        WORDS.map(|word| word.as_bytes().to_vec()).to_vec()
    }

    fn longest(&self) -> usize {
        8 << 10
    }

    fn check(&self, input: &[u8]) -> Result<(), String> {
        let failed = |error: std::io::Error| error.to_string();
        let (mut editor, agent) = UnixStream::pair().map_err(failed)?;
        editor.set_read_timeout(Some(TIMEOUT)).map_err(failed)?;
        let ends = (agent.try_clone().map_err(failed)?, agent);
        let serving = gyrus_acp::serve(self.host.clone(), ends, std::future::pending());
        let serving = self.runtime.spawn(serving);
        let mut output = BufReader::new(editor.try_clone().map_err(failed)?);
        let session = begin(&mut editor, &mut output)?;
        let written = replaced(input, session.as_bytes());
        self.messages.fetch_add(
            written.split(|byte| *byte == b'\n').count() as u64,
            Ordering::Relaxed,
        );
        let expected = requests(&written);
        let writing = thread::spawn(move || {
            // Whatever is not read is said by what is not answered.
            let _ = editor.write_all(&written);
            let _ = editor.shutdown(Shutdown::Write);
        });
        let answers = answers(output)?;
        let _ = writing.join();
        self.runtime
            .block_on(serving)
            .map_err(|error| format!("the agent died: {error}"))?
            .map_err(failed)?;
        let (asked, answered): (usize, usize) = (expected.values().sum(), answers.values().sum());
        if answered < asked {
            return Err(format!("{asked} requests have {answered} answers"));
        }
        for (id, times) in &answers {
            let asked = expected.get(id).copied().unwrap_or_default();
            if id != "null" && *times > asked {
                return Err(format!(
                    "{id} was asked {asked} times and answered {times} times"
                ));
            }
        }
        Ok(())
    }
}

/// Introduces the editor, and opens a session.
fn begin(editor: &mut UnixStream, output: &mut impl BufRead) -> Result<String, String> {
    let opening = concat!(
        r#"{"jsonrpc":"2.0","id":"first","method":"initialize","params":{"protocolVersion":1}}"#,
        "\n",
        r#"{"jsonrpc":"2.0","id":"second","method":"session/new","params":{"cwd":"/w"}}"#,
        "\n",
    );
    let written = editor.write_all(opening.as_bytes());
    written.map_err(|error| error.to_string())?;
    let mut line = String::new();
    loop {
        line.clear();
        let read = output.read_line(&mut line);
        if read.map_err(|error| error.to_string())? == 0 {
            return Err("it ended before it opened a session".to_owned());
        }
        let message: Value = serde_json::from_str(&line).map_err(|error| error.to_string())?;
        if let Some(session) = message["result"]["sessionId"].as_str() {
            return Ok(session.to_owned());
        }
    }
}

fn replaced(input: &[u8], session: &[u8]) -> Vec<u8> {
    let (mut whole, mut rest) = (Vec::new(), input);
    while let Some(at) = rest
        .windows(SESSION.len())
        .position(|window| window == SESSION.as_bytes())
    {
        whole.extend_from_slice(&rest[..at]);
        whole.extend_from_slice(session);
        rest = &rest[at + SESSION.len()..];
    }
    whole.extend_from_slice(rest);
    whole
}

/// A request, as far as it must be well formed to be answered by its id.
#[derive(Deserialize)]
struct Request {
    jsonrpc: String,
    id: Value,
    #[serde(rename = "method")]
    _method: String,
}

/// Returns the ids of all requests, each with the number of times that it is there.
fn requests(written: &[u8]) -> BTreeMap<String, usize> {
    let mut requests = BTreeMap::new();
    for line in written.split(|byte| *byte == b'\n') {
        let Ok(message) = serde_json::from_slice::<Request>(line) else {
            continue;
        };
        let id = message.id;
        let is_id = id.is_i64() || id.is_u64() || id.is_string() || id.is_null();
        if is_id && message.jsonrpc == "2.0" {
            *requests.entry(id.to_string()).or_default() += 1;
        }
    }
    requests
}

/// Reads all that is said; returns the ids that were answered.
fn answers(output: impl BufRead) -> Result<BTreeMap<String, usize>, String> {
    let mut answers = BTreeMap::new();
    for line in output.lines() {
        let line = line.map_err(|error| format!("it does not end: {error}"))?;
        let message: Value =
            serde_json::from_str(&line).map_err(|error| format!("it said {line:?}: {error}"))?;
        if message["jsonrpc"] != "2.0" {
            return Err(format!("it said {line:?}"));
        }
        match (message.get("id"), message.get("method")) {
            (Some(id), None)
                if message.get("result").is_some() != message.get("error").is_some() =>
            {
                *answers.entry(id.to_string()).or_default() += 1;
            }
            (_, Some(method)) if method.is_string() => {}
            _ => return Err(format!("it said {line:?}")),
        }
    }
    Ok(answers)
}

struct WaitingHost {
    store: Store,
}

impl AcpHost for WaitingHost {
    fn store(&self) -> &Store {
        &self.store
    }

    fn person(&self) -> Principal {
        Principal {
            surface: "editor".to_owned(),
            id: "tester".to_owned(),
        }
    }

    fn choices(&self) -> Result<SettingChoices, String> {
        let choice = |value: &str| SettingChoice {
            value: value.to_owned(),
            name: value.to_owned(),
            about: String::new(),
        };
        Ok(SettingChoices {
            chosen: SessionSettings {
                mode: "ask".to_owned(),
                cognitive_loop: "auto".to_owned(),
                model: String::new(),
            },
            modes: vec![choice("ask"), choice("auto")],
            loops: vec![choice("auto"), choice("react")],
            models: vec![choice("")],
        })
    }

    fn folder(&self, given: &Path) -> Result<PathBuf, String> {
        Ok(given.to_owned())
    }

    fn check(&self, _: &Path, _: &SessionSettings) -> Result<(), String> {
        Ok(())
    }

    fn skills(&self, _: &Path) -> Vec<(String, String)> {
        Vec::new()
    }

    fn picture(&self, bytes: Vec<u8>) -> Result<Attachment, String> {
        Ok(Attachment::Picture {
            bytes,
            media_type: "image/png".to_owned(),
            width: 1,
            height: 1,
        })
    }

    fn begin(&self, request: TurnRequest, controls: TurnControls) -> TurnAtWork {
        let (_, replies) = live_replies();
        let (_, began) = oneshot::channel();
        let (ends, ended) = oneshot::channel();
        let fails = match request.work {
            TurnWork::Start { goal, .. } => goal.text == FAILS,
            TurnWork::Resume => false,
        };
        tokio::spawn(async move {
            if fails {
                let _ = ends.send(Err("there is no model".to_owned()));
            } else {
                controls.ended().await;
                let _ = ends.send(Ok(Ending::Interrupted));
            }
        });
        TurnAtWork {
            began,
            replies,
            ended,
        }
    }

    fn ending(&self, _: RunId, _: &Ending) -> Option<String> {
        None
    }

    fn command(&self, _: Vec<String>) -> BoxedFuture<'_, Result<String, String>> {
        Box::pin(async { Ok(String::new()) })
    }
}
