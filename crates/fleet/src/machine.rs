//! The machine below a worker: its clock, and the kernel that ends a process at a set time.

use std::{ops::Add, time::Duration};

use async_trait::async_trait;

/// A time by this machine's own clock, in microseconds since it was started; it goes on while the
/// machine is suspended. Times of two machines are never compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct MachineTime(pub u64);

impl Add<Duration> for MachineTime {
    type Output = Self;

    fn add(self, time: Duration) -> Self {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(micros))
    }
}

impl MachineTime {
    /// Returns the time from `earlier` to `self`; zero if that is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

/// The machine below a worker.
#[async_trait]
pub trait Machine: Send + Sync {
    fn now(&self) -> MachineTime;

    /// Returns at this time or later.
    async fn sleep_until(&self, time: MachineTime);

    /// Lets this process and all its children live until this time, unless it is called again: then
    /// the machine kills them, whatever state they are in.
    ///
    /// # Errors
    /// Returns the reason why the machine cannot promise that.
    fn live_until(&self, time: MachineTime) -> Result<(), String>;
}

/// This machine, for programs that drive no runs: it kills nobody.
#[cfg(feature = "nats")]
#[derive(Debug, Clone, Copy, Default)]
pub struct OsMachine;

/// This machine, whose kernel ends this process and its commands when their time is up.
#[cfg(feature = "nats")]
#[derive(Debug, Default)]
pub struct LeasedMachine {
    lease: std::sync::OnceLock<gyrus_process::lease::LifeLease>,
}

#[cfg(feature = "nats")]
#[async_trait]
impl Machine for LeasedMachine {
    fn now(&self) -> MachineTime {
        OsMachine.now()
    }

    async fn sleep_until(&self, time: MachineTime) {
        OsMachine.sleep_until(time).await;
    }

    fn live_until(&self, time: MachineTime) -> Result<(), String> {
        use gyrus_process::lease::{BootTime, LifeLease};
        // Rounded down: never later than promised.
        let deadline = BootTime::from_ms(time.0 / 1_000);
        let done = match self.lease.get() {
            Some(lease) => lease.extend(deadline),
            None => LifeLease::begin(deadline).map(|lease| drop(self.lease.set(lease))),
        };
        done.map_err(|error| error.to_string())
    }
}

#[cfg(feature = "nats")]
#[async_trait]
impl Machine for OsMachine {
    fn now(&self) -> MachineTime {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        let micros = u64::try_from(time.tv_nsec / 1_000).unwrap_or(0);
        MachineTime(seconds * 1_000_000 + micros)
    }

    async fn sleep_until(&self, time: MachineTime) {
        // The timer of the runtime stands still while the machine is suspended.
        loop {
            let left = time.since(self.now());
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left.min(Duration::from_secs(1))).await;
        }
    }

    fn live_until(&self, _: MachineTime) -> Result<(), String> {
        Ok(())
    }
}
