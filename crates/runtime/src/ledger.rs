//! State that outlives the process: the fold of a log's facts.
//!
//! A log only grows, and most of its facts are soon of no use. So a ledger is a sequence of
//! generations, each a log of its own that begins with the state as the one before left it. A
//! generation counts once that beginning is complete; before, the one before it counts.

use std::{error::Error, io, sync::Arc, time::Duration};

use gyrus_journal::{Error as JournalError, LockWait, LogName, NewEntry, Payload, Store, Writer};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

/// Number of entries below which a generation is not replaced.
const SMALL: u64 = 4_096;

/// Factor by which a generation may exceed the entries that its state needs, before it is replaced.
const GROWTH: u64 = 4;

/// Number of segments at which a generation is replaced. Each opening adds one, a file to read.
const MAX_SEGMENTS: u32 = 64;

/// Maximum number of facts that are appended at once when a generation begins.
const BATCH: usize = 256;

/// The kind of the entry that ends the beginning of a generation.
const COMPLETE: &str = "ledger.complete";

/// Version of the facts' format.
const VERSION: u16 = 1;

/// State that is the fold of facts.
pub trait Fold: Default {
    const LOG_KIND: &'static str;

    /// A fact: an enum that is tagged by `kind`, with its data in `payload`.
    type Fact: Serialize + DeserializeOwned;

    /// Applies the next fact to the state. Facts that contradict the state are ignored.
    fn apply(&mut self, fact: Self::Fact);

    /// Returns facts that fold to this state.
    fn facts(&self) -> Vec<Self::Fact>;
}

#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The log cannot be read or written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A fact cannot be read: another version of gyrus wrote it, or it is damaged.
    #[error("entry {seq} of {log} cannot be read; was it written by a newer gyrus?")]
    Unreadable {
        log: LogName,
        /// The number of the entry.
        seq: u64,
        /// The cause, unless the entry was erased.
        source: Option<serde_json::Error>,
    },
    /// A ledger that many workers share cannot be read or written.
    #[error("the shared ledger cannot be used: {why}")]
    Shared { why: String },
    /// A fact cannot be written as JSON.
    #[error("a fact is not JSON")]
    Unwritable(#[source] serde_json::Error),
}

/// Interval between attempts to write again after the disk refused to. No event tells of room.
pub const TRY_AGAIN: Duration = Duration::from_secs(1);

