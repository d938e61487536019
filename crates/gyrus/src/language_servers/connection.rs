//! A running language server, and the files that it was told of.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use gyrus::runtime::{Home, sandbox};
use gyrus_mcp::{PipedProgram, StartedProgram, how_it_ended, start_piped};
use gyrus_text::counted;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncWriteExt as _, BufReader},
    sync::{mpsc, watch},
    task::JoinHandle,
    time::{Instant, timeout_at},
};

use super::messages::{self, FileProblems, answer, framed, initialize, notification};
use crate::mcp;

/// Time for which nothing more may come before an answer counts as whole.
const QUIET: Duration = Duration::from_millis(200);

/// Maximum number of files that a server is told of at the same time, of its tasks that are waited for,
/// and of messages that wait to be sent to it.
const MAX_OPEN: usize = 32;
const MAX_TASKS: usize = 32;
const MAX_QUEUED: usize = 256;

/// Maximum number of bytes that a server may say between two edits.
const MAX_SAID: usize = 64 << 20;

/// Maximum number of problems that one edit's result names.
const MAX_TOLD: usize = 20;

/// Folders in whose place the sandbox has an empty one of its own.
const TEMPORARY: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// Keeps what builds and caches write in the server's own folder.
const OWN_CACHES: &str = r#"export XDG_CACHE_HOME="$TMPDIR/cache" CARGO_TARGET_DIR="$TMPDIR/target" GOCACHE="$TMPDIR/go"; exec "$@""#;

pub(super) struct Connection {
    to: mpsc::Sender<Value>,
    conversation: Arc<Conversation>,
    workspace: PathBuf,
    /// The files that it was told of, each with its version and the problems that were told last.
    open: BTreeMap<PathBuf, OpenFile>,
    version: i64,
    is_begun: bool,
    running: JoinHandle<()>,
    _folder: TempDir,
}

struct OpenFile {
    version: i64,
    text: String,
    told: Vec<String>,
}

/// Result of asking a server about a file.
pub(super) enum CheckOutcome {
    /// The problems, in words; `None` if there are none.
    Problems(Option<String>),
    /// It has not answered in time.
    Late,
    Ended(String),
}

/// State of the conversation with a server, as its messages tell it.
#[derive(Default)]
struct Conversation {
    state: Mutex<ConversationState>,
    moved: watch::Sender<()>,
}

#[derive(Default)]
struct ConversationState {
    is_ready: bool,
    ended: Option<String>,
    /// Its tasks that go on.
    tasks: BTreeSet<String>,
    /// The problems of the files that it was told of, once it published some.
    files: BTreeMap<PathBuf, Option<FileProblems>>,
    /// Bytes since the last edit.
    said: usize,
}

impl Conversation {
    /// Takes a message, and returns the answer that it wants.
    fn take(&self, message: &Value, size: usize) -> Result<Option<Value>, String> {
        let mut state = self.state.lock();
        state.said += size;
        if state.said > MAX_SAID {
            return Err(format!("it said more than {MAX_SAID} bytes about one edit"));
        }
        let params = &message["params"];
        match (message["method"].as_str(), message.get("id")) {
            (Some(method), Some(id)) => return Ok(Some(answer(id, method, params))),
            (None, Some(id)) if *id == 0 => {
                if !message["error"].is_null() {
                    let why = message["error"]["message"].as_str().unwrap_or_default();
                    return Err(format!("it does not begin: {why}"));
                }
                state.is_ready = true;
            }
            (Some("textDocument/publishDiagnostics"), None) => {
                if let Some(published) = FileProblems::read(params)
                    && let Some(file) = state.files.get_mut(&published.path)
                {
                    *file = Some(published);
                }
            }
            (Some("$/progress"), None) => {
                let token = params["token"].to_string();
                match params["value"]["kind"].as_str() {
                    Some("begin") if state.tasks.len() < MAX_TASKS => {
                        state.tasks.insert(token);
                    }
                    Some("end") => {
                        state.tasks.remove(&token);
                    }
                    _ => {}
                }
            }
            _ => return Ok(None),
        }
        drop(state);
        self.moved.send_replace(());
        Ok(None)
    }

