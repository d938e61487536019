//! The runs that agents need, and who drives them.

use std::pin::Pin;

use gyrus_contract::{RunId, Text, ToolCall};

use crate::{EventId, request::ContextText};

/// The first line of an answer that says that there was nothing to do.
pub const NOTHING_TO_DO: &str = "Nothing to do";

/// The work of a run for an agent.
#[derive(Debug, Clone)]
pub enum AgentWork {
    /// Reaches a goal.
    Goal {
        goal: Text,
        /// Text with which the run starts.
        context: Vec<ContextText>,
        /// The previous run, whose memory this one continues.
        continues: Option<RunId>,
    },
    /// Calls tools, in this order.
    Calls(Vec<ToolCall>),
}

/// A run that an agent needs.
#[derive(Debug, Clone)]
pub struct AgentRun {
    pub agent: String,
    /// The id of the run: if one of this id exists, it is resumed.
    pub run: RunId,
    pub work: AgentWork,
    /// The id that connects the run to its cause.
    pub correlation: Option<String>,
}

/// The end of a run, as reported to its agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentRunEnd {
    /// Whether the goal was reached.
    pub reached: bool,
    /// A summary of the end, as one sentence.
    pub summary: String,
    /// The answer, if there is one. It may contain text of a page or a file.
    pub answer: Option<String>,
    /// Whether the answer states that there was nothing to do.
    pub nothing_to_do: bool,
}

impl AgentRunEnd {
    /// Creates the end of a run, which reached its goal if there is an answer. An answer whose
    /// first line is [`NOTHING_TO_DO`] sets `nothing_to_do`.
    pub fn new(summary: String, answer: Option<String>) -> Self {
        let first = answer
            .as_deref()
            .and_then(|answer| answer.trim().lines().next());
        let first = first.unwrap_or_default().trim().trim_end_matches('.');
        Self {
            reached: answer.is_some(),
            nothing_to_do: first.eq_ignore_ascii_case(NOTHING_TO_DO),
            summary,
            answer,
        }
    }
}

/// Drives the runs of agents.
pub trait AgentRuns: Send + Sync + 'static {
    /// Returns the id of the run for an event: the one that `run` has, or the one that the same
    /// agent has begun for the same event on another server of the fleet.
    fn place<'a>(
        &'a self,
        run: &'a AgentRun,
        cause: EventId,
    ) -> Pin<Box<dyn Future<Output = RunId> + Send + 'a>> {
        let _ = cause;
        Box::pin(std::future::ready(run.run))
    }

    /// Drives a run to its end, across parks and restarts.
    fn drive(&self, run: AgentRun) -> Pin<Box<dyn Future<Output = AgentRunEnd> + Send + '_>>;
}
