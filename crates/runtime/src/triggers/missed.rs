//! Instants of a schedule that have come.

use std::collections::VecDeque;

use jiff::{Timestamp, tz::TimeZone};

use super::{config::MissedPolicy, cron::CronSchedule};

/// Time after which an instant counts as missed, in milliseconds: a server that starts again, or a
/// machine under load, is that late.
pub(super) const GRACE_MS: i64 = 60_000;

/// Maximum number of missed instants that count.
const MAX_MISSED: usize = 100;

/// Lengths of the time spans that are searched for the last instants, in milliseconds, so that a
/// schedule of every minute is not followed through a year.
const SPANS_MS: [i64; 6] = [
    10 * 60_000,
    6 * 3_600_000,
    7 * 86_400_000,
    100 * 86_400_000,
    3_000 * 86_400_000,
    i64::MAX,
];

/// Returns the instants in UTC milliseconds, behind `after` and up to `now`, that count now.
pub(super) fn due(
    (schedule, zone, missed): (&CronSchedule, &TimeZone, MissedPolicy),
    after_ms: i64,
    now_ms: i64,
) -> Vec<i64> {
    let fresh = now_ms - GRACE_MS;
    let (after_ms, count) = match missed {
        MissedPolicy::Skip => (after_ms.max(fresh), 1),
        MissedPolicy::Once => (after_ms, 1),
        MissedPolicy::All => (after_ms, MAX_MISSED),
    };
    let mut last = VecDeque::new();
    for span in SPANS_MS {
        let from = after_ms.max(now_ms.saturating_sub(span));
        last.clear();
        let mut at = from;
        while let Some(next) = next(schedule, zone, at).filter(|next| *next <= now_ms) {
            if last.len() == count {
                last.pop_front();
            }
            last.push_back(next);
            at = next;
        }
        if last.len() == count || from == after_ms {
            break;
        }
    }
    last.into()
}

/// Returns the first instant after a time, in UTC milliseconds.
pub(super) fn next(schedule: &CronSchedule, zone: &TimeZone, after_ms: i64) -> Option<i64> {
    let after = Timestamp::from_millisecond(after_ms).ok()?;
    Some(schedule.next(after, zone)?.as_millisecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_that_were_missed_are_left_out_fire_once_or_all() {
        let minute = 60_000;
        let hour = 60 * minute;
        let now = 1_700_000_000_000 / hour * hour + 30_000;
        let check = |text: &str, missed, ago: i64, expected: &[i64]| {
            let schedule = text.parse().unwrap();
            let found = due((&schedule, &TimeZone::UTC, missed), now - ago, now);
            let expected: Vec<i64> = expected.iter().map(|ago| now - 30_000 - ago).collect();
            assert_eq!(found, expected, "{text} {missed:?} {ago}");
        };
        // Nothing was missed.
        for missed in [MissedPolicy::Skip, MissedPolicy::Once, MissedPolicy::All] {
            check("0 * * * *", missed, minute, &[0]);
            check("0 * * * *", missed, 10_000, &[]);
        }
        check("0 * * * *", MissedPolicy::Skip, 5 * hour, &[0]);
        check("30 * * * *", MissedPolicy::Skip, 5 * hour, &[]);
        check("30 * * * *", MissedPolicy::Once, 5 * hour, &[30 * minute]);
        check("0 * * * *", MissedPolicy::All, 2 * hour, &[hour, 0]);
        let last: Vec<i64> = (0..100).rev().map(|ago| ago * minute).collect();
        check("* * * * *", MissedPolicy::All, 3_000 * 24 * hour, &last);
        check("* * * * *", MissedPolicy::Once, 3_000 * 24 * hour, &[0]);
    }
}
