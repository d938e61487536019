//! A copy of a log that is written elsewhere, filled from the lines of its batches.
//!
//! The lines stay as their writer wrote them, so the claims in them about what was on disk must hold
//! for this disk too. A line that begins a batch is proof of everything before it; hence nothing is
//! written behind unsynced entries from such a line on. A few batches are synced one by one, as
//! their writer did; more of them become a segment of their own, which appears when all of it is on
//! disk.
//!
//! A mirror never decides which entries count. Its caller does, who knows the source: it appends,
//! cuts off what the source does not have, or begins anew.

use std::{io, mem, sync::Arc};

use gyrus_contract::{BlobId, Digest};

use crate::{
    Error, LockWait, LogName, Store,
    blobs::{self, UnsyncedBlob},
    failure::FinalFailure,
    line::{LINE_LIMIT, LogLine, PAYLOAD_LIMIT, genesis, is_kind},
    lock::{self, Lock},
    replica,
    seal::Seal,
    seek,
    segment::{LogFiles, Segment, write_all},
    store::StagedLog,
    take::{self, SegmentWriter, copy},
    writer::UNSYNCED_LIMIT,
};

/// Maximum number of bytes of one call of [`Mirror::append`].
const APPEND_LIMIT: usize = 128 << 20;

/// Number of batches in one call from which they get a separate segment, which is about the number
/// of syncs that a segment costs.
const SEGMENT_BATCHES: usize = 4;

/// The only writer of a log that is a copy. All calls may block for the disk. Dropping it releases
/// the log, which then is an ordinary one.
#[derive(Debug)]
pub struct Mirror {
    store: Store,
    files: Arc<LogFiles>,
    lock: Lock,
    /// The segment at the end; `None` as long as the log has no entries and is not in the store.
    output: Option<SegmentWriter>,
    /// The number of the last entry known to be on disk.
    synced: u64,
    /// Whether the last segment has bytes that may not be on disk.
    unsynced: bool,
    unsynced_blobs: Vec<UnsyncedBlob>,
    /// Whether the names of some blobs may not be on disk yet.
    blobs_named: bool,
    failure: Option<FinalFailure>,
}

/// A portion of checked lines.
struct Portion {
    /// For each line that begins a batch, its offset and the number of the previous entry.
    batches: Vec<(usize, u64)>,
    /// The number and hash of the last entry.
    last: (u64, Digest),
}

impl Store {
    /// Opens a copy of a log that is written elsewhere, and locks it. If the log does not exist
    /// here, it appears with the first lines.
    ///
    /// # Errors
    /// Returns [`Error::Held`] if somebody writes the log here, and [`Error::BornElsewhere`] if there
    /// is one that was imported or copied.
    pub fn mirror(&self, name: &LogName) -> Result<Mirror, Error> {
        self.check_writable()?;
        self.check_born_here(name)?;
        if !self.exists(name) {
            let StagedLog { files, lock } = self.stage(name)?;
            return Ok(Mirror::new(self, files, lock, None));
        }
        let files = Arc::new(self.files(name));
        let lock = lock::take(&files, LockWait::IfFree)?;
        self.sync_name(name)?;
        let (output, _) = take::again(&files, &lock.holder)?;
        Ok(Mirror::new(self, files, lock, Some(output)))
    }
}

impl Mirror {
    /// Marks the log as a copy whose original counts: nobody appends to it here without a replica.
    pub fn mark_as_copy(&self) -> Result<(), Error> {
        replica::mark(&self.files)
    }

    fn new(store: &Store, files: Arc<LogFiles>, lock: Lock, output: Option<SegmentWriter>) -> Self {
        Self {
            store: store.clone(),
            files,
            lock,
            synced: output.as_ref().map_or(0, |output| output.seq),
            output,
            unsynced: false,
            unsynced_blobs: Vec::new(),
            blobs_named: false,
            failure: None,
        }
    }

    pub fn name(&self) -> &LogName {
        &self.files.name
    }

