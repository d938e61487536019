//! Commands: runs that somebody asked for, and the stage that each has reached.

use std::collections::BTreeSet;

use gyrus_contract::{Principal, RunId};
use gyrus_kernel::{Validity, now_ms};
use serde::{Deserialize, Serialize};

use crate::request::{FOLDER, RunRequest};

/// Maximum size of a command as JSON, in bytes.
pub const MAX_COMMAND: usize = 1 << 20;

/// The highest priority; the lowest is its negative.
pub const MAX_PRIORITY: i8 = 100;

/// Whether these labels bind a run to a folder that only one machine has.
pub(super) fn binds(needs: &BTreeSet<String>) -> bool {
    needs.iter().any(|need| need.starts_with(FOLDER))
}

/// The work of a command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueWork {
    Start(Box<RunRequest>),
    /// Resumes an existing run.
    Resume,
}

/// A command of the queue: a run to start or to go on with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueueCommand {
    /// A UUID of version 7.
    pub id: String,
    /// The id of the run, chosen when the command is accepted, so that a crash starts no second
    /// run.
    pub run: RunId,
    pub work: QueueWork,
    /// The person or program that submitted the command.
    pub from: Principal,
    /// The agent for which the run works; commands of one agent share a limit.
    pub agent: String,
    /// Priority from -100 to 100; higher ones go first.
    #[serde(default)]
    pub priority: i8,
    /// The earliest start, in UTC milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before_ms: Option<i64>,
    /// Key that identifies the command: one with the same key is the same command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The id that connects the command to its cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation: Option<String>,
    /// The time at which the command was accepted, in UTC milliseconds.
    pub submitted_ms: i64,
}

/// Maximum number of characters of a goal that is remembered of a command that is over.
const REMEMBERED_GOAL: usize = 400;

impl QueueCommand {
    /// Creates a command that is accepted now, to resume `run` or to start a new one.
    pub fn new(work: QueueWork, run: Option<RunId>, from: Principal, agent: String) -> Self {
        Self {
            id: gyrus_contract::time_ordered_uuid().to_string(),
            run: run.unwrap_or_default(),
            work,
            from,
            agent,
            priority: 0,
            not_before_ms: None,
            key: None,
            correlation: None,
            submitted_ms: now_ms(),
        }
    }

    /// Whether its earliest start has come. A clock that was set back by more than it was to wait leaves
    /// nothing of the wait.
    pub(super) fn is_due(&self, now_ms: i64) -> bool {
        self.not_before_ms.is_none_or(|until_ms| {
            let from_ms = self.submitted_ms;
            Validity { from_ms, until_ms }.is_over(now_ms)
        })
    }

    pub(super) fn bytes(&self) -> usize {
        match &self.work {
            QueueWork::Start(request) => {
                let context = request
                    .context
                    .iter()
                    .map(|context| context.text.text.len());
                request.goal.text.len() + context.sum::<usize>()
            }
            QueueWork::Resume => 0,
        }
    }

    /// Drops the parts that only the command's run needs.
    pub(super) fn forget_work(&mut self) {
        if let QueueWork::Start(request) = &mut self.work {
            request.context.clear();
            let goal = &mut request.goal.text;
            if let Some((end, _)) = goal.char_indices().nth(REMEMBERED_GOAL) {
                goal.truncate(end);
            }
        }
    }
}

/// Pauses of a command whose process died again and again without progress of its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deaths {
    /// Number of rests in a row.
    pub rests: u32,
    /// Number of entries of the run at the last one.
    pub entries: u64,
}

/// Longest time for which a command rests, in milliseconds.
pub(super) const LONGEST_REST_MS: i64 = 600_000;

/// The stage that a command has reached.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum CommandStage {
    /// The command waits for its turn.
    Queued,
    /// A process drives its run.
    Running {
        /// The time of the last start, in UTC milliseconds.
        since_ms: i64,
        /// The worker that runs the process, if several share the queue.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        worker: Option<String>,
        /// The machine of that worker.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        machine: Option<String>,
        /// The version of that worker's program.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        build: Option<String>,
    },
    /// Its run waits outside memory.
    Parked {
        why: String,
        /// Whether the command waits for a person.
        for_person: bool,
        /// The time at which the command continues by itself, in UTC milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until_ms: Option<i64>,
        /// The deaths of the run's process that make it pause; `None` if the run parked itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deaths: Option<Deaths>,
    },
    /// The command is over: its run ended, or cannot be started.
    Ended {
        /// The time, in UTC milliseconds.
        at_ms: i64,
        /// Exit code of the process; `None` if a signal ended it.
        code: Option<i32>,
        /// A summary of the run's ending, as one sentence.
        summary: String,
    },
    /// The command was cancelled before it started.
    Cancelled {
        /// The time, in UTC milliseconds.
        at_ms: i64,
        /// The person who cancelled the command.
        by: Principal,
    },
}

impl CommandStage {
    /// Whether a parked command is to go on by itself. No rest is longer than the longest, whatever the
    /// clock was when it began.
    pub(super) fn is_waited_out(&self, now_ms: i64) -> bool {
        let CommandStage::Parked {
            until_ms: Some(until_ms),
            deaths,
            ..
        } = self
        else {
            return false;
        };
        let left = until_ms.saturating_sub(now_ms);
        left <= 0 || deaths.is_some() && left > LONGEST_REST_MS
    }

    /// Whether the command is over.
    pub fn is_over(&self) -> bool {
        matches!(
            self,
            CommandStage::Ended { .. } | CommandStage::Cancelled { .. }
        )
    }
}
