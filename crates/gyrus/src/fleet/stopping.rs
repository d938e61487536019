//! `gyrus --fleet ADDRESS stop --all` and `rearm`.

use gyrus_kernel::latch::LatchContent;
use gyrus_runtime::queue::{CommandStage, QueueError};
use gyrus_surfaces::{console::put, terminal};
use gyrus_text::counted;

use super::{FleetMembership, LOCAL, PATIENCE, submit::copies};
use crate::{Gyrus, drive, exit::Code, failure::Failure, inside_run};

/// Stops all runs of a fleet, and keeps new ones from starting.
pub(crate) fn stop_all(
    gyrus: &Gyrus,
    fleet: &str,
    reason: Option<String>,
) -> Result<Code, Failure> {
    inside_run::refuse("stop all runs")?;
    let by = terminal::person(gyrus.environment.user.as_deref(), "emergency stop");
    let told = LatchContent::now(by, reason);
    let (_, copies) = copies(gyrus)?;
    let ended = drive::wait_for(async {
        let joined = FleetMembership::open(gyrus, fleet, Some(PATIENCE)).await?;
        Ok::<_, Failure>(joined.client(&copies).stop_all(&told).await?)
    })?;
    let runs = counted(ended?, "run");
    // An address may hold a password.
    let shown = if fleet == LOCAL { LOCAL } else { "ADDRESS" };
    put(&format!(
        "stopped for the whole fleet: {runs} at work ended; a worker that cannot be reached ends its own \
         when their leases are over\n  nothing begins or goes on until: gyrus --fleet {shown} rearm\n"
    ))?;
    Ok(Code::Reached)
}

/// Cancels a queued run, named by its id or the start or end of it. Returns whether it exists.
pub(crate) fn take_back(gyrus: &Gyrus, fleet: &str, run: &str) -> Result<bool, Failure> {
    inside_run::refuse("stop a run")?;
    let by = terminal::person(gyrus.environment.user.as_deref(), "command line");
    let (_, copies) = copies(gyrus)?;
    let taken = drive::wait_for(async {
        let gateway = FleetMembership::open(gyrus, fleet, Some(PATIENCE))
            .await?
            .client(&copies);
        let found: Vec<_> = gateway.with(|queue| {
            let all = queue.all().into_iter();
            let named = all.filter(|one| {
                let id = one.command.run.to_string();
                !run.is_empty() && (id.starts_with(run) || id.ends_with(run))
            });
            let waiting = named.filter(|one| one.stage == CommandStage::Queued);
            waiting.map(|one| one.command.id.clone()).collect()
        });
        let [id] = &found[..] else {
            return Ok(false);
        };
        match gateway.cancel(id, by).await {
            Ok(()) => Ok(true),
            // It has begun meanwhile.
            Err(QueueError::Begun { .. }) => Ok(false),
            Err(error) => Err(Failure::from(error)),
        }
    })?;
    if taken? {
        put("taken back: no worker will begin this run\n")?;
        return Ok(true);
    }
    Ok(false)
}

/// Allows the runs of a fleet to begin again.
pub(crate) fn rearm(gyrus: &Gyrus, fleet: &str) -> Result<Code, Failure> {
    inside_run::refuse("let runs go on")?;
    let by = terminal::person(gyrus.environment.user.as_deref(), "command line");
    let (_, copies) = copies(gyrus)?;
    let lifted = drive::wait_for(async {
        let joined = FleetMembership::open(gyrus, fleet, Some(PATIENCE)).await?;
        Ok::<_, Failure>(joined.client(&copies).rearm(&by).await?)
    })?;
    put(if lifted? {
        "runs of the fleet may begin again\n"
    } else {
        "nothing of the fleet is stopped\n"
    })?;
    Ok(Code::Reached)
}
