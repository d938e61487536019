//! Erasing the payloads of entries.
//!
//! A payload is replaced by its hash, which is all that the chain needs of it. The segment is
//! rewritten beside the old one and replaces it in one step; its header records the rewrite,
//! because it no longer has the length that its successor names. Bytes that no longer counted are
//! dropped: they may repeat what is being erased.

use std::{collections::BTreeSet, sync::Arc};

use crate::{
    Error, LockWait, LogName, Store, line::LogLine, scan::Scan, seek, segment::LogFiles,
    store::TakePurpose,
};

impl Store {
    /// Replaces the payloads of these entries by tombstones, in a log that nobody holds, and
    /// returns how many were not erased before. A replica keeps its copies. Each segment changes as a whole; after a crash
    /// some may have and others not, and erasing again finishes it.
    pub fn erase(&self, name: &LogName, seqs: &[u64]) -> Result<u64, Error> {
        // Taking the log closes every segment that holds entries.
        let (writer, _) = self.clone().without_replicas().take_for(
            name,
            LockWait::IfFree,
            TakePurpose::Erasing,
        )?;
        let files = self.existing(name)?;
        let last = writer.next_seq() - 1;
        let seqs: BTreeSet<u64> = seqs.iter().copied().collect();
        if let Some(seq) = seqs.iter().copied().find(|seq| !(1..=last).contains(seq)) {
            return Err(Error::NoSuchEntry {
                name: name.clone(),
                seq,
                last,
            });
        }
        let mut erased = 0;
        let mut done = 0;
        while let Some(seq) = seqs.range(done + 1..).next() {
            let number = seek::before(&files, *seq)?.segment.number;
            // The end of the segment before repeats what this segment carried over.
            if number > 1 && Scan::open(&files, number - 1)?.has_dead_bytes()? {
                erased += rewrite(&files, number - 1, &seqs)?.0;
            }
            let (count, end) = rewrite(&files, number, &seqs)?;
            erased += count;
            done = end;
        }
        Ok(erased)
    }
}

/// Rewrites a segment without the erased payloads and without bytes that do not count. Returns the
/// number of entries erased, and the last entry's number.
fn rewrite(files: &Arc<LogFiles>, number: u32, seqs: &BTreeSet<u64>) -> Result<(u64, u64), Error> {
    let mut scan = Scan::open(files, number)?;
    let mut header = scan.segment.header.clone();
    header.rewritten = true;
    let mut segment = files.new_segment(&header)?;
    let mut erased = 0;
    let mut write = |line: &LogLine<'_>| {
        if seqs.contains(&line.header.seq) {
            erased += u64::from(!line.is_erased());
            segment.write(&line.tombstone())?;
        } else {
            segment.write(line.text)?;
        }
        segment.write(b"\n")
    };
    while let Some(written) = scan.next(&mut write)? {
        written?;
    }
    segment.finish()?;
    Ok((erased, scan.position().seq))
}
