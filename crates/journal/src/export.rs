//! Exporting a whole log as one file, and importing it.
//!
//! An export is a sequence of parts, each a line of JSON that gives the kind and length of what
//! follows, then that many bytes and a newline. It begins with the log's name and ends with a hash
//! of everything before. Only data that counts is exported: no tails, no locks, no messages.
//!
//! An import trusts nothing: it writes a staged log, checks every hash, and only then gives the log
//! its name.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    path::Path,
    sync::Arc,
};

use gyrus_contract::BlobId;
use serde::{Deserialize, Serialize};

use crate::{
    DiskFile, Error, LogName, Store,
    birth::mark_as_foreign,
    blobs::{self, BLOB_LIMIT},
    scan::Scan,
    seal::{self, Seal},
    segment::{LogFiles, SEGMENT_BYTES, write_all},
    store::{self, StagedLog},
    take::copy,
    writer::BATCH_LIMIT,
};

/// The version of the format of exports without a seal, which every version of this program reads.
const EXPORT: u32 = 1;

/// The version of the format of exports with a seal.
const SEALED_EXPORT: u32 = 2;

/// Maximum length of a line between parts, in bytes.
const PART_LIMIT: u64 = 1 << 10;

/// Maximum length of a segment, in bytes: one that is not quite full takes one more batch, with its
/// headers, behind the entries that recovery carried over.
const SEGMENT_LIMIT: u64 = SEGMENT_BYTES + 8 * BATCH_LIMIT as u64;

/// Number of bytes copied at once.
const COPY_BYTES: usize = 256 << 10;

/// The contents of an export by [`Store::export`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExportContents {
    /// Number of entries, which is the number of the last one.
    pub entries: u64,
    /// Number of blobs.
    pub blobs: u64,
    /// Number of the log's blobs that were left out.
    pub left_out: u64,
    /// Length of the export in bytes.
    pub bytes: u64,
}

/// The header of a part of an export.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "part", rename_all = "snake_case", deny_unknown_fields)]
enum ExportPart {
    /// The start, followed by no bytes. Always the first part.
    Log {
        export: u32,
        name: String,
    },
    /// A segment. Segments come in order.
    Segment {
        number: u32,
        bytes: u64,
    },
    /// The seal, which lists the blobs of the export. It follows the segments, if there is one.
    Seal {
        bytes: u64,
    },
    Blob {
        id: BlobId,
        bytes: u64,
    },
    /// The end, followed by no bytes. Always the last part; `hash` covers all before this line.
    End {
        segments: u32,
        blobs: u64,
        hash: BlobId,
    },
}

impl Store {
    /// Exports a log as one file, with the `wanted` ones of its blobs. Another process may be
    /// writing the log; the export holds the log's content at some moment during the call.
    ///
    /// # Errors
    /// Returns the error of [`Store::verify`] if the log is damaged; then nothing is written.
    pub fn export(
        &self,
        name: &LogName,
        wanted: &dyn Fn(&BlobId) -> bool,
        out: &mut dyn Write,
    ) -> Result<ExportContents, Error> {
        let files = self.existing(name)?;
        let seal = Seal::read(&files)?;
        self.verify(name)?;
        let mut out = Out {
            files: &files,
            out,
            hasher: blake3::Hasher::new(),
            bytes: 0,
        };
        out.part(&ExportPart::Log {
            export: if seal.is_some() {
                SEALED_EXPORT
            } else {
                EXPORT
            },
            name: name.to_string(),
        })?;
        let mut scan = Scan::open(&files, 1)?;
        loop {
            while scan.next(&mut |_| ())?.is_some() {}
            let number = scan.segment.number;
            let bytes = scan.position().offset.unwrap_or(scan.segment.body);
            out.part(&ExportPart::Segment { number, bytes })?;
            let file = scan.segment.file.as_ref();
            copy(&files, file, 0, bytes, &mut |bytes| out.write(bytes))?;
            out.write(b"\n")?;
            if !scan.is_closed() {
                break;
            }
            scan = Scan::open(&files, number + 1)?;
        }
        if let Some(mut seal) = seal {
            seal.blobs.retain(wanted);
            let text = seal.encode(&files);
            let bytes = text.len() as u64;
            out.part(&ExportPart::Seal { bytes })?;
            out.write(&text)?;
            out.write(b"\n")?;
        }
        let (ids, left_out): (Vec<_>, Vec<_>) = blobs::list(&files)?.into_iter().partition(wanted);
        for id in &ids {
            export_blob(&mut out, id)?;
        }
        let (segments, blobs) = (scan.segment.number, ids.len() as u64);
        let hash = BlobId::from_hash(out.hasher.finalize());
        out.part(&ExportPart::End {
            segments,
            blobs,
            hash,
        })?;
        out.out
            .flush()
            .map_err(Error::io("write the export of", &files.folder))?;
        Ok(ExportContents {
            entries: scan.position().seq,
            blobs,
            left_out: left_out.len() as u64,
            bytes: out.bytes,
        })
    }

