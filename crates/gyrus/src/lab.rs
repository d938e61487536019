//! This program as the lab tries it, and the terminal that the lab speaks to.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Command,
};

use gyrus::runtime::{Home, sandbox};
use gyrus_contract::{BoxedFuture, CommandSpec, Exit, RunId};
use gyrus_gate::namespaces;
use gyrus_journal::Store;
use gyrus_kernel::ReplayResult;
use gyrus_lab::{CommandEnd, Installation, LabError, TrialEnd};
use gyrus_process::Programs;

use crate::{
    Gyrus, browser,
    env::{self, Environment},
    exit::Code,
    failure::Failure,
    kernels, state_folder,
};

/// Time limit of a command of the lab, in milliseconds, and the most bytes kept of its output.
const COMMAND_LIMIT_MS: u64 = 60_000;
const COMMAND_BYTES: usize = 4_096;

/// This program with a home folder.
pub(crate) struct DemoInstallation {
    home: Home,
    store: Store,
    /// The installation's folder; `None` for the person's own home.
    folder: Option<PathBuf>,
}

impl DemoInstallation {
    pub(crate) fn here(gyrus: &Gyrus) -> Result<Self, Failure> {
        let home = gyrus.home()?;
        Ok(Self {
            store: home.store()?,
            home,
            folder: None,
        })
    }

    pub(crate) fn at(gyrus: &Gyrus, folder: &Path) -> Result<Self, Failure> {
        let home = state_folder::find(&Environment {
            gyrus_home: Some(folder.to_owned()),
            ..gyrus.environment.clone()
        })?;
        Ok(Self {
            store: home.store()?,
            home,
            folder: Some(folder.to_owned()),
        })
    }

    async fn run_in_sandbox(&self, folder: &Path, line: &str) -> Result<CommandEnd, Failure> {
        sandbox::holds(&self.home).map_err(Failure::failed)?;
        let own = tempfile::tempdir()?;
        let containment = sandbox::plan(&self.home, own.path(), folder).map_err(Failure::failed)?;
        let path = Programs::of_this_process().path();
        let command = CommandSpec {
            program: "/bin/sh".to_owned(),
            arguments: vec!["-c".to_owned(), line.to_owned()],
            folder: folder.to_owned(),
            environment: BTreeMap::from([("PATH".to_owned(), path)]),
            stdin: String::new(),
            time_limit_ms: COMMAND_LIMIT_MS,
            head_bytes: COMMAND_BYTES,
            tail_bytes: 0,
        };
        let run = sandbox::run_in(containment)(command).await;
        let outcome = run.map_err(Failure::failed)?;
        Ok(match outcome.exit {
            Exit::Code(0) => CommandEnd::Succeeded,
            Exit::Code(_) => CommandEnd::Failed(outcome.output.head),
            Exit::Signal(signal) => CommandEnd::Failed(format!("killed by signal {signal}")),
            Exit::TimedOut => CommandEnd::Failed("killed at its time limit".to_owned()),
        })
    }

    async fn replayed(&self, run: RunId) -> Result<ReplayResult, Failure> {
        let kernel = kernels::silent_kernel(&self.home, self.store.clone(), run)?;
        Ok(kernel.replay(run).await?)
    }
}

impl Installation for DemoInstallation {
    fn store(&self) -> &Store {
        &self.store
    }

    fn command(&self) -> Command {
        let mut command = Command::new("/proc/self/exe");
        command
            .env_remove(env::GYRUS_MODEL)
            .env_remove(env::GYRUS_CRASH_AFTER);
        if let Some(folder) = &self.folder {
            command.env(env::GYRUS_HOME, folder);
        }
        command
    }

    fn replay(&self, run: RunId) -> BoxedFuture<'_, Result<ReplayResult, LabError>> {
        Box::pin(async move { Ok(self.replayed(run).await?) })
    }

    fn sandbox(&self) -> Result<Vec<&'static str>, String> {
        let proof = sandbox::proof(&self.home)?;
        sandbox::suffices(&proof)?;
        Ok(namespaces::shortcomings(&proof))
    }

    fn run_command<'a>(
        &'a self,
        folder: &'a Path,
        line: &'a str,
    ) -> BoxedFuture<'a, Result<CommandEnd, LabError>> {
        Box::pin(async move { Ok(self.run_in_sandbox(folder, line).await?) })
    }

    fn browser_works(&self) -> BoxedFuture<'_, Result<(), String>> {
        Box::pin(async move { browser::prove(&self.home).await.map(|_| ()) })
    }

    fn with_a_model(&self, run: &str) -> Vec<String> {
        vec![
            "with a key:".to_owned(),
            "  export ANTHROPIC_API_KEY=…    (or OPENAI_API_KEY, GEMINI_API_KEY; `gyrus setup` \
             helps)"
                .to_owned(),
            format!("  {run}"),
            "with Ollama on this machine:".to_owned(),
            format!("  {run} --model ollama"),
        ]
    }
}

impl From<TrialEnd> for Code {
    fn from(end: TrialEnd) -> Self {
        match end {
            TrialEnd::Passed => Code::Reached,
            TrialEnd::Failed => Code::Failed,
            TrialEnd::Interrupted => Code::Interrupted,
        }
    }
}

impl From<Failure> for LabError {
    fn from(failure: Failure) -> Self {
        Self::Program(Box::new(failure))
    }
}

impl From<LabError> for Failure {
    fn from(error: LabError) -> Self {
        let told = |failure: Failure, complaint: gyrus_lab::Complaint| {
            let failure = match &complaint.cause {
                Some(cause) => failure.because(&**cause),
                None => failure,
            };
            match complaint.hint {
                Some(hint) => failure.hint(hint),
                None => failure,
            }
        };
        match error {
            LabError::Usage(complaint) => told(Failure::usage(&complaint), complaint),
            LabError::Failed(complaint) => told(Failure::failed(&complaint), complaint),
            LabError::Journal(error) => error.into(),
            LabError::Approval(error) => error.into(),
            LabError::Surface(error) => error.into(),
            LabError::Io(error) => error.into(),
            LabError::Program(error) => match error.downcast::<Failure>() {
                Ok(failure) => *failure,
                Err(error) => Failure::failed(error),
            },
        }
    }
}
