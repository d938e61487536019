//! The cycle of a changeset as its entries tell it: the states that it was in, and how long.

use gyrus_contract::{ChangeEvent, ChangeState};
use gyrus_journal::Payload;
use gyrus_kernel::Entry;
use serde::Deserialize;

/// A stretch of time in which a changeset is in one state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeSpan {
    pub state: ChangeState,
    /// The event that led to the state; `None` for the beginning.
    pub event: Option<ChangeEvent>,
    /// The person or program that decided; empty if nobody did.
    pub by: String,
    /// Description of the reason or result.
    pub text: String,
    pub cycle: u32,
    /// Number of the stretch's first entry.
    pub seq: u64,
    /// The time of the stretch's first entry, in UTC milliseconds.
    pub from_ms: i64,
    /// The time at which the next stretch began; `None` for the present one.
    pub until_ms: Option<i64>,
}

/// The payload of the fact `changeset.state`.
#[derive(Deserialize)]
struct Transition {
    event: ChangeEvent,
    to: ChangeState,
    #[serde(default)]
    text: String,
    #[serde(default)]
    by: String,
}

/// Returns the stretch that begins with an entry, if the entry is a transition.
pub fn transition(entry: &gyrus_journal::LogEntry) -> Option<ChangeSpan> {
    if matches!(entry.payload, Payload::Erased(_)) {
        return None;
    }
    let Ok(Entry::Noted { kind, fact, .. }) = gyrus_kernel::parse(entry) else {
        return None;
    };
    let to: Transition = match &*kind {
        "changeset.state" => serde_json::from_value(fact.fact).ok()?,
        _ => return None,
    };
    Some(ChangeSpan {
        state: to.to,
        event: Some(to.event),
        by: to.by,
        text: to.text,
        cycle: fact.effect.cycle_number(),
        seq: entry.seq,
        from_ms: entry.at_ms,
        until_ms: None,
    })
}

/// Folds entries into the states of a changeset.
#[derive(Debug, Default)]
pub struct ChangeCycle {
    spans: Vec<ChangeSpan>,
}

impl ChangeCycle {
    /// Adds the next entry. Before the first transition the cycle is idle.
    pub fn take(&mut self, entry: &gyrus_journal::LogEntry) {
        let begun = ChangeSpan {
            state: ChangeState::Idle,
            event: None,
            by: String::new(),
            text: String::new(),
            cycle: 0,
            seq: entry.seq,
            from_ms: entry.at_ms,
            until_ms: None,
        };
        let Some(next) = transition(entry).or(self.spans.is_empty().then_some(begun)) else {
            return;
        };
        if let Some(last) = self.spans.last_mut() {
            last.until_ms = Some(next.from_ms);
        }
        self.spans.push(next);
    }

    /// Returns the present state.
    pub fn state(&self) -> ChangeState {
        self.spans
            .last()
            .map_or(ChangeState::Idle, |span| span.state)
    }

    /// Returns the stretches, oldest first; the last one is the present.
    pub fn spans(&self) -> &[ChangeSpan] {
        &self.spans
    }
}