/// Whether this machine refused something (room, descriptors, memory), which may be over later.
pub fn is_of_disk(error: &(dyn Error + 'static)) -> bool {
    let mut causes = std::iter::successors(Some(error), |&cause| cause.source());
    causes.any(|cause| cause.is::<io::Error>() || cause.is::<Arc<io::Error>>())
}

/// A fold whose facts only this process appends.
#[derive(Debug)]
pub struct Ledger<S> {
    store: Store,
    id: String,
    generation: u64,
    writer: Writer,
    state: S,
    /// Number of entries from which the next generation is worth its while.
    enough: u64,
}

impl<S: Fold> Ledger<S> {
    /// Opens the ledger `id`, empty if it does not exist, and locks it until this value is dropped.
    ///
    /// # Errors
    /// Another process holds it, or it cannot be read.
    pub fn open(store: &Store, id: &str) -> Result<Self, LedgerError> {
        loop {
            let Some(generation) = generations::<S>(store, id)?.pop() else {
                let writer = begin(store, id, 1, &S::default())?;
                return Ok(Self::new(store, id, 1, writer, S::default()));
            };
            let name = log::<S>(id, generation);
            let (writer, recovery) = store.take(&name, LockWait::IfFree)?;
            let newest = generations::<S>(store, id)?.pop() == Some(generation);
            match fold::<S>(store, &name)? {
                // Its holder began another one before it let this one go.
                _ if !newest => {}
                Some(state) => {
                    let mut ledger = Self::new(store, id, generation, writer, state);
                    if recovery.segment > MAX_SEGMENTS {
                        ledger.next_generation();
                    } else {
                        ledger.remove_older();
                    }
                    return Ok(ledger);
                }
                None => {
                    drop(writer);
                    store.remove(&name)?;
                }
            }
        }
    }

    /// Reads the state of the ledger `id` from disk, without locking it.
    pub fn read(store: &Store, id: &str) -> Result<S, LedgerError> {
        loop {
            let generations = generations::<S>(store, id)?;
            let mut removed = false;
            for generation in generations.iter().rev() {
                match fold::<S>(store, &log::<S>(id, *generation)) {
                    Ok(Some(state)) => return Ok(state),
                    Ok(None) => {}
                    Err(LedgerError::Journal(JournalError::NotFound { .. })) => removed = true,
                    Err(error) => return Err(error),
                }
            }
            if !removed {
                return Ok(S::default());
            }
        }
    }

    /// Returns the ids of all ledgers of this kind.
    pub fn ids(store: &Store) -> Result<Vec<String>, LedgerError> {
        let names = store.names(S::LOG_KIND)?;
        let mut ids: Vec<String> = names
            .iter()
            .filter_map(|name| Some(name.id().rsplit_once("--")?.0.to_owned()))
            .collect();
        ids.sort();
        ids.dedup();
        Ok(ids)
    }

    fn new(store: &Store, id: &str, generation: u64, writer: Writer, state: S) -> Self {
        let needed = u64::try_from(state.facts().len()).unwrap_or(u64::MAX);
        Self {
            store: store.clone(),
            id: id.to_owned(),
            generation,
            writer,
            state,
            enough: needed.saturating_mul(GROWTH).max(SMALL),
        }
    }

    pub fn state(&self) -> &S {
        &self.state
    }

    /// Returns the log's writer, for waiting until appended facts are on disk.
    pub fn writer(&self) -> Writer {
        self.writer.clone()
    }

    /// Continues after the disk refused an operation, with the state that is on disk, in a new
    /// generation. Does nothing if everything was written. Until this is called nothing is
    /// appended, so that nobody writes decisions based on a state that is not on disk.
    ///
    /// # Errors
    /// The disk still refuses. Then the next call tries again.
    pub fn go_on(&mut self) -> Result<(), LedgerError> {
        if self.writer.check().is_ok() {
            return Ok(());
        }
        let log_now = log::<S>(&self.id, self.generation);
        let state = fold::<S>(&self.store, &log_now)?;
        // It was complete before anything was written to it.
        self.state = state.ok_or(LedgerError::Unreadable {
            log: log_now,
            seq: 1,
            source: None,
        })?;
        self.begin_next()
    }

    /// Appends facts and applies them. They are on disk after [`Writer::barrier`]; they must not be
    /// shown or acted on before.
    ///
    /// # Errors
    /// The facts cannot be written; then none of them is applied.
    pub fn append(&mut self, facts: Vec<S::Fact>) -> Result<(), LedgerError> {
        append(&self.writer, &facts)?;
        for fact in facts {
            self.state.apply(fact);
        }
        if self.writer.next_seq() > self.enough {
            self.next_generation();
        }
        Ok(())
    }

    /// Begins the next generation. Where there is no room for it, this one goes on, and it is tried
    /// again many facts later.
    fn next_generation(&mut self) {
        // Whoever waits for the writer that goes has what it waits for.
        let is_written = self.writer.barrier_blocking().is_ok();
        if !is_written || self.begin_next().is_err() {
            self.enough = self.writer.next_seq().saturating_add(SMALL);
        }
    }

    fn begin_next(&mut self) -> Result<(), LedgerError> {
        let next = self.generation + 1;
        // An attempt before this one may have left its beginning.
        let _ = self.store.remove(&log::<S>(&self.id, next));
        self.writer = begin(&self.store, &self.id, next, &self.state)?;
        self.generation = next;
        let needed = self.writer.next_seq();
        self.enough = needed.saturating_mul(GROWTH).max(SMALL);
        self.remove_older();
        Ok(())
    }

    /// Removes the earlier generations. A generation that cannot be removed is removed at the next
    /// opening.
    fn remove_older(&self) {
        for generation in generations::<S>(&self.store, &self.id).unwrap_or_default() {
            if generation < self.generation {
                let _ = self.store.remove(&log::<S>(&self.id, generation));
            }
        }
    }
}

fn log<S: Fold>(id: &str, generation: u64) -> LogName {
    LogName::new(S::LOG_KIND, &format!("{id}--{generation:010}"))
        .expect("ids of ledgers are names of logs")
}

/// Returns the generations of a ledger, oldest first.
fn generations<S: Fold>(store: &Store, id: &str) -> Result<Vec<u64>, LedgerError> {
    let names = store.names(S::LOG_KIND)?;
    let mut generations: Vec<u64> = names
        .iter()
        .filter_map(|name| name.id().strip_prefix(id)?.strip_prefix("--")?.parse().ok())
        .collect();
    generations.sort_unstable();
    Ok(generations)
}

/// Begins a generation with a state. It is on disk when this returns.
fn begin<S: Fold>(
    store: &Store,
    id: &str,
    generation: u64,
    state: &S,
) -> Result<Writer, LedgerError> {
    let writer = store.create(&log::<S>(id, generation))?;
    let facts = state.facts();
    for facts in facts.chunks(BATCH) {
        append(&writer, facts)?;
    }
    let payload = raw(&json!({})).map_err(LedgerError::Unwritable)?;
    writer.append(&[NewEntry {
        kind: COMPLETE,
        version: VERSION,
        payload,
    }])?;
    writer.barrier_blocking()?;
    Ok(writer)
}

fn append<F: Serialize>(writer: &Writer, facts: &[F]) -> Result<(), LedgerError> {
    let mut kinds = Vec::new();
    for fact in facts {
        let mut fact = serde_json::to_value(fact).map_err(LedgerError::Unwritable)?;
        let payload = raw(&fact["payload"].take()).map_err(LedgerError::Unwritable)?;
        let Value::String(kind) = fact["kind"].take() else {
            unreachable!("facts are enums that are tagged by `kind`")
        };
        kinds.push((kind, payload));
    }
    let batch: Vec<NewEntry<'_>> = kinds
        .iter()
        .map(|(kind, payload)| NewEntry {
            kind,
            version: VERSION,
            payload: payload.clone(),
        })
        .collect();
    writer.append(&batch)?;
    Ok(())
}

fn raw(value: &Value) -> Result<Box<serde_json::value::RawValue>, serde_json::Error> {
    serde_json::value::to_raw_value(value)
}

/// Folds the facts of a generation; `None` if its beginning is incomplete.
fn fold<S: Fold>(store: &Store, name: &LogName) -> Result<Option<S>, LedgerError> {
    let mut state = S::default();
    let mut complete = false;
    for entry in store.reader(name)?.entries(1)? {
        let entry = entry?;
        if entry.kind == COMPLETE {
            complete = true;
            continue;
        }
        let unreadable = |source| LedgerError::Unreadable {
            log: name.clone(),
            seq: entry.seq,
            source,
        };
        let Payload::Json(payload) = &entry.payload else {
            return Err(unreadable(None));
        };
        let payload: Value =
            serde_json::from_str(payload.get()).map_err(|error| unreadable(Some(error)))?;
        let fact = serde_json::from_value(json!({"kind": entry.kind, "payload": payload}));
        state.apply(fact.map_err(|error| unreadable(Some(error)))?);
    }
    Ok(complete.then_some(state))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Default, PartialEq)]
    struct Counts(BTreeMap<String, u64>);

    #[derive(Serialize, Deserialize)]
    #[serde(tag = "kind", content = "payload")]
    enum Counted {
        #[serde(rename = "count.set")]
        Set { name: String, to: u64 },
    }

    impl Fold for Counts {
        const LOG_KIND: &'static str = "counts";
        type Fact = Counted;

        fn apply(&mut self, fact: Counted) {
            let Counted::Set { name, to } = fact;
            self.0.insert(name, to);
        }

        fn facts(&self) -> Vec<Counted> {
            let set = |(name, to): (&String, &u64)| Counted::Set {
                name: name.clone(),
                to: *to,
            };
            self.0.iter().map(set).collect()
        }
    }

    fn set(name: &str, to: u64) -> Vec<Counted> {
        vec![Counted::Set {
            name: name.to_owned(),
            to,
        }]
    }

    #[test]
    fn generations_follow_each_other_and_an_incomplete_one_does_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let mut ledger = Ledger::<Counts>::open(&store, "a").unwrap();
        assert!(matches!(
            Ledger::<Counts>::open(&store, "a"),
            Err(LedgerError::Journal(JournalError::Held { .. }))
        ));
        for number in 0..SMALL + 100 {
            ledger
                .append(set(&format!("n{}", number % 10), number))
                .unwrap();
        }
        assert_eq!(ledger.generation, 2);
        // As an attempt leaves it that found no room.
        drop(ledger.store.create(&log::<Counts>("a", 3)).unwrap());
        for number in 0..SMALL {
            ledger.append(set("n1", number)).unwrap();
        }
        assert_eq!(ledger.generation, 3);
        // Where there is none, the generation goes on.
        let held = ledger.store.create(&log::<Counts>("a", 4)).unwrap();
        for number in 0..2 * SMALL {
            ledger.append(set("n1", number)).unwrap();
        }
        assert_eq!(ledger.generation, 3);
        drop(held);
        store.remove(&log::<Counts>("a", 4)).unwrap();
        let expected = Counts(ledger.state().0.clone());
        drop(ledger);
        assert_eq!(Ledger::<Counts>::read(&store, "a").unwrap(), expected);

        // As a crash leaves it while the fourth begins.
        let fourth = store.create(&log::<Counts>("a", 4)).unwrap();
        append(&fourth, &set("n0", 1)).unwrap();
        assert_eq!(Ledger::<Counts>::read(&store, "a").unwrap(), expected);
        drop(fourth);
        let ledger = Ledger::<Counts>::open(&store, "a").unwrap();
        assert_eq!((ledger.generation, ledger.state()), (3, &expected));
        assert_eq!(generations::<Counts>(&store, "a").unwrap(), [3]);
        assert_eq!(Ledger::<Counts>::ids(&store).unwrap(), ["a"]);
    }

    #[test]
    fn a_ledger_that_is_opened_often_stays_a_few_files() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        for number in 0..150 {
            let mut ledger = Ledger::<Counts>::open(&store, "a").unwrap();
            ledger.append(set("n", number)).unwrap();
        }
        assert_eq!(generations::<Counts>(&store, "a").unwrap(), [3]);
        let expected = Counts(BTreeMap::from([("n".to_owned(), 149)]));
        assert_eq!(Ledger::<Counts>::read(&store, "a").unwrap(), expected);
    }
}
