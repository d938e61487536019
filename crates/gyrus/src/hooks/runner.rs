//! Running the command of a hook: with the person's rights, or in a sandbox.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use gyrus::runtime::Home;
use gyrus_contract::{BoxedFuture, CommandOutcome, CommandSpec, Exit, Hook, HookRun};
use gyrus_process::keeper::Keeper;
use gyrus_tools::Shell;

use super::file::HookRule;
use crate::{env, failure::Failure, sandbox_settings::RunSandbox, trial_sandbox::TrialSandbox};

/// Runs the command in the variable, and writes its standard error after its standard output and the
/// separator.
const LINE: &str = "e=$(mktemp) || exit 125\n\
                    ( eval \"$GYRUS_HOOK\" ) 2>\"$e\"\n\
                    c=$?\n\
                    printf '\\036'\n\
                    cat \"$e\"\n\
                    rm -f \"$e\"\n\
                    exit $c\n";

const SEPARATOR: char = '\u{1e}';

/// Maximum length of a hook's output in bytes.
const MAX_OUTPUT: usize = 256 << 10;

fn command(rule: &HookRule, workspace: &Path, input: String) -> CommandSpec {
    let mut command = Shell::new().spec(LINE.to_owned(), workspace, rule.seconds);
    let project = workspace.display().to_string();
    for (name, value) in [
        ("GYRUS_HOOK", rule.command.clone()),
        ("GYRUS_PROJECT_DIR", project.clone()),
        ("CLAUDE_PROJECT_DIR", project),
    ] {
        command.environment.insert(name.to_owned(), value);
    }
    command.stdin = input;
    command.head_bytes = MAX_OUTPUT;
    command.tail_bytes = 0;
    command
}

fn result(ran: Result<CommandOutcome, String>, seconds: u64) -> HookRun {
    let none = |why: String| HookRun {
        exit: Err(why),
        stdout: String::new(),
        stderr: String::new(),
    };
    let ran = match ran {
        Ok(ran) => ran,
        Err(why) => return none(format!("it could not be run: {why}")),
    };
    if ran.output.omitted_bytes > 0 {
        return none(format!("its output is longer than {MAX_OUTPUT} bytes"));
    }
    let (stdout, stderr) = ran
        .output
        .head
        .rsplit_once(SEPARATOR)
        .unwrap_or((&ran.output.head, ""));
    HookRun {
        exit: match ran.exit {
            Exit::Code(code) => Ok(code),
            Exit::Signal(signal) => Err(format!("it was killed by signal {signal}")),
            Exit::TimedOut => Err(format!("it took longer than {seconds} s")),
        },
        stdout: stdout.to_owned(),
        stderr: stderr.to_owned(),
    }
}

pub(super) struct OwnHook {
    rule: HookRule,
    workspace: Box<Path>,
    environment: BTreeMap<String, String>,
}

impl OwnHook {
    pub(super) fn new(rule: &HookRule, workspace: &Path) -> Self {
        Self {
            rule: rule.clone(),
            workspace: workspace.into(),
            environment: env::all(),
        }
    }
}

impl Hook for OwnHook {
    fn name(&self) -> &str {
        &self.rule.command
    }

    fn run(&self, input: String) -> BoxedFuture<'_, HookRun> {
        Box::pin(async move {
            let mut own = command(&self.rule, &self.workspace, input);
            let mut environment = self.environment.clone();
            environment.append(&mut own.environment);
            own.environment = environment;
            let ran = match Keeper::start_beside().await {
                Ok(keeper) => keeper.run(own).await,
                Err(error) => Err(error),
            };
            result(ran.map_err(|error| error.to_string()), self.rule.seconds)
        })
    }
}

pub(super) struct Sandboxes(TrialSandbox);

impl Sandboxes {
    pub(super) fn new(home: &Home, workspace: &Path) -> Result<Self, Failure> {
        let allowed = RunSandbox::default();
        TrialSandbox::new(home, workspace, allowed, |_| {}).map(Self)
    }
}

/// A hook that a project proposed and a person agreed to.
pub(super) struct SandboxedHook {
    rule: HookRule,
    sandboxes: Arc<Sandboxes>,
}

impl SandboxedHook {
    pub(super) fn new(rule: &HookRule, sandboxes: Arc<Sandboxes>) -> Self {
        Self {
            rule: rule.clone(),
            sandboxes,
        }
    }
}

impl Hook for SandboxedHook {
    fn name(&self) -> &str {
        &self.rule.command
    }

    fn run(&self, input: String) -> BoxedFuture<'_, HookRun> {
        Box::pin(async move {
            let sandbox = &self.sandboxes.0;
            let ran = sandbox
                .run(command(&self.rule, sandbox.workspace(), input))
                .await;
            result(ran.map_err(|failure| failure.message), self.rule.seconds)
        })
    }
}
