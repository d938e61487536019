//! Shares of a run's time by activity: every moment between two entries belongs to what was going
//! on.

use std::collections::BTreeSet;

use crate::projection::{Happening, HappeningSubject};
use gyrus_contract::EffectId;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Use {
    Model,
    Tools,
    /// A child run works.
    Children,
    Person,
    /// The run waits for a time or a signal, or no process has it.
    Rest,
    /// gyrus itself works.
    Own,
}

impl Use {
    /// All uses, in the order in which a page shows them.
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
    pub(super) fn of(&self, what: Use) -> u64 {
        self.0[what as usize]
    }

    pub(super) fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    fn add(&mut self, what: Use, ms: u64) {
        self.0[what as usize] += ms;
    }
}

/// Follows a run's entries and shares out its time.
#[derive(Debug, Default)]
pub(super) struct TimeShares {
    shares: Shares,
    last_ms: Option<i64>,
    asking: BTreeSet<EffectId>,
    working: BTreeSet<EffectId>,
    delegated: BTreeSet<EffectId>,
    questions: BTreeSet<EffectId>,
    waiting: BTreeSet<EffectId>,
    /// State of the run without a process; `None` while a process drives the run.
    stopped: Option<Use>,
}

impl TimeShares {
    pub(super) fn shares(&self) -> Shares {
        self.shares
    }

    pub(super) fn take(&mut self, happening: &Happening) {
        let at_ms = happening.at_ms;
        // A clock may have been set back.
        let gap = self
            .last_ms
            .map_or(0, |last| at_ms.saturating_sub(last).max(0));
        let was = if happening.subject == HappeningSubject::Resumed {
            // Whatever was going on when the process died did not go on until this one came.
            self.stopped.unwrap_or(Use::Rest)
        } else {
            self.going_on()
        };
        self.shares.add(was, gap.unsigned_abs());
        self.last_ms = Some(at_ms);
        self.follow(happening);
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

    fn follow(&mut self, happening: &Happening) {
        use HappeningSubject as S;
        let effect = happening.effect.as_ref();
        let begins = |open: &mut BTreeSet<EffectId>| open.extend(effect.cloned());
        let ends = |open: &mut BTreeSet<EffectId>| open.retain(|one| Some(one) != effect);
        match happening.subject {
            S::Parked { for_person } => {
                self.stopped = Some(if for_person { Use::Person } else { Use::Rest });
            }
            S::Resumed | S::StepEnded | S::StepDropped => self.begin(),
            S::Request => begins(&mut self.asking),
            S::Reply | S::ReplyFailed => ends(&mut self.asking),
            S::Started => begins(&mut self.working),
            S::Result { .. } => {
                ends(&mut self.working);
                ends(&mut self.questions);
            }
            S::Child => begins(&mut self.delegated),
            S::ChildEnded => ends(&mut self.delegated),
            S::Question => begins(&mut self.questions),
            S::Answer { .. } => ends(&mut self.questions),
            S::Wait => begins(&mut self.waiting),
            S::WaitEnded => ends(&mut self.waiting),
            S::Goal
            | S::Ended
            | S::HandedOver
            | S::Warning
            | S::Person
            | S::Told
            | S::Thought
            | S::Reflection
            | S::Note
            | S::Value
            | S::Call
            | S::Verdict
            | S::View
            | S::Branches
            | S::Unreadable => {}
        }
    }

    /// Forgets everything in progress, and keeps the sums.
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

    #[test]
    fn every_moment_is_counted_once() {
        let happened = [
            (0, "1.1", HappeningSubject::Note),
            (5, "1.2", HappeningSubject::Started),
            (25, "1.3", HappeningSubject::Question),
            (35, "1.2", HappeningSubject::Result { failed: false }),
            (135, "", HappeningSubject::Parked { for_person: true }),
            (1_135, "", HappeningSubject::Resumed),
            // The clock was set back.
            (1_000, "1.4", HappeningSubject::Wait),
            (1_007, "1.4", HappeningSubject::WaitEnded),
            (1_009, "", HappeningSubject::Ended),
        ];
        let mut clock = TimeShares::default();
        for (at_ms, effect, subject) in happened {
            let mut happening = Happening::detail(subject, "");
            happening.at_ms = at_ms;
            happening.effect = effect.parse().ok();
            clock.take(&happening);
        }
        let shares = clock.shares();
        let by_use = Use::ALL.map(|what| shares.of(what));
        assert_eq!(by_use, [0, 30, 0, 1_100, 7, 7]);
        assert_eq!(shares.total(), 1_144);
    }
}
