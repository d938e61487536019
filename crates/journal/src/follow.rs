//! Following a log as it grows, in any process.
//!
//! A follower returns only entries that are on disk. A writer in its own process tells it how far
//! that is. A writer in another process cannot be asked: then the follower reads to the end, syncs
//! the file itself, returns what it had read, and waits until the folder changes.

use std::{collections::VecDeque, io, sync::Arc};

use tokio::{sync::watch, task::JoinHandle};

use crate::{Error, FolderWatch, LogEntry, lock, scan::SegmentWalk, segment::LogFiles};

/// Maximum number of entries read ahead at once.
const AHEAD_ENTRIES: usize = 1024;

/// Bytes of payload after which no more entries are read ahead.
const AHEAD_BYTES: usize = 4 << 20;

/// The entries on disk, or the reason why they could not be read.
type ReadAhead = Result<VecDeque<LogEntry>, Error>;

/// A follower of a log. It returns durable entries only.
#[derive(Debug)]
pub struct Follower {
    files: Arc<LogFiles>,
    from_seq: u64,
    /// Entries on disk that are not returned yet.
    ready: VecDeque<LogEntry>,
    /// The position; `None` during a read, and after an error.
    walk: Option<SegmentWalk>,
    writer: Where,
}

/// The place of the log's writer.
#[derive(Debug)]
enum Where {
    /// In this process, which announces durable entries.
    Here(watch::Receiver<u64>),
    /// In another process, or nowhere.
    Elsewhere {
        watch: FolderWatch,
        reading: Option<JoinHandle<(SegmentWalk, ReadAhead)>>,
    },
}

impl Where {
    fn elsewhere(files: &LogFiles) -> Result<Self, Error> {
        let watch = files.disk.watch(&files.folder);
        Ok(Where::Elsewhere {
            watch: watch.map_err(|error| files.missing(error))?,
            reading: None,
        })
    }
}

impl Follower {
    pub(crate) fn new(
        files: &Arc<LogFiles>,
        walk: SegmentWalk,
        from_seq: u64,
        durable: Option<watch::Receiver<u64>>,
    ) -> Result<Self, Error> {
        Ok(Self {
            writer: match durable {
                Some(durable) => Where::Here(durable),
                None => Where::elsewhere(files)?,
            },
            files: Arc::clone(files),
            from_seq,
            ready: VecDeque::new(),
            walk: Some(walk),
        })
    }

    /// Waits for the next entry and returns it. Dropping the future loses nothing. An error is
    /// final: create a new follower.
    pub async fn next(&mut self) -> Result<LogEntry, Error> {
        loop {
            if let Some(entry) = self.ready.pop_front() {
                return Ok(entry);
            }
            self.ready = self.read().await?;
            if !self.ready.is_empty() {
                continue;
            }
            match &mut self.writer {
                Where::Here(durable) => {
                    if durable.changed().await.is_err() {
                        // The writer was dropped, and may have put more on disk as its last act.
                        self.writer = Where::elsewhere(&self.files)?;
                    }
                }
                Where::Elsewhere { watch, .. } => {
                    if !self.files.has_segment(1)? {
                        return Err(Error::NotFound {
                            name: self.files.name.clone(),
                        });
                    }
                    if let Some(walk) = &self.walk {
                        check_in_place(walk)?;
                    }
                    watch.changed().await;
                }
            }
        }
    }

    /// Reads the available entries, on a thread that may block if they have to be synced.
    async fn read(&mut self) -> ReadAhead {
        let from_seq = self.from_seq;
        let (walk, read) = match &mut self.writer {
            Where::Here(durable) => {
                let durable = *durable.borrow_and_update();
                let Some(mut walk) = self.walk.take() else {
                    return Err(self.failed());
                };
                let read = read_ahead(&mut walk, from_seq, durable);
                (walk, read)
            }
            Where::Elsewhere { reading, .. } => {
                if let Some(mut walk) = self.walk.take() {
                    let read = move || {
                        let read = read_and_sync(&mut walk, from_seq);
                        (walk, read)
                    };
                    *reading = Some(tokio::task::spawn_blocking(read));
                }
                let Some(ending) = reading else {
                    return Err(self.failed());
                };
                let ended = ending.await;
                *reading = None;
                ended
                    .map_err(io::Error::other)
                    .map_err(Error::io("read", &self.files.folder))?
            }
        };
        if read.is_ok() {
            self.walk = Some(walk);
        }
        read
    }

    fn failed(&self) -> Error {
        let failed = io::Error::other("an earlier reading failed, follow anew");
        Error::io("read", &self.files.folder)(failed)
    }
}

/// Checks that the last segment still belongs to the log. One that was cut off never grows.
fn check_in_place(walk: &SegmentWalk) -> Result<(), Error> {
    let (files, segment) = (&walk.files, &walk.scan.segment);
    let path = files.segment_path(segment.number);
    let in_place = lock::is_at(files.disk.as_ref(), segment.file.as_ref(), &path);
    // Erasing replaces a segment too, after its successor appeared.
    if in_place || files.has_segment(segment.number + 1)? {
        return Ok(());
    }
    let why = "the log was changed while it was followed; follow it anew";
    Err(files.corrupt(segment.number, 0, walk.scan.position().seq + 1, why))
}

/// Reads entries to the end of the file, and then syncs them to disk.
fn read_and_sync(walk: &mut SegmentWalk, from_seq: u64) -> ReadAhead {
    let entries = read_ahead(walk, from_seq, u64::MAX)?;
    // Everything in an earlier segment was on disk before this one appeared.
    if !entries.is_empty() {
        let path = walk.files.segment_path(walk.scan.segment.number);
        walk.scan
            .segment
            .file
            .sync()
            .map_err(Error::io("sync", path))?;
    }
    Ok(entries)
}

/// Reads entries up to number `last`.
fn read_ahead(walk: &mut SegmentWalk, from_seq: u64, last: u64) -> ReadAhead {
    let files = Arc::clone(&walk.files);
    let mut entries = VecDeque::new();
    let mut bytes = 0;
    let enough = |entries: usize, bytes| entries >= AHEAD_ENTRIES || bytes >= AHEAD_BYTES;
    while walk.scan.position().seq < last && !enough(entries.len(), bytes) {
        let number = walk.scan.segment.number;
        let next = walk.next(&mut |line| {
            bytes += line.payload_bytes();
            (line.header.seq >= from_seq).then(|| files.entry(number, line))
        });
        match next {
            Ok(Some(None)) => {}
            Ok(Some(Some(Ok(entry)))) => entries.push_back(entry),
            Ok(None) => break,
            // The error recurs after the entries before it have been returned.
            Err(_) if !entries.is_empty() => break,
            Err(error) | Ok(Some(Some(Err(error)))) => return Err(error),
        }
    }
    Ok(entries)
}
