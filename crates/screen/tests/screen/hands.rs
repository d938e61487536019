//! A browser with its tools, called as the kernel calls them, and pages that take their time.
#![expect(clippy::unwrap_used, reason = "only tests use it")]

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use axum::{
    Router, extract,
    http::{Method, StatusCode, header},
    response::{Html, IntoResponse, Redirect},
    routing::{any, get},
};
use futures_util::{SinkExt as _, StreamExt as _};
use gyrus_contract::{
    ActionVerdict, Aim, BlobId, BoxedFuture, Cleared, CommandOutcome, CommandSpec, EffectId,
    KeeperError, LookOptions, ResolvedCall, ResolvedPath, Screen, Site, Tool, ToolCall, ToolOutput,
    UnknownSecret, View,
};
use gyrus_screen::{Browser, Launch, tools};
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::watch};

use crate::support;

pub(crate) struct World {
    pub(crate) browser: Arc<Browser>,
    hands: Hands,
    port: u16,
    arrived: watch::Sender<Vec<String>>,
}

impl std::ops::Deref for World {
    type Target = Hands;

    fn deref(&self) -> &Hands {
        &self.hands
    }
}

/// The tools of a screen, called as the kernel calls them.
pub(crate) struct Hands {
    tools: Vec<Arc<dyn Tool>>,
    site: Workspace,
}

struct Workspace {
    folder: tempfile::TempDir,
    sends_to: Vec<String>,
}

impl Site for Workspace {
    fn withheld(&self, path: &Path) -> Option<String> {
        path.ends_with("AGENTS.md")
            .then(|| "agents obey it".to_owned())
    }

    fn workspace(&self) -> &Path {
        self.folder.path()
    }

    fn answer(&self) -> Option<&str> {
        None
    }

    fn sends_to(&self) -> &[String] {
        &self.sends_to
    }

    fn reveal(&self, text: &str) -> Result<String, UnknownSecret> {
        Ok(text.replace("⟦secret:KEY⟧", "hunter2"))
    }

    fn keep(&self, bytes: &[u8]) -> Result<BlobId, String> {
        Ok(BlobId::of(bytes))
    }

    fn run_command(&self, _: CommandSpec) -> BoxedFuture<'_, Result<CommandOutcome, KeeperError>> {
        unreachable!("hands run nothing")
    }
}

impl Hands {
    pub(crate) fn new(tools: Vec<Arc<dyn Tool>>, sends_to: Vec<String>) -> Self {
        Self {
            tools,
            site: Workspace {
                folder: tempfile::tempdir().unwrap(),
                sends_to,
            },
        }
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.site.folder.path().join(below)
    }

    fn tool(&self, name: &str) -> &dyn Tool {
        let tool = self.tools.iter().find(|tool| tool.spec().name == name);
        &**tool.unwrap()
    }

    pub(crate) async fn aim(&self, name: &str, arguments: Value) -> Result<Option<Aim>, String> {
        let call = ToolCall {
            id: "1".to_owned(),
            tool: name.to_owned(),
            arguments,
            repairs: Vec::new(),
        };
        self.tool(name)
            .aim(&call)
            .await
            .map_err(|error| error.reason)
    }

    /// Measures and acts.
    pub(crate) async fn act(&self, name: &str, arguments: Value) -> ToolOutput {
        match self.aim(name, arguments.clone()).await {
            Ok(aim) => self.act_as_judged(name, arguments, aim).await,
            Err(reason) => ToolOutput {
                verdict: ActionVerdict::Refused,
                ..ToolOutput::error(reason)
            },
        }
    }

    pub(crate) async fn act_as_judged(
        &self,
        name: &str,
        arguments: Value,
        aim: Option<Aim>,
    ) -> ToolOutput {
        let paths = ["path", "file"].into_iter().filter_map(|argument| {
            let given = arguments.get(argument)?.as_str()?;
            let path = ResolvedPath {
                given: given.to_owned(),
                real: self.path(given),
                in_workspace: Some(given.into()),
                withheld: None,
            };
            Some((argument.to_owned(), path))
        });
        let paths = paths.collect();
        let call = ResolvedCall {
            tool: name.to_owned(),
            arguments,
            paths,
            command: None,
            files: Vec::new(),
            aim,
        };
        #[expect(
            clippy::disallowed_methods,
            reason = "the test stands in for the kernel"
        )]
        let cleared = Cleared::mint(call, EffectId::cycle(1).then(1));
        self.tool(name).call(cleared, &self.site).await
    }
}

