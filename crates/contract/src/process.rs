//! Commands, as tools order them and the keeper runs them.

use std::{collections::BTreeMap, path::PathBuf};

use serde::{Deserialize, Serialize};

/// A command to run. The environment is complete: nothing is inherited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandSpec {
    /// The program, absolute or found on the `PATH` of `environment`.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// The working folder.
    pub folder: PathBuf,
    /// The whole environment.
    pub environment: BTreeMap<String, String>,
    /// Written to its standard input, which is then closed.
    pub stdin: String,
    /// Killed, with everything it started, after so many milliseconds.
    pub time_limit_ms: u64,
    /// Kept from the start of the output, in bytes.
    pub head_bytes: usize,
    /// Kept from the end of the output, in bytes, if it is longer than the head.
    pub tail_bytes: usize,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// Killed at its time limit.
    TimedOut,
}

/// Bounded output: the start and the end, with what is missing between.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Captured {
    /// The first bytes, cut at a character; invalid UTF-8 is replaced.
    pub head: String,
    /// The last bytes, empty if everything is in `head`.
    pub tail: String,
    /// Bytes between the two that were not kept.
    pub omitted_bytes: u64,
}

/// What a command did. Standard output and error are one stream, in the order written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandOutcome {
    /// How it ended.
    pub exit: Exit,
    /// What it printed.
    pub output: Captured,
}

/// The keeper could not run a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "error", rename_all = "snake_case")]
pub enum KeeperError {
    /// The program does not exist or may not be executed.
    #[error("`{program}` could not be started: {reason}")]
    Start {
        /// The program.
        program: String,
        /// The system's words.
        reason: String,
    },
    /// The keeper itself failed or was killed; the command's tree is gone or being killed.
    #[error("the keeper of the command failed: {reason}")]
    Keeper {
        /// What happened.
        reason: String,
    },
}
