//! The program around the server: it checks requests and carries out command lines.

use std::{
    io,
    path::Path,
    process::Stdio,
    sync::{Arc, OnceLock},
    time::Duration,
};

use gyrus::runtime;
use gyrus_chat::ChatAccount;
use gyrus_contract::{Answer, BoxedFuture, RunId};
use gyrus_kernel::approvals::OpenQuestion;
use gyrus_process::ProcessIdentity;
use gyrus_runtime::{
    agents::Agents,
    queue::RunHost,
    request::{RefusedRequest, RunRequest},
};
use gyrus_server::{
    AgentFileView, ApiError, ChatPersonView, ChatView, CommandPiece, CommandPieces, FleetView,
    HostProgram, ServerSettings,
};
use parking_lot::Mutex;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _},
    process::Child,
    sync::mpsc,
    time::timeout,
};

use super::{agents::ReadFiles, configured::configured, hooks::HookFailures, workers::Processes};
use crate::{
    Gyrus,
    commands::{self, run::Run},
    env::GYRUS_ANYWHERE,
    failure::Failure,
    takeover,
};

/// Number of pieces of output that wait to be read.
const PIECES: usize = 64;

/// Maximum size of a piece in bytes.
const PIECE: usize = 16 << 10;

/// Time within which a page gives its picture; a page that is busy gives none.
const PICTURE_WITHIN: Duration = Duration::from_secs(5);

/// Maximum size of a command's output that is shown as a whole, in bytes.
const MAX_PRINTED: usize = 256 << 10;

/// Commands that only make sense at a terminal.
const NOT_HERE: [&str; 3] = ["serve", "work", "demo"];

pub(super) struct ServerProgram {
    pub(super) gyrus: Gyrus,
    pub(super) processes: Arc<Processes>,
    pub(super) agents: Agents,
    pub(super) agent_files: ReadFiles,
    pub(super) failures: HookFailures,
    /// The fleet to which the server belongs, as last seen.
    pub(super) fleet: Option<Arc<Mutex<FleetView>>>,
    /// The chats, once they are started.
    pub(super) chats: OnceLock<Vec<ChatAccount>>,
}

impl RunHost for ServerProgram {
    fn check(&self, request: RunRequest) -> Result<RunRequest, RefusedRequest> {
        checked(&self.gyrus, request)
    }

    fn command(&self, arguments: Vec<String>) -> BoxedFuture<'_, Result<String, String>> {
        Box::pin(async move { printed(&self.processes, &arguments).await })
    }
}

impl HostProgram for ServerProgram {
    fn check_answer(&self, open: &OpenQuestion, answer: &Answer) -> Result<(), ApiError> {
        let store = self.gyrus.store();
        let checked =
            store.and_then(|store| commands::check_edited(&self.gyrus, &store, open, answer));
        checked.map_err(|failure| ApiError::bad_request(failure.message))
    }

    fn agent_files(&self) -> Vec<AgentFileView> {
        let files = self.agent_files.lock();
        files.clone()
    }

    fn configured(&self, workdir: Option<&Path>) -> Result<ServerSettings, ApiError> {
        let failures = self.failures.lock();
        let failures = failures.clone();
        configured(&self.gyrus, workdir, &failures)
            .map_err(|failure| ApiError::bad_request(failure.message))
    }

    fn begin_command(
        &self,
        arguments: Vec<String>,
        stdin: Vec<u8>,
    ) -> Result<CommandPieces, ApiError> {
        begin_command(&self.processes, &arguments, stdin)
    }

    fn fleet(&self) -> Option<FleetView> {
        let seen = self.fleet.as_ref()?.lock();
        Some(seen.clone())
    }

    fn chats(&self) -> Vec<ChatView> {
        let chats = self.chats.get().into_iter().flatten();
        chats.map(view).collect()
    }

    fn pairing_code(&self, chat: &str) -> Result<String, ApiError> {
        let code = self.chat(chat)?.code();
        code.map_err(|error| ApiError::internal(error.to_string()))
    }

    fn unpair<'a>(
        &'a self,
        chat: &'a str,
        person: &'a str,
    ) -> BoxedFuture<'a, Result<(), ApiError>> {
        Box::pin(async move {
            let removed = self.chat(chat)?.remove(person).await;
            if removed.map_err(|error| ApiError::internal(error.to_string()))? {
                return Ok(());
            }
            let error = format!("`{person}` is not paired with {chat}");
            Err(ApiError::not_found(error).hint("see who is: gyrus chat list"))
        })
    }

    fn picture(&self, run: RunId) -> BoxedFuture<'_, Result<Vec<u8>, ApiError>> {
        Box::pin(async move {
            let nothing = |failure: Failure| ApiError::not_found(failure.message);
            let home = self.gyrus.home().map_err(nothing)?;
            let taken = timeout(PICTURE_WITHIN, takeover::picture(&home, run)).await;
            let late = |_| ApiError::not_found("its page gave no picture in time");
            taken.map_err(late)?.map_err(nothing)
        })
    }
}

