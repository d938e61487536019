//! A workload of conditional appends alone: several writers on a few subjects, and the history of what
//! each was told.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use fastrand::Rng;
use gyrus_fleet::{
    AppendAnswer, LogSubject, Machine as _, MessageId, OsMachine, SharedLog, WriterId,
};
use parking_lot::Mutex;
use serde_json::json;

/// Number of subjects.
const SUBJECTS: usize = 3;

/// Longest time for one attempt, in milliseconds.
const ATTEMPT: u64 = 1_500;

/// Most attempts at one message.
const ATTEMPTS: u32 = 6;

/// Most bytes that fill a message.
const FILLING: usize = 2_000;

/// One message of a writer, and the answers to all attempts at it.
#[derive(Debug, Clone)]
pub(crate) struct Attempted {
    pub(crate) subject: String,
    pub(crate) body: Arc<[u8]>,
    /// The place that the message before it must have.
    pub(crate) expected: u64,
    /// The places that were told.
    pub(crate) stored: Vec<u64>,
    /// Number of attempts that were refused.
    pub(crate) refused: u32,
    /// Number of attempts of which nobody knows what came of them.
    pub(crate) unknown: u32,
    pub(crate) is_stale: bool,
}

/// The history of all writers.
#[derive(Default)]
pub(crate) struct History {
    attempted: Mutex<Vec<Attempted>>,
}

impl History {
    /// Returns it.
    pub(crate) fn all(&self) -> Vec<Attempted> {
        self.attempted.lock().clone()
    }

    fn push(&self, attempted: Attempted) {
        self.attempted.lock().push(attempted);
    }
}

/// Appends until `over`; two writers never do the same.
pub(crate) async fn write(
    log: Arc<dyn SharedLog>,
    history: Arc<History>,
    over: Arc<AtomicBool>,
    seed: u64,
) {
    let mut rng = Rng::with_seed(seed);
    let writer = WriterId(gyrus_contract::time_ordered_uuid().as_u128());
    let mut known = [0; SUBJECTS];
    let mut index = 0;
    while !over.load(Ordering::Relaxed) {
        let number = rng.usize(0..SUBJECTS);
        let name = format!("inbox.appends-{number}");
        let Some(subject) = LogSubject::new(&name) else {
            return;
        };
        // Sometimes what is known is old, and sometimes it never was true.
        let is_stale = rng.u8(0..10) == 0;
        if !is_stale && rng.u8(0..4) == 0 {
            known[number] = latest(&log, &subject, known[number]).await;
        }
        let expected = if is_stale {
            rng.u64(0..known[number].max(1))
        } else {
            known[number]
        };
        let length = rng.usize(0..FILLING);
        let filling: String = std::iter::repeat_with(|| rng.alphanumeric())
            .take(length)
            .collect();
        let text = json!({"writer": writer.to_string(), "index": index, "expected": expected, "filling": filling});
        let mut attempted = Attempted {
            subject: name,
            body: text.to_string().into_bytes().into(),
            expected,
            stored: Vec::new(),
            refused: 0,
            unknown: 0,
            is_stale,
        };
        let id = MessageId {
            subject,
            writer,
            index,
        };
        known[number] = deliver(&log, &id, &mut attempted, known[number], &mut rng).await;
        history.push(attempted);
        index += 1;
        tokio::time::sleep(Duration::from_millis(rng.u64(0..150))).await;
    }
}

/// Tries one message a few times, and returns the place of the last message of the subject as far as it is
/// known.
async fn deliver(
    log: &Arc<dyn SharedLog>,
    id: &MessageId,
    attempted: &mut Attempted,
    mut known: u64,
    rng: &mut Rng,
) -> u64 {
    for _ in 0..rng.u32(1..=ATTEMPTS) {
        let until = OsMachine.now() + Duration::from_millis(rng.u64(1..ATTEMPT));
        let (expected, body) = (attempted.expected, &attempted.body);
        match log.append_if(id, expected, body, until).await {
            AppendAnswer::Stored { position } => {
                attempted.stored.push(position);
                known = known.max(position);
                // Who is not content with the answer asks again.
                if rng.u8(0..8) > 0 {
                    return known;
                }
            }
            AppendAnswer::Refused { last } => {
                attempted.refused += 1;
                known = known.max(last);
                if rng.bool() {
                    return known;
                }
            }
            AppendAnswer::Unknown { .. } | AppendAnswer::Impossible { .. } => {
                attempted.unknown += 1;
            }
            AppendAnswer::Busy => {}
        }
        tokio::time::sleep(Duration::from_millis(rng.u64(0..60))).await;
    }
    known
}

async fn latest(log: &Arc<dyn SharedLog>, subject: &LogSubject, after: u64) -> u64 {
    let until = OsMachine.now() + Duration::from_millis(ATTEMPT);
    let read = log.read_from(subject, after, until).await;
    let last = read.unwrap_or_default().last().map(|last| last.position);
    last.unwrap_or(after)
}
