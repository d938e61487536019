//! The files of a log, and the headers of its segments.
//!
//! Taking a log opens a new segment, and so does a writer whose segment is full. Its first line
//! states how much of the segment before counts; bytes beyond that are ignored permanently. A
//! segment appears under its name only when its whole beginning is on disk.
//!
//! A log can be in the store under its name, or staged elsewhere: its folder is not derived from
//! its name here.

use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use gyrus_contract::Digest;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{
    Disk, DiskFile, Error, Holder, LogEntry, LogName,
    line::{self, LogKey, LogLine},
    lines::{LinePiece, LogLineReader},
};

/// The version of the format that this program writes.
pub(crate) const FORMAT: u32 = 1;

/// Size in bytes from which a segment is followed by a new one.
pub(crate) const SEGMENT_BYTES: u64 = 64 << 20;

/// Number of bytes of a new segment that are written at once.
const WRITE_BYTES: usize = 256 << 10;

/// The temporary name of a segment during its writing. Only the lock's holder writes one.
pub(crate) const TEMPORARY: &str = ".tmp-segment";

/// The prefix of all temporary names.
pub(crate) const TEMPORARY_PREFIX: &str = ".tmp-";

/// Length of `,"hash":"<32 digits>"}`.
const HASH_LENGTH: usize = 43;

/// The end of a segment, as recorded in its successor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SegmentEnd {
    pub(crate) segment: u32,
    /// Number of bytes in the segment that count.
    pub(crate) bytes: u64,
    /// The number of the segment's last entry, or that of an earlier segment.
    pub(crate) seq: u64,
    /// The hash of that entry.
    pub(crate) hash: Digest,
}

/// The first line of a segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SegmentHeader {
    pub(crate) segment: u32,
    pub(crate) format: u32,
    pub(crate) log: String,
    /// The end of the previous segment; missing in the first one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) previous: Option<SegmentEnd>,
    /// The number of the last entry on disk when the segment was created, in whatever segment.
    pub(crate) synced: u64,
    /// Whether entries were erased. Then the whole file counts, whatever its successor says of its
    /// length.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) rewritten: bool,
    pub(crate) holder: Holder,
}

impl SegmentHeader {
    /// Returns the header as a line with its newline.
    pub(crate) fn encode(&self, key: &LogKey) -> Vec<u8> {
        signed(self, key)
    }

    fn parse(line: &[u8], key: &LogKey) -> Result<Self, String> {
        read_signed(line, key).map_err(|why| format!("its header is invalid: {why}"))
    }

    /// Returns the number and hash of the entry that the first one of this segment follows.
    pub(crate) fn chain(&self) -> (u64, Digest) {
        self.previous
            .map_or((0, line::genesis()), |end| (end.seq, end.hash))
    }
}

/// Formats a JSON object as a line with a newline, whose last field is the keyed hash of the fields
/// before it.
pub(crate) fn signed(object: &impl Serialize, key: &LogKey) -> Vec<u8> {
    let mut text = serde_json::to_vec(object).expect("it has string keys only");
    text.pop();
    let hash = key.hash(&text);
    text.extend_from_slice(format!(",\"hash\":\"{hash}\"}}\n").as_bytes());
    text
}

/// Parses a line that [`signed`] returned, without its newline.
pub(crate) fn read_signed<T: DeserializeOwned>(line: &[u8], key: &LogKey) -> Result<T, String> {
    let split = line.len().checked_sub(HASH_LENGTH).ok_or("it is cut")?;
    let (text, end) = line.split_at(split);
    if end != format!(",\"hash\":\"{}\"}}", key.hash(text)).as_bytes() {
        return Err("it does not match its hash, or belongs to another log".to_owned());
    }
    serde_json::from_slice(line).map_err(|error| error.to_string())
}