    /// Imports a log of this kind, and returns its name. The log must not exist yet. It can be read,
    /// and never be taken: see [`Birth`](crate::Birth). After an error, nothing of the import is left
    /// behind.
    pub fn import(&self, kind: &str, from: &mut dyn Read) -> Result<LogName, Error> {
        let mut from = ExportReader {
            from: BufReader::new(from),
            hasher: blake3::Hasher::new(),
        };
        let name = match from.part()? {
            ExportPart::Log {
                export: EXPORT | SEALED_EXPORT,
                name,
            } => name.parse::<LogName>()?,
            ExportPart::Log { export, .. } => {
                return Err(bad(format!(
                    "it has format {export}, this program reads {SEALED_EXPORT}"
                )));
            }
            _ => return Err(bad("it does not begin with the name of a log")),
        };
        if name.kind() != kind {
            return Err(bad(format!(
                "it holds {name}, and only {kind} are taken in"
            )));
        }
        let staged = self.stage(&name)?;
        let imported = mark_as_foreign(&staged.files)
            .and_then(|()| import_into(&mut from, &staged))
            .and_then(|()| self.publish(&staged.files));
        if let Err(error) = imported {
            self.discard(&staged.files.folder);
            return Err(error);
        }
        let files = self.files(&name);
        for id in blobs::list(&files)? {
            blobs::share(&files, &self.home.shared_blobs(), &id);
        }
        Ok(name)
    }
}

/// An export being written.
struct Out<'a> {
    files: &'a LogFiles,
    out: &'a mut dyn Write,
    hasher: blake3::Hasher,
    bytes: u64,
}

impl Out<'_> {
    fn part(&mut self, part: &ExportPart) -> Result<(), Error> {
        let mut line = serde_json::to_vec(part).expect("a part has string keys only");
        line.push(b'\n');
        self.write(&line)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.hasher.update(bytes);
        self.bytes += bytes.len() as u64;
        self.out
            .write_all(bytes)
            .map_err(Error::io("write the export of", &self.files.folder))
    }
}

fn export_blob(out: &mut Out<'_>, id: &BlobId) -> Result<(), Error> {
    let files = out.files;
    let path = files.blobs().join(id.to_string());
    let file = files.disk.open(&path).map_err(Error::io("open", &path))?;
    let bytes = file.metadata().map_err(Error::io("look at", path))?.len;
    out.part(&ExportPart::Blob { id: *id, bytes })?;
    let mut hasher = blake3::Hasher::new();
    copy(files, file.as_ref(), 0, bytes, &mut |bytes| {
        hasher.update(bytes);
        out.write(bytes)
    })?;
    if BlobId::from_hash(hasher.finalize()) != *id {
        return Err(Error::BlobDamaged {
            name: files.name.clone(),
            id: *id,
        });
    }
    out.write(b"\n")
}

struct ExportReader<'a> {
    from: BufReader<&'a mut dyn Read>,
    hasher: blake3::Hasher,
}

