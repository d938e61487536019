//! Reads the time that a provider asks to wait, in its many spellings: in headers, in fields of a
//! body, in the words of a message. Pure.
//!
//! Each is believed only if it makes sense: a delay that is negative, not a number or in the past is
//! ignored (the run then chooses its own), and none is longer than [`MAX_DELAY_MS`].

use jiff::{Timestamp, fmt::rfc2822};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use serde_json::Value;

/// Maximum accepted delay, in milliseconds: 31 days, for a quota of a month.
pub(crate) const MAX_DELAY_MS: u64 = 31 * 24 * 60 * 60 * 1000;

/// Words before a time to wait, in lower case.
const BEFORE_A_DELAY: [&str; 8] = [
    "again in ",
    "again after ",
    "retry in ",
    "retry after ",
    "reset in ",
    "resets in ",
    "reset after ",
    "please wait ",
];

/// Units of time, and their milliseconds.
const UNITS: [(&str, f64); 5] = [
    ("ms milliseconds", 1.0),
    ("s sec secs second seconds", 1e3),
    ("m min mins minute minutes", 60e3),
    ("h hr hrs hour hours", 3600e3),
    ("d day days", 86400e3),
];

/// Returns a delay in milliseconds, validated.
pub(super) fn believed_ms(wanted: f64) -> Option<u64> {
    // A float becomes an integer by saturating; what is not a number fails the comparison.
    (wanted > 0.0).then_some((wanted.ceil() as u64).min(MAX_DELAY_MS))
}

/// Returns the delay in headers: `retry-after-ms`, otherwise `retry-after` in seconds or as a date
/// (RFC 9110, section 10.2.3).
pub(super) fn in_headers(headers: &HeaderMap, now: Timestamp) -> Option<f64> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let milliseconds = text("retry-after-ms").and_then(|text| text.parse::<f64>().ok());
    milliseconds.or_else(|| time(text(RETRY_AFTER.as_str())?, now))
}

/// Returns the time until the exhausted limits are reset, from `x-ratelimit-reset`,
/// `x-ratelimit-reset-tokens` and the like. Limits that are not exhausted do not count.
pub(super) fn until_reset(headers: &HeaderMap, now: Timestamp) -> Option<f64> {
    let (mut reached, mut others) = (None, None::<f64>);
    for (name, value) in headers {
        let name = name.as_str();
        if !(name.contains("ratelimit") || name.contains("rate-limit")) || !name.contains("reset") {
            continue;
        }
        let Some(reset) = value
            .to_str()
            .ok()
            .and_then(|value| time(value.trim(), now))
        else {
            continue;
        };
        let remaining = headers.get(name.replace("reset", "remaining"));
        let remaining = remaining.and_then(|value| value.to_str().ok()?.trim().parse::<f64>().ok());
        match remaining {
            Some(0.0) => reached = Some(reset.max(reached.unwrap_or(reset))),
            Some(_) => {}
            None => others = Some(reset.min(others.unwrap_or(reset))),
        }
    }
    reached.or(others)
}

/// Returns the delay in the body of an error, or in the error of an event.
pub(super) fn in_body(body: &Value, now: Timestamp) -> Option<f64> {
    let first = body.get(0).unwrap_or(body);
    let error = first.get("error").filter(|error| error.is_object());
    let error = error.unwrap_or(first);
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    let field = |name: &str| time(&text(&error[name])?, now);
    let details = error["details"].as_array().into_iter().flatten();
    let mut delays = details.filter_map(|detail| time(detail["retryDelay"].as_str()?, now));
    delays
        .next()
        .or_else(|| field("resets_in_seconds"))
        .or_else(|| field("retry_after"))
        .or_else(|| field("resets_at"))
        .or_else(|| field("estimated_time"))
        .or_else(|| {
            // A gateway passes on the headers of the provider behind it.
            let passed = error["metadata"]["headers"].as_object()?;
            let headers = passed.iter().filter_map(|(name, value)| {
                let name = name.to_ascii_lowercase();
                let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
                Some((name, HeaderValue::from_str(&text(value)?).ok()?))
            });
            let headers = HeaderMap::from_iter(headers);
            in_headers(&headers, now).or_else(|| until_reset(&headers, now))
        })
}

/// Returns the delay that a message asks for, such as "please try again in 7m12.5s".
pub(super) fn in_words(words: &str) -> Option<f64> {
    let words = words.to_ascii_lowercase();
    BEFORE_A_DELAY.iter().find_map(|before| {
        let (_, after) = words.split_once(before)?;
        Some(duration(after)?.0)
    })
}

