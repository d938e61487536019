//! Stopping all runs of a queue that several workers share. The stop is a fact of the queue: from it on
//! nothing begins, on any worker, also on one that is away and comes back, until a person lifts it.

use gyrus_contract::Principal;
use gyrus_kernel::{Ending, latch::LatchContent, now_ms, summary};

use super::{CommandQueue, CommandStage, Gateway, QueueError, QueueFact, state};

impl Gateway {
    /// Stops all runs: those at work are over, and none begins until [`Gateway::rearm`]. Returns
    /// the number of those that were at work; if a stop was in force already, it stays as it is.
    pub async fn stop_all(&self, told: &LatchContent) -> Result<usize, QueueError> {
        let facts = &self.shared.facts;
        facts
            .change(|queue| {
                let mut stop: Vec<_> = match queue.stopped() {
                    None => vec![QueueFact::Stopped(told.clone())],
                    Some(_) => Vec::new(),
                };
                let ended = ended(queue, told);
                let count = ended.len();
                stop.extend(ended);
                Ok((stop, count))
            })
            .await
    }

    /// Lifts the stop of all runs; returns whether there was one.
    pub async fn rearm(&self, by: &Principal) -> Result<bool, QueueError> {
        let facts = &self.shared.facts;
        facts
            .change(|queue| {
                let lifted = queue.stopped().map(|_| QueueFact::Rearmed {
                    by: by.clone(),
                    at_ms: now_ms(),
                });
                let is_lifted = lifted.is_some();
                Ok((lifted.into_iter().collect(), is_lifted))
            })
            .await
    }
}

fn ended(queue: &CommandQueue, told: &LatchContent) -> Vec<QueueFact> {
    let ending = Ending::Stopped {
        by: told.by.clone(),
        reason: told.reason.clone(),
    };
    let stage = CommandStage::Ended {
        at_ms: now_ms(),
        code: None,
        summary: summary(&ending),
    };
    let all = queue.all().into_iter();
    let at_work = all.filter(|one| matches!(one.stage, CommandStage::Running { .. }));
    at_work
        .map(|one| state::stage(&one.command.id, stage.clone()))
        .collect()
}
