//! `gyrus worker`: takes runs from the queue of a fleet.

use std::{collections::BTreeSet, num::NonZeroUsize, sync::Arc, time::Duration};

use gyrus_contract::RunId;
use gyrus_fleet::{
    ClaimWords, ParkedWatch, Succession,
    nats::{WorkerReport, answer_roll_calls},
};
use gyrus_kernel::now_ms;
use gyrus_runtime::queue::{AtOnce, Dispatcher, Gateway, QueueWorker, SharedQueue as _};
use gyrus_surfaces::console::put;
use tokio::{sync::watch, task::JoinSet};

use super::{FleetMembership, folder, labels, room};
use crate::{
    Gyrus,
    commands::work::FleetOrder,
    exit::Code,
    failure::Failure,
    serve::{
        parking::{EndSignals, park},
        workers::Processes,
    },
};

pub(crate) struct WorkerSettings {
    pub(crate) fleet: String,
    pub(crate) name: String,
    /// Maximum number of runs at once.
    pub(crate) at_once: NonZeroUsize,
    /// Maximum number of concurrent runs of one agent, on all workers.
    pub(crate) per_agent: Option<NonZeroUsize>,
    pub(crate) lease: Duration,
    /// The labels that a person gave this machine.
    pub(crate) labels: BTreeSet<String>,
}

/// Takes runs from the queue until a signal, and returns the unfinished ones to it.
pub(crate) async fn work(gyrus: &Gyrus, settings: WorkerSettings) -> Result<Code, Failure> {
    let home = gyrus.home()?;
    home.create_state()?;
    let store = home.store()?;
    let joined = FleetMembership::open(gyrus, &settings.fleet, None).await?;
    let lease_ms = u64::try_from(settings.lease.as_millis()).unwrap_or(u64::MAX);
    let order = FleetOrder {
        address: super::text(gyrus, &settings.fleet)?,
        worker: settings.name.clone(),
        lease_ms,
    };
    let following = joined.follow();
    joined.queue.look(&mut |queue| {
        let over = queue.all().into_iter().filter(|one| one.stage.is_over());
        let over: BTreeSet<RunId> = over.map(|one| one.command.run).collect();
        folder::sweep(|run| over.contains(&run));
    });
    let worker = QueueWorker {
        name: settings.name.clone(),
        machine: labels::machine(),
        build: gyrus::BUILD.to_owned(),
        has: labels::of_this_machine(&home, settings.labels.clone()),
    };
    let gateway = Gateway::share(&store, joined.queue.clone(), worker.clone());
    let mut for_others = see_to_others(&joined, &gateway, lease_ms, &settings.name);
    for_others.spawn(answer(&joined, worker, &settings));
    let at_once = AtOnce {
        in_all: settings.at_once.get(),
        per_agent: settings.per_agent.map_or(usize::MAX, NonZeroUsize::get),
    };
    let processes = Arc::new(Processes::new(Some(order), Vec::new()));
    let dispatcher = Dispatcher::new(gateway.clone(), processes, at_once, home.latch());
    let (stop, stopping) = watch::channel(false);
    let mut signals = EndSignals::new()?;
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
    drop(for_others);
    let _ = stop.send(true);
    if ended.is_ok() {
        dispatching.await?;
    }
    put("parking what is at work, for others to go on with; again: leave it\n")?;
    tokio::select! {
        () = signals.next() => {}
        () = park(&gateway) => {}
    }
    // Without it, others wait for the ends of the leases.
    tokio::select! {
        () = signals.next() => {}
        given = tokio::time::timeout(settings.lease, give_back(&gateway, &settings.name)) => {
            given.unwrap_or(Ok(()))?;
        }
    }
    following.abort();
    ended.map(|()| Code::Reached)
}

/// Takes care of parked runs and of those whose worker is dead, until the result is dropped.
fn see_to_others(
    joined: &FleetMembership,
    gateway: &Gateway,
    lease_ms: u64,
    name: &str,
) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    let succession = Succession {
        log: Arc::clone(&joined.log),
        machine: Arc::clone(&joined.machine),
        gateway: gateway.clone(),
        claimed: ClaimWords {
            worker: name.to_owned(),
            lease_ms,
            build: gyrus::BUILD.to_owned(),
        },
    };
    tasks.spawn(async move { succession.watch().await });
    let waking = ParkedWatch {
        log: Arc::clone(&joined.log),
        machine: Arc::clone(&joined.machine),
        gateway: gateway.clone(),
    };
    tasks.spawn(async move { waking.watch().await });
    let mut trouble = joined.queue.trouble();
    tasks.spawn(async move {
        while trouble.changed().await.is_ok() {
            let told = match trouble.borrow_and_update().as_ref() {
                Some(why) => format!(
                    "{why}; the worker keeps trying, and nothing is lost{}\n",
                    room(why)
                ),
                None => "the fleet's servers answer again\n".to_owned(),
            };
            let _ = put(&told);
        }
    });
    tasks
}

fn answer(
    joined: &FleetMembership,
    worker: QueueWorker,
    settings: &WorkerSettings,
) -> impl Future<Output = ()> + Send + use<> {
    let report = WorkerReport {
        name: worker.name.clone(),
        machine: worker.machine.clone(),
        labels: labels::shown(&worker.has, &settings.labels),
        at_once: settings.at_once.get(),
        lease_ms: u64::try_from(settings.lease.as_millis()).unwrap_or(u64::MAX),
        build: gyrus::BUILD.to_owned(),
        since_ms: now_ms(),
        lacks: BTreeSet::new(),
    };
    let connection = joined.connection.clone();
    async move {
        let lacks = |needs: &BTreeSet<String>| {
            let lacks = worker.lacks(needs).into_iter();
            lacks.map(str::to_owned).collect()
        };
        answer_roll_calls(&connection, report, lacks).await;
    }
}

/// Returns the runs that this worker holds to the queue.
async fn give_back(gateway: &Gateway, name: &str) -> Result<(), Failure> {
    for (command, worker) in gateway.at_work() {
        if worker == name {
            gateway.give_back(&command.id, &worker).await?;
        }
    }
    Ok(())
}
