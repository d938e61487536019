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

/// The program with the folder that it keeps its state in, as the binary wires it.
pub trait Installation: Sync {
    /// The journals of its runs.
    fn store(&self) -> &Store;

    /// The program as a command without arguments. Its state is in this installation's folder, and
    /// nothing in its environment chooses a model or makes it crash.
    fn command(&self) -> Command;

    /// Replays a run from its journal alone.
    fn replay(&self, run: RunId) -> BoxedFuture<'_, Result<ReplayResult, LabError>>;

    /// Returns the promises that the sandbox does not keep here, in words.
    ///
    /// # Errors
    /// Returns, in words, why commands run unsandboxed.
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

    /// Starts the browser that runs would have and looks at its empty page; in words why that
    /// fails.
    fn browser_works(&self) -> BoxedFuture<'_, Result<(), String>>;

    /// Lines that tell a person how to start `run`, a command line, with a model of their own.
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

    /// Writes text to standard output.
    pub(crate) fn print(&self, text: &str) -> io::Result<()> {
        let mut out = output::standard();
        write!(out, "{text}")?;
        out.flush()
    }

    /// Writes one line of JSON to standard output.
    pub(crate) fn print_json(&self, line: &str) -> io::Result<()> {
        let mut out = output::standard();
        out.json_line(line)?;
        out.flush()
    }

    /// Tells the person who typed something what is wrong with it.
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

    /// Returns the columns of a line of standard output.
    pub(crate) fn columns(&self) -> usize {
        self.painter.columns
    }

    /// Asks a person, and returns what they typed; `None` if nothing will ever be typed.
    pub(crate) fn ask(&self, question: &str) -> io::Result<Option<String>> {
        self.print(question)?;
        let mut line = String::new();
        let read = io::stdin().lock().read_line(&mut line)?;
        Ok((read > 0).then_some(line))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandEnd {
    /// It exited with 0.
    Succeeded,
    /// It exited with another code or was killed; the text is what it printed.
    Failed(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrialEnd {
    /// Everything was as it should be.
    Passed,
    /// Something was not.
    Failed,
    /// A person ended it before its end.
    Interrupted,
}
