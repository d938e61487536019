//! The newest states of runs. Only the last one of each needs to be shown, so they wait in memory.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use gyrus_contract::RunId;

/// Shortest time between two sentences to people who are not paired.
const GREET_EVERY: Duration = Duration::from_secs(10);

/// The newest states of runs, of which older ones may go unseen.
#[derive(Debug, Default)]
pub(crate) struct RunBoard {
    states: BTreeMap<RunId, ShownState>,
    greeted: Option<Instant>,
}

#[derive(Debug)]
struct ShownState {
    text: String,
    is_new: bool,
    /// The earliest time at which the message may be changed again.
    from: Instant,
}

impl RunBoard {
    /// Queues the state of a run for display.
    pub(crate) fn show(&mut self, run: RunId, text: String) {
        let state = self.states.entry(run).or_insert_with(|| ShownState {
            text: String::new(),
            is_new: false,
            from: Instant::now(),
        });
        if state.text != text {
            state.text = text;
            state.is_new = true;
        }
    }

    pub(crate) fn forget(&mut self, run: RunId) {
        self.states.remove(&run);
    }

    /// Whether a person who is not paired may get an answer now.
    pub(crate) fn may_greet(&mut self) -> bool {
        let may = self
            .greeted
            .is_none_or(|last| last.elapsed() >= GREET_EVERY);
        if may {
            self.greeted = Some(Instant::now());
        }
        may
    }

    /// Returns the state that has waited longest and may be shown, and records it as shown now; or
    /// else the time at which one may.
    pub(crate) fn next(&mut self, every: Duration) -> Result<(RunId, String), Option<Instant>> {
        let new = self.states.iter_mut().filter(|(_, state)| state.is_new);
        let first = new.min_by_key(|(_, state)| state.from);
        let Some((run, state)) = first else {
            return Err(None);
        };
        let now = Instant::now();
        if state.from > now {
            return Err(Some(state.from));
        }
        state.is_new = false;
        state.from = now + every;
        Ok((*run, state.text.clone()))
    }

    /// Queues a state again that was not shown.
    pub(crate) fn again(&mut self, run: RunId, after: Duration) {
        if let Some(state) = self.states.get_mut(&run) {
            state.is_new = true;
            state.from = Instant::now() + after;
        }
    }
}
