//! Where the time of a run went: every moment between two entries belongs to what was going on.

use std::collections::BTreeSet;

use gyrus_contract::EffectId;
use gyrus_kernel::{Ending, Entry};

/// What time is spent on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Use {
    /// A model thinks.
    Model,
    /// A tool works.
    Tools,
    /// A child run works.
    Children,
    /// A person is asked.
    Person,
    /// The run waits for a time or a signal, or no process has it.
    Rest,
    /// gyrus itself.
    Own,
}

impl Use {
    /// All of them, in the order in which a page shows them.
    pub(super) const ALL: [Use; 6] = [
        Use::Model,
        Use::Tools,
        Use::Children,
        Use::Person,
        Use::Rest,
        Use::Own,
    ];
}

/// Milliseconds by use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Shares([u64; Use::ALL.len()]);

impl Shares {
    /// Of one use.
    pub(super) fn of(&self, what: Use) -> u64 {
        self.0[what as usize]
    }

    /// All together.
    pub(super) fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    fn add(&mut self, what: Use, ms: u64) {
        self.0[what as usize] += ms;
    }
}

/// Follows a run's entries and shares out its time.
#[derive(Debug, Default)]
pub(super) struct Clock {
    shares: Shares,
    last_ms: Option<i64>,
    asking: BTreeSet<EffectId>,
    working: BTreeSet<EffectId>,
    delegated: BTreeSet<EffectId>,
    questions: BTreeSet<EffectId>,
    waiting: BTreeSet<EffectId>,
    /// The run has no process; what it waits for.
    stopped: Option<Use>,
}

impl Clock {
    /// Time by use, so far.
    pub(super) fn shares(&self) -> Shares {
        self.shares
    }

    /// Takes in the next entry, appended at `at_ms`.
    pub(super) fn take(&mut self, at_ms: i64, entry: Option<&Entry>) {
        // A clock may have been set back.
        let gap = self
            .last_ms
            .map_or(0, |last| at_ms.saturating_sub(last).max(0));
        let was = match entry {
            // Whatever was going on when the process died did not go on until this one came.
            Some(Entry::RunResumed(_)) => self.stopped.unwrap_or(Use::Rest),
            _ => self.going_on(),
        };
        self.shares.add(was, gap.unsigned_abs());
        self.last_ms = Some(at_ms);
        if let Some(entry) = entry {
            self.follow(entry);
        }
    }

    fn going_on(&self) -> Use {
        if let Some(stopped) = self.stopped {
            return stopped;
        }
        for (open, what) in [
            (&self.asking, Use::Model),
            (&self.working, Use::Tools),
            (&self.delegated, Use::Children),
            (&self.questions, Use::Person),
            (&self.waiting, Use::Rest),
        ] {
            if !open.is_empty() {
                return what;
            }
        }
        Use::Own
    }

    fn follow(&mut self, entry: &Entry) {
        if let Entry::RunParked(parked) = entry {
            let is_question = matches!(parked.ending, Ending::Waiting { .. });
            self.stopped = Some(if is_question { Use::Person } else { Use::Rest });
        }
        if matches!(
            entry,
            Entry::RunResumed(_) | Entry::CycleEnded(_) | Entry::CycleDropped(_)
        ) {
            self.begin();
        }
        let Some(effect) = entry.effect() else {
            return;
        };
        match entry {
            Entry::ModelCall(_) => self.asking.insert(effect.clone()),
            Entry::ModelReply(_) => self.asking.remove(effect),
            Entry::ToolStarted(_) => self.working.insert(effect.clone()),
            Entry::ToolResulted(_) => self.working.remove(effect) | self.questions.remove(effect),
            Entry::ChildStarted(_) => self.delegated.insert(effect.clone()),
            Entry::ChildEnded(_) => self.delegated.remove(effect),
            Entry::ApprovalAsked(_) => self.questions.insert(effect.clone()),
            Entry::ApprovalAnswered(_) => self.questions.remove(effect),
            Entry::WaitStarted(_) => self.waiting.insert(effect.clone()),
            Entry::WaitEnded(_) => self.waiting.remove(effect),
            _ => false,
        };
    }

    /// Nothing is under way any more.
    fn begin(&mut self) {
        *self = Self {
            shares: self.shares,
            last_ms: self.last_ms,
            ..Self::default()
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_moment_is_counted_once() {
        let spent = json!({"steps": 1, "tokens": 1, "cost": 1, "time_ms": 1});
        let entries = [
            (
                0,
                "value",
                json!({"effect": "1.1", "of": "clock", "at_ms": 0}),
            ),
            (5, "tool.started", json!({"effect": "1.2", "attempt": 1})),
            (
                25,
                "approval.asked",
                json!({
                    "effect": "1.3", "digest": "0".repeat(32),
                    "card": {"sentence": "s", "reasons": [], "details": []},
                }),
            ),
            (
                35,
                "tool.result",
                json!({
                    "effect": "1.2", "settled": "done", "text": {"is": "t"},
                    "verdict": "changed", "took_ms": 1,
                }),
            ),
            (
                135,
                "run.parked",
                json!({
                    "ending": "waiting", "effect": "1.3", "question": "q", "spent": spent,
                }),
            ),
            (
                1_135,
                "run.resumed",
                json!({
                    "process": {"pid": 1, "start_time": 1, "boot_id": "b"},
                    "limits": {}, "mode": "ask", "on_ask": "wait", "pins": {},
                }),
            ),
            // The clock was set back.
            (
                1_000,
                "wait.started",
                json!({"effect": "1.4", "until_ms": 1, "signal": null}),
            ),
            (
                1_007,
                "wait.ended",
                json!({"effect": "1.4", "payload": null}),
            ),
            (
                1_009,
                "run.ended",
                json!({"ending": "interrupted", "spent": spent}),
            ),
        ];
        let mut clock = Clock::default();
        for (at_ms, kind, payload) in entries {
            let entry = Entry::parse(kind, 1, &payload.to_string()).unwrap();
            clock.take(at_ms, Some(&entry));
        }
        let shares = clock.shares();
        let by_use = Use::ALL.map(|what| shares.of(what));
        assert_eq!(by_use, [0, 30, 0, 1_100, 7, 7]);
        assert_eq!(shares.total(), 1_144);
    }
}
