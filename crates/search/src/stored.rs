//! The file of an index: its notes, then a posting for each word of each note, sorted by word. All numbers
//! are little-endian.
//!
//! The notes are read when it is opened, postings where they are needed, by binary search. The file is
//! not mapped into memory: a mapped file that somebody truncates kills the process. It is replaced as a
//! whole, so whoever has it open keeps what they opened.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Write as _},
    os::unix::fs::FileExt as _,
    path::Path,
};

use rustix::fs::{FlockOperation, flock};

use crate::document::FIELDS;

const MAGIC: &[u8; 8] = b"gyrusix3";
const FILE: &str = "index";
const LOCK: &str = "lock";

/// Bytes before the notes: the magic, the length of the notes in bytes, their number, and that of the
/// postings.
const HEAD: usize = 32;

/// Metadata of a file by which a change is noticed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SourceStamp {
    /// The file's length in bytes.
    pub size: u64,
    /// The file's inode number.
    pub inode: u64,
    /// Time of the last change of the content, in nanoseconds since 1970.
    pub modified: i64,
    /// Time of the last change of the file, in nanoseconds since 1970.
    pub changed: i64,
}

/// A note in the index.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct IndexedNote {
    pub(crate) path: Box<str>,
    pub(crate) stamp: SourceStamp,
    /// Number of words of each field in the note.
    pub(crate) lengths: [u32; FIELDS],
}

/// Occurrences of a word in a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WordOccurrence {
    /// The digest of the word.
    pub(crate) word: u32,
    note: u32,
    /// Number of occurrences in each field, at most 255, since more would hardly change a score.
    counts: [u8; FIELDS],
}

/// Number of postings that are read at once.
const BLOCK: usize = 512;

/// Bytes of a posting.
const POSTING: usize = 8 + FIELDS;

impl WordOccurrence {
    pub(crate) fn new(word: &str, note: usize, counts: [u32; FIELDS]) -> Self {
        Self {
            word: digest(word),
            note: small(note),
            counts: counts.map(|count| u8::try_from(count).unwrap_or(u8::MAX)),
        }
    }

    pub(crate) fn note(&self) -> usize {
        self.note as usize
    }

    pub(crate) fn set_note(&mut self, note: usize) {
        self.note = small(note);
    }

    pub(crate) fn counts(&self) -> [u32; FIELDS] {
        self.counts.map(u32::from)
    }

    fn of([a, b, c, d, e, f, g, h, counts @ ..]: [u8; POSTING]) -> Self {
        Self {
            word: u32::from_le_bytes([a, b, c, d]),
            note: u32::from_le_bytes([e, f, g, h]),
            counts,
        }
    }
}

