//! The properties that hold for a log after every crash.

use std::collections::BTreeMap;

use gyrus_contract::BlobId;
use gyrus_journal::{Error, LogEntry, LogName, Payload, Store};

/// Whether something must exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Presence {
    No,
    /// Unknown: an attempt to change it failed or was interrupted.
    Either,
    Yes,
}

#[derive(Debug, Clone)]
struct Written {
    payload: String,
    erased: Presence,
    /// The blobs that the entry names.
    blobs: Vec<(BlobId, Vec<u8>)>,
}

#[derive(Debug, Clone)]
struct Message {
    body: String,
    waits: Presence,
}

/// The known state of the log.
#[derive(Debug, Clone)]
pub(super) struct Oracle {
    pub(super) name: LogName,
    pub(super) exists: Presence,
    /// All entries appended; from some position on, entries that were not acknowledged may be
    /// missing.
    written: Vec<Written>,
    acknowledged: usize,
    messages: BTreeMap<String, Message>,
}

/// The result of a check; the error describes the violation.
pub(super) type Verdict = Result<(), String>;

fn on(what: &str) -> impl Fn(Error) -> String {
    move |error| format!("{what}: {error}")
}

fn ensure(holds: bool, complaint: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err(complaint()) }
}

impl Oracle {
    pub(super) fn new(name: LogName) -> Self {
        Self {
            name,
            exists: Presence::No,
            written: Vec::new(),
            acknowledged: 0,
            messages: BTreeMap::new(),
        }
    }

    pub(super) fn appended(&mut self, payload: String) {
        self.written.push(Written {
            payload,
            erased: Presence::No,
            blobs: Vec::new(),
        });
    }

    /// Records that the last entry names these blobs: they must exist wherever the entry does.
    pub(super) fn names(&mut self, blobs: Vec<(BlobId, Vec<u8>)>) {
        if let Some(last) = self.written.last_mut() {
            last.blobs = blobs;
        }
    }

    /// Records that all entries up to this one were reported as on disk.
    pub(super) fn acknowledge(&mut self, seq: u64) -> Verdict {
        let seq = usize::try_from(seq).unwrap_or(usize::MAX);
        ensure(seq <= self.written.len(), || {
            format!("{seq} entries are said to be on disk")
        })?;
        self.acknowledged = self.acknowledged.max(seq);
        Ok(())
    }

    /// Records that a barrier was passed.
    pub(super) fn passed(&mut self, seq: u64) -> Verdict {
        ensure(seq == self.last(), || {
            format!("a barrier says {seq}, not {}", self.last())
        })?;
        self.acknowledge(seq)
    }

    /// Records that the log was recovered and ends here: later entries are lost for good.
    pub(super) fn recovered(&mut self, seq: u64) -> Verdict {
        self.acknowledge(seq)?;
        self.written.truncate(self.acknowledged);
        self.exists = Presence::Yes;
        Ok(())
    }

    /// Returns the number of the last entry appended.
    pub(super) fn last(&self) -> u64 {
        self.written.len() as u64
    }

    pub(super) fn erased(&mut self, seqs: &[u64], erased: Presence) {
        for seq in seqs {
            let written = usize::try_from(seq - 1)
                .ok()
                .and_then(|at| self.written.get_mut(at));
            if let Some(written) = written.filter(|written| written.erased != Presence::Yes) {
                written.erased = erased;
            }
        }
    }

    /// Returns acknowledged entries, chosen by a number.
    pub(super) fn choose(&self, choice: u64) -> Vec<u64> {
        (1..=self.acknowledged as u64)
            .filter(|seq| (choice >> (seq % 64)) & 3 == 0)
            .collect()
    }

    pub(super) fn sent(&mut self, id: &str, body: &str, waits: Presence) {
        self.messages.insert(
            id.to_owned(),
            Message {
                body: body.to_owned(),
                waits,
            },
        );
    }

    pub(super) fn consumed(&mut self, id: &str) {
        // Removing a message is not synced: a crash may bring it back.
        if let Some(message) = self.messages.get_mut(id) {
            message.waits = Presence::Either;
        }
    }

    pub(super) fn removed(&mut self) {
        self.exists = Presence::No;
        self.messages.clear();
    }

    /// Forgets everything about a log that was removed.
    fn gone(&mut self) {
        *self = Self::new(self.name.clone());
    }

