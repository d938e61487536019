//! Reading a log forwards: which lines are entries, where they end, and what is damage.
//!
//! A line counts if its hash follows from the entry before. The first line that does not is
//! *damage* if anything proves that an entry had been on disk in its place: the header of this or a
//! later segment, or a later line that starts a batch and verifies alone. Without such proof it is
//! a *tail*: bytes that a crash tore before anybody was told that they were safe.
//!
//! A scan needs no lock. It may race with the writer, so a line that looks like damage is read
//! again after its proof was found: by then it must be whole.

use std::sync::Arc;

use gyrus_contract::Digest;

use crate::{
    Error,
    line::{LogLine, START},
    lines::{LinePiece, LogLineReader},
    seal::Seal,
    segment::{LogFiles, Segment, SegmentEnd},
};

/// A place between two entries.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogPosition {
    /// Offset of the next line; `None` at the first line of the segment.
    pub(crate) offset: Option<u64>,
    /// The number of the entry before.
    pub(crate) seq: u64,
    pub(crate) hash: Digest,
}

/// Bytes at the end of a segment that are not entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentTail {
    /// The number of the segment.
    pub segment: u32,
    /// Number of these bytes.
    pub bytes: u64,
}

/// Reads one segment.
#[derive(Debug)]
pub(crate) struct Scan {
    files: Arc<LogFiles>,
    pub(crate) segment: Segment,
    /// The end of this segment according to the next one.
    end: Option<SegmentEnd>,
    lines: LogLineReader,
    seq: u64,
    hash: Digest,
}

impl Scan {
    /// Opens a segment at its first line.
    pub(crate) fn open(files: &Arc<LogFiles>, number: u32) -> Result<Self, Error> {
        let segment = files.open_segment(number)?;
        let (seq, hash) = segment.header.chain();
        Self::from(
            files,
            segment,
            LogPosition {
                offset: None,
                seq,
                hash,
            },
        )
    }

    /// Opens a segment at a position.
    pub(crate) fn from(
        files: &Arc<LogFiles>,
        segment: Segment,
        position: LogPosition,
    ) -> Result<Self, Error> {
        let offset = position.offset.unwrap_or(segment.body);
        let lines = LogLineReader::new(Arc::clone(&segment.file), offset, u64::MAX);
        let mut scan = Self {
            files: Arc::clone(files),
            segment,
            end: None,
            lines,
            seq: position.seq,
            hash: position.hash,
        };
        scan.look_for_end()?;
        Ok(scan)
    }

    pub(crate) fn position(&self) -> LogPosition {
        LogPosition {
            offset: Some(self.lines.offset()),
            seq: self.seq,
            hash: self.hash,
        }
    }

    /// Returns the end of this segment, as its successor states it, if a successor exists by now.
    pub(crate) fn look_for_end(&mut self) -> Result<Option<SegmentEnd>, Error> {
        let next = self.segment.number + 1;
        if self.end.is_none() && self.files.has_segment(next)? {
            let end = self.files.open_segment(next)?.header.previous;
            self.end = end;
            if let (Some(end), false) = (end, self.segment.header.rewritten) {
                self.lines.set_limit(end.bytes);
            }
        }
        Ok(self.end)
    }

    /// Whether the file continues behind the end that its successor states.
    pub(crate) fn has_dead_bytes(&self) -> Result<bool, Error> {
        let path = self.files.segment_path(self.segment.number);
        let length = self
            .segment
            .file
            .metadata()
            .map_err(Error::io("look at", path))?
            .len;
        let rewritten = self.segment.header.rewritten;
        Ok(!rewritten && self.end.is_some_and(|end| end.bytes < length))
    }

    /// Whether the scan knows of a following segment.
    pub(crate) fn is_closed(&self) -> bool {
        self.end.is_some()
    }