/// Returns the milliseconds from now to a time: a number of seconds, seconds or milliseconds since
/// 1970, a duration, or a date.
fn time(text: &str, now: Timestamp) -> Option<f64> {
    if let Ok(number) = text.parse::<f64>() {
        return Some(match number {
            1e12.. => number - now.as_millisecond() as f64,
            1e9.. => number * 1e3 - now.as_millisecond() as f64,
            seconds => seconds * 1e3,
        });
    }
    if let Some((duration, "")) = duration(&text.to_ascii_lowercase()) {
        return Some(duration);
    }
    let date = rfc2822::DateTimeParser::new().relaxed_weekday(true);
    let date = date.parse_timestamp(text).ok();
    let date = date.or_else(|| text.parse::<Timestamp>().ok())?;
    Some(date.duration_since(now).as_millis_f64())
}

/// Returns the milliseconds of the duration at the beginning of `text`, and the rest: `6m0s`,
/// `2 hours and 5 minutes`.
fn duration(text: &str) -> Option<(f64, &str)> {
    let (mut sum, mut rest) = (None, text);
    loop {
        let more = rest.trim_start_matches([' ', ',']);
        let more = more.strip_prefix("and ").unwrap_or(more);
        let digits = more.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let number = more[..more.len() - digits.len()].parse::<f64>().ok();
        let unit = digits.trim_start_matches(' ');
        let after = unit.trim_start_matches(|c: char| c.is_ascii_alphabetic());
        let unit = &unit[..unit.len() - after.len()];
        let unit = UNITS
            .iter()
            .find(|(names, _)| names.split(' ').any(|name| name == unit));
        let (Some(number), Some((_, ms))) = (number, unit) else {
            return sum.map(|sum| (sum, rest));
        };
        sum = Some(sum.unwrap_or(0.0) + number * ms);
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-11-06T08:49:37Z".parse().unwrap()
    }

    fn delay_ms(name: &'static str, value: &str) -> Option<u64> {
        let header = (HeaderName::from_static(name), value.parse().unwrap());
        let headers = HeaderMap::from_iter([header]);
        let wanted = in_headers(&headers, now()).or_else(|| until_reset(&headers, now()));
        wanted.and_then(believed_ms)
    }

    #[test]
    fn delays_are_read_with_distrust() {
        let check = |name, value, expected: Option<u64>| {
            assert_eq!(delay_ms(name, value), expected, "{name}: {value}");
        };
        check("retry-after", "7", Some(7_000));
        check("retry-after", " 0.5 ", Some(500));
        check("retry-after-ms", "1500", Some(1_500));
        check("retry-after", "Fri, 06 Nov 2026 08:50:07 GMT", Some(30_000));
        check(
            "retry-after",
            "Fri, 06 Nov 2126 08:50:07 GMT",
            Some(MAX_DELAY_MS),
        );
        check("retry-after", "Thu, 01 Jan 1970 00:00:00 GMT", None);
        for nothing in ["0", "-1", "NaN", "-inf", "soon", "", "1.2.3s", "5 parsecs"] {
            check("retry-after", nothing, None);
        }
        check("retry-after", "inf", Some(MAX_DELAY_MS));
        check("retry-after", "1e300", Some(MAX_DELAY_MS));
        check("retry-after-ms", "99999999999999999999", Some(MAX_DELAY_MS));
        check("x-ratelimit-reset-requests", "6m0s", Some(360_000));
        check("x-ratelimit-reset", "1793954987", Some(10_000));
        check("ratelimit-reset", "1793954987000", Some(10_000));
        check("x-rate-limit-reset", "2026-11-06T08:49:47Z", Some(10_000));
        check("x-ratelimit-limit", "6", None);
    }

    #[test]
    fn messages_name_a_delay() {
        let check = |words: &str, expected: Option<f64>| {
            assert_eq!(in_words(words), expected, "{words}");
        };
        check("Please try again in 3h20m. Need more?", Some(12_000_000.0));
        check("Please try again in 1.5s.", Some(1_500.0));
        check("try again in 2 days, 3 hours", Some(183_600_000.0));
        check("retry after 1 hour and 2 mins and more", Some(3_720_000.0));
        for nothing in [
            "60 requests in 60 seconds",
            "try again in 5",
            "try again in ",
            "",
        ] {
            check(nothing, None);
        }
    }
}
