//! A nested desktop with its tools, for the examples that measure it.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use gyrus_contract::{
    BlobId, BoxedFuture, Cleared, CommandOutcome, CommandSpec, EffectId, KeeperError, LookOptions,
    ResolvedCall, ResolvedPath, Screen as _, Site, Tool, ToolCall, ToolOutput, UnknownSecret,
    ViewWithPicture,
};
use gyrus_process::keeper::Keeper;
use gyrus_screen::{Desktop, DesktopPlace, Enclosure, RunCommand, desktop_tools};
use serde_json::Value;

pub(crate) type Failed = Box<dyn std::error::Error>;

/// Runs the programs of a desktop.
pub(crate) fn run() -> RunCommand {
    Arc::new(|spec: CommandSpec| Box::pin(async { Keeper::start_beside().await?.run(spec).await }))
}

/// The folder in which a desktop's programs begin.
struct Folder(tempfile::TempDir);

impl Site for Folder {
    fn withheld(&self, _path: &Path) -> Option<String> {
        None
    }

    fn workspace(&self) -> &Path {
        self.0.path()
    }

    fn answer(&self) -> Option<&str> {
        None
    }

    fn sends_to(&self) -> &[String] {
        &[]
    }

    fn reveal(&self, text: &str) -> Result<String, UnknownSecret> {
        Ok(text.to_owned())
    }

    fn keep(&self, bytes: &[u8]) -> Result<BlobId, String> {
        Ok(BlobId::of(bytes))
    }

    fn run_command(&self, _: CommandSpec) -> BoxedFuture<'_, Result<CommandOutcome, KeeperError>> {
        unreachable!("no tool of a desktop runs a command")
    }
}

/// A nested desktop with its tools.
pub(crate) struct Desk {
    pub(crate) desktop: Arc<Desktop>,
    tools: Vec<Arc<dyn Tool>>,
    site: Folder,
}

impl Desk {
    /// Prepares a desktop of this size in pixels.
    pub(crate) fn new(width: u16, height: u16) -> Result<Self, Failed> {
        let place = DesktopPlace::Nested {
            width,
            height,
            enclosure: Enclosure::opener(run()),
        };
        let desktop = Arc::new(Desktop::new(place));
        Ok(Self {
            tools: desktop_tools(&desktop),
            desktop,
            site: Folder(tempfile::tempdir()?),
        })
    }

    /// Returns the path of a file in the folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.site.0.path().join(name)
    }

    /// Measures and acts, as the kernel does.
    pub(crate) async fn act(&self, name: &str, arguments: Value) -> Result<ToolOutput, Failed> {
        let mut tools = self.tools.iter();
        let tool = tools.find(|tool| tool.spec().name == name);
        let tool = tool.ok_or("there is no such tool")?;
        let call = ToolCall::new(name, arguments.clone());
        let aim = tool.aim(&call).await.map_err(|error| error.reason)?;
        let file = arguments["file"].as_str().map(|given| {
            let path = ResolvedPath {
                given: given.to_owned(),
                real: self.path(given),
                in_workspace: Some(given.into()),
                withheld: None,
            };
            ("file".to_owned(), path)
        });
        let call = ResolvedCall {
            tool: name.to_owned(),
            arguments,
            paths: BTreeMap::from_iter(file),
            command: None,
            files: Vec::new(),
            aim,
        };
        #[expect(
            clippy::disallowed_methods,
            reason = "the example stands in for the kernel"
        )]
        let cleared = Cleared::mint(call, EffectId::cycle(1).then(1));
        let done = tool.call(cleared, &self.site).await;
        if done.is_error {
            return Err(done.text.into());
        }
        Ok(done)
    }

    pub(crate) async fn look(&self, frame: bool) -> Result<ViewWithPicture, Failed> {
        let wanted = LookOptions {
            frame,
            documents: 0,
        };
        Ok(self.desktop.look(wanted).await?)
    }

    /// Starts this program on the desktop.
    pub(crate) async fn on_desktop(&self, words: &[&str]) -> Result<(), Failed> {
        let own = std::env::current_exe()?.to_string_lossy().into_owned();
        let words = std::iter::once(own).chain(words.iter().map(|word| (*word).to_owned()));
        Ok(self.desktop.start(&words.collect::<Vec<_>>()).await?)
    }
}
