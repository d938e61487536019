//! A browser with its tools, called as the kernel calls them, and pages that take their time.
#![expect(clippy::unwrap_used, reason = "only tests use it")]

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use axum::{
    Router, extract,
    http::{StatusCode, header},
    response::IntoResponse,
    routing::get,
};
use gyrus_contract::{
    ActionVerdict, Aim, BlobId, Boxed, Cleared, CommandOutcome, CommandSpec, EffectId, KeeperError,
    Look, ResolvedCall, ResolvedPath, Screen, Site, Tool, ToolCall, ToolOutput, UnknownSecret,
    View,
};
use gyrus_screen::{Browser, Launch, tools};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::support;

pub(crate) struct World {
    pub(crate) browser: Arc<Browser>,
    tools: Vec<Arc<dyn Tool>>,
    site: Workspace,
    port: u16,
}

struct Workspace {
    folder: tempfile::TempDir,
}

impl Site for Workspace {
    fn workspace(&self) -> &Path {
        self.folder.path()
    }

    fn answer(&self) -> Option<&str> {
        None
    }

    fn reveal(&self, text: &str) -> Result<String, UnknownSecret> {
        Ok(text.replace("⟦secret:KEY⟧", "hunter2"))
    }

    fn keep(&self, bytes: &[u8]) -> Result<BlobId, String> {
        Ok(BlobId::of(bytes))
    }

    fn run_command(&self, _: CommandSpec) -> Boxed<'_, Result<CommandOutcome, KeeperError>> {
        unreachable!("hands run nothing")
    }
}

impl World {
    /// A browser at a page.
    pub(crate) async fn at(page: &str, launch: Launch) -> Self {
        let listener = TcpListener::bind(("0.0.0.0", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let router = Router::new()
            .route("/slow/{ms}", get(slow))
            .route("/hang", get(hang))
            .route("/download/{name}", get(download))
            .route("/{*path}", get(support::page));
        tokio::spawn(async move { axum::serve(listener, router).await });
        let browser = Arc::new(support::browser(launch));
        let world = Self {
            tools: tools(&browser),
            browser,
            site: Workspace {
                folder: tempfile::tempdir().unwrap(),
            },
            port,
        };
        world.browser.open(&world.address(page)).await.unwrap();
        world
    }

    pub(crate) fn address(&self, page: &str) -> String {
        format!("http://127.0.0.1:{}/{page}", self.port)
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.site.folder.path().join(below)
    }

    pub(crate) async fn look(&self) -> View {
        let look = Look {
            frame: false,
            documents: 0,
        };
        self.browser.look(look).await.unwrap().view
    }

    /// The id of what is called so.
    pub(crate) async fn id(&self, name: &str) -> String {
        let view = self.look().await;
        let named = |one: &&gyrus_contract::Element| one.name == name && one.role != "text";
        let found = view.elements.iter().find(named);
        let found = found.unwrap_or_else(|| panic!("{name} is not in {view:#?}"));
        found.id.to_string()
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
        };
        self.tool(name)
            .aim(&call)
            .await
            .map_err(|error| error.reason)
    }

    /// Measures and does.
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
        let path = arguments.get("path").and_then(Value::as_str).map(|given| {
            let path = ResolvedPath {
                given: given.to_owned(),
                real: self.path(given),
                in_workspace: Some(given.into()),
            };
            ("path".to_owned(), path)
        });
        let call = ResolvedCall {
            tool: name.to_owned(),
            arguments,
            paths: BTreeMap::from_iter(path),
            command: None,
            aim,
        };
        #[expect(
            clippy::disallowed_methods,
            reason = "the test stands in for the kernel"
        )]
        let cleared = Cleared::mint(call, EffectId::cycle(1).then(1));
        self.tool(name).call(cleared, &self.site).await
    }

    /// What an expression of the page itself comes to.
    pub(crate) async fn eval(&self, expression: &str) -> Value {
        let order = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let answer = self
            .browser
            .devtools("Runtime.evaluate", order)
            .await
            .unwrap();
        answer["result"]["value"].clone()
    }

    /// What the page heard since it was asked last.
    pub(crate) async fn log(&self) -> Vec<String> {
        // What frames tell comes as a message.
        let log = self
            .eval("new Promise((done) => setTimeout(() => done(log.splice(0)), 0))")
            .await;
        serde_json::from_value(log).unwrap_or_default()
    }
}

async fn slow(extract::Path(ms): extract::Path<u64>) -> impl IntoResponse {
    tokio::time::sleep(Duration::from_millis(ms)).await;
    ([(header::CONTENT_TYPE, "text/html")], "late")
}

async fn hang() -> impl IntoResponse {
    std::future::pending::<()>().await;
    StatusCode::OK
}

async fn download(extract::Path(name): extract::Path<String>) -> impl IntoResponse {
    let attached = format!("attachment; filename=\"{name}\"");
    ([(header::CONTENT_DISPOSITION, attached)], "the report")
}
