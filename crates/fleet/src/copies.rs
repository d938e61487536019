//! Keeping copies of all runs of a fleet on a machine where people look at them, and taking to the fleet
//! what they say to one.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use gyrus_contract::RunId;
use gyrus_journal::Store;
use gyrus_kernel::{family, log_name};
use gyrus_runtime::queue::{CommandStage, Gateway, QueueCommand};
use tokio::{sync::Semaphore, task::JoinSet};

use crate::{
    FleetCopy, FleetMessage, Machine, MachineTime, SharedLog, copy::IsOver, log::REQUEST,
    send_message,
};

/// Number of the newest ended runs that are copied at the start.
const NEWEST: usize = 1_000;

/// Maximum number of copies that are updated at once.
const REFRESHED_AT_ONCE: usize = 8;

/// Time after which a failed attempt is repeated.
const AGAIN: Duration = Duration::from_secs(1);

/// Longest time for which a message stays in the inbox of a copy after it was sent: until then whoever
/// looks at a question sees that it has an answer.
const SEEN_WITHIN: Duration = Duration::from_secs(10);

/// Updates copies of all runs of a fleet until this value is dropped.
#[derive(Clone)]
pub struct FleetCopies {
    pub log: Arc<dyn SharedLog>,
    pub machine: Arc<dyn Machine>,
    /// The queue, whose store contains the copies.
    pub gateway: Gateway,
}

impl FleetCopies {
    /// Updates the copies until the future is dropped.
    pub async fn keep(&self) {
        let mut changes = self.gateway.changes();
        let mut known: BTreeSet<String> = BTreeSet::new();
        let mut keeping = JoinSet::new();
        let refreshing = Arc::new(Semaphore::new(REFRESHED_AT_ONCE));
        loop {
            changes.borrow_and_update();
            for (command, is_open) in self.begun(&known) {
                known.insert(command.id.clone());
                let copies = self.clone();
                let refreshing = Arc::clone(&refreshing);
                keeping.spawn(async move {
                    if is_open {
                        copies.keep_one(&command).await;
                    } else if let Ok(_permit) = refreshing.acquire().await {
                        // What cannot be copied now is copied at the next start.
                        let _ = copies.of(command.run).refresh().await;
                    }
                });
            }
            tokio::select! {
                changed = changes.changed() => if changed.is_err() { return },
                // A run may be gone on with by a further command.
                Some(_) = keeping.join_next() => {}
            }
        }
    }

    /// Returns the unknown commands whose runs have begun, each with whether it is open.
    fn begun(&self, known: &BTreeSet<String>) -> Vec<(Arc<QueueCommand>, bool)> {
        self.gateway.with(|queue| {
            let all = queue.all().into_iter().rev();
            let unknown = all.filter(|one| !known.contains(&one.command.id));
            let mut over = 0;
            let begun = unknown.filter_map(|one| match &one.stage {
                CommandStage::Queued | CommandStage::Cancelled { .. } => None,
                CommandStage::Running { .. } | CommandStage::Parked { .. } => {
                    Some((&one.command, true))
                }
                CommandStage::Ended { .. } => {
                    over += 1;
                    (over <= NEWEST).then_some((&one.command, false))
                }
            });
            begun
                .map(|(command, is_open)| (Arc::clone(command), is_open))
                .collect()
        })
    }

    fn of(&self, root: RunId) -> FleetCopy {
        FleetCopy {
            log: Arc::clone(&self.log),
            machine: Arc::clone(&self.machine),
            store: self.gateway.store().clone(),
            root,
        }
    }

    /// Updates the copy of a command's run until the command is over.
    async fn keep_one(&self, command: &Arc<QueueCommand>) {
        loop {
            match self.stage(&command.id) {
                Some(CommandStage::Running { .. }) => {
                    let (gateway, id) = (self.gateway.clone(), command.id.clone());
                    let is_over: IsOver = Arc::new(move || {
                        let is_running =
                            |stage: &CommandStage| matches!(stage, CommandStage::Running { .. });
                        gateway
                            .with(|queue| !queue.get(&id).is_some_and(|one| is_running(&one.stage)))
                    });
                    let copy = self.of(command.run);
                    tokio::select! {
                        followed = copy.follow(is_over, self.gateway.changes()) => {
                            if followed.is_err() {
                                tokio::time::sleep(AGAIN).await;
                            }
                        }
                        () = self.forward_all(command.run) => {}
                    }
                }
                Some(stage @ (CommandStage::Queued | CommandStage::Parked { .. })) => {
                    let _ = self.of(command.run).refresh().await;
                    tokio::select! {
                        () = self.leaves(&command.id, &stage) => {}
                        () = self.forward_all(command.run) => {}
                    }
                }
                Some(CommandStage::Ended { .. } | CommandStage::Cancelled { .. }) | None => {
                    let _ = self.of(command.run).refresh().await;
                    return;
                }
            }
        }
    }

    /// Waits until a command has left a stage. Changes of other commands are no reason to read its
    /// run again.
    async fn leaves(&self, id: &str, stage: &CommandStage) {
        let mut changes = self.gateway.changes();
        while self.stage(id).as_ref() == Some(stage) {
            if changes.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    fn stage(&self, id: &str) -> Option<CommandStage> {
        self.gateway
            .with(|queue| Some(queue.get(id)?.stage.clone()))
    }

    /// Sends new messages in the inboxes of a run and those below it, until the future is dropped.
    async fn forward_all(&self, root: RunId) {
        let store = self.gateway.store();
        let mut forwarding = JoinSet::new();
        let mut known = BTreeSet::new();
        loop {
            let members = if store.exists(&log_name(root)) {
                family(store, root).unwrap_or_default()
            } else {
                Vec::new()
            };
            for run in members {
                if known.insert(run) {
                    let copies = self.clone();
                    forwarding.spawn(async move { copies.forward(root, run).await });
                }
            }
            // Another one may have been started by the run meanwhile.
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// Sends new messages in the inbox of a run, until the future is dropped.
    async fn forward(&self, root: RunId, run: RunId) {
        let store = self.gateway.store();
        let Ok(inbox) = store.inbox(&log_name(run)) else {
            return;
        };
        let Ok(mut watch) = inbox.watch() else {
            return;
        };
        // When each was sent, and how many entries the copy had then.
        let mut sent: BTreeMap<String, (MachineTime, u64)> = BTreeMap::new();
        loop {
            for (id, body) in inbox.messages().unwrap_or_default() {
                let now = self.machine.now();
                if let Some((at, entries)) = sent.get(&id) {
                    if end(store, run) > *entries || now.since(*at) > SEEN_WITHIN {
                        let _ = inbox.remove(&id);
                    }
                    continue;
                }
                let message = FleetMessage {
                    run,
                    id: id.clone(),
                    body,
                };
                let until = now + REQUEST;
                // What does not go now is tried again.
                if send_message(&self.log, &self.machine, root, &message, until)
                    .await
                    .is_ok()
                {
                    sent.insert(id, (now, end(store, run)));
                }
            }
            tokio::select! {
                () = watch.changed() => {}
                () = tokio::time::sleep(AGAIN) => {}
            }
        }
    }
}

fn end(store: &Store, run: RunId) -> u64 {
    let reader = store.reader(&log_name(run));
    reader.and_then(|reader| reader.end()).unwrap_or(0)
}
