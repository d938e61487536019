//! Reading a log, forwards or backwards, while another process may be writing it.
//!
//! Every entry that a reader returns follows from its neighbours by hash. It may not be on disk
//! yet; [`Reader::follow`] returns only entries that are.

use std::{io, sync::Arc};

use gyrus_contract::{BlobId, Digest};

use crate::{
    Error, Follower, LogEntry, blobs,
    home::StoreHome,
    line::LogLine,
    lines::LinesBack,
    scan::{Scan, SegmentWalk},
    seek,
    segment::{LogFiles, Segment},
};

/// A reader of a log. Needs no lock.
#[derive(Debug, Clone)]
pub struct LogReader {
    home: Arc<StoreHome>,
    files: Arc<LogFiles>,
}

impl LogReader {
    pub(crate) fn new(home: &Arc<StoreHome>, files: Arc<LogFiles>) -> Self {
        let home = Arc::clone(home);
        Self { home, files }
    }

    /// Returns the entries from `from_seq` on, oldest first, up to the present end of the log. The
    /// chain is verified from there.
    pub fn entries(&self, from_seq: u64) -> Result<EntryIterator, Error> {
        Ok(EntryIterator {
            walk: self.walk(from_seq)?,
            from_seq,
            done: false,
        })
    }

    fn walk(&self, from_seq: u64) -> Result<SegmentWalk, Error> {
        let scan = if from_seq <= 1 {
            Scan::open(&self.files, 1)?
        } else {
            seek::before(&self.files, from_seq)?
        };
        Ok(SegmentWalk::new(&self.files, scan))
    }

    /// Returns the entries, newest first. Reads block by block, so the first ones are returned at
    /// once however long the log is.
    pub fn entries_back(&self) -> Result<Backwards, Error> {
        let scan = seek::end(&self.files)?;
        let position = scan.position();
        let end = position.offset.unwrap_or(scan.segment.body);
        Ok(Backwards {
            lines: back_from(&scan.segment, end),
            segment: scan.segment,
            files: Arc::clone(&self.files),
            seq: position.seq,
            hash: position.hash,
            ahead: None,
            done: false,
        })
    }

    /// Returns the newest entry of a kind.
    pub fn last(&self, kind: &str) -> Result<Option<LogEntry>, Error> {
        let mut back = self.entries_back()?;
        back.find(&mut |line| line.header.kind == kind)
    }

    /// Returns the entry with this number; `None` if the log is not that long.
    pub fn entry(&self, seq: u64) -> Result<Option<LogEntry>, Error> {
        if seq == 0 {
            return Ok(None);
        }
        let mut entries = self.entries(seq)?;
        entries.next().transpose()
    }

    /// Returns the number of the last entry; 0 if there is none.
    pub fn end(&self) -> Result<u64, Error> {
        Ok(seek::end(&self.files)?.position().seq)
    }

    /// Returns the bytes that [`Writer::put_private`](crate::Writer::put_private) stored, checked
    /// against their hash.
    pub fn private(&self, id: &BlobId) -> Result<Vec<u8>, Error> {
        blobs::read_private(&self.files, id)
    }

    /// Returns the bytes of a blob, checked against its hash.
    pub fn blob(&self, id: &BlobId) -> Result<Vec<u8>, Error> {
        blobs::read(&self.files, id)
    }

    /// Follows the log from `from_seq` on as it grows.
    pub fn follow(&self, from_seq: u64) -> Result<Follower, Error> {
        let durable = self.home.durable(&self.files.name);
        Follower::new(&self.files, self.walk(from_seq)?, from_seq, durable)
    }
}

/// An iterator over entries, oldest first, which ends after an error.
#[derive(Debug)]
pub struct EntryIterator {
    walk: SegmentWalk,
    from_seq: u64,
    done: bool,
}