    /// Returns the next entry, as `take` converts its line; `None` where the entries end for now.
    pub(crate) fn next<T>(
        &mut self,
        take: &mut impl FnMut(&LogLine<'_>) -> T,
    ) -> Result<Option<T>, Error> {
        if let Some(taken) = self.next_valid(take)? {
            return Ok(Some(taken));
        }
        let offset = self.lines.offset();
        if let Some(end) = self.end {
            return self.check_end(&end, offset).map(|()| None);
        }
        let Some(proof) = self.proof()? else {
            return Ok(None);
        };
        // The proof may be newer than the read of the line, and than the look for a next segment.
        self.lines = LogLineReader::new(Arc::clone(&self.segment.file), offset, u64::MAX);
        let end = self.look_for_end()?;
        if let Some(taken) = self.next_valid(take)? {
            return Ok(Some(taken));
        }
        match end {
            Some(end) => self.check_end(&end, offset).map(|()| None),
            None => Err(self.damage(offset, proof)),
        }
    }

    fn next_valid<T>(
        &mut self,
        take: &mut impl FnMut(&LogLine<'_>) -> T,
    ) -> Result<Option<T>, Error> {
        let path = || self.files.segment_path(self.segment.number);
        let piece = self
            .lines
            .peek()
            .map_err(|error| Error::io("read", path())(error))?;
        let LinePiece::Line(text) = piece else {
            return Ok(None);
        };
        let Some(line) = LogLine::parse(text) else {
            return Ok(None);
        };
        if line.header.seq != self.seq + 1 || !line.follows(&self.files.key, &self.hash) {
            return Ok(None);
        }
        let taken = take(&line);
        self.seq += 1;
        self.hash = line.hash;
        self.lines.advance();
        Ok(Some(taken))
    }

    /// Checks that the entries end where the next segment begins.
    fn check_end(&mut self, end: &SegmentEnd, offset: u64) -> Result<(), Error> {
        if self.seq >= end.seq {
            // Entries that were read beyond the stated end were carried over into the next segment.
            if self.seq == end.seq && self.hash != end.hash {
                return Err(self.damage(offset, "the next segment names another hash".to_owned()));
            }
            let path = self.files.segment_path(self.segment.number);
            let rest = self.lines.peek().map_err(Error::io("read", path))?;
            let stated = self.segment.header.rewritten || offset >= end.bytes;
            if rest == LinePiece::End && stated {
                return Ok(());
            }
        }
        let why = format!(
            "the next segment says that it was on disk up to entry {}",
            end.seq
        );
        Err(self.damage(offset, why))
    }

    /// Returns the proof that an entry was on disk where the scan found none, if there is one.
    fn proof(&mut self) -> Result<Option<String>, Error> {
        let seq = self.seq + 1;
        if let Some(proof) = self.sealed(seq)? {
            return Ok(Some(proof));
        }
        let header = &self.segment.header;
        if header.synced >= seq {
            return Ok(Some(format!(
                "its segment began with entries up to {}",
                header.synced
            )));
        }
        let path = self.files.segment_path(self.segment.number);
        let mut later = LogLineReader::new(
            Arc::clone(&self.segment.file),
            self.lines.offset(),
            u64::MAX,
        );
        loop {
            match later.peek().map_err(Error::io("read", &path))? {
                LinePiece::Line(text) => {
                    if let Some((by, synced)) =
                        self.claim(text).filter(|(_, synced)| *synced >= seq)
                    {
                        let why = format!("entry {by} says that it was on disk up to {synced}");
                        return Ok(Some(why));
                    }
                    later.advance();
                }
                LinePiece::TooLong => {
                    if !later.skip().map_err(Error::io("read", &path))? {
                        return Ok(None);
                    }
                }
                LinePiece::Cut | LinePiece::End => return Ok(None),
            }
        }
    }

    /// Returns the proof of the log's seal that an entry was on disk. A damaged seal proves nothing.
    fn sealed(&self, seq: u64) -> Result<Option<String>, Error> {
        let seal = match Seal::read(&self.files) {
            Err(Error::BadSeal { .. }) => None,
            read => read?.filter(|seal| seal.entries >= seq),
        };
        let Some(seal) = seal else {
            return Ok(None);
        };
        self.files.check_no_gap(seq)?;
        let entries = seal.entries;
        Ok(Some(format!(
            "the log was finished with entries up to {entries}"
        )))
    }

    /// Returns the number of a line that verifies without its predecessors, and the entry up to
    /// which it claims that all were on disk. Also finds the intact end of a line whose beginning
    /// is lost.
    fn claim(&self, text: &[u8]) -> Option<(u64, u64)> {
        memchr::memmem::find_iter(text, START).find_map(|start| {
            let line = LogLine::parse(&text[start..])?;
            let batch = line.stands_alone(&self.files.key)?;
            Some((line.header.seq, batch.synced))
        })
    }

    fn damage(&self, offset: u64, why: String) -> Error {
        let why = format!(
            "what stands there, if anything, does not follow from the entry before, but {why}"
        );
        self.files
            .corrupt(self.segment.number, offset, self.seq + 1, why)
    }

    /// Returns the bytes behind the last entry that are not entries, if there are any.
    pub(crate) fn tail(&self) -> Result<Option<SegmentTail>, Error> {
        let segment = self.segment.number;
        let path = self.files.segment_path(segment);
        let length = self
            .segment
            .file
            .metadata()
            .map_err(Error::io("look at", path))?
            .len;
        let bytes = length.saturating_sub(self.lines.offset());
        Ok((bytes > 0).then_some(SegmentTail { segment, bytes }))
    }
}

/// Reads all segments from a position on.
#[derive(Debug)]
pub(crate) struct SegmentWalk {
    pub(crate) files: Arc<LogFiles>,
    pub(crate) scan: Scan,
    /// The last entry returned. A segment may repeat entries that were read from the one before, if
    /// the log was taken during the read.
    last: (u64, Digest),
}

impl SegmentWalk {
    pub(crate) fn new(files: &Arc<LogFiles>, scan: Scan) -> Self {
        let last = (scan.seq, scan.hash);
        Self {
            files: Arc::clone(files),
            scan,
            last,
        }
    }

    /// Returns the next entry; `None` where the log ends for now.
    pub(crate) fn next<T>(
        &mut self,
        take: &mut impl FnMut(&LogLine<'_>) -> T,
    ) -> Result<Option<T>, Error> {
        loop {
            let mut step = |line: &LogLine<'_>| (line.header.seq, line.hash, take(line));
            let Some((seq, hash, taken)) = self.scan.next(&mut step)? else {
                if !self.next_segment()? {
                    return Ok(None);
                }
                continue;
            };
            if seq > self.last.0 {
                self.last = (seq, hash);
                return Ok(Some(taken));
            }
            if seq == self.last.0 && hash != self.last.1 {
                let number = self.scan.segment.number;
                let why = "the log was changed while it was read; read it again";
                return Err(self.files.corrupt(number, 0, seq, why));
            }
        }
    }

    fn next_segment(&mut self) -> Result<bool, Error> {
        if self.scan.end.is_none() {
            // The segment is read again up to the end that is known now: there may be more entries.
            if self.scan.look_for_end()?.is_some() {
                return Ok(true);
            }
            self.files.check_no_gap(self.last.0 + 1)?;
            return Ok(false);
        }
        self.scan = Scan::open(&self.files, self.scan.segment.number + 1)?;
        Ok(true)
    }
}
