//! The machine below a worker: its clock, and the kernel that ends a process at a set time.

use std::{ops::Add, time::Duration};

use async_trait::async_trait;

/// A time by this machine's own clock, in microseconds since it was started; it goes on while the
/// machine is suspended. Times of two machines are never compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct BootTime(pub u64);

impl Add<Duration> for BootTime {
    type Output = Self;

    fn add(self, time: Duration) -> Self {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(micros))
    }
}

impl BootTime {
    /// Returns the time from `earlier` to this; zero if that is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

/// The machine below a worker.
#[async_trait]
pub trait Machine: Send + Sync {
    /// Returns the time.
    fn now(&self) -> BootTime;

    /// Returns once it is this time or later.
    async fn sleep_until(&self, time: BootTime);

    /// Lets this process and everything that it started live until this time, and no longer unless
    /// it is called again: then the machine kills them, whatever state they are in.
    fn live_until(&self, time: BootTime);
}
