//! The silence of a model during one attempt at a question, before its reply begins.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use gyrus_contract::{Model, ModelError};
use tokio::time::Instant;

/// The part of a model's maximum silence, as a divisor, that earlier attempts may use without
/// shortening further ones, and that each of those has at least.
const SMALL_PART: u32 = 4;

pub(super) struct Silence {
    since: Instant,
    has_ended: AtomicBool,
    /// The limit in a further attempt. A first one has that of the model's client, which also sees
    /// signs of life.
    limit: Option<Duration>,
}

impl Silence {
    /// Creates the silence of an attempt after failed ones in which the model was silent for
    /// `before` in total.
    pub(super) fn of(before: Option<&Duration>, model: &dyn Model) -> Self {
        let most = model.max_silence();
        let small = most / SMALL_PART;
        let before = before.filter(|before| **before >= small);
        let left = |before: &Duration| most.saturating_sub(*before).max(small);
        Self {
            since: Instant::now(),
            has_ended: AtomicBool::new(false),
            limit: before.map(left),
        }
    }

    /// Records that the reply has begun.
    pub(super) fn ends(&self) {
        self.has_ended.store(true, Ordering::Relaxed);
    }

    /// Returns the duration of the silence so far, or zero once the reply has begun.
    pub(super) fn lasted(&self) -> Duration {
        if self.has_ended.load(Ordering::Relaxed) {
            Duration::ZERO
        } else {
            self.since.elapsed()
        }
    }

    /// Returns the error when the limit passes before the reply begins.
    pub(super) async fn is_too_long(&self) -> ModelError {
        if let Some(limit) = self.limit {
            tokio::time::sleep(limit).await;
            if !self.lasted().is_zero() {
                let seconds = limit.as_secs();
                let message = format!("the provider was silent for {seconds} seconds once more");
                return ModelError::Network { message };
            }
        }
        std::future::pending().await
    }
}
