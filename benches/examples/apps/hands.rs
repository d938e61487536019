//! The tools of a browser, called as the kernel calls them.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context as _;
use gyrus_contract::{
    ActionVerdict, BlobId, BoxedFuture, Cleared, CommandOutcome, CommandSpec, EffectId,
    KeeperError, LookOptions, ResolvedCall, ResolvedPath, Screen as _, Site, Tool, ToolCall,
    ToolOutput, UnknownSecret, View,
};
use gyrus_screen::{Browser, Launch, ProfileChoice, tools};
use serde_json::{Value, json};

use crate::steps;

/// A browser at an application, with a workspace.
pub(crate) struct Hands {
    pub(crate) browser: Arc<Browser>,
    tools: Vec<Arc<dyn Tool>>,
    site: Workspace,
}

struct Workspace {
    folder: tempfile::TempDir,
    sends_to: Vec<String>,
}

impl Site for Workspace {
    fn workspace(&self) -> &Path {
        self.folder.path()
    }

    fn answer(&self) -> Option<&str> {
        None
    }

    fn sends_to(&self) -> &[String] {
        &self.sends_to
    }

    fn withheld(&self, _: &Path) -> Option<String> {
        None
    }

    fn reveal(&self, text: &str) -> Result<String, UnknownSecret> {
        Ok(text.to_owned())
    }

    fn keep(&self, bytes: &[u8]) -> Result<BlobId, String> {
        Ok(BlobId::of(bytes))
    }

    fn run_command(&self, _: CommandSpec) -> BoxedFuture<'_, Result<CommandOutcome, KeeperError>> {
        unreachable!("the tools of a screen run no commands")
    }
}

impl Hands {
    /// Opens a browser that may send to `origin`.
    pub(crate) fn new(origin: &str) -> anyhow::Result<Self> {
        let choice = ProfileChoice::Ephemeral;
        let browser = Arc::new(Browser::new(Launch::default(), choice, steps::run()));
        let site = Workspace {
            folder: tempfile::tempdir()?,
            sends_to: vec![origin.to_owned()],
        };
        Ok(Self {
            tools: tools(&browser),
            browser,
            site,
        })
    }

    /// Returns the place of a file of the workspace.
    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.site.folder.path().join(below)
    }

    pub(crate) async fn look(&self) -> anyhow::Result<View> {
        let look = LookOptions {
            frame: false,
            documents: 0,
        };
        Ok(self.browser.look(look).await?.view)
    }

    /// Measures and acts.
    pub(crate) async fn act(&self, name: &str, arguments: Value) -> anyhow::Result<ToolOutput> {
        let mut tools = self.tools.iter();
        let tool = tools.find(|tool| tool.spec().name == name);
        let tool = tool.with_context(|| format!("there is no tool `{name}`"))?;
        let call = ToolCall {
            id: "1".to_owned(),
            tool: name.to_owned(),
            arguments: arguments.clone(),
            repairs: Vec::new(),
        };
        let aim = match tool.aim(&call).await {
            Ok(aim) => aim,
            Err(error) => {
                return Ok(ToolOutput {
                    verdict: ActionVerdict::Refused,
                    ..ToolOutput::error(error.reason)
                });
            }
        };
        let path = arguments.get("path").and_then(Value::as_str).map(|given| {
            let path = ResolvedPath {
                given: given.to_owned(),
                real: self.path(given),
                in_workspace: Some(given.into()),
                withheld: None,
            };
            ("path".to_owned(), path)
        });
        let call = ResolvedCall {
            tool: name.to_owned(),
            arguments,
            paths: BTreeMap::from_iter(path),
            command: None,
            files: Vec::new(),
            aim,
        };
        #[expect(
            clippy::disallowed_methods,
            reason = "the tasks stand in for the kernel"
        )]
        let cleared = Cleared::mint(call, EffectId::cycle(1).then(1));
        Ok(tool.call(cleared, &self.site).await)
    }

    /// Runs an expression in the page's own world.
    pub(crate) async fn evaluate(&self, expression: &str) -> anyhow::Result<Value> {
        steps::evaluate(&self.browser, expression).await
    }

    /// Has every document that is opened from now on record what happens to it.
    pub(crate) async fn record(&self) -> anyhow::Result<()> {
        self.browser.open("about:blank").await?;
        let order = json!({"source": include_str!("recorder.js")});
        let method = "Page.addScriptToEvaluateOnNewDocument";
        self.browser.devtools(method, order).await?;
        Ok(())
    }
}
