//! Finding a position in a log without reading all of it.
//!
//! The end is found backwards: the last line that starts a batch and verifies alone is a safe
//! position to read on from. An entry is found by bisection, first of segments by their headers,
//! then of bytes; the result of a probe is only a hint, and the line it leads to must still verify.

use std::sync::Arc;

use crate::{
    Error,
    line::LogLine,
    lines::{LinePiece, LinesBack, LogLineReader},
    scan::{LogPosition, Scan},
    segment::{LogFiles, Segment},
};

/// Length in bytes below which lines are read one by one.
const BISECT_BYTES: u64 = 64 << 10;

/// Returns a scan of the last segment, positioned behind the last entry.
pub(crate) fn end(files: &Arc<LogFiles>) -> Result<Scan, Error> {
    let segment = files.open_segment(files.last_segment()?)?;
    let path = files.segment_path(segment.number);
    let length = segment
        .file
        .metadata()
        .map_err(Error::io("look at", &path))?
        .len;
    let mut back = LinesBack::new(
        Arc::clone(&segment.file),
        segment.body,
        length.max(segment.body),
    );
    let (seq, hash) = segment.header.chain();
    let mut anchor = LogPosition {
        offset: None,
        seq,
        hash,
    };
    while let Some((offset, text)) = back.next().map_err(Error::io("read", &path))? {
        let line = LogLine::parse(&text);
        let batch = line.and_then(|line| Some((line, line.stands_alone(&files.key)?)));
        if let Some((line, batch)) = batch.filter(|(line, _)| line.header.seq > seq) {
            let seq = line.header.seq - 1;
            anchor = LogPosition {
                offset: Some(offset),
                seq,
                hash: batch.previous,
            };
            break;
        }
    }
    let mut scan = Scan::from(files, segment, anchor)?;
    while scan.next(&mut |_| ())?.is_some() {}
    Ok(scan)
}

/// Returns a scan positioned right before the entry `seq`, or at the end of the log if it is not
/// that long.
pub(crate) fn before(files: &Arc<LogFiles>, seq: u64) -> Result<Scan, Error> {
    let end = end(files)?;
    if end.position().seq < seq {
        return Ok(end);
    }
    // The segment is the last one whose predecessors end before the entry.
    let mut low = files.open_segment(1)?;
    let mut high = end.segment.number + 1;
    while high - low.number > 1 {
        let middle = files.open_segment(low.number + (high - low.number) / 2)?;
        if middle.header.chain().0 < seq {
            low = middle;
        } else {
            high = middle.number;
        }
    }
    if let Some(position) = place_after(files, &low, seq - 1)? {
        return Scan::from(files, low, position);
    }
    let mut scan = Scan::open(files, low.number)?;
    while scan.position().seq + 1 < seq && scan.next(&mut |_| ())?.is_some() {}
    Ok(scan)
}

/// Returns the position after the line that claims to be the entry `seq`.
fn place_after(
    files: &LogFiles,
    segment: &Segment,
    seq: u64,
) -> Result<Option<LogPosition>, Error> {
    if segment.header.chain().0 >= seq {
        return Ok(None);
    }
    let path = files.segment_path(segment.number);
    let length = segment
        .file
        .metadata()
        .map_err(Error::io("look at", &path))?
        .len;
    let (mut low, mut high) = (segment.body, length);
    while high.saturating_sub(low) > BISECT_BYTES {
        let middle = low + (high - low) / 2;
        let mut lines = LogLineReader::new(Arc::clone(&segment.file), middle, length);
        lines.skip().map_err(Error::io("read", &path))?;
        let start = lines.offset();
        let probe = match lines.peek().map_err(Error::io("read", &path))? {
            LinePiece::Line(text) => LogLine::parse(text).map(|line| line.header.seq),
            LinePiece::Cut | LinePiece::TooLong | LinePiece::End => None,
        };
        match probe {
            Some(found) if found <= seq && start < high => low = start,
            _ => high = middle,
        }
    }
    let mut lines = LogLineReader::new(Arc::clone(&segment.file), low, length);
    while let LinePiece::Line(text) = lines.peek().map_err(Error::io("read", &path))? {
        let Some(line) = LogLine::parse(text).filter(|line| line.header.seq <= seq) else {
            break;
        };
        let (found, hash) = (line.header.seq, line.hash);
        lines.advance();
        if found == seq {
            return Ok(Some(LogPosition {
                offset: Some(lines.offset()),
                seq,
                hash,
            }));
        }
    }
    Ok(None)
}
