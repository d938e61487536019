//! A small environment for a tool: a folder, one secret, and a record of the commands it ordered.
#![expect(clippy::unwrap_used, reason = "only tests use it")]

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Mutex,
    time::Duration,
};

use gyrus_contract::{
    BlobId, BoxedFuture, CapturedOutput, Cleared, CommandOutcome, CommandSpec, EffectId, Exit,
    KeeperError, Probe, ResolvedCall, ResolvedPath, Site, Tool, ToolOutput, UnknownSecret,
    path_in_list,
};
use serde_json::Value;

pub(crate) struct World {
    folder: tempfile::TempDir,
    workspace: PathBuf,
    pub(crate) commands: Mutex<Vec<CommandSpec>>,
    pub(crate) outcome: Mutex<Result<CommandOutcome, KeeperError>>,
    /// The person's answer.
    pub(crate) answer: Option<String>,
    /// Pictures that were kept.
    pub(crate) kept: Mutex<Vec<Vec<u8>>>,
    /// Whether commands really run; their leftover processes are killed.
    pub(crate) runs_commands: bool,
    /// Whether commands never end.
    pub(crate) commands_hang: bool,
    /// Whether no file was read.
    pub(crate) knows_nothing: bool,
}

impl World {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let workspace = folder.path().canonicalize().unwrap().join("workspace");
        std::fs::create_dir(&workspace).unwrap();
        let outcome = CommandOutcome {
            exit: Exit::Code(0),
            output: CapturedOutput::default(),
        };
        Self {
            folder,
            workspace,
            commands: Mutex::default(),
            outcome: Mutex::new(Ok(outcome)),
            answer: None,
            kept: Mutex::default(),
            runs_commands: false,
            commands_hang: false,
            knows_nothing: false,
        }
    }

    /// Returns a path in the workspace.
    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.workspace.join(below)
    }

    /// Returns a path beside the workspace.
    pub(crate) fn outside(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    /// Resolves a path as a gate does: links are followed in the part that exists.
    pub(crate) fn resolve(&self, given: &str) -> ResolvedPath {
        let mut real = PathBuf::from("/");
        for component in self.workspace.join(given).components() {
            match component {
                std::path::Component::ParentDir => drop(real.pop()),
                other => real.push(other),
            }
            real = real.canonicalize().unwrap_or(real);
        }
        let in_workspace = real.strip_prefix(&self.workspace).ok().map(Path::to_owned);
        ResolvedPath {
            given: given.to_owned(),
            real,
            in_workspace,
            withheld: None,
        }
    }

    pub(crate) fn resolved(&self, tool: &dyn Tool, arguments: Value) -> ResolvedCall {
        let path = arguments.get("path").and_then(Value::as_str);
        let path = path.map(|path| ("path".to_owned(), self.resolve(path)));
        let changes = arguments.get("changes").and_then(Value::as_array);
        let changes = changes.into_iter().flatten().enumerate();
        let changes = changes.map(|(index, change)| {
            let path = change["path"].as_str().unwrap();
            (path_in_list("changes", index), self.resolve(path))
        });
        let paths = path.into_iter().chain(changes);
        ResolvedCall {
            tool: tool.spec().name.clone(),
            command: None,
            files: Vec::new(),
            aim: None,
            paths: BTreeMap::from_iter(paths),
            arguments,
        }
    }

    pub(crate) fn call(&self, tool: &dyn Tool, arguments: Value) -> ToolOutput {
        self.call_resolved(tool, self.resolved(tool, arguments))
    }

    pub(crate) fn call_resolved(&self, tool: &dyn Tool, call: ResolvedCall) -> ToolOutput {
        #[expect(
            clippy::disallowed_methods,
            reason = "the test stands in for the kernel"
        )]
        let cleared = Cleared::mint(call, EffectId::cycle(1).then(1));
        block_on(tool.call(cleared, self))
    }

    /// Like `call`, with a clock that runs ahead whenever all tasks wait.
    pub(crate) fn call_in_no_time(&self, tool: &dyn Tool, arguments: Value) -> ToolOutput {
        let call = self.resolved(tool, arguments);
        #[expect(
            clippy::disallowed_methods,
            reason = "the test stands in for the kernel"
        )]
        let cleared = Cleared::mint(call, EffectId::cycle(1).then(1));
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap()
            .block_on(tool.call(cleared, self))
    }

    /// Like `call`, but the future is dropped once it waits.
    pub(crate) fn call_and_drop(&self, tool: &dyn Tool, arguments: Value) {
        let call = self.resolved(tool, arguments);
        #[expect(
            clippy::disallowed_methods,
            reason = "the test stands in for the kernel"
        )]
        let cleared = Cleared::mint(call, EffectId::cycle(1).then(1));
        let ended = block_on(Box::pin(async {
            tokio::time::timeout(Duration::ZERO, tool.call(cleared, self)).await
        }));
        assert!(ended.is_err(), "it ended by itself");
    }

    /// Returns the text of an output as a model sees it: a secret found in text is recognised
    /// beside its name only.
    pub(crate) fn redacted(&self, output: &ToolOutput) -> String {
        let text = output.text.replace("hunter2", "⟦secret:KEY⟧");
        text.replace("password: s3sam", "password: ⟦secret:FOUND⟧")
    }

    pub(crate) fn probe(&self, tool: &dyn Tool, call: &ResolvedCall) -> Probe {
        block_on(tool.probe(call, self))
    }

    /// Returns the names in the workspace, temporary files included.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.workspace).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

