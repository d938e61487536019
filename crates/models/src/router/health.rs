//! Who is up, and how fast: a circuit breaker and a median for each model. Pure but for the time
//! that it is told.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use gyrus_contract::ModelError;

/// After so many failures in a row a model is left alone.
const MOST_FAILURES: u32 = 3;

/// For how long at first; twice as long after each further failure.
const FIRST_REST: Duration = Duration::from_secs(30);

/// The longest rest.
const LONGEST_REST: Duration = Duration::from_secs(10 * 60);

/// The replies whose times count.
const MEASURED: usize = 15;

/// How one model did lately.
#[derive(Debug, Default)]
pub(super) struct Health {
    failures: u32,
    /// Until when it is left alone, and how long that is.
    rest: Option<(Instant, Duration)>,
    /// How long its last replies took, oldest first.
    took: VecDeque<Duration>,
}

/// What a choice must know of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Standing {
    /// How much longer it is left alone.
    pub(super) rests_for: Option<Duration>,
    /// How many failures in a row there were.
    pub(super) failures: u32,
    /// How long a reply takes.
    pub(super) median: Option<Duration>,
}

impl Health {
    /// A model that was not asked yet, but perhaps measured.
    pub(super) fn new(latency_ms: Option<u64>) -> Self {
        Self {
            took: latency_ms.map(Duration::from_millis).into_iter().collect(),
            ..Self::default()
        }
    }

    /// How it stands `now`.
    pub(super) fn at(&self, now: Instant) -> Standing {
        let rests_for = self
            .rest
            .map(|(until, _)| until.saturating_duration_since(now))
            .filter(|rest| !rest.is_zero());
        let mut sorted: Vec<_> = self.took.iter().copied().collect();
        sorted.sort();
        Standing {
            rests_for,
            failures: self.failures,
            median: sorted.get(sorted.len() / 2).copied(),
        }
    }

    /// It is asked. After a rest that is its one attempt: until it is known how that went, or as
    /// long as the rest was, all others leave it alone.
    pub(super) fn chosen(&mut self, now: Instant) {
        if let Some((until, length)) = &mut self.rest
            && *until <= now
        {
            *until = now + *length;
        }
    }

    /// It answered or failed. What is wrong with the question says nothing of the model: whoever
    /// refuses is up.
    pub(super) fn heard(&mut self, came: Result<(), &ModelError>, now: Instant) {
        let is_down = match came {
            Ok(()) => false,
            Err(error) => match error {
                ModelError::Refused { .. } | ModelError::ContextTooLong { .. } => false,
                ModelError::RateLimited { .. }
                | ModelError::Overloaded { .. }
                | ModelError::BadOutput { .. }
                | ModelError::Auth { .. }
                | ModelError::Network { .. } => true,
            },
        };
        if !is_down {
            self.failures = 0;
            self.rest = None;
            return;
        }
        self.failures = self.failures.saturating_add(1);
        if self.failures >= MOST_FAILURES {
            let doublings = (self.failures - MOST_FAILURES).min(16);
            let length = FIRST_REST.saturating_mul(1 << doublings).min(LONGEST_REST);
            self.rest = Some((now + length, length));
        }
    }

    /// A reply took so long.
    pub(super) fn took(&mut self, time: Duration) {
        if self.took.len() == MEASURED {
            self.took.pop_front();
        }
        self.took.push_back(time);
    }
}