impl ExportReader<'_> {
    fn part(&mut self) -> Result<ExportPart, Error> {
        let mut line = Vec::new();
        (&mut self.from)
            .take(PART_LIMIT)
            .read_until(b'\n', &mut line)
            .map_err(unreadable)?;
        let part = serde_json::from_slice(&line)
            .ok()
            .filter(|_| line.ends_with(b"\n"))
            .ok_or_else(|| bad("it is cut or damaged between two parts"))?;
        if !matches!(part, ExportPart::End { .. }) {
            self.hasher.update(&line);
        }
        Ok(part)
    }

    /// Writes the next `bytes` bytes into a new file and puts them on disk. Returns their hash.
    fn file(&mut self, file: &dyn DiskFile, path: &Path, bytes: u64) -> Result<BlobId, Error> {
        let mut buffer = vec![0; COPY_BYTES.min(usize::try_from(bytes).unwrap_or(COPY_BYTES))];
        let mut hasher = blake3::Hasher::new();
        let mut left = bytes;
        while left > 0 {
            let want = buffer
                .len()
                .min(usize::try_from(left).unwrap_or(usize::MAX));
            self.from
                .read_exact(&mut buffer[..want])
                .map_err(unreadable)?;
            hasher.update(&buffer[..want]);
            self.hasher.update(&buffer[..want]);
            write_all(file, &buffer[..want]).map_err(Error::io("write", path))?;
            left -= want as u64;
        }
        let mut newline = [0];
        self.from.read_exact(&mut newline).map_err(unreadable)?;
        self.hasher.update(&newline);
        if newline != *b"\n" {
            return Err(bad("a part is longer than it says"));
        }
        file.sync().map_err(Error::io("write", path))?;
        Ok(BlobId::from_hash(hasher.finalize()))
    }
}

fn import_into(from: &mut ExportReader<'_>, staged: &StagedLog) -> Result<(), Error> {
    let files = &staged.files;
    let (mut segments, mut blobs) = (0, 0);
    loop {
        let (path, bytes, limit, id) = match from.part()? {
            ExportPart::Log { .. } => return Err(bad("it names a log twice")),
            ExportPart::Segment { number, bytes } => {
                segments += 1;
                if number != segments {
                    return Err(bad(format!("segment {segments} is missing")));
                }
                (files.segment_path(number), bytes, SEGMENT_LIMIT, None)
            }
            ExportPart::Seal { bytes } => (seal::path(files), bytes, BLOB_LIMIT as u64, None),
            ExportPart::Blob { id, bytes } => {
                blobs += 1;
                (
                    files.blobs().join(id.to_string()),
                    bytes,
                    BLOB_LIMIT as u64,
                    Some(id),
                )
            }
            ExportPart::End {
                segments: all,
                blobs: all_blobs,
                hash,
            } => {
                if BlobId::from_hash(from.hasher.finalize()) != hash {
                    return Err(bad("its hash is wrong"));
                }
                if (all, all_blobs) != (segments, blobs) {
                    return Err(bad("parts are missing"));
                }
                break;
            }
        };
        if bytes > limit {
            return Err(bad(format!(
                "a part says it has {bytes} bytes, the most is {limit}"
            )));
        }
        let file = files
            .disk
            .create_new(&path)
            .map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => bad("it has a blob or its seal twice"),
                _ => Error::io("create", &path)(error),
            })?;
        let hash = from.file(file.as_ref(), &path, bytes)?;
        if id.is_some_and(|id| id != hash) {
            return Err(bad(format!("the blob {hash} has another name")));
        }
    }
    if from.from.read(&mut [0]).map_err(unreadable)? != 0 {
        return Err(bad("something follows its end"));
    }
    check(files)
}

/// Checks that the staged log is complete, and syncs its names to disk.
fn check(files: &Arc<LogFiles>) -> Result<(), Error> {
    let verified = store::verify(files).map_err(|error| match error {
        Error::Corrupt {
            why, segment, seq, ..
        } => bad(format!(
            "segment {segment} is damaged at entry {seq}: {why}"
        )),
        Error::BadSeal { why, .. } => bad(format!("its seal is damaged: {why}")),
        Error::BlobLost { id, .. } => bad(format!("the blob {id} is missing")),
        other => other,
    })?;
    if verified.tail.is_some() {
        return Err(bad("its last segment goes on behind its last entry"));
    }
    for folder in [files.blobs(), files.folder.clone()] {
        files
            .disk
            .sync_folder(&folder)
            .map_err(Error::io("sync", folder))?;
    }
    Ok(())
}

fn bad(why: impl Into<String>) -> Error {
    Error::BadExport { why: why.into() }
}

fn unreadable(error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => bad("it ends in the middle of a part"),
        _ => bad(format!("it cannot be read: {error}")),
    }
}
