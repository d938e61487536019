//! The wall clock.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Longest time without a look at the clock: the machine may sleep, and somebody may set it.
const LOOK: Duration = Duration::from_secs(5);

/// Difference between the clock and the time that has passed, from which on it was set, in
/// milliseconds.
const SET_MS: u64 = 1_000;

/// Returns the wall clock in UTC milliseconds: for entries and deadlines, never for a loop.
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    i64::try_from(since.unwrap_or_default().as_millis()).unwrap_or(i64::MAX)
}

/// Waits until a time in UTC milliseconds, or until the clock was set: whoever waits looks at the time
/// again.
pub async fn wait_until(at_ms: i64) {
    let (began_ms, began) = (now_ms(), Instant::now());
    loop {
        let now = now_ms();
        let passed = i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX);
        let left = u64::try_from(at_ms.saturating_sub(now)).unwrap_or(0);
        if left == 0 || now.abs_diff(began_ms.saturating_add(passed)) > SET_MS {
            return;
        }
        tokio::time::sleep(Duration::from_millis(left).min(LOOK)).await;
    }
}
