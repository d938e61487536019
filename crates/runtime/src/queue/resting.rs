//! Letting a command rest whose process cannot begin, or died again and again while its run got no
//! further. Whatever stands in its way (too little memory, a disk that is full, servers that are away)
//! may be over later, so what was accepted is never given up: a person takes it back or stops it.

use gyrus_kernel::now_ms;

use super::{CommandStage, Deaths, Gateway, QueueError, command::LONGEST_REST_MS, state};

/// Time for which a command rests the first time, in milliseconds; each further time twice as long.
const FIRST_REST_MS: i64 = 5_000;

impl Gateway {
    /// Pauses a command of a worker, longer each time that its run had this number of entries.
    /// `worker` is `None` in a queue that is not shared. Returns the time at which the command
    /// continues, in UTC milliseconds, if it pauses.
    pub async fn rest(
        &self,
        id: &str,
        worker: Option<&str>,
        entries: u64,
        why: &str,
    ) -> Result<Option<i64>, QueueError> {
        let now = now_ms();
        let before = self.with(|queue| queue.get(id).and_then(|standing| standing.deaths));
        let deaths = next(before, entries);
        let until_ms = now.saturating_add(rest_ms(deaths.rests));
        let stage = CommandStage::Parked {
            why: why.to_owned(),
            for_person: false,
            until_ms: Some(until_ms),
            deaths: Some(deaths),
        };
        let facts = &self.shared.facts;
        facts
            .change_at_last(|queue| {
                let rests = super::has(queue, id, worker).then(|| state::stage(id, stage.clone()));
                let until_ms = rests.as_ref().map(|_| until_ms);
                Ok((rests.into_iter().collect(), until_ms))
            })
            .await
    }
}

fn next(before: Option<Deaths>, entries: u64) -> Deaths {
    let in_a_row = before.filter(|before| before.entries == entries);
    Deaths {
        rests: in_a_row.map_or(0, |before| before.rests) + 1,
        entries,
    }
}

/// Returns the length of a pause in milliseconds; the first one has the number 1.
fn rest_ms(rests: u32) -> i64 {
    let doublings = rests.saturating_sub(1).min(10);
    (FIRST_REST_MS << doublings).min(LONGEST_REST_MS)
}
