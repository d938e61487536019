//! Waking the runs that are parked: a message has come for one, or its time has. Every worker looks, and
//! the first one puts the run's command back into the queue.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use gyrus_runtime::queue::Gateway;

use crate::{Machine, SharedLog, inbox::read_messages, log::REQUEST};

/// Interval between two checks.
const LOOK: Duration = Duration::from_secs(1);

/// Watches the parked runs until it is dropped.
pub struct ParkedWatch {
    pub log: Arc<dyn SharedLog>,
    pub machine: Arc<dyn Machine>,
    pub gateway: Gateway,
}

impl ParkedWatch {
    pub async fn watch(&self) {
        // The place up to which the messages of each command's run are known.
        let mut known: BTreeMap<String, u64> = BTreeMap::new();
        loop {
            let parked = self.gateway.parked();
            known.retain(|id, _| parked.iter().any(|(command, _)| command.id == *id));
            for (command, is_due) in parked {
                let after = known.entry(command.id.clone()).or_default();
                let until = self.machine.now() + REQUEST;
                let read = read_messages(&self.log, command.run, *after, until).await;
                let new = read.unwrap_or_default();
                let stop = new.iter().find_map(|(_, message)| message.stops());
                *after = new.last().map_or(*after, |(position, _)| *position);
                // What cannot be written now is seen again at the next look.
                let _ = match stop {
                    Some(by) => self.gateway.stop_parked(&command.id, by).await,
                    None if is_due || !new.is_empty() => self.gateway.wake(&command.id).await,
                    None => Ok(()),
                };
            }
            let next = self.machine.now() + LOOK;
            self.machine.sleep_until(next).await;
        }
    }
}
