//! Connections of the programs of a nested desktop that leave its sandbox: who decides about them,
//! and which were refused.

use std::{collections::BTreeMap, sync::Arc};

use gyrus_contract::{BoxedFuture, ConnectionPolicy, Destination};
use parking_lot::Mutex;

/// Maximum number of refused destinations in memory.
const MAX_REFUSED: usize = 100;

/// Maximum number of refused destinations in one message.
const MAX_TOLD: usize = 3;

/// Connections of the programs of a desktop. Nobody lets any through before a run does.
#[derive(Default)]
pub struct DesktopConnections {
    policy: Mutex<Option<Arc<dyn ConnectionPolicy>>>,
    /// Refused destinations with the reason; empty once it was told.
    refused: Mutex<BTreeMap<String, String>>,
}

impl DesktopConnections {
    /// Replaces the policy that decides about connections.
    pub(super) fn decide_by(&self, policy: Arc<dyn ConnectionPolicy>) {
        let mut current = self.policy.lock();
        *current = Some(policy);
    }

    fn policy(&self) -> Option<Arc<dyn ConnectionPolicy>> {
        let current = self.policy.lock();
        current.clone()
    }

    /// Returns a message about the connections refused since the last call.
    pub(super) fn newly_refused(&self) -> Option<String> {
        let mut refused = self.refused.lock();
        let new = refused.iter_mut().filter(|(_, why)| !why.is_empty());
        let new: Vec<_> = new
            .map(|(to, why)| format!("{to} ({})", std::mem::take(why)))
            .collect();
        let more = match new.len().saturating_sub(MAX_TOLD) {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        let told = new.iter().take(MAX_TOLD).map(String::as_str);
        let told = told.collect::<Vec<_>>().join(", ");
        (!new.is_empty()).then(|| format!("the sandbox refused connections to {told}{more}"))
    }
}

impl ConnectionPolicy for DesktopConnections {
    fn decide<'a>(&'a self, to: &'a Destination) -> BoxedFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let policy = self.policy();
            let decided = match policy {
                Some(policy) => policy.decide(to).await,
                None => Err("no run uses this desktop yet".to_owned()),
            };
            if let Err(why) = &decided {
                let mut refused = self.refused.lock();
                if refused.len() < MAX_REFUSED {
                    refused.entry(to.to_string()).or_insert_with(|| why.clone());
                }
            }
            decided
        })
    }
}
