//! The cycle of a changeset: its states, and the table of all transitions.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The state of the work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ChangeState {
    /// No changeset is in progress, and the files are consistent.
    #[default]
    Idle,
    /// Files that are relevant to the goal are searched for.
    CuratingContext,
    /// A person decides about the files.
    AwaitingContextApproval,
    /// The model reads and plans.
    PlanningWithContext,
    /// A person decides about the proposal.
    AwaitingProposalApproval,
    /// The files are changed, all or none.
    ApplyingChangeset,
}

/// An event that causes a transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ChangeEvent {
    /// The work begins, or begins again.
    #[serde(rename = "start")]
    Start,
    /// The files were found.
    #[serde(rename = "context:ready")]
    ContextReady,
    /// A person approved the files, or nobody is asked.
    #[serde(rename = "user:approve:context")]
    ApproveContext,
    /// A person asked for other files.
    #[serde(rename = "user:reject:context")]
    RejectContext,
    /// The model has proposed a changeset.
    #[serde(rename = "proposal:ready")]
    ProposalReady,
    /// A person approved the changeset, or nobody is asked.
    #[serde(rename = "user:approve:proposal")]
    ApproveProposal,
    /// A person asked for another changeset.
    #[serde(rename = "user:reject:proposal")]
    RejectProposal,
    /// Every file is as it was approved.
    #[serde(rename = "applied")]
    Applied,
    /// No file was changed, or all were restored.
    #[serde(rename = "failed")]
    Failed,
    /// The work ends without changes.
    #[serde(rename = "abort")]
    Abort,
}

/// All transitions between states. There is no abort while files change: applying ends with
/// consistent files.
pub const CHANGE_CYCLE: [(ChangeState, ChangeEvent, ChangeState); 13] = {
    use {ChangeEvent::*, ChangeState::*};
    [
        (Idle, Start, CuratingContext),
        (CuratingContext, ContextReady, AwaitingContextApproval),
        (AwaitingContextApproval, ApproveContext, PlanningWithContext),
        (AwaitingContextApproval, RejectContext, CuratingContext),
        (PlanningWithContext, ProposalReady, AwaitingProposalApproval),
        (AwaitingProposalApproval, ApproveProposal, ApplyingChangeset),
        (
            AwaitingProposalApproval,
            RejectProposal,
            PlanningWithContext,
        ),
        (ApplyingChangeset, Applied, Idle),
        (ApplyingChangeset, Failed, Idle),
        (CuratingContext, Abort, Idle),
        (AwaitingContextApproval, Abort, Idle),
        (PlanningWithContext, Abort, Idle),
        (AwaitingProposalApproval, Abort, Idle),
    ]
};

/// The error of a transition that is not in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a changeset cannot take `{event}` in the state {state}; this is a mistake in gyrus")]
pub struct IllegalTransition {
    state: ChangeState,
    event: ChangeEvent,
}

impl ChangeState {
    /// All states, in the order of a cycle.
    pub const ALL: [ChangeState; 6] = [
        ChangeState::Idle,
        ChangeState::CuratingContext,
        ChangeState::AwaitingContextApproval,
        ChangeState::PlanningWithContext,
        ChangeState::AwaitingProposalApproval,
        ChangeState::ApplyingChangeset,
    ];

    /// Returns a description of the state, as one sentence.
    pub fn words(self) -> &'static str {
        match self {
            ChangeState::Idle => "no changeset is in progress",
            ChangeState::CuratingContext => "looks for the files that the goal is about",
            ChangeState::AwaitingContextApproval => "a person decides about the files",
            ChangeState::PlanningWithContext => "reads and plans",
            ChangeState::AwaitingProposalApproval => "a person decides about the changes",
            ChangeState::ApplyingChangeset => "changes the files, all or none",
        }
    }

    /// Returns the events that the state accepts, each with the next state.
    pub fn next(self) -> impl Iterator<Item = (ChangeEvent, ChangeState)> {
        let rows = CHANGE_CYCLE.into_iter().filter(move |row| row.0 == self);
        rows.map(|(_, event, to)| (event, to))
    }

    /// Returns the state after `event`.
    ///
    /// # Errors
    /// Returns an error if the table has no such transition.
    pub fn on(self, event: ChangeEvent) -> Result<ChangeState, IllegalTransition> {
        let step = CHANGE_CYCLE
            .iter()
            .find(|(from, what, _)| *from == self && *what == event);
        let illegal = IllegalTransition { state: self, event };
        step.map(|(_, _, to)| *to).ok_or(illegal)
    }
}

impl fmt::Display for ChangeState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl fmt::Display for ChangeEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATES: [ChangeState; 6] = ChangeState::ALL;

    const EVENTS: [ChangeEvent; 10] = [
        ChangeEvent::Start,
        ChangeEvent::ContextReady,
        ChangeEvent::ApproveContext,
        ChangeEvent::RejectContext,
        ChangeEvent::ProposalReady,
        ChangeEvent::ApproveProposal,
        ChangeEvent::RejectProposal,
        ChangeEvent::Applied,
        ChangeEvent::Failed,
        ChangeEvent::Abort,
    ];

    #[test]
    fn what_is_not_in_the_table_is_an_error() {
        let mut legal = 0;
        for state in STATES {
            for event in EVENTS {
                let rows = CHANGE_CYCLE
                    .iter()
                    .filter(|row| (row.0, row.1) == (state, event));
                match (&rows.collect::<Vec<_>>()[..], state.on(event)) {
                    ([row], Ok(to)) => {
                        assert_eq!(row.2, to);
                        legal += 1;
                    }
                    ([], Err(illegal)) => {
                        let words = illegal.to_string();
                        assert!(
                            words.contains(&state.to_string())
                                && words.contains(&format!("`{event}`")),
                            "{words}"
                        );
                    }
                    (rows, came) => panic!("{state} {event}: {rows:?}, {came:?}"),
                }
            }
        }
        assert_eq!(legal, CHANGE_CYCLE.len());
    }

    #[test]
    fn every_way_leads_back_to_idle() {
        for state in STATES {
            let mut at = vec![state];
            while !at.contains(&ChangeState::Idle) {
                let steps = CHANGE_CYCLE.iter().filter(|row| at.contains(&row.0));
                let next: Vec<_> = steps
                    .map(|row| row.2)
                    .filter(|to| !at.contains(to))
                    .collect();
                assert!(!next.is_empty(), "{state} is a trap");
                at.extend(next);
            }
        }
    }

    #[test]
    fn names_are_the_ones_of_the_page() {
        assert_eq!(
            ChangeState::PlanningWithContext.to_string(),
            "PLANNING_WITH_CONTEXT"
        );
        assert_eq!(
            ChangeEvent::ApproveProposal.to_string(),
            "user:approve:proposal"
        );
        let page = include_str!("../../../docs/changeset.md");
        let table =
            CHANGE_CYCLE.map(|(from, event, to)| format!("| `{from}` | `{event}` | `{to}` |"));
        for row in &table {
            let printed = page.lines().filter(|line| line.starts_with(row.as_str()));
            assert_eq!(printed.count(), 1, "{row}");
        }
        let steps = page
            .lines()
            .filter(|line| line.starts_with("| `") && line.contains("_"));
        let steps =
            steps.filter(|line| STATES.iter().any(|s| line.starts_with(&format!("| `{s}`"))));
        assert_eq!(steps.count(), CHANGE_CYCLE.len());
    }
}
