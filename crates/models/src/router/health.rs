//! Health of models: a circuit breaker and a median latency for each. Pure; the caller passes the
//! time.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use gyrus_contract::ModelError;

/// Number of consecutive failures after which a model is paused.
const MOST_FAILURES: u32 = 3;

/// Length of the first pause of a failing model; it doubles with each further failure.
const FIRST_REST: Duration = Duration::from_secs(30);

/// Maximum length of a pause.
const LONGEST_REST: Duration = Duration::from_secs(10 * 60);

/// Number of the last replies whose times count.
const MEASURED: usize = 15;

#[derive(Debug, Default)]
pub(super) struct ModelHealth {
    failures: u32,
    /// End and length of the model's pause.
    rest: Option<(Instant, Duration)>,
    /// Times of the model's last replies, oldest first.
    took: VecDeque<Duration>,
    /// Whether the model was chosen before.
    was_chosen: bool,
    /// The median that later runs begin with.
    kept: Option<Duration>,
}

/// Health of a model as a choice needs it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct HealthSummary {
    /// Remaining time of the model's pause.
    pub(super) rests_for: Option<Duration>,
    /// Number of consecutive failures.
    pub(super) failures: u32,
    /// Median time of a reply.
    pub(super) median: Option<Duration>,
    /// Whether the model's time is unknown and it was never asked.
    pub(super) is_untried: bool,
}

impl ModelHealth {
    /// Creates the health of a model without requests so far, with its measured latency if known.
    pub(super) fn new(latency_ms: Option<u64>) -> Self {
        let kept = latency_ms.map(Duration::from_millis);
        Self {
            took: kept.into_iter().collect(),
            kept,
            ..Self::default()
        }
    }

    /// Returns the model's health at the time `now`.
    pub(super) fn at(&self, now: Instant) -> HealthSummary {
        let rests_for = self
            .rest
            .map(|(until, _)| until.saturating_duration_since(now))
            .filter(|rest| !rest.is_zero());
        let median = self.median();
        HealthSummary {
            rests_for,
            failures: self.failures,
            median,
            is_untried: median.is_none() && !self.was_chosen,
        }
    }

    fn median(&self) -> Option<Duration> {
        let mut sorted: Vec<_> = self.took.iter().copied().collect();
        sorted.sort();
        sorted.get(sorted.len() / 2).copied()
    }

    /// Records that the model is asked. After a pause this is a single attempt: until its result is
    /// known, or for the length of the pause, the model gets no other question.
    pub(super) fn chosen(&mut self, now: Instant) {
        self.was_chosen = true;
        if let Some((until, length)) = &mut self.rest
            && *until <= now
        {
            *until = now + *length;
        }
    }

    /// Records a reply or an error. An error of the question is not one of the model: a model that
    /// refuses is up.
    pub(super) fn heard(&mut self, came: Result<(), &ModelError>, now: Instant) {
        let is_down = match came {
            Ok(()) => false,
            Err(error) => match error {
                ModelError::Declined { .. }
                | ModelError::Refused { .. }
                | ModelError::ContextTooLong { .. } => false,
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

    /// Records the time of a reply. Returns the median if later runs are to begin with it: if it is
    /// the first, or differs from the one that they have by more than a third.
    pub(super) fn took(&mut self, time: Duration) -> Option<Duration> {
        if self.took.len() == MEASURED {
            self.took.pop_front();
        }
        self.took.push_back(time);
        let median = self.median()?;
        let is_near = |kept: Duration| median.abs_diff(kept) * 3 <= kept;
        if self.kept.is_some_and(is_near) {
            return None;
        }
        self.kept = Some(median);
        Some(median)
    }
}
