//! A folder, a server in it, and the kernel's side of a call.

use std::{
    collections::{BTreeMap, VecDeque},
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use gyrus_contract::{
    BlobId, BoxedFuture, CapturedOutput, Cleared, CommandOutcome, CommandSpec, EffectId, Exit,
    KeeperError, Origin, Part, PersonReply, Reach, Reply, ResolvedCall, ServerPrompt,
    ServerQuestion, Site, StopReason, Text, Tool, ToolOutput, UnknownSecret,
};
use gyrus_mcp::{
    PictureFormat, RequestPolicy, RunServer, ServerSetup, ServerState, ServerWay, Servers,
};
use parking_lot::Mutex;
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::Command;

/// Maximum time for everything that a test waits for.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// The server of these tests.
const SERVER: &str = include_str!("../server.sh");

/// The folders of one test.
pub(crate) struct World {
    folder: TempDir,
    told: Mutex<Vec<String>>,
    /// The person's answers to questions, in order; nobody is there after the last.
    replies: Option<Mutex<VecDeque<PersonReply>>>,
    /// The questions that were asked.
    asked: Mutex<Vec<ServerQuestion>>,
}

impl World {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for made in ["work", "pipes"] {
            fs::create_dir(folder.path().join(made)).unwrap();
        }
        fs::write(folder.path().join("server.sh"), SERVER).unwrap();
        fs::write(folder.path().join("work/heard"), "").unwrap();
        Self {
            folder,
            told: Mutex::default(),
            replies: None,
            asked: Mutex::default(),
        }
    }

    /// A world with a person who says this to questions.
    pub(crate) fn with_person(replies: impl IntoIterator<Item = PersonReply>) -> Self {
        Self {
            replies: Some(Mutex::new(replies.into_iter().collect())),
            ..Self::new()
        }
    }

    /// Returns the questions that were asked.
    pub(crate) fn asked(&self) -> Vec<ServerQuestion> {
        self.asked.lock().clone()
    }

    pub(crate) fn work(&self, name: &str) -> PathBuf {
        self.folder.path().join("work").join(name)
    }

    /// Returns the messages that the server received.
    pub(crate) fn heard(&self) -> String {
        fs::read_to_string(self.work("heard")).unwrap()
    }

    /// Returns the progress messages of calls.
    pub(crate) fn told(&self) -> Vec<String> {
        self.told.lock().clone()
    }

    /// Returns the setup of this program as a server with such a behaviour.
    pub(crate) fn setup(&self, how: &str) -> ServerSetup {
        let server = self.folder.path().join("server.sh").display().to_string();
        self.process("bash", &[&server, how])
    }

    /// Returns the setup of a server that is this program.
    pub(crate) fn process(&self, program: &str, arguments: &[&str]) -> ServerSetup {
        let path = std::env::var("PATH").unwrap();
        ServerSetup {
            name: "srv".to_owned(),
            way: ServerWay::Process {
                program: program.to_owned(),
                arguments: arguments.iter().map(|word| (*word).to_owned()).collect(),
                environment: BTreeMap::from([("PATH".to_owned(), path)]),
                folder: self.folder.path().join("work"),
                pipes: self.folder.path().join("pipes"),
                run: run(),
            },
            reach: Reach::Workspace,
            digest: gyrus_contract::Digest::of(b"setup"),
            silence: TIMEOUT,
            pictures: picture,
            requests: match self.replies {
                Some(_) => RequestPolicy::Offered,
                None => RequestPolicy::Refused,
            },
            judge_start: None,
        }
    }

    /// Returns the setup of a server at this address.
    pub(crate) fn at(&self, url: &str, headers: &[(&str, &str)]) -> ServerSetup {
        let headers = headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        ServerSetup {
            way: ServerWay::Http {
                url: url.to_owned(),
                headers: headers.collect(),
                login: None,
            },
            reach: Reach::Elsewhere,
            ..self.setup("good")
        }
    }

    /// Calls a tool as the kernel would.
    pub(crate) async fn call(&self, tool: &dyn Tool, arguments: Value) -> ToolOutput {
        if let Err(wrong) = tool.check(&arguments) {
            return ToolOutput::error(wrong.reason);
        }
        let call = ResolvedCall {
            tool: tool.spec().name.clone(),
            arguments,
            paths: BTreeMap::new(),
            command: None,
            files: Vec::new(),
            aim: None,
        };
        #[expect(
            clippy::disallowed_methods,
            reason = "the test stands in for the kernel"
        )]
        let cleared = Cleared::mint(call, EffectId::cycle(1).then(1));
        tokio::time::timeout(TIMEOUT, tool.call(cleared, self))
            .await
            .unwrap()
    }
}

