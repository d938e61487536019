//! A process that drives one run for a fleet.

use std::{sync::Arc, time::Duration};

use gyrus_contract::RunId;
use gyrus_fleet::{
    ClaimError, ClaimWords, DriveError, DriveOrder, Driven, FleetCopy, LeasedMachine, Machine as _,
    OsMachine, SharedLog, Wait,
    nats::{FleetAddress, FleetConnection, NatsLog},
};
use gyrus_kernel::{FolderTravels, RunState};
use gyrus_runtime::queue::{QueueCommand, QueueWork};
use gyrus_surfaces::console::put;

use super::folder;
use crate::{Gyrus, commands::work::FleetOrder, exit::Code, failure::Failure};

/// Claims a run from the fleet, lets `carry_out` drive it, and releases it. If this process loses
/// the run meanwhile, the process ends at once.
pub(crate) fn drive(
    order: &FleetOrder,
    mut command: QueueCommand,
    gyrus: &Gyrus,
    carry_out: impl FnOnce(QueueCommand, &Gyrus) -> Result<Code, Failure>,
) -> Result<Code, Failure> {
    let run = command.run;
    // Apart from the run's own: whatever the run does, the signs that this process lives go out.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| Failure::failed("no threads can be started").because(&error))?;
    let (driven, log) = runtime.block_on(take(order, &command, gyrus))?;
    let lost = driven.lost();
    runtime.spawn(async move {
        let error = lost.await;
        // If nobody hears it, the exit code says it.
        let room = super::room(&error.to_string());
        let _ = put(&format!(
            "{error}{room}; this process ends, and the run stays in the fleet\n"
        ));
        std::process::exit(Code::Elsewhere as i32);
    });
    let servers = (&log, runtime.handle());
    let prepared = folder::prepare(&mut command, gyrus, driven.had_all(), servers);
    let done = prepared.map(|prepared| {
        let gyrus = Gyrus {
            replicas: Some(driven.replicas()),
            travels: prepared.travels.clone(),
            ..gyrus.clone()
        };
        (carry_out(command, &gyrus), prepared)
    });
    let released = runtime.block_on(driven.end());
    runtime.shutdown_background();
    let (done, prepared) = done?;
    // Whether the others have the last entry is not known then: the next process sees it.
    released.map_err(|error| {
        Failure::elsewhere(format!("run {} could not be let go of", run.short())).because(&error)
    })?;
    let is_over = matches!(RunState::of(&gyrus.store()?, run), Ok(RunState::Over(_)));
    if prepared.travels != FolderTravels::No && is_over {
        // Its end is on the servers, with what it changed.
        folder::discard(run);
    }
    done
}

/// Takes a run, and copies the previous run of its session to this machine.
async fn take(
    order: &FleetOrder,
    command: &QueueCommand,
    gyrus: &Gyrus,
) -> Result<(Driven, Arc<dyn SharedLog>), Failure> {
    let run = command.run;
    let continues = match &command.work {
        QueueWork::Start(request) => request.continues,
        QueueWork::Resume => None,
    };
    let address = FleetAddress::parse(&order.address).map_err(Failure::usage)?;
    // The worker that started this process has looked at the servers. If they are gone by now, that
    // is no failure of the run.
    let connection = FleetConnection::open(&address)
        .await
        .map_err(|error| Failure::elsewhere(&error))?;
    let log: Arc<dyn SharedLog> = Arc::new(NatsLog::new(connection));
    let driving = DriveOrder {
        log: Arc::clone(&log),
        machine: Arc::new(LeasedMachine::default()),
        store: gyrus.store()?,
        root: run,
        claimed: ClaimWords {
            worker: order.worker.clone(),
            lease_ms: order.lease_ms,
            build: gyrus::BUILD.to_owned(),
        },
        wait: Wait::Succeed { seen: None },
    };
    if let Some(before) = continues {
        let copy = FleetCopy {
            log: Arc::clone(&driving.log),
            machine: Arc::new(OsMachine),
            store: driving.store.clone(),
            root: before,
        };
        folder::was_copied(&gyrus.home()?, before)?;
        // A run that was never the fleet's is looked for here alone.
        copy.refresh().await.map_err(|error| {
            Failure::elsewhere(format!(
                "the run before run {} cannot be copied",
                run.short()
            ))
            .because(&error)
        })?;
    }
    let until = OsMachine.now() + Duration::from_millis(order.lease_ms);
    let driven = Driven::take(driving, until).await;
    let driven = driven.map_err(|error| explain(run, error))?;
    Ok((driven, log))
}

fn explain(run: RunId, error: DriveError) -> Failure {
    let name = run.short();
    match error {
        DriveError::Claim(ClaimError::Held { holder, .. }) => Failure::elsewhere(format!(
            "worker {} drives run {name}",
            holder.claimed.worker
        )),
        error => {
            Failure::elsewhere(format!("run {name} cannot be taken from the fleet")).because(&error)
        }
    }
}
