//! The wall clock.

use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the wall clock in UTC milliseconds: for entries and deadlines, never for a loop.
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    i64::try_from(since.unwrap_or_default().as_millis()).unwrap_or(i64::MAX)
}
