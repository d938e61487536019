//! The functions of the program under test that the lab needs.

use std::{
    io::{self, BufRead as _},
    path::Path,
    process::Command,
};

use gyrus_contract::{BoxedFuture, RunId};
use gyrus_journal::Store;
use gyrus_kernel::ReplayResult;

use gyrus_surfaces::{console::Painter, output, projection::Tone};

use crate::LabError;

/// The program with the folder of its state, as the binary assembles it.
pub trait Installation: Sync {
    /// Returns the store of the journals.
    fn store(&self) -> &Store;

    /// The program as a command without arguments. Its state is in this installation's folder, and
    /// nothing in its environment chooses a model or makes it crash.
    fn command(&self) -> Command;

    /// Replays a run from its journal alone.
    fn replay(&self, run: RunId) -> BoxedFuture<'_, Result<ReplayResult, LabError>>;

    /// Returns descriptions of the promises that the sandbox does not keep here.
    ///
    /// # Errors
    /// A message with the reason why commands run unsandboxed.
    fn sandbox(&self) -> Result<Vec<&'static str>, String>;

    /// Runs a command line in `folder`, in the sandbox that commands of runs have, without a network.
    ///
    /// # Errors
    /// If there is no sandbox that holds, or the command cannot be started.
    fn run_command<'a>(
        &'a self,
        folder: &'a Path,
        line: &'a str,
    ) -> BoxedFuture<'a, Result<CommandEnd, LabError>>;

    /// Starts the browser that runs would use and reads its empty page; in words why that fails.
    fn browser_works(&self) -> BoxedFuture<'_, Result<(), String>>;

    /// Returns lines that explain how to start `run`, a command line, with the person's own model.
    fn with_a_model(&self, run: &str) -> Vec<String>;
}

/// Output for a person or a program, by the surfaces' streams.
pub struct LabConsole {
    painter: Painter,
}

impl LabConsole {
    /// Creates the console of this process; `plain` forbids colours.
    pub fn new(plain: bool) -> Self {
        Self {
            painter: Painter::new(&output::standard(), plain),
        }
    }

    pub(crate) fn print(&self, text: &str) -> io::Result<()> {
        let mut out = output::standard();
        write!(out, "{text}")?;
        out.flush()
    }

    pub(crate) fn print_json(&self, line: &str) -> io::Result<()> {
        let mut out = output::standard();
        out.json_line(line)?;
        out.flush()
    }

    /// Prints the error of a command line that a person typed.
    pub(crate) fn complain(&self, error: &LabError) -> io::Result<()> {
        let hint = match error {
            LabError::Usage(complaint) | LabError::Failed(complaint) => complaint.hint.as_ref(),
            _ => None,
        };
        let hint = hint.map(|hint| format!("\n  hint: {hint}"));
        self.print(&format!("error: {error}{}\n", hint.unwrap_or_default()))
    }

    /// Returns the text in the colour of its tone, where there are colours.
    pub(crate) fn paint(&self, tone: Tone, text: &str) -> String {
        self.painter.paint(tone, text)
    }

    pub(crate) fn columns(&self) -> usize {
        self.painter.columns
    }

    /// Asks a person, and returns their input; `None` at its end.
    pub(crate) fn ask(&self, question: &str) -> io::Result<Option<String>> {
        self.print(question)?;
        let mut line = String::new();
        let read = io::stdin().lock().read_line(&mut line)?;
        Ok((read > 0).then_some(line))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandEnd {
    /// The command exited with 0.
    Succeeded,
    /// The command exited with another code or was killed; the text is what it printed.
    Failed(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrialEnd {
    /// All expectations were met.
    Passed,
    /// An expectation was not met.
    Failed,
    /// A person interrupted the trial.
    Interrupted,
}
