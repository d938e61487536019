//! The functions of the program under test that the lab needs.

use std::{io, path::Path, process::Command};

use gyrus_contract::{Boxed, RunId};
use gyrus_journal::Store;
use gyrus_kernel::Replayed;

use gyrus_surfaces::projection::Tone;

use crate::LabError;

/// The program with the folder that it keeps its state in, as the binary wires it.
pub trait Installation: Sync {
    /// The journals of its runs.
    fn store(&self) -> &Store;

    /// The program as a command without arguments. Its state is in this installation's folder, and
    /// nothing in its environment chooses a model or makes it crash.
    fn command(&self) -> Command;

    /// Replays a run from its journal alone.
    fn replay(&self, run: RunId) -> Boxed<'_, Result<Replayed, LabError>>;

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
    ) -> Boxed<'a, Result<CommandEnd, LabError>>;

    /// Starts the browser that runs would have and looks at its empty page; in words why that
    /// fails.
    fn browser_works(&self) -> Boxed<'_, Result<(), String>>;

    /// Lines that tell a person how to start `run`, a command line, with a model of their own.
    fn with_a_model(&self, run: &str) -> Vec<String>;
}

/// Output for a person or a program.
pub trait LabConsole: Sync {
    /// Writes text to standard output.
    fn print(&self, text: &str) -> io::Result<()>;

    /// Writes one line of JSON to standard output.
    fn print_json(&self, line: &str) -> io::Result<()>;

    /// Writes text beside the results, to standard error.
    fn note(&self, text: &str) -> Result<(), LabError>;

    /// Tells the person who typed something what is wrong with it.
    fn complain(&self, error: LabError) -> io::Result<()>;

    /// The text in the colour of its tone, where there are colours.
    fn paint(&self, tone: Tone, text: &str) -> String;

    /// Columns of a line of standard output.
    fn columns(&self) -> usize;

    /// Whether a person can be asked.
    fn can_ask(&self) -> bool;

    /// Asks a person, who [can be](Self::can_ask), and returns what they typed; `None` if nothing
    /// will ever be typed.
    fn ask(&self, question: &str) -> io::Result<Option<String>>;
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
