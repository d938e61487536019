//! `gyrus --fleet ADDRESS COMMAND …`: the command is carried out on copies of the fleet's runs, and what
//! it says to one is sent to whoever drives it.

use std::sync::Arc;

use gyrus_fleet::{FleetCopy, FleetMessage, root_of, send_message};
use gyrus_journal::Store;
use gyrus_kernel::{log_name, runs};
use gyrus_runtime::queue::SharedQueue as _;
use gyrus_surfaces::console::put;

use super::{FleetMembership, PATIENCE, submit::copies};
use crate::{Gyrus, drive, exit::Code, failure::Failure};

/// Number of runs, from the newest on, whose copies are brought up to date.
const NEWEST: usize = 100;

/// Carries out a command on copies of the fleet's runs.
pub(crate) fn with_copies(
    gyrus: &Gyrus,
    fleet: &str,
    execute: impl FnOnce(&Gyrus) -> Result<Code, Failure>,
) -> Result<Code, Failure> {
    let (folder, store) = copies(gyrus)?;
    let runtime = drive::runtime()?;
    let joined = runtime.block_on(FleetMembership::open(gyrus, fleet, Some(PATIENCE)))?;
    runtime.block_on(refresh(&joined, &store))?;
    let gyrus = Gyrus {
        journal: Some(folder),
        ..gyrus.clone()
    };
    let done = execute(&gyrus);
    let sent = runtime.block_on(forward(&joined, &store))?;
    runtime.shutdown_background();
    if sent > 0 {
        put("sent to the fleet: the run receives it, whichever worker drives it\n")?;
    }
    done
}

/// Updates the copies of the newest runs.
async fn refresh(joined: &FleetMembership, store: &Store) -> Result<(), Failure> {
    let mut newest = Vec::new();
    joined.queue.look(&mut |queue| {
        let all = queue.all().into_iter().rev();
        newest.extend(all.map(|one| one.command.run).take(NEWEST));
    });
    for run in newest {
        let copy = FleetCopy {
            log: Arc::clone(&joined.log),
            machine: Arc::clone(&joined.machine),
            store: store.clone(),
            root: run,
        };
        // Another command may be watching it: then it is up to date.
        let refreshed = copy.refresh().await;
        if let Err(error) = refreshed {
            put(&format!(
                "run {} is not up to date here: {error}\n",
                run.short()
            ))?;
        }
    }
    Ok(())
}

/// Sends the messages in the inboxes of the copies to the runs, and returns their number.
async fn forward(joined: &FleetMembership, store: &Store) -> Result<usize, Failure> {
    let mut sent = 0;
    for run in runs(store)? {
        let inbox = store.inbox(&log_name(run))?;
        for (id, body) in inbox.messages()? {
            let message = FleetMessage {
                run,
                id: id.clone(),
                body,
            };
            let until = joined.machine.now() + PATIENCE;
            let root = root_of(store, run);
            send_message(&joined.log, &joined.machine, root, &message, until)
                .await
                .map_err(|error| {
                    Failure::usage(&error).hint(
                        "the message is stored here, and sent with the next gyrus --fleet command",
                    )
                })?;
            inbox.remove(&id)?;
            sent += 1;
        }
    }
    Ok(sent)
}
