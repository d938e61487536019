//! Language servers: after an edit they say what is wrong with the file.
//!
//! One is started in the sandbox when a file of its language is edited first, can read the folder and
//! change nothing, and serves all runs of the process in that folder until nobody holds it any more. What
//! it says is untrusted text. It is asked as hooks are, so that its answers are in the journal and a replay
//! starts none; unlike a hook it refuses nothing, and one that is slow, floods or dies is left out.

mod connection;
mod messages;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use gyrus::runtime::{Confinement, Home};
use gyrus_contract::{BoxedFuture, Hook, HookEvent, HookRun, own_tool_name};
use gyrus_process::Programs;
use gyrus_surfaces::console::put;
use gyrus_text::{one_line, shorten, visible};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::Instant;

use self::connection::{CheckOutcome, Connection};
use crate::{env, failure::Failure, mcp::StartSurroundings};

/// Time that the first edit waits for a server that has just been started.
const FIRST_WAIT: Duration = Duration::from_secs(6);

/// Time that later edits wait. After each wait in vain it is halved, down to the shortest.
const WAIT: Duration = Duration::from_secs(3);
const SHORTEST_WAIT: Duration = Duration::from_millis(250);

/// Maximum size of a file that a server is given, in bytes.
const MAX_FILE: u64 = 1 << 20;

struct KnownServer {
    name: &'static str,
    program: &'static str,
    arguments: &'static [&'static str],
    /// Names of languages in the protocol, each with the endings of its files.
    languages: &'static [(&'static str, &'static [&'static str])],
    /// Its settings as JSON.
    settings: &'static str,
}

const KNOWN: [KnownServer; 5] = [
    KnownServer {
        name: "rust-analyzer",
        program: "rust-analyzer",
        arguments: &[],
        languages: &[("rust", &["rs"])],
        // A build of the whole project for each edit is for the project's own commands.
        settings: r#"{"checkOnSave": false, "cachePriming": {"enable": false},
            "procMacro": {"enable": false}, "cargo": {"buildScripts": {"enable": false}},
            "diagnostics": {"disabled": ["unresolved-proc-macro", "unresolved-macro-call", "macro-error"]}}"#,
    },
    KnownServer {
        name: "pyright",
        program: "pyright-langserver",
        arguments: &["--stdio"],
        languages: &[("python", &["py", "pyi"])],
        settings: "null",
    },
    KnownServer {
        name: "gopls",
        program: "gopls",
        arguments: &[],
        languages: &[("go", &["go"])],
        settings: "null",
    },
    KnownServer {
        name: "typescript-language-server",
        program: "typescript-language-server",
        arguments: &["--stdio"],
        languages: &[
            ("typescript", &["ts", "mts", "cts"]),
            ("typescriptreact", &["tsx"]),
            ("javascript", &["js", "mjs", "cjs"]),
            ("javascriptreact", &["jsx"]),
        ],
        settings: "null",
    },
    KnownServer {
        name: "clangd",
        program: "clangd",
        arguments: &[],
        languages: &[("c", &["c"]), ("cpp", &["h", "cc", "cpp", "cxx", "hpp"])],
        settings: "null",
    },
];

impl KnownServer {
    fn language(&self, path: &Path) -> Option<&'static str> {
        let ending = path.extension()?.to_str()?;
        let mut languages = self.languages.iter();
        let known = languages.find(|(_, endings)| endings.contains(&ending));
        known.map(|(language, _)| *language)
    }
}

pub(crate) struct LanguageServers(Vec<LanguageServer>);

struct LanguageServer {
    known: &'static KnownServer,
    /// Its program, free of links.
    program: PathBuf,
    home: Home,
    workspace: PathBuf,
    /// The person named it, and wants to know if it cannot be had.
    is_named: bool,
    state: tokio::sync::Mutex<ServerUse>,
    /// It ended, or speaks another protocol.
    is_left_out: AtomicBool,
}

struct ServerUse {
    connection: Option<Connection>,
    wait: Duration,
}

/// The servers of folders that somebody holds.
static HELD: Mutex<BTreeMap<PathBuf, Weak<LanguageServers>>> = Mutex::new(BTreeMap::new());

