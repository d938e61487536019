//! A run's journal as effects use it: typed entries, blobs and barriers.

use std::{collections::BTreeSet, sync::Arc};

use gyrus_contract::{BlobId, MemoryItem, Part, ToolSpec};
use gyrus_journal::{LogReader, NewEntry, NewLog, Payload, Writer};
use parking_lot::Mutex;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{Entry, INLINE_LIMIT, Inline, RunStarted, Stop, ToolResulted, UnreadableEntry};

/// The journal behind a run: prepared, written live, or only read while replaying.
pub(crate) struct RunLog {
    reader: LogReader,
    target: AppendTarget,
    /// Blobs known to be in this log, so that a prompt's frame is stored once.
    held: Mutex<BTreeSet<BlobId>>,
}

/// The part of a journal that takes new entries.
enum AppendTarget {
    /// A journal without entries, which no other process sees. It takes blobs only.
    New(NewLog),
    /// A journal that this process holds.
    Live(Writer),
    /// No journal, because a recorded one is only read.
    Recorded,
}

impl RunLog {
    pub(crate) fn new(prepared: NewLog) -> Self {
        Self {
            reader: prepared.reader(),
            target: AppendTarget::New(prepared),
            held: Mutex::default(),
        }
    }

    pub(crate) fn live(writer: Writer) -> Result<Self, Stop> {
        let reader = writer.reader()?;
        Ok(Self {
            reader,
            target: AppendTarget::Live(writer),
            held: Mutex::default(),
        })
    }

    pub(crate) fn recorded(reader: LogReader) -> Self {
        Self {
            reader,
            target: AppendTarget::Recorded,
            held: Mutex::default(),
        }
    }

    /// Creates the journal of a new run, with its first entries, which are on disk on return.
    pub(crate) fn publish(self, first: &[Entry]) -> Result<Writer, Stop> {
        match self.target {
            AppendTarget::New(prepared) => Ok(prepared.publish(&batch(first)?)?),
            AppendTarget::Live(_) | AppendTarget::Recorded => Err(Stop::EndOfRecord),
        }
    }

    pub(crate) fn reader(&self) -> &LogReader {
        &self.reader
    }

    pub(crate) fn is_live(&self) -> bool {
        matches!(self.target, AppendTarget::Live(_))
    }

    /// Returns the writer. A replay has none and ends at the last entry.
    fn writer(&self) -> Result<&Writer, Stop> {
        match &self.target {
            AppendTarget::Live(writer) => Ok(writer),
            AppendTarget::New(_) | AppendTarget::Recorded => Err(Stop::EndOfRecord),
        }
    }

    pub(crate) fn append(&self, entry: impl Into<Entry>) -> Result<u64, Stop> {
        self.append_all(&[entry.into()])
    }

    pub(crate) fn append_all(&self, entries: &[Entry]) -> Result<u64, Stop> {
        Ok(self.writer()?.append(&batch(entries)?)?)
    }

    /// Returns when everything appended so far is on disk.
    pub(crate) async fn barrier(&self) -> Result<(), Stop> {
        self.writer()?.barrier().await?;
        Ok(())
    }

    /// Returns when everything appended so far is on disk, with a seal that the journal is
    /// finished.
    pub(crate) async fn seal(&self) -> Result<(), Stop> {
        Ok(self.writer()?.seal().await?)
    }

    pub(crate) fn put_blob(&self, bytes: &[u8]) -> Result<BlobId, Stop> {
        let id = BlobId::of(bytes);
        if self.held.lock().contains(&id) {
            return Ok(id);
        }
        match &self.target {
            AppendTarget::New(prepared) => prepared.put_blob(bytes)?,
            AppendTarget::Live(_) | AppendTarget::Recorded => self.writer()?.put_blob(bytes)?,
        };
        self.held.lock().insert(id);
        Ok(id)
    }

    /// Stores content that is never exported and that no other log shares.
    pub(crate) fn put_private(&self, bytes: &[u8]) -> Result<BlobId, Stop> {
        Ok(match &self.target {
            AppendTarget::New(prepared) => prepared.put_private(bytes)?,
            AppendTarget::Live(_) | AppendTarget::Recorded => self.writer()?.put_private(bytes)?,
        })
    }

    pub(crate) fn blob(&self, id: &BlobId) -> Result<Vec<u8>, Stop> {
        Ok(self.reader.blob(id)?)
    }
}

/// Converts entries to the form in which a journal takes them.
fn batch(entries: &[Entry]) -> Result<Vec<NewEntry<'_>>, Stop> {
    let to_new = |entry| {
        let entry: &Entry = entry;
        let payload = entry
            .payload()
            .map_err(|error| Stop::Failed(error.to_string()))?;
        Ok(NewEntry {
            kind: entry.kind(),
            version: entry.version(),
            payload,
        })
    };
    entries.iter().map(to_new).collect()
}

impl<T: Serialize + DeserializeOwned + Clone> Inline<T> {
    /// Stores `value`, in a blob if it is large.
    pub(crate) fn store(value: &T, log: &RunLog) -> Result<Self, Stop> {
        let json = serde_json::to_vec(value).map_err(|error| Stop::Failed(error.to_string()))?;
        if json.len() <= INLINE_LIMIT {
            return Ok(Inline::Is(value.clone()));
        }
        Ok(Inline::Blob(log.put_blob(&json)?))
    }

    /// Returns the value, wherever it is stored.
    pub(crate) fn load(&self, log: &RunLog) -> Result<T, Stop> {
        self.read(|id| log.blob(id))
    }
}

impl ToolResulted {
    /// Returns the result as data, wherever it is stored.
    pub(crate) fn load_value(&self, log: &RunLog) -> Result<Option<Value>, Stop> {
        self.value.as_ref().map(|value| value.load(log)).transpose()
    }
}

impl RunStarted {
    /// Returns the messages that the run remembers before its first cycle.
    pub(crate) fn memory_items(&self, reader: &LogReader) -> Result<Vec<MemoryItem>, Stop> {
        let load = |item: &Inline<MemoryItem>| item.read(|id| reader.blob(id).map_err(Stop::from));
        self.memory.items.iter().map(load).collect()
    }

    /// Returns the tools of servers that the run has, as they were described at the start.
    pub fn served_tools(&self, reader: &LogReader) -> Result<Vec<Arc<ToolSpec>>, Stop> {
        match &self.served {
            Some(served) => served.read(|id| reader.blob(id).map_err(Stop::from)),
            None => Ok(Vec::new()),
        }
    }

    /// Returns the material that came with the goal.
    pub(crate) fn context_parts(&self, reader: &LogReader) -> Result<Vec<Part>, Stop> {
        let load = |part: &Inline<Part>| part.read(|id| reader.blob(id).map_err(Stop::from));
        self.context.iter().map(load).collect()
    }
}

/// Converts a journal entry to an entry of the kernel.
///
/// # Errors
/// Returns an error when the payload was erased, or is not valid for its kind.
pub fn parse(entry: &gyrus_journal::LogEntry) -> Result<Entry, UnreadableEntry> {
    match &entry.payload {
        Payload::Json(payload) => Entry::parse(&entry.kind, entry.version, payload.get()),
        Payload::Erased(_) => Err(UnreadableEntry {
            kind: entry.kind.clone(),
            reason: format!("its payload (entry {}) was erased", entry.seq),
        }),
    }
}
