//! The states of a changeset, and the table of all transitions.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The state of the work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(super) enum State {
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Event {
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

/// All transitions. There is no abort while files change: applying ends with consistent files.
pub(super) const TABLE: [(State, Event, State); 13] = {
    use {Event::*, State::*};
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

/// The error for a transition that the table does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a changeset cannot take `{event}` in the state {state}; this is a mistake in gyrus")]
pub(super) struct Illegal {
    state: State,
    event: Event,
}

impl State {
    /// Returns the state after `event`.
    ///
    /// # Errors
    /// Returns an error if the table has no such transition.
    pub(super) fn on(self, event: Event) -> Result<State, Illegal> {
        let step = TABLE
            .iter()
            .find(|(from, what, _)| *from == self && *what == event);
        let illegal = Illegal { state: self, event };
        step.map(|(_, _, to)| *to).ok_or(illegal)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATES: [State; 6] = [
        State::Idle,
        State::CuratingContext,
        State::AwaitingContextApproval,
        State::PlanningWithContext,
        State::AwaitingProposalApproval,
        State::ApplyingChangeset,
    ];

    const EVENTS: [Event; 10] = [
        Event::Start,
        Event::ContextReady,
        Event::ApproveContext,
        Event::RejectContext,
        Event::ProposalReady,
        Event::ApproveProposal,
        Event::RejectProposal,
        Event::Applied,
        Event::Failed,
        Event::Abort,
    ];

    #[test]
    fn what_is_not_in_the_table_is_an_error() {
        let mut legal = 0;
        for state in STATES {
            for event in EVENTS {
                let rows = TABLE.iter().filter(|row| (row.0, row.1) == (state, event));
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
        assert_eq!(legal, TABLE.len());
    }

    #[test]
    fn every_way_leads_back_to_idle() {
        for state in STATES {
            let mut at = vec![state];
            while !at.contains(&State::Idle) {
                let steps = TABLE.iter().filter(|row| at.contains(&row.0));
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
            State::PlanningWithContext.to_string(),
            "PLANNING_WITH_CONTEXT"
        );
        assert_eq!(Event::ApproveProposal.to_string(), "user:approve:proposal");
        let page = include_str!("../../../../docs/changeset.md");
        let table = TABLE.map(|(from, event, to)| format!("| `{from}` | `{event}` | `{to}` |"));
        for row in &table {
            let printed = page.lines().filter(|line| line.starts_with(row.as_str()));
            assert_eq!(printed.count(), 1, "{row}");
        }
        let steps = page
            .lines()
            .filter(|line| line.starts_with("| `") && line.contains("_"));
        let steps =
            steps.filter(|line| STATES.iter().any(|s| line.starts_with(&format!("| `{s}`"))));
        assert_eq!(steps.count(), TABLE.len());
    }
}
