//! Times and durations as a person writes and reads them.

use std::{
    io,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use jiff::{Timestamp, tz::TimeZone};

/// The first second of the year 9999, behind which HTTP has no dates, since 1970.
const LAST_HTTP_DATE: Duration = Duration::from_secs(253_370_764_800);

/// Returns the present time: that of the system's clock, or the nearest that has a name.
pub fn now() -> Timestamp {
    let now = SystemTime::now();
    let nearest = if now < UNIX_EPOCH {
        Timestamp::MIN
    } else {
        Timestamp::MAX
    };
    Timestamp::try_from(now).unwrap_or(nearest)
}

/// A UTC time like `2026-03-01T12:00:00.123Z`, from milliseconds since 1970.
pub fn utc(at_ms: i64) -> String {
    Timestamp::from_millisecond(at_ms).map_or_else(
        |_| format!("{at_ms} ms after 1970"),
        |time| format!("{time:.3}"),
    )
}

/// Returns a time on the clock of this machine, like `17:40`, from milliseconds since 1970; with
/// the day if it is not today.
pub fn on_the_clock(at_ms: i64) -> String {
    let here = |time: Timestamp| time.to_zoned(TimeZone::system());
    let Ok(time) = Timestamp::from_millisecond(at_ms).map(here) else {
        return utc(at_ms);
    };
    let is_today = time.date() == here(now()).date();
    let form = if is_today { "%H:%M" } else { "%H:%M on %-d %B" };
    time.strftime(form).to_string()
}

/// Checks that an HTTP server can write the time as the date of its answers; it panics if it cannot.
///
/// # Errors
/// When the time is before 1970, or after 9998.
pub fn check_http_date(now: SystemTime) -> io::Result<()> {
    let since = now.duration_since(UNIX_EPOCH);
    let wrong = match since {
        Err(_) => "before 1970",
        Ok(since) if since >= LAST_HTTP_DATE => "after the year 9998",
        Ok(_) => return Ok(()),
    };
    Err(io::Error::other(format!("the system clock is set {wrong}")))
}

/// Returns the approximate age of a time at `now_ms`, as words.
pub fn ago(at_ms: i64, now_ms: i64) -> String {
    let seconds = now_ms.saturating_sub(at_ms) / 1000;
    match seconds {
        ..5 => "now".to_owned(),
        5..100 => format!("{seconds} s ago"),
        100..6000 => format!("{} min ago", seconds / 60),
        6000..172_800 => format!("{} h ago", seconds / 3600),
        _ => format!("{} d ago", seconds / 86_400),
    }
}

/// A duration in milliseconds, for reading.
pub fn span(ms: u64) -> String {
    match ms {
        ..1_000 => format!("{ms} ms"),
        1_000..120_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        120_000..7_200_000 => format!("{} min", ms / 60_000),
        _ => format!("{} h", ms / 3_600_000),
    }
}

/// Reads a duration like `90s`, `10m`, `1h30m`, `500ms` or `30d`.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a duration; write 90s, 10m, 1h30m or 30d");
    let mut rest = text.trim();
    let mut total: u64 = 0;
    if rest.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
        let number: u64 = rest[..digits].parse().map_err(|_| wrong())?;
        let after = &rest[digits..];
        let letters = after
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(after.len());
        let unit: u64 = match &after[..letters] {
            "ms" => 1,
            "s" => 1_000,
            "m" | "min" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return Err(wrong()),
        };
        let part = number.checked_mul(unit).ok_or_else(wrong)?;
        total = total.checked_add(part).ok_or_else(wrong)?;
        rest = &after[letters..];
    }
    Ok(Duration::from_millis(total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_before_1970_is_refused() {
        let second = Duration::from_secs(1);
        assert!(check_http_date(UNIX_EPOCH).is_ok());
        assert!(check_http_date(SystemTime::now()).is_ok());
        let before = check_http_date(UNIX_EPOCH.checked_sub(second).unwrap()).unwrap_err();
        assert!(before.to_string().contains("before 1970"), "{before}");
        let after = check_http_date(UNIX_EPOCH + LAST_HTTP_DATE).unwrap_err();
        assert!(after.to_string().contains("after the year 9998"), "{after}");
    }

    #[test]
    fn durations() {
        for (text, ms) in [
            ("90s", Some(90_000)),
            ("10m", Some(600_000)),
            ("1h30m", Some(5_400_000)),
            ("500ms", Some(500)),
            ("30d", Some(2_592_000_000)),
            ("10", None),
            ("", None),
            ("m", None),
            ("10 m", None),
            ("-1s", None),
            ("99999999999999999999s", None),
            ("18446744073709551615d", None),
        ] {
            let parsed = parse_duration(text).ok().map(|span| span.as_millis());
            assert_eq!(parsed, ms, "{text}");
        }
    }

    #[test]
    fn times() {
        assert_eq!(utc(1_772_366_400_123), "2026-03-01T12:00:00.123Z");
        assert!(utc(i64::MAX).contains("after 1970"));
        assert_eq!(span(1_250), "1.2 s");
        assert_eq!(ago(1_000, 3_000), "now");
        assert_eq!(ago(1_000, 7_201_000), "2 h ago");
    }
}