impl World {
    /// Opens a browser at a page.
    pub(crate) async fn at(page: &str, launch: Launch) -> Self {
        let listener = TcpListener::bind(("0.0.0.0", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (arrived, _) = watch::channel(Vec::new());
        let router = Router::new()
            .route("/slow/{ms}", get(slow))
            .route("/hang", get(hang))
            .route("/paper.pdf", get(paper))
            .route("/download/{name}", get(download))
            .route("/huge/{what}", get(huge))
            .route(
                "/redirect/file",
                get(async || Redirect::to("file:///etc/passwd")),
            )
            .route("/post/{name}", any(take).with_state(arrived.clone()))
            .route("/{*path}", get(support::page));
        tokio::spawn(async move { axum::serve(listener, router).await });
        let sends_to = vec![format!("http://127.0.0.1:{port}")];
        let browser = Arc::new(support::browser(launch));
        let world = Self {
            hands: Hands::new(tools(&browser), sends_to),
            browser,
            port,
            arrived,
        };
        world.browser.open(&world.address(page)).await.unwrap();
        world
    }

    pub(crate) fn address(&self, page: &str) -> String {
        format!("http://127.0.0.1:{}/{page}", self.port)
    }

    pub(crate) async fn look(&self) -> View {
        let look = LookOptions {
            frame: false,
            documents: 0,
        };
        self.browser.look(look).await.unwrap().view
    }

    /// Returns the id of the element of this name.
    pub(crate) async fn id(&self, name: &str) -> String {
        let view = self.look().await;
        let named = |one: &&gyrus_contract::Element| one.name == name && one.role != "text";
        let found = view.elements.iter().find(named);
        let found = found.unwrap_or_else(|| panic!("{name} is not in {view:#?}"));
        found.id.to_string()
    }

    /// Returns the requests to `/post/…`, at any address.
    pub(crate) fn arrived(&self) -> Vec<String> {
        self.arrived.borrow().clone()
    }

    /// Waits until this many have arrived.
    pub(crate) async fn arrives(&self, count: usize) {
        let mut arrived = self.arrived.subscribe();
        let wait = arrived.wait_for(|all| all.len() >= count);
        tokio::time::timeout(Duration::from_secs(20), wait)
            .await
            .unwrap()
            .unwrap();
    }

    /// Returns the value of an expression in the page's own world.
    pub(crate) async fn eval(&self, expression: &str) -> Value {
        let order = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let answer = self
            .browser
            .devtools("Runtime.evaluate", order)
            .await
            .unwrap();
        answer["result"]["value"].clone()
    }

    /// Returns the page's log since the last call.
    pub(crate) async fn log(&self) -> Vec<String> {
        // Frames report by messages.
        let log = self
            .eval("new Promise((done) => setTimeout(() => done(log.splice(0)), 0))")
            .await;
        serde_json::from_value(log).unwrap_or_default()
    }
}

/// Answers every message over a web socket with itself, after a while; returns its port.
pub(crate) async fn echo() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut socket = tokio_tungstenite::accept_async(stream).await.unwrap();
                while let Some(Ok(message)) = socket.next().await {
                    tokio::time::sleep(Duration::from_millis(400)).await;
                    let _ = socket.send(message).await;
                }
            });
        }
    });
    port
}

async fn slow(extract::Path(ms): extract::Path<u64>) -> impl IntoResponse {
    tokio::time::sleep(Duration::from_millis(ms)).await;
    ([(header::CONTENT_TYPE, "text/html")], "late")
}

async fn take(
    extract::State(arrived): extract::State<watch::Sender<Vec<String>>>,
    request: extract::Request,
) -> impl IntoResponse {
    let allowed = [
        (header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, "*"),
        (header::ACCESS_CONTROL_ALLOW_METHODS, "PUT"),
    ];
    if request.method() != Method::OPTIONS {
        let line = format!("{} {}", request.method(), request.uri());
        arrived.send_modify(|all| all.push(line));
    }
    (allowed, "thanks")
}

/// Serves a page of 100,000 elements, or of 50 MB.
async fn huge(extract::Path(what): extract::Path<String>) -> impl IntoResponse {
    let body = match what.as_str() {
        "elements" => "<p><button>b</button></p>".repeat(50_000),
        _ => format!("<p>{}</p>", "many words ".repeat(100)).repeat(47_000),
    };
    Html(format!("<!doctype html><title>Huge</title>{body}"))
}

/// Serves a PDF of one page.
async fn paper() -> impl IntoResponse {
    let paper = "%PDF-1.4\n\
        1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n\
        2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n\
        3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>endobj\n\
        4 0 obj<</Length 57>>stream\n\
        BT /F 18 Tf 20 99 Td (Total: 42 EUR) Tj T* (Ada) Tj ET   \n\
        endstream endobj\n\
        5 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj\n\
        trailer<</Root 1 0 R/Size 6>>\n";
    ([(header::CONTENT_TYPE, "application/pdf")], paper)
}

async fn hang() -> impl IntoResponse {
    std::future::pending::<()>().await;
    StatusCode::OK
}

async fn download(extract::Path(name): extract::Path<String>) -> impl IntoResponse {
    let attached = format!("attachment; filename=\"{name}\"");
    ([(header::CONTENT_DISPOSITION, attached)], "the report")
}
