//! The bounds of a history, and which of its logs are to be removed.

use std::time::Duration;

use super::{control::ControlState, logs::LogSpan};
use crate::bus::error::BusError;

/// Largest window for duplicates, in events. Each takes about 100 bytes of memory.
const LARGEST_WINDOW: u64 = 1_000_000;

/// The bounds of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryLimits {
    /// Number of events after which a new log is begun. Default: 50,000.
    pub log_events: u64,
    /// Size in bytes after which a new log is begun. Default: 64 MiB.
    pub log_bytes: u64,
    /// Age at which a complete log is removed if every subscriber has acknowledged its events.
    /// Default: 7 days.
    pub keep_for: Duration,
    /// Size of the history in bytes, above which acknowledged logs are removed sooner. Default:
    /// 1 GiB.
    pub keep_bytes: u64,
    /// Size of the history in bytes, above which logs are removed whether they were acknowledged
    /// or not. Default: 4 GiB.
    pub most_bytes: u64,
    /// Number of the newest events among which duplicates are found, at most 1,000,000. They are
    /// kept until the history has `most_bytes`. Default: 10,000.
    pub duplicate_window: u64,
    /// Time without contact after which an inactive subscriber no longer prevents the removal of
    /// logs. Default: 7 days.
    pub unseen_for: Duration,
}

impl Default for HistoryLimits {
    fn default() -> Self {
        const DAY: Duration = Duration::from_secs(24 * 60 * 60);
        Self {
            log_events: 50_000,
            log_bytes: 64 << 20,
            keep_for: 7 * DAY,
            keep_bytes: 1 << 30,
            most_bytes: 4 << 30,
            duplicate_window: 10_000,
            unseen_for: 7 * DAY,
        }
    }
}

impl HistoryLimits {
    pub(super) fn check(&self) -> Result<(), BusError> {
        let reason = if self.log_events == 0 || self.log_bytes == 0 {
            "a log must hold something".to_owned()
        } else if self.duplicate_window > LARGEST_WINDOW {
            format!("the window for duplicates is larger than {LARGEST_WINDOW}")
        } else {
            return Ok(());
        };
        let what = "limits of a history";
        Err(BusError::Invalid { what, reason })
    }

    pub(super) fn is_full(&self, span: &LogSpan) -> bool {
        span.last + 1 - span.first >= self.log_events || span.bytes >= self.log_bytes
    }

    /// Returns how many of the complete logs, counted from the oldest, are to be removed.
    pub(super) fn removable(&self, state: &ControlState, now_ms: i64) -> usize {
        let needed = self.first_needed(state, now_ms);
        let mut total: u64 = state.closed.iter().map(|log| log.bytes).sum();
        let mut count = 0;
        for log in &state.closed {
            let is_past = log.last + self.duplicate_window < state.next;
            let is_acknowledged = needed.is_none_or(|position| log.last < position);
            let is_old = is_longer_ago(log.at_ms, self.keep_for, now_ms);
            let may_go = is_past && is_acknowledged && (is_old || total > self.keep_bytes);
            if !may_go && total <= self.most_bytes {
                break;
            }
            total -= log.bytes;
            count += 1;
        }
        count
    }

    /// Returns the first position that a subscriber still needs; `None` if there is no subscriber.
    fn first_needed(&self, state: &ControlState, now_ms: i64) -> Option<u64> {
        let subscribers = state.subscribers.values();
        let seen = subscribers.filter(|one| {
            one.connected.is_some() || !is_longer_ago(one.seen_ms, self.unseen_for, now_ms)
        });
        seen.map(|one| one.settled() + 1).min()
    }
}

fn is_longer_ago(at_ms: i64, span: Duration, now_ms: i64) -> bool {
    let span = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
    now_ms.saturating_sub(at_ms) > span
}
