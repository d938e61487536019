//! The wall clock, and durations in files.

use serde::{Deserialize, Deserializer, de::Error};

pub(crate) use gyrus_kernel::now_ms;

pub(crate) fn ago(at_ms: i64) -> String {
    gyrus_text::ago(at_ms, now_ms())
}

/// A duration in a file, in milliseconds.
pub(crate) fn milliseconds<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<u64>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let duration = gyrus_text::parse_duration(&text).map_err(D::Error::custom)?;
    Ok(u64::try_from(duration.as_millis()).ok())
}
