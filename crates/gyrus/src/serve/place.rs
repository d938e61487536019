//! The runs that a server is for: those of this person on this machine, or those of a fleet.

use std::{any::Any, sync::Arc};

use gyrus_kernel::latch::Latch;
use gyrus_runtime::queue::{AtOnce, Dispatcher, Gateway};
use gyrus_server::FleetView;
use parking_lot::Mutex;

use super::workers::Processes;
use crate::{Gyrus, failure::Failure, learning};

pub(super) struct ServedRuns {
    /// The program, with the journals of these runs.
    pub(super) gyrus: Gyrus,
    pub(super) gateway: Gateway,
    /// The emergency stop of all these runs.
    pub(super) latch: Latch,
    /// Words of the command line before those of a command that is carried out on these runs.
    pub(super) words: Vec<String>,
    /// The fleet of these runs, as last seen; its workers drive them.
    pub(super) fleet: Option<Arc<Mutex<FleetView>>>,
    /// Keeps the copies of a fleet up to date until it is dropped.
    _door: Option<Box<dyn Any + Send + Sync>>,
}

impl ServedRuns {
    pub(super) async fn open(gyrus: &Gyrus, fleet: Option<&str>) -> Result<Self, Failure> {
        match fleet {
            Some(fleet) => Self::of_fleet(gyrus, fleet).await,
            None => Self::own(gyrus),
        }
    }

    pub(super) fn is_own(&self) -> bool {
        self.fleet.is_none()
    }

    /// Returns the dispatcher that starts the runs' commands; nothing if workers of a fleet do.
    pub(super) fn dispatcher(
        &self,
        processes: Arc<Processes>,
        at_once: AtOnce,
    ) -> Option<Dispatcher> {
        let (gateway, latch) = (self.gateway.clone(), self.latch.clone());
        self.is_own()
            .then(|| Dispatcher::new(gateway, processes, at_once, latch))
    }

    fn own(gyrus: &Gyrus) -> Result<Self, Failure> {
        let home = gyrus.home()?;
        learning::catch_up(&home, &gyrus.config()?)?;
        Ok(Self {
            gyrus: gyrus.clone(),
            gateway: Gateway::open(&home.store()?)?,
            latch: home.latch(),
            words: Vec::new(),
            fleet: None,
            _door: None,
        })
    }

    #[cfg(feature = "fleet")]
    async fn of_fleet(gyrus: &Gyrus, fleet: &str) -> Result<Self, Failure> {
        let mut door = crate::fleet::FleetDoor::open(gyrus, fleet).await?;
        let gateway = door.gateway();
        door.begin(&gateway);
        Ok(Self {
            gyrus: door.gyrus(gyrus),
            gateway,
            latch: door.latch(),
            words: door.words(),
            fleet: Some(door.seen()),
            _door: Some(Box::new(door)),
        })
    }

    #[cfg(not(feature = "fleet"))]
    async fn of_fleet(_: &Gyrus, _: &str) -> Result<Self, Failure> {
        Err(crate::commands::fleet_missing::missing())
    }
}