fn block_on<T>(future: BoxedFuture<'_, T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

impl Site for World {
    fn withheld(&self, _path: &Path) -> Option<String> {
        None
    }

    fn is_known(&self, _path: &Path) -> bool {
        !self.knows_nothing
    }

    fn workspace(&self) -> &Path {
        &self.workspace
    }

    fn answer(&self) -> Option<&str> {
        self.answer.as_deref()
    }

    fn keep(&self, bytes: &[u8]) -> Result<BlobId, String> {
        self.kept.lock().unwrap().push(bytes.to_vec());
        Ok(BlobId::of(bytes))
    }

    fn sends_to(&self) -> &[String] {
        &[]
    }

    fn reveal(&self, text: &str) -> Result<String, UnknownSecret> {
        let text = text
            .replace("⟦secret:KEY⟧", "hunter2")
            .replace("⟦secret:FOUND⟧", "s3sam")
            .replace("⟦secret:LINES⟧", "one\ntwo");
        if text.contains("⟦secret:") {
            Err(UnknownSecret {
                name: "OTHER".to_owned(),
            })
        } else {
            Ok(text)
        }
    }

    fn run_command(
        &self,
        command: CommandSpec,
    ) -> BoxedFuture<'_, Result<CommandOutcome, KeeperError>> {
        if self.runs_commands {
            let outcome = really_run(&command);
            return Box::pin(async { Ok(outcome) });
        }
        self.commands.lock().unwrap().push(command);
        if self.commands_hang {
            return Box::pin(std::future::pending());
        }
        let outcome = self.outcome.lock().unwrap().clone();
        Box::pin(async { outcome })
    }
}

/// Runs a command like the keeper: it ends with all its processes.
fn really_run(spec: &CommandSpec) -> CommandOutcome {
    use std::{io::Read as _, io::Write as _, os::unix::process::CommandExt as _, process};
    let mut stdin = tempfile::tempfile().unwrap();
    stdin.write_all(spec.stdin.as_bytes()).unwrap();
    std::io::Seek::rewind(&mut stdin).unwrap();
    let (mut output, writer) = std::io::pipe().unwrap();
    let mut child = process::Command::new(&spec.program)
        .args(&spec.arguments)
        .current_dir(&spec.folder)
        .env_clear()
        .envs(&spec.environment)
        .process_group(0)
        .stdin(stdin)
        .stdout(writer.try_clone().unwrap())
        .stderr(writer)
        .spawn()
        .unwrap();
    let status = child.wait().unwrap();
    let group = rustix::process::Pid::from_child(&child);
    // An error means that no process is left.
    let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    let mut printed = Vec::new();
    output.read_to_end(&mut printed).unwrap();
    CommandOutcome {
        // No test waits for a time limit: a command that kills itself counts as one that timed out.
        exit: status.code().map_or(Exit::TimedOut, Exit::Code),
        output: CapturedOutput {
            head: String::from_utf8_lossy(&printed).into_owned(),
            ..CapturedOutput::default()
        },
    }
}