impl Iterator for EntryIterator {
    type Item = Result<LogEntry, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.done {
            let files = Arc::clone(&self.walk.files);
            let number = self.walk.scan.segment.number;
            let from_seq = self.from_seq;
            let mut take = |line: &LogLine<'_>| {
                (line.header.seq >= from_seq).then(|| files.entry(number, line))
            };
            match self.walk.next(&mut take).transpose() {
                Some(Ok(None)) => {}
                Some(Ok(Some(entry))) => {
                    self.done = entry.is_err();
                    return Some(entry);
                }
                Some(Err(error)) => {
                    self.done = true;
                    return Some(Err(error));
                }
                None => self.done = true,
            }
        }
        None
    }
}

fn back_from(segment: &Segment, end: u64) -> LinesBack {
    LinesBack::new(Arc::clone(&segment.file), segment.body, end)
}

/// An iterator over entries, newest first, which ends after an error.
#[derive(Debug)]
pub struct Backwards {
    files: Arc<LogFiles>,
    segment: Segment,
    lines: LinesBack,
    /// The number of the next entry, as its successor or the end of the log names it.
    seq: u64,
    hash: Digest,
    /// The next line with its offset, if it was read already.
    ahead: Option<(u64, Vec<u8>)>,
    done: bool,
}

impl Backwards {
    /// Returns the next entry, towards the beginning, that `accept` accepts.
    fn find(
        &mut self,
        accept: &mut dyn FnMut(&LogLine<'_>) -> bool,
    ) -> Result<Option<LogEntry>, Error> {
        while self.seq > 0 {
            let Some((offset, text)) = self.line()? else {
                self.previous_segment()?;
                continue;
            };
            // The expected hash stands in the line before, which is itself verified next.
            self.ahead = self.line()?;
            let previous = match &self.ahead {
                Some((_, before)) => LogLine::parse(before).map(|line| line.hash),
                None => Some(self.segment.header.chain().1),
            };
            let line = LogLine::parse(&text).filter(|line| {
                line.header.seq == self.seq
                    && line.hash == self.hash
                    && previous.is_some_and(|hash| line.follows(&self.files.key, &hash))
            });
            let (Some(line), Some(previous)) = (line, previous) else {
                let why = "it or the entry before it is not what the entry after it names";
                return Err(self
                    .files
                    .corrupt(self.segment.number, offset, self.seq, why));
            };
            self.seq -= 1;
            self.hash = previous;
            if accept(&line) {
                return self.files.entry(self.segment.number, &line).map(Some);
            }
        }
        Ok(None)
    }

    fn line(&mut self) -> Result<Option<(u64, Vec<u8>)>, Error> {
        if let Some(ahead) = self.ahead.take() {
            return Ok(Some(ahead));
        }
        let path = || self.files.segment_path(self.segment.number);
        self.lines.next().map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                let why = "the segment is shorter than it was";
                self.files.corrupt(self.segment.number, 0, self.seq, why)
            }
            _ => Error::io("read", path())(error),
        })
    }

    fn previous_segment(&mut self) -> Result<(), Error> {
        let number = self.segment.number;
        let Some(end) = self
            .segment
            .header
            .previous
            .filter(|end| end.seq == self.seq)
        else {
            let why = "the segment begins with a later entry";
            return Err(self.files.corrupt(number, 0, self.seq, why));
        };
        self.segment = self.files.open_segment(end.segment)?;
        let path = self.files.segment_path(end.segment);
        let length = self
            .segment
            .file
            .metadata()
            .map_err(Error::io("look at", path))?
            .len;
        let counts = if self.segment.header.rewritten {
            length
        } else {
            end.bytes
        };
        if counts > length || counts < self.segment.body {
            let why = "the segment is shorter than the next one says";
            return Err(self.files.corrupt(end.segment, length, end.seq, why));
        }
        self.lines = back_from(&self.segment, counts);
        Ok(())
    }
}

impl Iterator for Backwards {
    type Item = Result<LogEntry, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let found = self.find(&mut |_| true).transpose();
        self.done = !matches!(found, Some(Ok(_)));
        found
    }
}
