//! The states of a changeset, and the one table that says how they follow each other.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Where the work is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(super) enum State {
    /// Nothing is under way, and the files are whole.
    #[default]
    Idle,
    /// The files are looked for that the goal is about.
    CuratingContext,
    /// A person decides about them.
    AwaitingContextApproval,
    /// The model reads, and proposes.
    PlanningWithContext,
    /// A person decides about the proposal.
    AwaitingProposalApproval,
    /// The files change, all or none.
    ApplyingChangeset,
}

/// What happens to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Event {
    /// The work begins, or begins again.
    #[serde(rename = "start")]
    Start,
    /// The files are found.
    #[serde(rename = "context:ready")]
    ContextReady,
    /// A person takes the files, or nobody is asked.
    #[serde(rename = "user:approve:context")]
    ApproveContext,
    /// A person wants other files, and says which.
    #[serde(rename = "user:reject:context")]
    RejectContext,
    /// The model has proposed a changeset.
    #[serde(rename = "proposal:ready")]
    ProposalReady,
    /// A person takes the changeset, or nobody is asked.
    #[serde(rename = "user:approve:proposal")]
    ApproveProposal,
    /// A person wants another changeset, and says what is wrong with this one.
    #[serde(rename = "user:reject:proposal")]
    RejectProposal,
    /// Every file is as it was approved.
    #[serde(rename = "applied")]
    Applied,
    /// No file was changed, or all were put back.
    #[serde(rename = "failed")]
    Failed,
    /// It ends here: nothing was changed.
    #[serde(rename = "abort")]
    Abort,
}

/// Every step that there is. While files change there is no abort: it ends with the tree whole.
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

/// A step that there is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a changeset cannot take `{event}` in the state {state}; this is a mistake in gyrus")]
pub(super) struct Illegal {
    state: State,
    event: Event,
}

impl State {
    /// The state after `event`.
    ///
    /// # Errors
    /// If the table has no such step.
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