    /// Returns the number and the hash of the last entry here; 0 and zeros if there is none.
    pub fn end(&self) -> (u64, Digest) {
        match &self.output {
            Some(output) => (output.seq, output.hash),
            None => (0, genesis()),
        }
    }

    /// Appends one or more lines, each with its newline, and returns the number of the last entry.
    /// Readers see them at once; they are durable after [`Mirror::sync`]. Blobs that they name must
    /// have been put. One batch a call costs one sync each; many batches in one call cost a few
    /// syncs together, so a copy that lags behind takes as many lines at once as it has.
    ///
    /// # Errors
    /// Returns [`Error::BadLines`] when a line is not the one that follows by number and hash, also
    /// when it is here already; then nothing was written. After a failure of the disk the mirror
    /// accepts nothing more: open it again.
    pub fn append(&mut self, lines: &[u8]) -> Result<u64, Error> {
        self.accepting()?;
        let portion = self.check(lines)?;
        self.put_blobs_on_disk()
            .and_then(|()| self.write(lines, &portion))
            .map_err(|error| self.failed(error))?;
        Ok(portion.last.0)
    }

    /// Syncs all entries and blobs to disk. After a failure the mirror accepts nothing more.
    pub fn sync(&mut self) -> Result<(), Error> {
        self.accepting()?;
        self.put_blobs_on_disk()
            .and_then(|()| self.sync_entries())
            .map_err(|error| self.failed(error))
    }

    /// Stores content beside the log. It is on disk, under its name, before any entry that is
    /// appended from now on, and after [`Mirror::sync`]. Otherwise it may go with the mirror.
    pub fn put_blob(&mut self, bytes: &[u8]) -> Result<BlobId, Error> {
        self.accepting()?;
        let shared = self.store.home.shared_blobs();
        let id = blobs::put(&self.files, &shared, &mut self.unsynced_blobs, bytes)?;
        self.blobs_named = true;
        if self.unsynced_blobs.len() >= UNSYNCED_LIMIT {
            self.put_blobs_on_disk()
                .map_err(|error| self.failed(error))?;
        }
        Ok(id)
    }

    /// Whether the log contains this blob. Its bytes are not checked.
    pub fn has_blob(&self, id: &BlobId) -> bool {
        blobs::has(&self.files, id)
    }

    /// Removes the entries after `seq`, which has this hash: they never counted, because the source
    /// does not have them. A seal that covers one of them is removed too. After a crash none, some
    /// from the end, or all of them are gone: look at [`Mirror::end`] again. Followers that
    /// returned one of them, or were about to, end with an error.
    ///
    /// # Errors
    /// Returns [`Error::NoSuchEntry`] when the log here is shorter, and [`Error::OtherHistory`] when
    /// the entry here has another hash.
    pub fn cut(&mut self, seq: u64, hash: Digest) -> Result<(), Error> {
        self.accepting()?;
        let (last, head) = self.end();
        if seq > last {
            let name = self.files.name.clone();
            return Err(Error::NoSuchEntry { name, seq, last });
        }
        if seq == last {
            return self.check_hash(seq, head, hash);
        }
        let scan = seek::before(&self.files, seq + 1)?;
        self.check_hash(seq, scan.position().hash, hash)?;
        let end = scan.position().offset.unwrap_or(scan.segment.body);
        self.cut_at(&scan.segment, end, (seq, hash))
            .map_err(|error| self.failed(error))
    }

    /// Sets the whole copy aside, because it has another history, and begins an empty one. The
    /// blobs, private content and waiting messages of the log go with it; [`Store::sweep`] removes
    /// them.
    pub fn reset(self) -> Result<Mirror, Error> {
        let (store, name) = (self.store.clone(), self.files.name.clone());
        if self.output.is_some() {
            store.set_aside(&self.files)?;
        }
        drop(self);
        let StagedLog { files, lock } = store.stage(&name)?;
        Ok(Mirror::new(&store, files, lock, None))
    }

