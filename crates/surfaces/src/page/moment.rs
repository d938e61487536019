//! Times on the page: how long after the run's start, with the moment itself behind it.

use maud::{Markup, html};

/// The time relative to which times are shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimeOrigin {
    /// Time at which the run of the page began, in UTC milliseconds.
    pub(super) at_ms: i64,
}

impl TimeOrigin {
    pub(super) fn moment(self, at_ms: i64) -> Markup {
        html! {
            time datetime=(gyrus_text::utc(at_ms)) title=(date_and_time(at_ms)) {
                (since(at_ms.saturating_sub(self.at_ms)))
            }
        }
    }

    /// Returns the time since the start, with the hour beside it.
    pub(super) fn moment_and_hour(self, at_ms: i64) -> Markup {
        html! {
            (self.moment(at_ms))
            span.hour { (hour(at_ms)) }
        }
    }
}

/// Returns a time in UTC milliseconds as `2026-03-01 12:00:00 UTC`.
pub fn date_and_time(at_ms: i64) -> String {
    match gyrus_text::utc(at_ms).split_once('T') {
        Some((date, time)) => format!("{date} {} UTC", time.split('.').next().unwrap_or(time)),
        None => gyrus_text::utc(at_ms),
    }
}

/// Returns the time of day as `12:00:00`.
fn hour(at_ms: i64) -> String {
    let text = date_and_time(at_ms);
    text.split(' ').nth(1).unwrap_or_default().to_owned()
}

/// A time since the start, in milliseconds. A clock may have been set back.
fn since(ms: i64) -> String {
    let sign = if ms < 0 { '−' } else { '+' };
    format!("{sign}{}", duration(ms.unsigned_abs()))
}

/// Formats a duration in milliseconds with one unit, or with two where one is too coarse.
pub fn duration(ms: u64) -> String {
    let (seconds, minutes, hours) = (ms / 1_000, ms / 60_000, ms / 3_600_000);
    match ms {
        ..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{}.{} s", seconds, ms % 1_000 / 100),
        60_000..3_600_000 => format!("{minutes} min {:02} s", seconds % 60),
        3_600_000..86_400_000 => format!("{hours} h {:02} min", minutes % 60),
        _ => format!("{} d {:02} h", hours / 24, hours % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_in_words() {
        for (ms, text) in [
            (0, "+0 ms"),
            (1_234, "+1.2 s"),
            (59_999, "+59.9 s"),
            (187_000, "+3 min 07 s"),
            (7_500_000, "+2 h 05 min"),
            (200_000_000, "+2 d 07 h"),
            (-1_500, "−1.5 s"),
        ] {
            assert_eq!(since(ms), text);
        }
        assert_eq!(date_and_time(1_772_366_400_123), "2026-03-01 12:00:00 UTC");
        assert_eq!(hour(1_772_366_400_123), "12:00:00");
        assert_eq!(hour(i64::MAX), "ms");
    }
}
