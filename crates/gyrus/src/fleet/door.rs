//! `gyrus serve --fleet`: a server that is a door of a fleet. What it shows are copies of the fleet's runs,
//! what it starts goes into the fleet's queue, and what is said to a run is taken to whoever drives it.

use std::{collections::BTreeSet, path::PathBuf, sync::Arc, time::Duration};

use gyrus_fleet::FleetCopies;
use gyrus_journal::Store;
use gyrus_kernel::latch::Latch;
use gyrus_runtime::{
    ledger::{TRY_AGAIN, is_of_disk},
    queue::Gateway,
};
use gyrus_server::FleetView;
use gyrus_surfaces::console::put;
use parking_lot::Mutex;
use tokio::task::JoinSet;

use super::{FleetMembership, status::view, submit::copies};
use crate::{Gyrus, failure::Failure};

/// Interval at which the workers are asked for their state.
const LOOK: Duration = Duration::from_secs(2);

pub(crate) struct FleetDoor {
    /// The address, as the person typed it.
    given: String,
    joined: Arc<FleetMembership>,
    /// The folder of the copies of the runs, and their store.
    folder: PathBuf,
    store: Store,
    /// The folder with the file that exists while all runs of the fleet are stopped.
    latch: Latch,
    seen: Arc<Mutex<FleetView>>,
    tasks: JoinSet<()>,
}

impl FleetDoor {
    pub(crate) async fn open(gyrus: &Gyrus, fleet: &str) -> Result<Self, Failure> {
        let (folder, store) = copies(gyrus)?;
        let joined = Arc::new(FleetMembership::open(gyrus, fleet, None).await?);
        let latch = Latch::of(&gyrus.home()?.state.join("fleet"));
        let seen = Arc::new(Mutex::new(view(&joined).await?));
        Ok(Self {
            given: fleet.to_owned(),
            joined,
            folder,
            store,
            latch,
            seen,
            tasks: JoinSet::new(),
        })
    }

    pub(crate) fn gyrus(&self, gyrus: &Gyrus) -> Gyrus {
        Gyrus {
            journal: Some(self.folder.clone()),
            ..gyrus.clone()
        }
    }

    pub(crate) fn gateway(&self) -> Gateway {
        self.joined.client(&self.store)
    }

    /// Returns the latch, whose file exists while all runs of the fleet are stopped.
    pub(crate) fn latch(&self) -> Latch {
        self.latch.clone()
    }

    /// Returns the words with which commands are carried out on the fleet.
    pub(crate) fn words(&self) -> Vec<String> {
        vec![format!("--fleet={}", self.given)]
    }

    pub(crate) fn seen(&self) -> Arc<Mutex<FleetView>> {
        Arc::clone(&self.seen)
    }

    /// Starts to keep the copies up to date, until the door is dropped. Ends of commands are
    /// published from now on.
    pub(crate) fn begin(&mut self, gateway: &Gateway) {
        let queue = Arc::clone(&self.joined.queue);
        self.tasks.spawn(async move { queue.follow().await });
        let copies = FleetCopies {
            log: Arc::clone(&self.joined.log),
            machine: Arc::clone(&self.joined.machine),
            gateway: gateway.clone(),
        };
        self.tasks.spawn(async move { copies.keep().await });
        let (joined, seen) = (Arc::clone(&self.joined), Arc::clone(&self.seen));
        self.tasks.spawn(async move {
            loop {
                if let Ok(view) = view(&joined).await {
                    *seen.lock() = view;
                }
                tokio::time::sleep(LOOK).await;
            }
        });
        let (gateway, latch) = (gateway.clone(), self.latch.clone());
        self.tasks
            .spawn(async move { follow_ends(&gateway, &latch).await });
    }
}

/// Sets the latch as the fleet's stop is, and publishes the ends of commands.
async fn follow_ends(gateway: &Gateway, latch: &Latch) {
    let mut changes = gateway.changes();
    let mut open = open_commands(gateway);
    loop {
        changes.borrow_and_update();
        if let Err(error) = show_stop(gateway, latch) {
            let _ = put(&format!(
                "the stop of the fleet cannot be shown here: {error}\n"
            ));
        }
        let now = open_commands(gateway);
        let mut untold = BTreeSet::new();
        for id in open.difference(&now) {
            if let Err(error) = gateway.announce_over(id).await {
                let _ = put(&format!("the end of a command is not published: {error}\n"));
                untold.extend(is_of_disk(&error).then(|| id.clone()));
            }
        }
        let is_untold = !untold.is_empty();
        open = now.union(&untold).cloned().collect();
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(TRY_AGAIN), if is_untold => {}
        }
    }
}

fn open_commands(gateway: &Gateway) -> BTreeSet<String> {
    gateway.with(|queue| {
        let all = queue.all().into_iter();
        let open = all.filter(|one| !one.stage.is_over());
        open.map(|one| one.command.id.clone()).collect()
    })
}

fn show_stop(gateway: &Gateway, latch: &Latch) -> std::io::Result<()> {
    match gateway.with(|queue| queue.stopped().cloned()) {
        Some(told) if latch.check().is_ok() => latch.trip(&told).map(drop),
        None => latch.lift().map(drop),
        Some(_) => Ok(()),
    }
}