    /// Makes everything durable, and then writes the log's seal: the statement that it is finished
    /// with these entries and the blobs that are here.
    ///
    /// # Errors
    /// Returns [`Error::NotFound`] when the log has no entries yet.
    pub fn seal(&mut self) -> Result<(), Error> {
        self.sync()?;
        if self.output.is_none() {
            let name = self.files.name.clone();
            return Err(Error::NotFound { name });
        }
        let (entries, head) = self.end();
        Seal::of(&self.files, entries, head)?.write(&self.files)
    }

    fn accepting(&self) -> Result<(), Error> {
        match &self.failure {
            Some(failure) => Err(failure.error(&self.files.name)),
            None => Ok(()),
        }
    }

    /// Records a failure after which the state of the disk is unknown.
    fn failed(&mut self, error: Error) -> Error {
        if matches!(error, Error::Io { .. }) {
            let failure = FinalFailure::of(error, self.synced);
            let error = failure.error(&self.files.name);
            self.failure = Some(failure);
            return error;
        }
        // Another process created the log meanwhile, for example.
        let source = io::Error::other(error.to_string());
        let again = Error::io("write", &self.files.folder)(source);
        self.failure = Some(FinalFailure::of(again, self.synced));
        error
    }

    fn check_hash(&self, seq: u64, found: Digest, expected: Digest) -> Result<(), Error> {
        if found == expected {
            return Ok(());
        }
        Err(Error::OtherHistory {
            name: self.files.name.clone(),
            seq,
            found,
            expected,
        })
    }

    /// Checks that lines continue this log.
    fn check(&self, lines: &[u8]) -> Result<Portion, Error> {
        if lines.len() > APPEND_LIMIT {
            return Err(Error::TooLarge {
                what: "the portion of lines",
                bytes: lines.len() as u64,
                limit: APPEND_LIMIT as u64,
            });
        }
        let mut portion = Portion {
            batches: Vec::new(),
            last: self.end(),
        };
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', lines) {
            let (seq, hash) = portion.last;
            let line = check_line(&lines[start..end], &self.files, seq + 1, &hash)?;
            if line.header.batch.is_some() {
                portion.batches.push((start, seq));
            }
            portion.last = (line.header.seq, line.hash);
            start = end + 1;
        }
        let (seq, _) = portion.last;
        if lines.is_empty() {
            return Err(bad(&self.files, seq + 1, "there is no line"));
        }
        if start < lines.len() {
            return Err(bad(&self.files, seq + 1, "the last line is cut"));
        }
        Ok(portion)
    }

    fn write(&mut self, lines: &[u8], portion: &Portion) -> Result<(), Error> {
        let Some(output) = &self.output else {
            return self.write_first(lines, portion);
        };
        let full = output.bytes >= self.store.home.segment_bytes;
        if full || portion.batches.len() >= SEGMENT_BATCHES {
            return self.write_segment(lines, portion);
        }
        let mut start = 0;
        for (batch, before) in &portion.batches {
            self.write_lines(&lines[start..*batch])?;
            self.sync_file()?;
            self.synced = *before;
            start = *batch;
        }
        self.write_lines(&lines[start..])?;
        if let Some(output) = &mut self.output {
            (output.seq, output.hash) = portion.last;
        }
        Ok(())
    }

    /// Writes the first lines of a log and adds it to the store.
    fn write_first(&mut self, lines: &[u8], portion: &Portion) -> Result<(), Error> {
        // What the source has may be gone on with here, whoever wrote it.
        self.store.home.identity.mark(&self.files)?;
        let output = take::first(&self.files, &self.lock.holder, lines, portion.last)?;
        self.store.publish(&self.files)?;
        self.files = Arc::new(self.store.files(&self.files.name));
        self.output = Some(output);
        self.synced = portion.last.0;
        Ok(())
    }

    /// Writes lines as a separate segment.
    fn write_segment(&mut self, lines: &[u8], portion: &Portion) -> Result<(), Error> {
        self.sync_file()?;
        if let Some(output) = &mut self.output {
            let holder = &self.lock.holder;
            *output = take::next_with(&self.files, output, holder, lines, portion.last)?;
            self.synced = portion.last.0;
        }
        Ok(())
    }

    fn write_lines(&mut self, lines: &[u8]) -> Result<(), Error> {
        let Some(output) = self.output.as_mut().filter(|_| !lines.is_empty()) else {
            return Ok(());
        };
        let path = self.files.segment_path(output.segment);
        self.unsynced = true;
        write_all(output.file.as_ref(), lines).map_err(Error::io("write", path))?;
        output.bytes += lines.len() as u64;
        Ok(())
    }

    fn sync_file(&mut self) -> Result<(), Error> {
        if let Some(output) = self.output.as_ref().filter(|_| self.unsynced) {
            let path = self.files.segment_path(output.segment);
            output.file.sync().map_err(Error::io("sync", path))?;
            self.unsynced = false;
        }
        Ok(())
    }

    fn sync_entries(&mut self) -> Result<(), Error> {
        self.sync_file()?;
        self.synced = self.end().0;
        Ok(())
    }

    fn put_blobs_on_disk(&mut self) -> Result<(), Error> {
        if !mem::take(&mut self.blobs_named) {
            return Ok(());
        }
        let shared = self.store.home.shared_blobs();
        blobs::finish(&self.files, &shared, &mut self.unsynced_blobs)?;
        let folder = self.files.blobs();
        self.files
            .disk
            .sync_folder(&folder)
            .map_err(Error::io("sync", folder))
    }

    /// Removes everything after the entry `last`, which ends at the offset `end` of a segment.
    /// Segments go from the last one on, each durably before the next, so that none is missing
    /// between two.
    fn cut_at(&mut self, segment: &Segment, end: u64, last: (u64, Digest)) -> Result<(), Error> {
        let files = &self.files;
        self.synced = self.synced.min(last.0);
        Seal::remove_beyond(files, last.0)?;
        for number in (segment.number + 1..=files.last_segment()?).rev() {
            let path = files.segment_path(number);
            files
                .disk
                .remove_file(&path)
                .map_err(Error::io("remove", path))?;
            files
                .disk
                .sync_folder(&files.folder)
                .map_err(Error::io("sync", &files.folder))?;
        }
        let mut header = segment.header.clone();
        // It may have begun with entries that go now.
        header.synced = header.synced.min(last.0);
        let mut shorter = files.new_segment(&header)?;
        copy(
            files,
            segment.file.as_ref(),
            segment.body,
            end,
            &mut |bytes| shorter.write(bytes),
        )?;
        let (file, bytes) = shorter.finish()?;
        let shorter = SegmentWriter {
            file,
            segment: segment.number,
            bytes,
            seq: last.0,
            hash: last.1,
        };
        let output = take::next(files, &shorter, &self.lock.holder)?;
        self.output = Some(output);
        (self.unsynced, self.synced) = (false, last.0);
        Ok(())
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        if self.output.is_none() {
            self.store.discard(&self.files.folder);
        }
    }
}

