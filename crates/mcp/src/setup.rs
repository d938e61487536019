//! Configuration of a server: how it is started or reached.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use gyrus_contract::{BoxedFuture, CommandOutcome, CommandSpec, Digest, KeeperError, Reach};

use crate::{RequestPolicy, ServerLogin, definition::clean};

/// Maximum characters of a server's name: it stands before those of every tool, of which providers
/// take 64.
const MAX_NAME: usize = 24;

/// Runs a server's process until it ends; dropping the future ends it with all its processes.
/// `TMPDIR` in its environment is [`Way::Process::pipes`], by whatever name the process sees that.
pub type RunServer = Arc<
    dyn Fn(CommandSpec) -> BoxedFuture<'static, Result<CommandOutcome, KeeperError>> + Send + Sync,
>;

/// Reads the workspace before a server's process starts, and returns the judgement of the server's
/// changes until it is ready.
///
/// # Errors
/// A message with the reason why the workspace cannot be judged; then the server is not started.
pub type JudgeStart = Arc<dyn Fn() -> Result<EndOfStart, String> + Send + Sync>;

/// Judges the changes that a server made during its start. An error says, in words, why the server
/// is not used.
pub type EndOfStart = Box<dyn FnMut(StartedServer) -> Result<(), String> + Send>;

/// State of a server whose start is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartedServer {
    Ready,
    /// The server has been ended; its processes may take a moment, which the judgement waits for.
    Ended,
}

/// Function that reads the header of a picture; `None` if models do not accept such a picture.
pub type ReadPicture = fn(&[u8]) -> Option<PictureFormat>;

/// Format and size of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PictureFormat {
    /// `image/png`, `image/webp` or `image/jpeg`.
    pub media_type: &'static str,
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
}

/// Configuration of a server.
#[derive(Clone)]
pub struct ServerSetup {
    /// The server's name, see [`is_server_name`].
    pub name: String,
    /// The way in which the server is started or reached.
    pub way: ServerWay,
    /// The paths or hosts that the server can reach.
    pub reach: Reach,
    /// The digest of the section that describes it: another one is another server.
    pub digest: Digest,
    /// Maximum time without a message about a call.
    pub silence: Duration,
    /// Reads the headers of pictures in answers.
    pub pictures: ReadPicture,
    /// Whether the server's requests during calls are put to a person.
    pub requests: RequestPolicy,
    /// Judges the server's start, if its process can reach the workspace.
    pub judge_start: Option<JudgeStart>,
}

impl ServerSetup {
    pub(crate) fn tokens(&self) -> Vec<String> {
        match &self.way {
            ServerWay::Http {
                url,
                login: Some(login),
                ..
            } => login.tokens(url),
            ServerWay::Http { .. } | ServerWay::Process { .. } => Vec::new(),
        }
    }

    /// Returns the message for a server that requires a login. Only a person logs in.
    pub(crate) fn wants_login(&self, challenge: &str) -> String {
        let challenge = gyrus_text::shorten(&clean(challenge), 200).into_owned();
        match &self.way {
            ServerWay::Http { login: Some(_), .. } => {
                format!("it asks for a login; log in: gyrus mcp login {}", self.name)
            }
            ServerWay::Http { .. } | ServerWay::Process { .. } => {
                format!("it refuses the configured authorization (401): {challenge}")
            }
        }
    }

    /// Returns the message for a server that was not ready within `limit`.
    pub(crate) fn too_slow(&self, limit: Duration) -> String {
        let network = match self.reach {
            Reach::Workspace => {
                "; if it waits for the network: it has none, but for hosts that are \
                                 named for it"
            }
            Reach::Hosts | Reach::Elsewhere | Reach::Everything => "",
        };
        format!("it was not ready within {} s{network}", limit.as_secs())
    }
}

/// Way in which a server is started or reached.
#[derive(Clone)]
pub enum ServerWay {
    /// A process with messages over its standard input and output.
    Process {
        /// The program, absolute or on the `PATH` of `environment`.
        program: String,
        arguments: Vec<String>,
        /// The complete environment of the process.
        environment: BTreeMap<String, String>,
        /// The folder in which the process starts.
        folder: PathBuf,
        /// Folder for the pipes of the process, used by nothing else.
        pipes: PathBuf,
        /// Runs the process.
        run: RunServer,
    },
    /// A running server that is reached by streamable HTTP.
    Http {
        /// Address of the server.
        url: String,
        /// Headers sent with every request; their values are secrets.
        headers: BTreeMap<String, String>,
        /// The means to log in at the server, unless the headers authorize the client.
        login: Option<ServerLogin>,
    },
}

/// Whether the name is valid for a server: `a-z`, `0-9` and `-`, at most 24 of them.
pub fn is_server_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !name.is_empty() && name.len() <= MAX_NAME && name.chars().all(plain)
}
