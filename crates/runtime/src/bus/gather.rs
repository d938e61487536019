//! Asking many, and waiting for enough of them.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use super::{error::BusError, event_bus::EventBus, replies::deadline};
use crate::event::Event;

/// Maximum number of answers that a gathering waits for.
pub const GATHER_ANSWERS: usize = 1_024;

/// The answers of a gathering.
#[derive(Debug, Clone, PartialEq)]
pub struct GatheredAnswers {
    /// The first answer of each responder, in order of arrival.
    pub answers: Vec<Arc<Event>>,
    /// Number of the expected responders that did not answer in time.
    pub missing: usize,
}

impl EventBus {
    /// Publishes an event and collects replies until `wait_for` of the `of` expected responders
    /// have answered, or until time is up. A responder, known by the name in `from`, counts once.
    ///
    /// # Errors
    /// Returns an error when the numbers do not fit each other, or nobody subscribes to the topic.
    pub async fn gather(
        &self,
        event: Event,
        wait_for: usize,
        of: usize,
        within: Duration,
    ) -> Result<GatheredAnswers, BusError> {
        if !(1..=of).contains(&wait_for) || of > GATHER_ANSWERS {
            let reason = format!(
                "cannot wait for {wait_for} of {of}; wait for 1 or more, of at most \
                 {GATHER_ANSWERS}"
            );
            let what = "number of answers";
            return Err(BusError::Invalid { what, reason });
        }
        self.check_responders(&event.topic)?;
        let deadline = deadline(within);
        let (replies, _) = self.converse(event, GATHER_ANSWERS, deadline).await?;
        let mut answers: BTreeMap<String, (usize, Arc<Event>)> = BTreeMap::new();
        while answers.len() < wait_for {
            let Some(answer) = replies.next(deadline).await else {
                break;
            };
            let order = answers.len();
            let from = answer.from.clone();
            answers.entry(from).or_insert((order, answer));
        }
        let mut answers: Vec<_> = answers.into_values().collect();
        answers.sort_unstable_by_key(|(order, _)| *order);
        Ok(GatheredAnswers {
            missing: of.saturating_sub(answers.len()),
            answers: answers.into_iter().map(|(_, answer)| answer).collect(),
        })
    }
}
