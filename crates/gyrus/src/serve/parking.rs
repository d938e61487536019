//! Ending with runs at work: they park, as Ctrl-C has them.

use std::{io, time::Duration};

use gyrus_journal::Holder;
use gyrus_kernel::log_name;
use gyrus_runtime::queue::{CommandStage, Gateway};
use tokio::signal::unix::{SignalKind, signal};

/// Time within which runs must have parked; they are cut off half-way.
const PARK_WITHIN: Duration = Duration::from_secs(20);

/// Interrupts the processes of all runs of the queue, as Ctrl-C does, and waits until they are gone.
pub(crate) async fn park(gateway: &Gateway) {
    let store = gateway.store().clone();
    let running: Vec<_> = gateway.with(|queue| {
        let all = queue.all().into_iter();
        let running = all.filter(|one| matches!(one.stage, CommandStage::Running { .. }));
        running.map(|one| one.command.run).collect()
    });
    let holders: Vec<_> = running
        .into_iter()
        .filter_map(|run| store.holder(&log_name(run)).ok().flatten())
        .collect();
    park_these(holders).await;
}

/// Interrupts these processes, as Ctrl-C does, and waits until they are gone.
pub(super) async fn park_these(holders: Vec<Holder>) {
    let waiting = tokio::task::spawn_blocking(move || {
        for holder in &holders {
            let _ = holder.process.interrupt();
        }
        let since = std::time::Instant::now();
        for holder in &holders {
            let half = (PARK_WITHIN / 2).saturating_sub(since.elapsed());
            if !matches!(holder.process.wait_gone(half), Ok(true)) {
                // The second time cuts off what is in progress.
                let _ = holder.process.interrupt();
                let rest = PARK_WITHIN.saturating_sub(since.elapsed());
                let _ = holder.process.wait_gone(rest);
            }
        }
    });
    let _ = waiting.await;
}

pub(crate) struct EndSignals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

impl EndSignals {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