/// Checks a request for a run as `gyrus run` would, and completes it.
pub(super) fn checked(gyrus: &Gyrus, request: RunRequest) -> Result<RunRequest, RefusedRequest> {
    complete(gyrus, request).map_err(|failure| RefusedRequest {
        message: failure.message,
        hint: failure.hint,
    })
}

fn complete(gyrus: &Gyrus, request: RunRequest) -> Result<RunRequest, Failure> {
    if !request.workdir.is_absolute() {
        let failure = Failure::usage("invalid `workdir`: it is not absolute");
        return Err(failure.hint("begin with /"));
    }
    Run::ordered(request.clone()).check(gyrus)?;
    if gyrus.is_of_a_fleet() {
        return Ok(request);
    }
    let workdir = runtime::workspace(&gyrus.home()?, &request.workdir)?;
    Ok(RunRequest { workdir, ..request })
}

/// Begins to carry out a command of the command line, in a process of its own.
pub(super) fn begin_command(
    processes: &Processes,
    arguments: &[String],
    stdin: Vec<u8>,
) -> Result<CommandPieces, ApiError> {
    let first = arguments.first().map(String::as_str).unwrap_or_default();
    if NOT_HERE.contains(&first) || first.starts_with('-') && first != "--help" {
        let error = format!("`{first}` cannot be carried out by a server");
        return Err(ApiError::bad_request(error));
    }
    let child = processes
        .typed(arguments)
        .env("NO_COLOR", "1")
        .env(GYRUS_ANYWHERE, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| ApiError::internal(format!("no process can be started: {error}")))?;
    let (sender, pieces) = mpsc::channel(PIECES);
    tokio::spawn(carry_out(child, stdin, sender));
    Ok(pieces)
}

/// Returns the output of a command of the command line.
pub(crate) async fn printed(processes: &Processes, arguments: &[String]) -> Result<String, String> {
    let in_words = |error: ApiError| error.message().to_owned();
    let mut pieces = begin_command(processes, arguments, Vec::new()).map_err(in_words)?;
    let (mut printed, mut said) = (String::new(), String::new());
    let mut code = None;
    while let Some(piece) = pieces.recv().await {
        match piece {
            CommandPiece::Stdout(text) => printed.push_str(&text),
            CommandPiece::Stderr(text) => said.push_str(&text),
            CommandPiece::Ended(ended) => code = ended,
        }
        if printed.len() + said.len() > MAX_PRINTED {
            return Err("that is too much to show here".to_owned());
        }
    }
    match code {
        Some(0) if printed.is_empty() => Ok(said),
        Some(0) => Ok(printed),
        _ => Err(said),
    }
}

fn view(chat: &ChatAccount) -> ChatView {
    let people = chat.people().into_iter().map(|person| ChatPersonView {
        id: person.id,
        name: person.name,
        since_ms: person.since_ms,
    });
    ChatView {
        chat: chat.surface().to_owned(),
        people: people.collect(),
    }
}

impl ServerProgram {
    fn chat(&self, name: &str) -> Result<&ChatAccount, ApiError> {
        let mut chats = self.chats.get().into_iter().flatten();
        chats.find(|chat| chat.surface() == name).ok_or_else(|| {
            let error = format!("this server has no chat `{name}`");
            ApiError::not_found(error).hint(format!(
                "describe it in the section [chat.{name}] of config.toml, store its token (gyrus \
                 chat token {name}), and start the server again"
            ))
        })
    }
}

async fn carry_out(mut child: Child, stdin: Vec<u8>, pieces: mpsc::Sender<CommandPiece>) {
    let (input, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let interrupted = ProcessIdentity::of(child.id().unwrap_or_default());
    let whole = async {
        let write = async {
            if let Some(mut input) = input {
                let _ = input.write_all(&stdin).await;
            }
        };
        let _ = tokio::join!(
            write,
            forward(stdout, &pieces, CommandPiece::Stdout),
            forward(stderr, &pieces, CommandPiece::Stderr),
        );
        child.wait().await
    };
    tokio::select! {
        ended = whole => {
            let code = ended.ok().and_then(|status| status.code());
            let _ = pieces.send(CommandPiece::Ended(code)).await;
        }
        () = pieces.closed() => {
            // As a person at a terminal would end it: a run parks.
            if let Ok(Some(process)) = interrupted {
                let _ = process.interrupt();
            }
            let _ = child.wait().await;
        }
    }
}

/// Forwards text as it arrives, without cutting a character in two.
async fn forward(
    from: Option<impl AsyncRead + Unpin>,
    to: &mpsc::Sender<CommandPiece>,
    piece: fn(String) -> CommandPiece,
) -> io::Result<()> {
    let Some(mut from) = from else { return Ok(()) };
    let mut buffer = Vec::with_capacity(PIECE);
    loop {
        let read = from.read_buf(&mut buffer).await?;
        let whole = match std::str::from_utf8(&buffer) {
            Err(error) if error.error_len().is_none() && read > 0 => error.valid_up_to(),
            _ => buffer.len(),
        };
        if whole > 0 {
            let text: Vec<u8> = buffer.drain(..whole).collect();
            let text = String::from_utf8_lossy(&text).into_owned();
            if to.send(piece(text)).await.is_err() {
                return Ok(());
            }
        }
        if read == 0 {
            return Ok(());
        }
    }
}
