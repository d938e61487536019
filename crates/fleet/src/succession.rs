//! Finding the runs whose worker is dead, and giving them back to the queue.
//!
//! A worker that shares the queue watches the runs of the others. One whose log says nothing for
//! longer than its lease is claimed, which proves that its worker is dead, and let go again at once:
//! whoever's turn it is then goes on with it.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use gyrus_runtime::queue::{Gateway, QueueCommand};

use crate::{
    ClaimError, ClaimWords, Claimant, LeaseTimes, Machine, MachineTime, ReadError, RunMessage,
    RunReading, SharedLog, Wait, WriterId, claim, run_subject,
};

/// Number of claims of a run without an entry after which its command rests: it may be what kills its
/// workers. Each successor claims twice, to prove that the worker is dead, and to go on.
const FRUITLESS_CLAIMS: u32 = 8;

/// Watches the runs of other workers until it is dropped.
pub struct Succession {
    pub log: Arc<dyn SharedLog>,
    pub machine: Arc<dyn Machine>,
    pub gateway: Gateway,
    /// The words of this worker's claims.
    pub claimed: ClaimWords,
}

struct OtherWorkersRun {
    worker: String,
    reading: RunReading,
    /// The time at which the run's last message was first seen.
    at: MachineTime,
}

impl Succession {
    pub async fn watch(&self) {
        let times = LeaseTimes::new(Duration::from_millis(self.claimed.lease_ms));
        let mut watched = BTreeMap::new();
        loop {
            self.look(&mut watched, times).await;
            let next = self.machine.now() + times.renew_after();
            self.machine.sleep_until(next).await;
        }
    }

    async fn look(&self, watched: &mut BTreeMap<String, OtherWorkersRun>, times: LeaseTimes) {
        let mut at_work = self.gateway.at_work();
        at_work.retain(|(_, worker)| *worker != self.claimed.worker);
        watched.retain(|id, one| {
            let same = |(command, worker): &(Arc<QueueCommand>, String)| {
                command.id == *id && *worker == one.worker
            };
            at_work.iter().any(same)
        });
        for (command, worker) in at_work {
            let one = watched
                .entry(command.id.clone())
                .or_insert_with(|| OtherWorkersRun {
                    worker,
                    reading: RunReading::new(run_subject(command.run, command.run)),
                    at: self.machine.now(),
                });
            let until = self.machine.now() + times.attempt();
            let mut sink = |_: &RunMessage| Ok(());
            let read = one.reading.catch_up(&*self.log, &mut sink, until).await;
            // What cannot be read now is looked at again; nothing is concluded from it.
            let Ok(new) = read else {
                continue;
            };
            if new > 0 {
                one.at = self.machine.now();
            }
            let holder = one.reading.standing.holder.as_ref();
            let patience = holder.map_or(times, |holder| holder.times()).succession();
            if self.machine.now() < one.at + patience {
                continue;
            }
            if self.prove_dead(one, times).await {
                let standing = &one.reading.standing;
                let (id, worker) = (&command.id, &one.worker);
                // If another worker was quicker, this changes nothing.
                let _ = if standing.fruitless_claims > FRUITLESS_CLAIMS {
                    let why = "its workers died again and again without getting further";
                    let rest = self.gateway.rest(id, Some(worker), standing.entries, why);
                    rest.await.map(drop)
                } else {
                    self.gateway.give_back(id, worker).await.map(drop)
                };
            }
        }
    }

    /// Claims a run and releases it, which proves that its worker is dead. Returns whether that
    /// succeeded.
    async fn prove_dead(&self, one: &mut OtherWorkersRun, times: LeaseTimes) -> bool {
        let standing = &one.reading.standing;
        if standing.holder.is_none() {
            // It was let go of, or never begun, and its worker does not go on with it.
            return true;
        }
        let wait = Wait::Succeed {
            seen: Some((standing.position, one.at)),
        };
        let claimant = Claimant {
            log: &self.log,
            machine: &self.machine,
            writer: WriterId(gyrus_contract::time_ordered_uuid().as_u128()),
            claimed: self.claimed.clone(),
        };
        let until = self.machine.now() + times.attempt();
        let mut sink = |_: &RunMessage| Ok(());
        match claim(claimant, &mut one.reading, &mut sink, wait, until).await {
            Ok(hold) => {
                // If this cannot be said, the next one waits for the end of this lease.
                let _ = hold.release().await;
                true
            }
            Err(ClaimError::Held { .. } | ClaimError::Read(ReadError::Unreachable(_))) => {
                one.at = self.machine.now();
                false
            }
            Err(_) => false,
        }
    }
}
