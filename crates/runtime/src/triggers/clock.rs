//! The clock of triggers.

use std::{fmt, pin::Pin};

/// The clock of triggers, which tests replace.
pub trait TriggerClock: fmt::Debug + Send + Sync + 'static {
    /// Returns the time in UTC milliseconds.
    fn now_ms(&self) -> i64;

    /// Waits until this time, or until the clock was set: whoever waits looks at the time again.
    fn wait_until(&self, at_ms: i64) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

/// The wall clock of the machine.
#[derive(Debug)]
pub struct SystemClock {
    /// Milliseconds by which the clock is ahead of the machine's, for tests.
    ahead_ms: i64,
}

impl SystemClock {
    /// Creates a clock that is ahead of the machine's by this number of milliseconds.
    pub fn new(ahead_ms: i64) -> Self {
        Self { ahead_ms }
    }
}

impl TriggerClock for SystemClock {
    fn now_ms(&self) -> i64 {
        gyrus_kernel::now_ms().saturating_add(self.ahead_ms)
    }

    fn wait_until(&self, at_ms: i64) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(gyrus_kernel::wait_until(
            at_ms.saturating_sub(self.ahead_ms),
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[tokio::test]
    async fn the_timer_goes_by_the_wall_clock() {
        for ahead in [0, 3_600_000] {
            let clock = SystemClock::new(ahead);
            let (now, since) = (clock.now_ms(), Instant::now());
            clock.wait_until(now + 30).await;
            assert!(clock.now_ms() >= now + 30);
            // A time that is past, long ago or before 1970 is not waited for.
            for past in [now, 1, 0, -1, i64::MIN] {
                clock.wait_until(past).await;
            }
            assert!(since.elapsed() < Duration::from_secs(10));
            let far = clock.wait_until(i64::MAX);
            let waited = tokio::time::timeout(Duration::from_millis(5), far).await;
            assert!(waited.is_err());
        }
    }
}
