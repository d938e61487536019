//! `gyrus worker`: takes runs from the queue of a fleet.

use std::{collections::BTreeSet, num::NonZeroUsize, sync::Arc, time::Duration};

use gyrus_fleet::{
    Claimed, Succession, Waking,
    nats::{WorkerReport, answer_roll_calls},
};
use gyrus_kernel::now_ms;
use gyrus_runtime::queue::{AtOnce, Dispatcher, Gateway, QueueWorker};
use gyrus_surfaces::console::put;
use tokio::sync::watch;

use super::{Joined, labels};
use crate::{
    Gyrus,
    commands::work::FleetOrder,
    exit::Code,
    failure::Failure,
    serve::{
        parking::{Signals, park},
        workers::Processes,
    },
};

/// The settings of a worker.
pub(crate) struct WorkerSettings {
    /// The address of the fleet.
    pub(crate) fleet: String,
    /// The name that others know it by.
    pub(crate) name: String,
    /// Maximum number of runs at once.
    pub(crate) at_once: NonZeroUsize,
    /// Maximum number of runs of one agent at once, on all workers.
    pub(crate) per_agent: Option<NonZeroUsize>,
    /// The lease.
    pub(crate) lease: Duration,
    /// The labels that a person gave this machine.
    pub(crate) labels: BTreeSet<String>,
}

/// Takes runs from the queue until a signal, and gives back what it has then.
pub(crate) async fn work(gyrus: &Gyrus, settings: WorkerSettings) -> Result<Code, Failure> {
    let home = gyrus.home()?;
    home.create_state()?;
    let store = home.store()?;
    let joined = Joined::open(gyrus, &settings.fleet, None).await?;
    let lease_ms = u64::try_from(settings.lease.as_millis()).unwrap_or(u64::MAX);
    let order = FleetOrder {
        address: super::text(gyrus, &settings.fleet)?,
        worker: settings.name.clone(),
        lease_ms,
    };
    let following = joined.follow();
    let worker = QueueWorker {
        name: settings.name.clone(),
        machine: labels::machine(),
        build: env!("CARGO_PKG_VERSION").to_owned(),
        has: labels::of_this_machine(&home, settings.labels.clone()),
    };
    let gateway = Gateway::share(&store, joined.queue.clone(), worker.clone());
    let answering = answer(&joined, worker, &settings);
    let succession = Succession {
        log: Arc::clone(&joined.log),
        machine: Arc::clone(&joined.machine),
        gateway: gateway.clone(),
        claimed: Claimed {
            worker: settings.name.clone(),
            lease_ms,
            build: env!("CARGO_PKG_VERSION").to_owned(),
        },
    };
    let waking = Waking {
        log: Arc::clone(&succession.log),
        machine: Arc::clone(&succession.machine),
        gateway: gateway.clone(),
    };
    let waking = tokio::spawn(async move { waking.watch().await });
    let succeeding = tokio::spawn(async move { succession.watch().await });
    let at_once = AtOnce {
        in_all: settings.at_once.get(),
        per_agent: settings.per_agent.map_or(usize::MAX, NonZeroUsize::get),
    };
    let processes = Arc::new(Processes::new(&home.state, Some(order), Vec::new())?);
    let dispatcher = Dispatcher::new(gateway.clone(), processes, at_once, home.latch());
    let (stop, stopping) = watch::channel(false);
    let mut signals = Signals::new()?;
    put(&format!(
        "worker {} takes runs of {}, {} at once; Ctrl-C gives them back\n",
        settings.name, joined.address, settings.at_once
    ))?;
    let dispatching = dispatcher.run(stopping);
    tokio::pin!(dispatching);
    let ended: Result<(), Failure> = tokio::select! {
        () = signals.next() => Ok(()),
        failed = &mut dispatching => failed.map_err(Failure::from),
    };
    succeeding.abort();
    waking.abort();
    answering.abort();
    let _ = stop.send(true);
    if ended.is_ok() {
        dispatching.await?;
    }
    put("parking what is at work, for others to go on with; again: leave it\n")?;
    tokio::select! {
        () = signals.next() => {}
        () = park(&gateway) => {}
    }
    give_back(&gateway, &settings.name).await?;
    following.abort();
    ended.map(|()| Code::Reached)
}

/// Answers whoever asks which workers are there.
fn answer(
    joined: &Joined,
    worker: QueueWorker,
    settings: &WorkerSettings,
) -> tokio::task::AbortHandle {
    let report = WorkerReport {
        name: worker.name.clone(),
        machine: worker.machine.clone(),
        labels: labels::shown(&worker.has, &settings.labels),
        at_once: settings.at_once.get(),
        lease_ms: u64::try_from(settings.lease.as_millis()).unwrap_or(u64::MAX),
        build: env!("CARGO_PKG_VERSION").to_owned(),
        since_ms: now_ms(),
        lacks: BTreeSet::new(),
    };
    let connection = joined.connection.clone();
    let answering = tokio::spawn(async move {
        let lacks = |needs: &BTreeSet<String>| {
            let lacks = worker.lacks(needs).into_iter();
            lacks.map(str::to_owned).collect()
        };
        answer_roll_calls(&connection, report, lacks).await;
    });
    answering.abort_handle()
}

/// Gives back to the queue what this worker has.
async fn give_back(gateway: &Gateway, name: &str) -> Result<(), Failure> {
    for (command, worker) in gateway.at_work() {
        if worker == name {
            gateway.give_back(&command.id, &worker).await?;
        }
    }
    Ok(())
}
