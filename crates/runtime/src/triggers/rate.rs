//! The rate at which a webhook takes deliveries.

/// Number of deliveries a second that a webhook may sustain, before the number that it may save up.
const RATE: f64 = 2.0;
const BURST: f64 = 100.0;

/// Number of deliveries that a webhook may still take, with the time of this number.
pub(super) struct Rate(f64, i64);

impl Default for Rate {
    fn default() -> Self {
        Self(BURST, 0)
    }
}

impl Rate {
    /// Whether another delivery is allowed at this time.
    pub(super) fn admits(&mut self, now_ms: i64) -> bool {
        let seconds = now_ms.saturating_sub(self.1).max(0) as f64 / 1000.0;
        *self = Self((self.0 + seconds * RATE).min(BURST), now_ms);
        if self.0 < 1.0 {
            return false;
        }
        self.0 -= 1.0;
        true
    }
}
