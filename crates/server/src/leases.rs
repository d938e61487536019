//! Browsers of runs that people at dashboards have taken over. A lease lives as long as the command
//! `gyrus take` that holds it; whoever lets it go has given the browser back.

use std::collections::BTreeMap;

use gyrus_contract::{Principal, RunId};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::watch;

use crate::tokens::{Requester, TokenScope};

/// A browser that somebody took over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct TakeoverLease {
    /// The person who took it over, and their surface.
    #[schemars(with = "std::collections::BTreeMap<String, String>")]
    pub(crate) by: Principal,
    /// The time at which they asked for it, in UTC milliseconds.
    pub(crate) since_ms: i64,
    /// The page that has the browser, for the holder alone; without it, the run still finishes what
    /// is in progress. It lets one browser in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) address: Option<String>,
}

impl TakeoverLease {
    /// Returns the parts of the lease that a client may know.
    pub(crate) fn seen_by(mut self, who: &Requester) -> Self {
        if self.by != who.principal || !who.may(TokenScope::Approve) {
            self.address = None;
        }
        self
    }
}

struct HeldLease {
    lease: TakeoverLease,
    /// Dropped to give the browser back.
    _hold: watch::Sender<()>,
}

impl HeldLease {
    fn is(&self, lease: &TakeoverLease) -> bool {
        self.lease.since_ms == lease.since_ms && self.lease.by == lease.by
    }
}

#[derive(Default)]
pub(crate) struct Leases(Mutex<BTreeMap<RunId, HeldLease>>);

impl Leases {
    pub(crate) fn of(&self, run: RunId) -> Option<TakeoverLease> {
        self.0.lock().get(&run).map(|held| held.lease.clone())
    }

    /// Begins a lease, and returns a receiver that closes when the lease ends. If a run has
    /// several, the first counts.
    ///
    /// # Errors
    /// Somebody has the browser already.
    pub(crate) fn begin(
        &self,
        run: RunId,
        lease: &TakeoverLease,
    ) -> Result<watch::Receiver<()>, TakeoverLease> {
        let mut held = self.0.lock();
        if let Some(other) = held.get(&run) {
            return Err(other.lease.clone());
        }
        let (hold, receiver) = watch::channel(());
        let lease = lease.clone();
        held.insert(run, HeldLease { lease, _hold: hold });
        Ok(receiver)
    }

    /// The browser of this lease is handed out at an address.
    pub(crate) fn hand_out(&self, run: RunId, lease: &TakeoverLease, address: String) {
        let mut held = self.0.lock();
        if let Some(held) = held.get_mut(&run).filter(|held| held.is(lease)) {
            held.lease.address = Some(address);
        }
    }

    /// Ends this lease, if it is not over already.
    pub(crate) fn is_over(&self, run: RunId, lease: &TakeoverLease) {
        let mut held = self.0.lock();
        if held.get(&run).is_some_and(|held| held.is(lease)) {
            held.remove(&run);
        }
    }

    /// Ends the lease of a run's browser; returns whether somebody had it.
    pub(crate) fn end(&self, run: RunId) -> bool {
        self.0.lock().remove(&run).is_some()
    }
}
