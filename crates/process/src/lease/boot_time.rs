//! Times on the machine's clock that also counts while it is suspended.

use std::{fmt, time::Duration};

use rustix::time::{ClockId, clock_gettime};

/// Time in milliseconds since the machine was booted, including the time that it was suspended
/// (`CLOCK_BOOTTIME`). The same for all processes of a machine, except in other time namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BootTime(u64);

impl BootTime {
    /// Returns the current time, rounded down.
    pub fn now() -> Self {
        let now = clock_gettime(ClockId::Boottime);
        let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
        let milliseconds = u64::try_from(now.tv_nsec / 1_000_000).unwrap_or(0);
        Self(seconds.saturating_mul(1_000).saturating_add(milliseconds))
    }

    /// Returns the time that many milliseconds after the boot.
    pub fn from_ms(milliseconds: u64) -> Self {
        Self(milliseconds)
    }

    /// Returns the number of milliseconds since the boot.
    pub fn as_ms(self) -> u64 {
        self.0
    }

    /// Returns the time after a duration, rounded down, or the latest time that there is.
    pub fn saturating_add(self, duration: Duration) -> Self {
        let milliseconds = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(milliseconds))
    }

    /// Returns the time before a duration, rounded up, or that of the boot.
    pub fn saturating_sub(self, duration: Duration) -> Self {
        let milliseconds = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        Self(self.0.saturating_sub(milliseconds))
    }

    /// Returns the duration since an earlier time, zero if it is later.
    pub fn saturating_duration_since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Display for BootTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms after the boot", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates() {
        let first = BootTime::from_ms(0);
        let last = BootTime::from_ms(u64::MAX);
        let second = Duration::from_secs(1);
        assert_eq!(last.saturating_add(second), last);
        assert_eq!(first.saturating_add(Duration::MAX), last);
        assert_eq!(first.saturating_sub(second), first);
        assert_eq!(last.saturating_sub(Duration::MAX), first);
        assert_eq!(first.saturating_duration_since(last), Duration::ZERO);
        assert_eq!(
            first
                .saturating_add(second)
                .saturating_duration_since(first),
            second
        );
        let before = BootTime::now();
        assert!(before > first && before <= BootTime::now());
    }
}