#[derive(Debug, Clone)]
pub(crate) struct Segment {
    pub(crate) number: u32,
    pub(crate) file: Arc<dyn DiskFile>,
    pub(crate) header: SegmentHeader,
    /// Offset of the line after the header.
    pub(crate) body: u64,
}

#[derive(Clone)]
pub(crate) struct LogFiles {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) name: LogName,
    pub(crate) folder: PathBuf,
    pub(crate) key: LogKey,
}

impl fmt::Debug for LogFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Files").field(&self.folder).finish()
    }
}

impl LogFiles {
    pub(crate) fn new(disk: Arc<dyn Disk>, name: LogName, folder: PathBuf) -> Self {
        Self {
            disk,
            key: LogKey::of(&name),
            name,
            folder,
        }
    }

    /// Renames a whole file of the folder, durably.
    pub(crate) fn put_in_place(&self, temporary: &Path, path: &Path) -> Result<(), Error> {
        self.disk
            .rename(temporary, path)
            .map_err(Error::io("put in place", path))?;
        self.disk
            .sync_folder(&self.folder)
            .map_err(Error::io("sync", &self.folder))
    }

    pub(crate) fn segment_path(&self, number: u32) -> PathBuf {
        self.folder.join(format!("{number:06}.jsonl"))
    }

    pub(crate) fn blobs(&self) -> PathBuf {
        self.folder.join("blobs")
    }

    /// Returns the folder of content that is never shared or exported.
    pub(crate) fn private(&self) -> PathBuf {
        self.folder.join("private")
    }

    pub(crate) fn inbox(&self) -> PathBuf {
        self.folder.join("inbox")
    }

    pub(crate) fn lock(&self) -> PathBuf {
        self.folder.join("lock")
    }

    /// Returns the number of the last segment. Segments count from 1 without gaps.
    pub(crate) fn last_segment(&self) -> Result<u32, Error> {
        let names = self
            .disk
            .list(&self.folder)
            .map_err(|error| self.missing(error))?;
        let mut numbers: Vec<u32> = names
            .iter()
            .filter_map(|name| self.segment_number(name))
            .collect();
        numbers.sort_unstable();
        for (number, expected) in numbers.iter().zip(1..) {
            if *number != expected {
                return Err(self.corrupt(expected, 0, 0, "the segment is missing"));
            }
        }
        match numbers.last() {
            Some(last) => Ok(*last),
            None => Err(self.corrupt(1, 0, 1, "the segment is missing")),
        }
    }

    /// Checks that no segment is missing between the first and the last. The error says that the
    /// entry `seq` is the first one missing.
    pub(crate) fn check_no_gap(&self, seq: u64) -> Result<(), Error> {
        match self.last_segment() {
            Ok(_) => Ok(()),
            Err(Error::Corrupt { segment, why, .. }) => Err(self.corrupt(segment, 0, seq, why)),
            Err(error) => Err(error),
        }
    }

    fn segment_number(&self, name: &str) -> Option<u32> {
        let number = name.strip_suffix(".jsonl")?.parse().ok()?;
        (self.segment_path(number).file_name()? == name).then_some(number)
    }

    pub(crate) fn has_segment(&self, number: u32) -> Result<bool, Error> {
        let path = self.segment_path(number);
        match self.disk.metadata(&path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(Error::io("look at", path)(error)),
        }
    }

    pub(crate) fn open_segment(&self, number: u32) -> Result<Segment, Error> {
        let path = self.segment_path(number);
        let file: Arc<dyn DiskFile> = match self.disk.open(&path) {
            Ok(file) => Arc::from(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(self.corrupt(number, 0, 0, "the segment is missing"));
            }
            Err(error) => return Err(Error::io("open", path)(error)),
        };
        let mut lines = LogLineReader::new(Arc::clone(&file), 0, u64::MAX);
        let piece = lines.next().map_err(Error::io("read", path))?;
        let LinePiece::Line(text) = piece else {
            return Err(self.corrupt(number, 0, 0, "its header is cut"));
        };
        let header =
            SegmentHeader::parse(text, &self.key).map_err(|why| self.corrupt(number, 0, 0, why))?;
        if header.log != self.name.to_string() || header.segment != number {
            let why = format!("it is segment {} of {}", header.segment, header.log);
            return Err(self.corrupt(number, 0, 0, why));
        }
        if header.previous.map_or(1, |end| end.segment + 1) != number {
            return Err(self.corrupt(number, 0, 0, "its header names the wrong predecessor"));
        }
        Ok(Segment {
            number,
            file,
            header,
            body: lines.offset(),
        })
    }

