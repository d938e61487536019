//! An agent as its file describes it.

use std::{collections::BTreeMap, path::PathBuf};

use gyrus_contract::Text;
use gyrus_runtime::{
    agents::AgentConfig,
    queue::{OptionValue, RunRequest},
};

/// Limits of what the runs of an agent may use on one day (UTC).
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct DayBudget {
    pub(crate) runs: Option<u64>,
    pub(crate) tokens: Option<u64>,
    pub(crate) cost_microdollars: Option<u64>,
}

/// An agent as its file describes it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AgentFile {
    /// The goal of each of its runs.
    pub(crate) instructions: String,
    /// The folder that it works in.
    pub(crate) workdir: PathBuf,
    /// Options of `gyrus run`.
    pub(crate) options: BTreeMap<String, OptionValue>,
    /// Limits of a day.
    pub(crate) budget: DayBudget,
    /// Name, subscriptions and mailbox.
    pub(crate) config: AgentConfig,
}

impl AgentFile {
    /// Returns the request for a run of this agent.
    pub(crate) fn request(&self, goal: Text) -> RunRequest {
        RunRequest {
            goal,
            workdir: self.workdir.clone(),
            options: self.options.clone(),
            context: Vec::new(),
            continues: None,
        }
    }
}
