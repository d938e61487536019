//! Following a log as it grows, in any process.
//!
//! A follower hands out only what is on disk. It cannot ask the writer, who may be elsewhere, so
//! it reads to the end, syncs the file itself, and then hands out what it had read. Between
//! readings it waits until the folder changes.

use std::{collections::VecDeque, io, sync::Arc};

use tokio::task::JoinHandle;

use crate::{Entry, Error, Watch, reader::entry, scan::Walk, segment::Files};

/// Entries read ahead at once.
const AHEAD_ENTRIES: usize = 1024;

/// Bytes of payload after which no more entries are read ahead.
const AHEAD_BYTES: usize = 4 << 20;

/// Entries on disk, or why they could not be read.
type ReadAhead = Result<VecDeque<Entry>, Error>;

/// Follows a log. Durable entries only.
#[derive(Debug)]
pub struct Follower {
    files: Arc<Files>,
    from_seq: u64,
    watch: Watch,
    /// On disk, and not handed out yet.
    ready: VecDeque<Entry>,
    /// `None` while a reading is under way, and after an error.
    walk: Option<Walk>,
    reading: Option<JoinHandle<(Walk, ReadAhead)>>,
}

impl Follower {
    pub(crate) fn new(files: Arc<Files>, walk: Walk, from_seq: u64) -> Result<Self, Error> {
        let watch = files
            .disk
            .watch(&files.folder)
            .map_err(|error| files.missing(error))?;
        Ok(Self {
            files,
            from_seq,
            watch,
            ready: VecDeque::new(),
            walk: Some(walk),
            reading: None,
        })
    }

    /// The next entry; waits for it. Dropping the future loses nothing. An error is final:
    /// follow anew.
    pub async fn next(&mut self) -> Result<Entry, Error> {
        loop {
            if let Some(entry) = self.ready.pop_front() {
                return Ok(entry);
            }
            self.ready = self.read().await?;
            if self.ready.is_empty() {
                if !self.files.has_segment(1)? {
                    return Err(Error::NotFound {
                        name: self.files.name.clone(),
                    });
                }
                self.watch.changed().await;
            }
        }
    }

    /// Reads what there is, on a thread that may block.
    async fn read(&mut self) -> ReadAhead {
        if let Some(mut walk) = self.walk.take() {
            let from_seq = self.from_seq;
            let read = move || {
                let read = read_ahead(&mut walk, from_seq);
                (walk, read)
            };
            self.reading = Some(tokio::task::spawn_blocking(read));
        }
        let ended = match &mut self.reading {
            Some(reading) => reading.await.map_err(io::Error::other),
            None => Err(io::Error::other("an earlier reading failed, follow anew")),
        };
        self.reading = None;
        let (walk, read) = ended.map_err(Error::io("read", &self.files.folder))?;
        if read.is_ok() {
            self.walk = Some(walk);
        }
        read
    }
}

fn read_ahead(walk: &mut Walk, from_seq: u64) -> ReadAhead {
    let files = Arc::clone(&walk.files);
    let mut entries = VecDeque::new();
    let mut bytes = 0;
    while entries.len() < AHEAD_ENTRIES && bytes < AHEAD_BYTES {
        let number = walk.scan.segment.number;
        let next = walk.next(&mut |line| {
            bytes += line.payload_bytes();
            (line.header.seq >= from_seq).then(|| entry(&files, number, line))
        });
        match next {
            Ok(Some(None)) => {}
            Ok(Some(Some(Ok(entry)))) => entries.push_back(entry),
            Ok(None) => break,
            // It will be met again when what comes before it has been handed out.
            Err(_) if !entries.is_empty() => break,
            Err(error) | Ok(Some(Some(Err(error)))) => return Err(error),
        }
    }
    // Everything in an earlier segment was on disk before this one appeared.
    if !entries.is_empty() {
        let path = files.segment_path(walk.scan.segment.number);
        walk.scan
            .segment
            .file
            .sync()
            .map_err(Error::io("sync", path))?;
    }
    Ok(entries)
}