impl LanguageServers {
    /// Returns the servers for a folder, which are shared by all who hold them; `None` if there are none,
    /// or no sandbox to run them in.
    ///
    /// # Errors
    /// The configuration names one that gyrus does not know.
    pub(crate) fn of_folder(around: &StartSurroundings<'_>) -> Result<Option<Arc<Self>>, Failure> {
        let (home, workspace) = (around.home, around.workspace);
        let configured = &around.config.language_servers;
        if let Some(unknown) = configured.iter().flatten().find(|name| !is_known(name)) {
            let what = format!("`language-servers`: there is no `{}`", visible(unknown));
            let names: Vec<_> = KNOWN.iter().map(|server| server.name).collect();
            return Err(Failure::usage(what).hint(format!("there are: {}", names.join(", "))));
        }
        if around.confinement == Confinement::Unsandboxed {
            return Ok(None);
        }
        let mut held = HELD.lock();
        if let Some(servers) = held.get(workspace).and_then(Weak::upgrade) {
            return Ok(Some(servers));
        }
        held.retain(|_, servers| servers.strong_count() > 0);
        let named = env::variable(env::GYRUS_LANGUAGE_SERVERS);
        let is_wanted = |server: &&KnownServer| match (&named, configured) {
            (Some(named), _) => named.split(',').any(|name| name.trim() == server.name),
            (None, Some(names)) => names.iter().any(|name| name == server.name),
            (None, None) => true,
        };
        let servers = KNOWN.iter().filter(is_wanted).filter_map(|known| {
            let found = Programs::of_this_process().find(known.program).ok()?;
            Some(LanguageServer {
                known,
                program: found.path,
                home: home.clone(),
                workspace: workspace.to_owned(),
                is_named: named.is_some() || configured.is_some(),
                state: tokio::sync::Mutex::new(ServerUse {
                    connection: None,
                    wait: FIRST_WAIT,
                }),
                is_left_out: AtomicBool::new(false),
            })
        });
        let servers: Vec<_> = servers.collect();
        if servers.is_empty() {
            return Ok(None);
        }
        let servers = Arc::new(Self(servers));
        held.insert(workspace.to_owned(), Arc::downgrade(&servers));
        Ok(Some(servers))
    }

    /// Returns the server that is asked after a call, given the name of its tool and what hooks are told.
    pub(crate) fn after(&self, event: HookEvent, tool: &str, told: &Value) -> Option<&dyn Hook> {
        let edits = ["edit", "write"].contains(&own_tool_name(tool));
        if event != HookEvent::PostToolUse || !edits {
            return None;
        }
        let path = edited(told)?;
        let mut servers = self.0.iter();
        let server = servers.find(|server| {
            server.known.language(path).is_some()
                && path.starts_with(&server.workspace)
                && !server.is_left_out.load(Ordering::Relaxed)
        })?;
        Some(server)
    }
}

fn is_known(name: &str) -> bool {
    KNOWN.iter().any(|server| server.name == name)
}

/// Returns the file that a call edited, as hooks are told it.
fn edited(told: &Value) -> Option<&Path> {
    told["tool_input"]["file_path"].as_str().map(Path::new)
}

impl Hook for LanguageServer {
    fn name(&self) -> &str {
        self.known.name
    }

    fn run(&self, input: String) -> BoxedFuture<'_, HookRun> {
        Box::pin(async move {
            let told = serde_json::from_str(&input).unwrap_or(Value::Null);
            let said = match edited(&told) {
                Some(path) => self.problems(path).await,
                None => None,
            };
            let said = said.map(|text| json!({ "additionalContext": text }).to_string());
            HookRun {
                exit: Ok(0),
                stdout: said.unwrap_or_default(),
                stderr: String::new(),
            }
        })
    }
}

impl LanguageServer {
    /// Returns what the server finds wrong with a file as it is now, in words for a model.
    async fn problems(&self, path: &Path) -> Option<String> {
        let language = self.known.language(path)?;
        // What lies elsewhere is hidden from it, whatever a link says.
        let path = &fs::canonicalize(path).ok()?;
        if !path.starts_with(&self.workspace) {
            return None;
        }
        let text = text_of(path)?;
        let mut server = self.state.lock().await;
        let deadline = Instant::now() + server.wait;
        if server.connection.is_none() && !self.is_left_out.load(Ordering::Relaxed) {
            let place = (&self.home, &*self.workspace);
            let program = (&*self.program, self.known.arguments);
            match Connection::start(place, program, self.known.settings) {
                Ok(connection) => server.connection = Some(connection),
                Err(why) => self.leave_out(&why, self.is_named),
            }
        }
        let connection = server.connection.as_mut()?;
        match connection.check(path, language, &text, deadline).await {
            CheckOutcome::Problems(said) => {
                server.wait = WAIT;
                said.map(|said| format!("{}: {said}", self.known.name))
            }
            CheckOutcome::Late => {
                server.wait = (server.wait / 2).max(SHORTEST_WAIT);
                None
            }
            CheckOutcome::Ended(why) => {
                // One that never worked is as good as not installed.
                let tells = self.is_named || connection.was_ready();
                server.connection = None;
                self.leave_out(&why, tells);
                None
            }
        }
    }

    fn leave_out(&self, why: &str, tells: bool) {
        self.is_left_out.store(true, Ordering::Relaxed);
        if tells {
            let why = one_line(why);
            let why = shorten(&why, 200);
            let _ = put(&format!("{} is left out: {why}\n", self.known.name));
        }
    }
}

fn text_of(path: &Path) -> Option<String> {
    let size = path.symlink_metadata().ok()?.len();
    let text = gyrus_process::read_regular_text(path).ok()?;
    (size <= MAX_FILE && text.len() as u64 <= MAX_FILE).then_some(text)
}
