//! The preparation of a log for writing: its first segment, or recovery and the next one.
//!
//! Recovery trusts entries that a later line or header proves to have been on disk. Entries after
//! those are whole but unproven: the process that wrote them may have been told that they could
//! *not* be put on disk, and a second sync would then report success all the same. They are not
//! synced again but written again, at the beginning of the new segment.

use std::sync::Arc;

use gyrus_contract::Digest;

use crate::{
    DiskFile, Error, Holder, SegmentTail,
    scan::{LogPosition, Scan},
    segment::{FORMAT, LogFiles, SegmentEnd, SegmentHeader},
};

/// Number of bytes copied at once.
const COPY_BYTES: usize = 256 << 10;

/// The findings of taking a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovery {
    /// Bytes of an incomplete write at the end. They were never acknowledged; they stay in their
    /// segment, which now ends before them.
    pub set_aside: Option<SegmentTail>,
    /// The previous holder of the log, from its last segment.
    pub previous: Option<Holder>,
    /// The number of the segment that was opened, since a new one is opened each time.
    pub segment: u32,
}

/// The writer of the last segment, with its last entry.
#[derive(Debug)]
pub(crate) struct SegmentWriter {
    pub(crate) file: Box<dyn DiskFile>,
    pub(crate) segment: u32,
    /// Length of the file.
    pub(crate) bytes: u64,
    /// The number of the last entry on disk.
    pub(crate) seq: u64,
    pub(crate) hash: Digest,
}

impl SegmentWriter {
    /// Returns the end of this segment, for the header of the next one.
    fn end(&self) -> SegmentEnd {
        SegmentEnd {
            segment: self.segment,
            bytes: self.bytes,
            seq: self.seq,
            hash: self.hash,
        }
    }
}

/// Opens the first segment of a staged log, with the lines of its first entries up to the number
/// and hash of `last`.
pub(crate) fn first(
    files: &LogFiles,
    holder: &Holder,
    lines: &[u8],
    last: (u64, Digest),
) -> Result<SegmentWriter, Error> {
    begin(files, None, holder, lines, last)
}

/// Opens the segment after one that is on disk.
pub(crate) fn next(
    files: &LogFiles,
    full: &SegmentWriter,
    holder: &Holder,
) -> Result<SegmentWriter, Error> {
    next_with(files, full, holder, &[], (full.seq, full.hash))
}

/// Opens the segment after one that is on disk, with lines up to the number and hash of `last`. All
/// of it is on disk when it appears.
pub(crate) fn next_with(
    files: &LogFiles,
    full: &SegmentWriter,
    holder: &Holder,
    lines: &[u8],
    last: (u64, Digest),
) -> Result<SegmentWriter, Error> {
    begin(files, Some(full.end()), holder, lines, last)
}

fn begin(
    files: &LogFiles,
    previous: Option<SegmentEnd>,
    holder: &Holder,
    lines: &[u8],
    (seq, hash): (u64, Digest),
) -> Result<SegmentWriter, Error> {
    let header = header(files, previous, seq, holder);
    let mut segment = files.new_segment(&header)?;
    segment.write(lines)?;
    let (file, bytes) = segment.finish()?;
    Ok(SegmentWriter {
        file,
        segment: header.segment,
        bytes,
        seq,
        hash,
    })
}

/// Recovers a log whose lock is held, and opens its next segment.
pub(crate) fn again(files: &LogFiles, holder: &Holder) -> Result<(SegmentWriter, Recovery), Error> {
    for folder in [files.folder.clone(), files.blobs(), files.inbox()] {
        files.remove_temporaries(&folder)?;
    }
    let files = Arc::new(files.clone());
    let number = files.last_segment()?;
    let mut scan = Scan::open(&files, number)?;
    let found = scan.segment.header.format;
    if found > FORMAT {
        let path = files.segment_path(number);
        return Err(Error::NewerFormat {
            path,
            found,
            known: FORMAT,
        });
    }
    let proven = read_to_end(&mut scan)?;
    let LogPosition {
        offset: end,
        seq,
        hash,
    } = scan.position();
    let body = scan.segment.body;
    let (start, end) = (proven.offset.unwrap_or(body), end.unwrap_or(body));

    let previous = SegmentEnd {
        segment: number,
        bytes: start,
        seq: proven.seq,
        hash: proven.hash,
    };
    let header = header(&files, Some(previous), seq, holder);
    let mut segment = files.new_segment(&header)?;
    copy(
        &files,
        scan.segment.file.as_ref(),
        start,
        end,
        &mut |bytes| segment.write(bytes),
    )?;
    let (file, bytes) = segment.finish()?;
    let recovery = Recovery {
        set_aside: scan.tail()?,
        previous: Some(scan.segment.header.holder),
        segment: number + 1,
    };
    Ok((
        SegmentWriter {
            file,
            segment: number + 1,
            bytes,
            seq,
            hash,
        },
        recovery,
    ))
}

fn header(
    files: &LogFiles,
    previous: Option<SegmentEnd>,
    synced: u64,
    holder: &Holder,
) -> SegmentHeader {
    SegmentHeader {
        segment: previous.map_or(1, |end| end.segment + 1),
        format: FORMAT,
        log: files.name.to_string(),
        previous,
        synced,
        rewritten: false,
        holder: holder.clone(),
    }
}

/// Reads all entries of a segment, and returns the position up to which they are verified.
fn read_to_end(scan: &mut Scan) -> Result<LogPosition, Error> {
    let mut proven = scan.position();
    let mut synced = scan.segment.header.synced;
    // Positions of batches that are not proven yet. There are at most a few, because a writer syncs
    // every batch before it forms the one after the next.
    let mut unproven = std::collections::VecDeque::new();
    loop {
        let before = scan.position();
        if before.seq <= synced {
            proven = before;
        }
        let Some(batch) = scan.next(&mut |line| line.header.batch)? else {
            break;
        };
        let Some(batch) = batch else { continue };
        unproven.push_back(before);
        synced = synced.max(batch.synced);
        while let Some(place) = unproven.front().filter(|place| place.seq <= synced) {
            proven = *place;
            unproven.pop_front();
        }
    }
    Ok(proven)
}

/// Copies a part of a file.
pub(crate) fn copy(
    files: &LogFiles,
    from: &dyn DiskFile,
    mut start: u64,
    end: u64,
    to: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut buffer = vec![0; COPY_BYTES.min(usize::try_from(end - start).unwrap_or(COPY_BYTES))];
    while start < end {
        let want = buffer
            .len()
            .min(usize::try_from(end - start).unwrap_or(usize::MAX));
        let read = from
            .read_at(&mut buffer[..want], start)
            .and_then(|read| match read {
                0 => Err(std::io::ErrorKind::UnexpectedEof.into()),
                read => Ok(read),
            })
            .map_err(Error::io("read a segment in", &files.folder))?;
        to(&buffer[..read])?;
        start += read as u64;
    }
    Ok(())
}