    /// Begins to write a segment. It replaces one of the same number, if there is one, but not
    /// before [`NewSegment::finish`].
    pub(crate) fn new_segment(&self, header: &SegmentHeader) -> Result<NewSegment<'_>, Error> {
        let temporary = self.folder.join(TEMPORARY);
        let file = self
            .disk
            .create_new(&temporary)
            .map_err(Error::io("create", &temporary))?;
        let text = header.encode(&self.key);
        Ok(NewSegment {
            files: self,
            number: header.segment,
            temporary,
            file,
            text,
            written: 0,
        })
    }

    /// Removes the files of interrupted writers from one folder of this log.
    pub(crate) fn remove_temporaries(&self, folder: &Path) -> Result<(), Error> {
        for name in self.disk.list(folder).map_err(Error::io("list", folder))? {
            if name.starts_with(TEMPORARY_PREFIX) {
                let path = folder.join(name);
                match self.disk.remove_file(&path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        return Err(Error::io("remove", path)(error));
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Converts a failure to access the log's folder to an error.
    pub(crate) fn missing(&self, error: io::Error) -> Error {
        if error.kind() == io::ErrorKind::NotFound {
            Error::NotFound {
                name: self.name.clone(),
            }
        } else {
            Error::io("open", &self.folder)(error)
        }
    }

    /// Converts a line of a segment to an entry.
    pub(crate) fn entry(&self, segment: u32, line: &LogLine<'_>) -> Result<LogEntry, Error> {
        line.to_entry().ok_or_else(|| {
            let why = "its payload is not JSON although its hash is right";
            self.corrupt(segment, 0, line.header.seq, why)
        })
    }

    pub(crate) fn corrupt(
        &self,
        segment: u32,
        offset: u64,
        seq: u64,
        why: impl Into<String>,
    ) -> Error {
        Error::Corrupt {
            name: self.name.clone(),
            segment,
            offset,
            seq,
            why: why.into(),
        }
    }
}

/// A segment without a name yet.
pub(crate) struct NewSegment<'a> {
    files: &'a LogFiles,
    number: u32,
    temporary: PathBuf,
    file: Box<dyn DiskFile>,
    /// Text that is not written yet.
    text: Vec<u8>,
    written: u64,
}

impl NewSegment<'_> {
    /// Appends bytes to the segment.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.text.extend_from_slice(bytes);
        if self.text.len() >= WRITE_BYTES {
            self.flush()
        } else {
            Ok(())
        }
    }

    fn flush(&mut self) -> Result<(), Error> {
        write_all(self.file.as_ref(), &self.text).map_err(Error::io("write", &self.temporary))?;
        self.written += self.text.len() as u64;
        self.text.clear();
        Ok(())
    }

    /// Syncs the segment to disk under its final name. Returns the file, open at its end, and its
    /// length in bytes.
    pub(crate) fn finish(mut self) -> Result<(Box<dyn DiskFile>, u64), Error> {
        self.flush()?;
        let Self {
            files,
            number,
            temporary,
            file,
            written,
            ..
        } = self;
        let path = files.segment_path(number);
        file.sync().map_err(Error::io("sync", &temporary))?;
        files.put_in_place(&temporary, &path)?;
        Ok((file, written))
    }
}

/// Writes all of `bytes`, however many calls the disk needs.
pub(crate) fn write_all(file: &dyn DiskFile, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