    fn end(&self, why: String) {
        self.state.lock().ended.get_or_insert(why);
        self.moved.send_replace(());
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // Its end is that of the server with all its processes.
        self.running.abort();
    }
}

impl Connection {
    /// Starts a server in the sandbox, with `settings` in JSON.
    ///
    /// # Errors
    /// There is no sandbox, or it cannot be started.
    pub(super) fn start(
        (home, workspace): (&Home, &Path),
        (program, arguments): (&Path, &[&str]),
        settings: &str,
    ) -> Result<Self, String> {
        sandbox::holds(home)?;
        let folder = mcp::start::folder(home)?;
        let mut containment = sandbox::plan(home, folder.path(), workspace)?;
        containment.writable.retain(|path| path != workspace);
        containment.read_only.push(workspace.to_owned());
        let folder_of = program.parent().unwrap_or(program);
        if TEMPORARY.iter().any(|place| folder_of.starts_with(place)) {
            containment.read_only.push(folder_of.to_owned());
        }
        let pipes = containment.temporary.clone();
        let environment = mcp::start::environment();
        let program = program.display().to_string();
        let words = ["-c", OWN_CACHES, "sh", &program].into_iter();
        let words = words.chain(arguments.iter().copied());
        let arguments: Vec<String> = words.map(str::to_owned).collect();
        let started = start_piped(
            &PipedProgram {
                program: "sh",
                arguments: &arguments,
                environment: &environment,
                folder: workspace,
            },
            &pipes,
            &sandbox::run_in(containment),
        );
        let started = started.map_err(|error| error.to_string())?;
        let (to, queue) = mpsc::channel(MAX_QUEUED);
        let conversation = Arc::new(Conversation::default());
        let running = tokio::spawn(serve(
            started,
            (to.clone(), queue),
            Arc::clone(&conversation),
        ));
        let mut connection = Self {
            to,
            conversation,
            workspace: workspace.to_owned(),
            open: BTreeMap::new(),
            version: 0,
            is_begun: false,
            running,
            _folder: folder,
        };
        connection.send(initialize(workspace, settings));
        Ok(connection)
    }

    pub(super) fn was_ready(&self) -> bool {
        self.conversation.state.lock().is_ready
    }

    /// Tells it the text of a file, and waits for what it finds.
    pub(super) async fn check(
        &mut self,
        path: &Path,
        language: &str,
        text: &str,
        deadline: Instant,
    ) -> CheckOutcome {
        let mut moved = self.conversation.moved.subscribe();
        self.conversation.state.lock().said = 0;
        while !self.conversation.state.lock().is_ready {
            if let Some(ended) = self.ended() {
                return ended;
            }
            if timeout_at(deadline, moved.changed()).await.is_err() {
                return CheckOutcome::Late;
            }
        }
        if !std::mem::replace(&mut self.is_begun, true) {
            self.send(notification("initialized", json!({})));
        }
        self.tell(path, language, text);
        loop {
            let is_whole = {
                let state = self.conversation.state.lock();
                let published = state.files.get(path).and_then(Option::as_ref);
                let told = self.open.get(path).map_or(0, |file| file.version);
                let about =
                    published.map(|published| published.version.is_none_or(|of| of >= told));
                state.tasks.is_empty() && about == Some(true)
            };
            if let Some(ended) = self.ended() {
                return ended;
            }
            let until = if is_whole {
                deadline.min(Instant::now() + QUIET)
            } else {
                deadline
            };
            if timeout_at(until, moved.changed()).await.is_err() {
                break if is_whole {
                    CheckOutcome::Problems(self.in_words(path))
                } else {
                    CheckOutcome::Late
                };
            }
        }
    }

    fn ended(&self) -> Option<CheckOutcome> {
        self.conversation
            .state
            .lock()
            .ended
            .clone()
            .map(CheckOutcome::Ended)
    }