impl Site for World {
    fn withheld(&self, _path: &Path) -> Option<String> {
        None
    }

    fn workspace(&self) -> &Path {
        self.folder.path()
    }

    fn answer(&self) -> Option<&str> {
        None
    }

    fn sends_to(&self) -> &[String] {
        &[]
    }

    fn reveal(&self, text: &str) -> Result<String, UnknownSecret> {
        if text.contains("⟦secret:OTHER⟧") {
            Err(UnknownSecret {
                name: "OTHER".to_owned(),
            })
        } else {
            Ok(text.replace("⟦secret:KEY⟧", "hunter2"))
        }
    }

    fn keep(&self, bytes: &[u8]) -> Result<BlobId, String> {
        Ok(BlobId::of(bytes))
    }

    fn tell(&self, words: &str) {
        self.told.lock().push(words.to_owned());
    }

    fn ask_person(&self, question: ServerQuestion) -> BoxedFuture<'_, PersonReply> {
        self.asked.lock().push(question);
        let replies = self.replies.as_ref();
        let reply = replies.and_then(|replies| replies.lock().pop_front());
        Box::pin(async move {
            match reply {
                // A person who thinks for ever.
                Some(PersonReply::NoAnswer(_)) => std::future::pending().await,
                Some(reply) => reply,
                None => PersonReply::NotAsked("nobody can be asked".to_owned()),
            }
        })
    }

    fn ask_model(&self, prompt: ServerPrompt) -> BoxedFuture<'_, Result<Reply, String>> {
        Box::pin(async move {
            match self.ask_person(prompt.question).await {
                PersonReply::Accepted(_) => Ok(Reply {
                    parts: vec![Part::Text(Text::new("five", Origin::Model))],
                    stop: StopReason::EndOfTurn,
                    usage: None,
                    model: "tester".to_owned(),
                }),
                other => Err(format!("{other:?}")),
            }
        })
    }

    fn run_command(&self, _: CommandSpec) -> BoxedFuture<'_, Result<CommandOutcome, KeeperError>> {
        unreachable!("tools of servers run no commands")
    }
}

/// Starts a server, waits until it is ready, and takes its tools.
pub(crate) async fn ready(setup: ServerSetup) -> (Servers, Vec<Arc<dyn Tool>>) {
    let mut servers = Servers::start(vec![setup]);
    let state = servers.states(TIMEOUT).await["srv"].clone();
    assert!(matches!(state, ServerState::Ready { .. }), "{state:?}");
    let tools = servers.tools();
    (servers, tools)
}

/// Returns the tool of this name.
pub(crate) fn named<'a>(tools: &'a [Arc<dyn Tool>], name: &str) -> &'a dyn Tool {
    let names: Vec<_> = tools.iter().map(|tool| &tool.spec().name).collect();
    let found = tools.iter().find(|tool| tool.spec().name == name);
    &**found.unwrap_or_else(|| panic!("no {name} among {names:?}"))
}

/// Runs servers as a keeper would: they end when the future is dropped.
fn run() -> RunServer {
    Arc::new(|spec: CommandSpec| {
        Box::pin(async move {
            let output = Command::new(&spec.program)
                .args(&spec.arguments)
                .current_dir(&spec.folder)
                .env_clear()
                .envs(&spec.environment)
                .kill_on_drop(true)
                .output()
                .await
                .unwrap();
            Ok(CommandOutcome {
                exit: Exit::Code(output.status.code().unwrap_or(-1)),
                output: CapturedOutput {
                    head: String::from_utf8_lossy(&output.stderr).into_owned(),
                    ..CapturedOutput::default()
                },
            })
        })
    })
}

/// Accepts everything that begins like a PNG.
fn picture(bytes: &[u8]) -> Option<PictureFormat> {
    bytes.starts_with(b"\x89PNG").then_some(PictureFormat {
        media_type: "image/png",
        width: 1,
        height: 1,
    })
}