/// Returns the digest of a word (FNV-1a, 32 bits). Of 100,000 notes, one in a thousand searches finds one
/// that has another word.
pub(crate) fn digest(word: &str) -> u32 {
    let mixed = |digest: u32, byte: u8| (digest ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    word.bytes().fold(0x811c_9dc5, mixed)
}

fn small(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// An open index file.
#[derive(Debug)]
pub(crate) struct IndexFile {
    file: File,
    /// Number of notes in the file.
    pub(crate) notes: usize,
    /// Offset of the first posting.
    start: u64,
    postings: u64,
}

impl IndexFile {
    /// Opens the file of a folder; `None` if there is none, or it is damaged.
    pub(crate) fn open(folder: &Path) -> Option<(Self, Vec<IndexedNote>)> {
        let file = File::open(folder.join(FILE)).ok()?;
        let whole = file.metadata().ok()?.len();
        let mut head = [0; HEAD];
        file.read_exact_at(&mut head, 0).ok()?;
        let mut head = Bytes(head.strip_prefix(MAGIC)?);
        let (length, count, postings) = (head.number()?, head.number()?, head.number()?);
        let start = (HEAD as u64).checked_add(length)?;
        if whole.checked_sub(start)? != postings.checked_mul(POSTING as u64)? {
            return None;
        }
        let mut bytes = vec![0; usize::try_from(length).ok()?];
        file.read_exact_at(&mut bytes, HEAD as u64).ok()?;
        let mut rest = Bytes(&bytes);
        let mut notes = Vec::new();
        for _ in 0..count {
            notes.push(rest.note()?);
        }
        let stored = Self {
            file,
            notes: notes.len(),
            start,
            postings,
        };
        Some((stored, notes))
    }

    /// Replaces the file of a folder, and removes old index files: indices of earlier versions.
    pub(crate) fn write(
        folder: &Path,
        notes: &[IndexedNote],
        postings: &[WordOccurrence],
    ) -> io::Result<Self> {
        // Somebody may have deleted it.
        fs::create_dir_all(folder)?;
        let lock = File::create(folder.join(LOCK))?;
        flock(&lock, FlockOperation::LockExclusive)?;
        let mut table = Vec::new();
        for note in notes {
            let SourceStamp {
                size,
                inode,
                modified,
                changed,
            } = note.stamp;
            table.extend((note.path.len() as u64).to_le_bytes());
            table.extend(note.path.as_bytes());
            table.extend([size.to_le_bytes(), inode.to_le_bytes()].as_flattened());
            table.extend([modified.to_le_bytes(), changed.to_le_bytes()].as_flattened());
            table.extend(note.lengths.map(u32::to_le_bytes).as_flattened());
        }
        let draft = folder.join("draft");
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(true);
        let mut out = BufWriter::new(options.open(&draft)?);
        out.write_all(MAGIC)?;
        for number in [table.len(), notes.len(), postings.len()] {
            out.write_all(&(number as u64).to_le_bytes())?;
        }
        out.write_all(&table)?;
        for posting in postings {
            out.write_all(&posting.word.to_le_bytes())?;
            out.write_all(&posting.note.to_le_bytes())?;
            out.write_all(&posting.counts)?;
        }
        let file = out.into_inner()?;
        file.sync_all()?;
        fs::rename(&draft, folder.join(FILE))?;
        for entry in fs::read_dir(folder)? {
            let name = entry?.file_name();
            if name != FILE && name != LOCK {
                let _ = fs::remove_file(folder.join(name));
            }
        }
        Ok(Self {
            file,
            notes: notes.len(),
            start: (HEAD + table.len()) as u64,
            postings: postings.len() as u64,
        })
    }

    pub(crate) fn postings(&self, word: u32) -> io::Result<Vec<WordOccurrence>> {
        let mut found = self.read_while(self.first(word)?, |posting| posting.word == word)?;
        found.retain(|posting| posting.word == word);
        Ok(found)
    }

    pub(crate) fn all(&self) -> io::Result<Vec<WordOccurrence>> {
        self.read_while(0, |_| true)
    }

    /// Reads blocks of postings while the last one of a block is wanted.
    fn read_while(
        &self,
        from: u64,
        is_wanted: impl Fn(&WordOccurrence) -> bool,
    ) -> io::Result<Vec<WordOccurrence>> {
        let mut found = Vec::new();
        for from in (from..self.postings).step_by(BLOCK) {
            found.extend(self.read(from, self.postings.min(from + BLOCK as u64))?);
            if !found.last().is_some_and(&is_wanted) {
                break;
            }
        }
        Ok(found)
    }

    /// Returns the index of the first posting of this word or a later one.
    fn first(&self, word: u32) -> io::Result<u64> {
        let (mut from, mut to) = (0, self.postings);
        while from < to {
            let middle = from.midpoint(to);
            let is_before = self.read(middle, middle + 1)?[0].word < word;
            (from, to) = if is_before {
                (middle + 1, to)
            } else {
                (from, middle)
            };
        }
        Ok(from)
    }

    fn read(&self, from: u64, to: u64) -> io::Result<Vec<WordOccurrence>> {
        let count = to.saturating_sub(from) as usize;
        let mut bytes = vec![0; POSTING * count];
        let at = self.start + POSTING as u64 * from;
        self.file.read_exact_at(&mut bytes, at)?;
        let (postings, _) = bytes.as_chunks();
        Ok(postings
            .iter()
            .map(|posting| WordOccurrence::of(*posting))
            .collect())
    }
}

/// Reads numbers out of bytes; `None` at their end.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn note(&mut self) -> Option<IndexedNote> {
        let length = usize::try_from(self.number()?).ok()?;
        let path = std::str::from_utf8(self.take(length)?).ok()?.into();
        let stamp = SourceStamp {
            size: self.number()?,
            inode: self.number()?,
            modified: self.number()?.cast_signed(),
            changed: self.number()?.cast_signed(),
        };
        let mut lengths = [0; FIELDS];
        for length in &mut lengths {
            *length = u32::from_le_bytes(self.take(4)?.try_into().ok()?);
        }
        Some(IndexedNote {
            path,
            stamp,
            lengths,
        })
    }
}