    /// Queues a message. One that does not read what it is sent ends.
    fn send(&mut self, message: Value) {
        if self.to.try_send(message).is_err() {
            self.conversation
                .end("it does not read what it is sent".to_owned());
        }
    }

    fn tell(&mut self, path: &Path, language: &str, text: &str) {
        if self.open.get(path).is_some_and(|file| file.text == text) {
            return;
        }
        self.version += 1;
        let (uri, version) = (messages::uri(path), self.version);
        self.conversation
            .state
            .lock()
            .files
            .insert(path.to_owned(), None);
        if let Some(file) = self.open.get_mut(path) {
            file.version = version;
            text.clone_into(&mut file.text);
            self.send(notification(
                "textDocument/didChange",
                json!({ "textDocument": { "uri": uri, "version": version },
                    "contentChanges": [{ "text": text }] }),
            ));
        } else {
            self.close_oldest();
            let file = OpenFile {
                version,
                text: text.to_owned(),
                told: Vec::new(),
            };
            self.open.insert(path.to_owned(), file);
            self.send(notification(
                "textDocument/didOpen",
                json!({ "textDocument": { "uri": uri, "languageId": language, "version": version,
                    "text": text } }),
            ));
        }
        let saved = json!({ "textDocument": { "uri": uri } });
        self.send(notification("textDocument/didSave", saved));
    }

    fn close_oldest(&mut self) {
        if self.open.len() < MAX_OPEN {
            return;
        }
        let oldest = self.open.iter().min_by_key(|(_, file)| file.version);
        let Some(path) = oldest.map(|(path, _)| path.clone()) else {
            return;
        };
        self.open.remove(&path);
        self.conversation.state.lock().files.remove(&path);
        let closed = json!({ "textDocument": { "uri": messages::uri(&path) } });
        self.send(notification("textDocument/didClose", closed));
    }

    /// Returns the problems of a file, and those of others that have changed since they were told.
    fn in_words(&mut self, edited: &Path) -> Option<String> {
        let files = self.conversation.state.lock().files.clone();
        let (mut words, mut left) = (Vec::new(), MAX_TOLD);
        for (path, published) in files {
            let (Some(published), Some(file)) = (published, self.open.get_mut(&path)) else {
                continue;
            };
            let now = published.problems;
            let before = std::mem::replace(&mut file.told, now.clone());
            if now == before && (path != edited || now.is_empty()) {
                continue;
            }
            let name = path
                .strip_prefix(&self.workspace)
                .unwrap_or(&path)
                .display();
            if now.is_empty() {
                words.push(format!("no problems in {name} any more"));
                continue;
            }
            let told = now.len().min(left);
            left -= told;
            words.push(format!("{} in {name}", counted(now.len(), "problem")));
            words.extend(now.iter().take(told).map(|line| format!("  {line}")));
            if told < now.len() {
                words.push(format!("  and {} more", now.len() - told));
            }
        }
        (!words.is_empty()).then(|| words.join("\n"))
    }
}

/// Reads and writes for as long as the server runs.
async fn serve(
    started: StartedProgram,
    (replies, mut queue): (mpsc::Sender<Value>, mpsc::Receiver<Value>),
    conversation: Arc<Conversation>,
) {
    let StartedProgram {
        mut to,
        from,
        running,
    } = started;
    let reading = async {
        let mut from = BufReader::new(from);
        loop {
            let reply = match messages::read(&mut from).await {
                Ok((message, size)) => conversation.take(&message, size),
                Err(why) => Err(why),
            };
            match reply {
                Ok(None) => {}
                // One that does not read its answers has to do without.
                Ok(Some(reply)) => drop(replies.try_send(reply)),
                Err(why) => return why,
            }
        }
    };
    let writing = async {
        while let Some(message) = queue.recv().await {
            if let Err(error) = to.write_all(&framed(&message)).await {
                return format!("it cannot be told anything: {error}");
            }
        }
        std::future::pending().await
    };
    let why = tokio::select! {
        outcome = running => how_it_ended(outcome),
        why = reading => why,
        why = writing => why,
    };
    conversation.end(why);
}