/// Checks that a text is the line of the entry `seq`, after one with the hash `previous`.
fn check_line<'a>(
    text: &'a [u8],
    files: &LogFiles,
    seq: u64,
    previous: &Digest,
) -> Result<LogLine<'a>, Error> {
    let bad = |why: &str| Err(bad(files, seq, why));
    let line = Some(text).filter(|text| text.len() <= LINE_LIMIT);
    let Some(line) = line.and_then(LogLine::parse) else {
        return bad("it is not the line of an entry");
    };
    if line.header.seq != seq {
        return bad(&format!("it is entry {}", line.header.seq));
    }
    if !line.follows(&files.key, previous) {
        return bad("it does not follow from the entry before, or it was changed");
    }
    // Such a line would later make an entry that was never here look lost.
    if line.header.batch.is_some_and(|batch| batch.synced >= seq) {
        return bad("it says of itself or of later entries that they were on disk before");
    }
    if line.payload_bytes() > PAYLOAD_LIMIT || !is_kind(line.header.kind) || !line.is_json() {
        return bad("no writer writes such an entry");
    }
    Ok(line)
}

fn bad(files: &LogFiles, seq: u64, why: &str) -> Error {
    Error::BadLines {
        name: files.name.clone(),
        seq,
        why: why.to_owned(),
    }
}
