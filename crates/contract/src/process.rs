//! Commands, as tools order them and the keeper runs them.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};

/// A command to run. The environment is complete: nothing is inherited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandSpec {
    /// The program, an absolute path or a name on the `PATH` of `environment`.
    pub program: String,
    pub arguments: Vec<String>,
    /// The working folder.
    pub folder: PathBuf,
    /// The whole environment.
    pub environment: BTreeMap<String, String>,
    /// The text for the command's standard input, which is then closed.
    pub stdin: String,
    /// Time in milliseconds after which the command is killed, with everything it started.
    pub time_limit_ms: u64,
    /// Number of bytes kept from the start of the output.
    pub head_bytes: usize,
    /// Number of bytes kept from the end of the output, if it is longer than the head.
    pub tail_bytes: usize,
}

/// The way in which a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// The command exited with this code.
    Code(i32),
    /// The command was killed by this signal.
    Signal(i32),
    /// The command was killed at its time limit.
    TimedOut,
}

/// Bounded output: its start, its end, and the number of bytes that are missing between them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapturedOutput {
    /// The first bytes, cut at a character, with bytes that are not UTF-8 as `\xNN`.
    pub head: String,
    /// The last bytes, empty if everything is in `head`.
    pub tail: String,
    /// Number of bytes between head and tail that were not kept.
    pub omitted_bytes: u64,
    /// Number of bytes in the head and the tail that are not UTF-8.
    #[serde(default)]
    pub invalid_bytes: u64,
}

/// The outcome of a command. Standard output and error are one stream, in the order written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandOutcome {
    /// The way in which the command ended.
    pub exit: Exit,
    pub output: CapturedOutput,
}

/// The end of the wait for a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttendedEnd {
    Ended(CommandOutcome),
    /// It goes on in the background.
    GoesOn {
        /// The name of the process.
        process: String,
        /// The time after which it was put there; `None` if a person did.
        after: Option<Duration>,
    },
}

/// The request of a call about a background process of its run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessAction {
    /// Waits for output, or for the end.
    Look {
        /// The text that is first written to the process's standard input.
        input: Option<String>,
        /// Text to wait for in the output; `None` waits for any output.
        until: Option<String>,
        /// The maximum time to wait.
        within: Duration,
    },
    /// Ends the process with all its children.
    End,
}

/// The state of a background process of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessReport {
    /// Output since the last call about the process.
    pub output: String,
    /// Number of bytes before the output that were dropped.
    pub omitted_bytes: u64,
    /// The way in which the process ended, or the reason why that is unknown; `None` if it still
    /// runs.
    pub ended: Option<Result<Exit, String>>,
}

/// The error of a keeper that could not run a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "error", rename_all = "snake_case")]
pub enum KeeperError {
    /// The program does not exist or may not be executed.
    #[error("`{program}` could not be started: {reason}")]
    Start {
        program: String,
        /// The system's message.
        reason: String,
    },
    /// The keeper itself failed or was killed; the command's process tree is gone or being killed.
    #[error("the keeper of the command failed: {reason}")]
    Keeper { reason: String },
}
