//! `gyrus worker`: takes runs from the queue of a fleet.

use std::{num::NonZeroUsize, sync::Arc, time::Duration};

use gyrus_fleet::{
    Claimed, FleetQueue, Machine, OsMachine, SharedLog, Succession, Waking, nats::NatsLog,
};
use gyrus_runtime::queue::{AtOnce, Dispatcher, Gateway};
use gyrus_surfaces::console::put;
use tokio::sync::watch;

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
}

/// Takes runs from the queue until a signal, and gives back what it has then.
pub(crate) async fn work(gyrus: &Gyrus, settings: WorkerSettings) -> Result<Code, Failure> {
    let address = super::address(gyrus, &settings.fleet)?;
    let home = gyrus.home()?;
    home.create_state()?;
    let store = home.store()?;
    let connection = super::connect(&address).await?;
    let log: Arc<dyn SharedLog> = Arc::new(NatsLog::new(connection));
    let machine: Arc<dyn Machine> = Arc::new(OsMachine);
    let queue = FleetQueue::open(Arc::clone(&log), Arc::clone(&machine), None).await?;
    let lease_ms = u64::try_from(settings.lease.as_millis()).unwrap_or(u64::MAX);
    let order = FleetOrder {
        address: super::text(gyrus, &settings.fleet)?,
        worker: settings.name.clone(),
        lease_ms,
    };
    let following = {
        let queue = Arc::clone(&queue);
        tokio::spawn(async move { queue.follow().await })
    };
    let gateway = Gateway::share(&store, queue, settings.name.clone());
    let succession = Succession {
        log,
        machine,
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
    let processes = Arc::new(Processes::new(&home.state, Some(order))?);
    let dispatcher = Dispatcher::new(gateway.clone(), processes, at_once, home.latch());
    let (stop, stopping) = watch::channel(false);
    let mut signals = Signals::new()?;
    put(&format!(
        "worker {} takes runs of {address}, {} at once; Ctrl-C gives them back\n",
        settings.name, settings.at_once
    ))?;
    let dispatching = dispatcher.run(stopping);
    tokio::pin!(dispatching);
    let ended: Result<(), Failure> = tokio::select! {
        () = signals.next() => Ok(()),
        failed = &mut dispatching => failed.map_err(Failure::from),
    };
    succeeding.abort();
    waking.abort();
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

/// Gives back to the queue what this worker has.
async fn give_back(gateway: &Gateway, name: &str) -> Result<(), Failure> {
    for (command, worker) in gateway.at_work() {
        if worker == name {
            gateway.give_back(&command.id, &worker).await?;
        }
    }
    Ok(())
}