    /// Compares a store with the oracle. Returns the number of the log's last entry, or `None` if
    /// there is no log.
    pub(super) fn check(&mut self, store: &Store) -> Result<Option<u64>, String> {
        let exists = store.exists(&self.name);
        let expected = if exists { Presence::Yes } else { Presence::No };
        ensure(
            self.exists == expected || self.exists == Presence::Either,
            || format!("the log exists: {exists}, and should: {:?}", self.exists),
        )?;
        let names = store.names(self.name.kind()).map_err(on("listing"))?;
        ensure(names.contains(&self.name) == exists, || {
            format!("listed are {names:?}")
        })?;
        if !exists {
            self.gone();
            return Ok(None);
        }
        self.check_entries(store).map(Some)
    }

    fn check_entries(&self, store: &Store) -> Result<u64, String> {
        let verified = store.verify(&self.name).map_err(on("verifying"))?;
        let end = verified.entries;
        let (least, most) = (self.acknowledged as u64, self.last());
        ensure((least..=most).contains(&end), || {
            format!("{end} entries are left of {most}, of which {least} were acknowledged")
        })?;
        let reader = store.reader(&self.name).map_err(on("opening"))?;
        let entries: Result<Vec<LogEntry>, Error> =
            reader.entries(1).map_err(on("reading"))?.collect();
        let entries = entries.map_err(on("reading"))?;
        ensure(entries.len() as u64 == end, || {
            format!("{} entries are read", entries.len())
        })?;
        for ((entry, written), seq) in entries.iter().zip(&self.written).zip(1..) {
            ensure(entry.seq == seq, || {
                format!("entry {} stands at {seq}", entry.seq)
            })?;
            let same = match &entry.payload {
                Payload::Json(json) => {
                    json.get() == written.payload && written.erased != Presence::Yes
                }
                Payload::Erased(_) => written.erased != Presence::No,
            };
            ensure(same, || {
                format!("entry {seq} is {entry:?}, should be {written:?}")
            })?;
        }
        let back: Result<Vec<LogEntry>, Error> =
            reader.entries_back().map_err(on("reading back"))?.collect();
        let back = back.map_err(on("reading back"))?;
        ensure(
            back.iter()
                .rev()
                .map(|e| e.hash)
                .eq(entries.iter().map(|e| e.hash)),
            || format!("{} entries are read back", back.len()),
        )?;
        ensure(reader.end().map_err(on("finding the end"))? == end, || {
            "another end".to_owned()
        })?;
        let middle = end / 2 + 1;
        let found = reader
            .entry(middle)
            .map_err(on("seeking"))?
            .map(|entry| entry.hash);
        let expected = usize::try_from(end / 2).ok().and_then(|at| entries.get(at));
        ensure(found == expected.map(|e| e.hash), || {
            format!("another entry {middle}")
        })?;
        let surviving = self.written.iter().zip(&entries);
        for (id, bytes) in surviving.flat_map(|(written, _)| &written.blobs) {
            let found = reader.blob(id).map_err(on("reading a blob"))?;
            ensure(found == *bytes, || "another blob".to_owned())?;
        }
        self.check_messages(store)?;
        Ok(end)
    }

    fn check_messages(&self, store: &Store) -> Verdict {
        let inbox = store.inbox(&self.name).map_err(on("opening the inbox"))?;
        let waiting = inbox.messages().map_err(on("reading the inbox"))?;
        ensure(waiting.is_sorted_by_key(|(id, _)| id), || {
            "messages out of order".to_owned()
        })?;
        for (id, body) in &waiting {
            let known = self.messages.get(id);
            ensure(
                known.is_some_and(|m| m.body == *body && m.waits != Presence::No),
                || format!("the message {id} says {body:?} and should be {known:?}"),
            )?;
        }
        for (id, message) in &self.messages {
            let waits = waiting.iter().any(|(waiting, _)| waiting == id);
            ensure(waits || message.waits != Presence::Yes, || {
                format!("message {id} is lost")
            })?;
        }
        Ok(())
    }

    /// Returns the payloads that must no longer occur on the disk.
    pub(super) fn secrets(&self) -> impl Iterator<Item = &str> {
        let erased = self
            .written
            .iter()
            .filter(|written| written.erased == Presence::Yes);
        erased.map(|written| written.payload.as_str())
    }
}
