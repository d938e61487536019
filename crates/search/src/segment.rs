//! Segment: the inverted index of some notes, in one immutable file.
//!
//! The file holds the postings of all words, the sorted words with the places of their postings, the
//! notes, and the first word of every block of words. Everything but postings and words is read when
//! a segment is opened; these are read from the file, and so from the page cache, where they are
//! needed. The file is not mapped into memory: a mapped file that somebody truncates kills the
//! process.
//!
//! Numbers are in the variable-length encoding of seven bits a byte. A file that is damaged gives
//! [`Damaged`], and the index is then built again from the notes.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, BufWriter, Write},
    os::unix::fs::FileExt as _,
    path::Path,
};

use crate::document::Document;

/// Number of fields of a text that are weighted separately: title, headings, tags and body.
pub(crate) const FIELDS: usize = 4;

const MAGIC: &[u8; 8] = b"gyrusix1";

/// Number of words in a block, which is the least that is read to find one.
const BLOCK: usize = 64;

/// Bytes of the footer: five numbers of eight bytes, and the magic.
const FOOTER: usize = 48;

/// An index cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The file system reports an error.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The content is not that of a segment.
    #[error("the index is damaged")]
    Damaged,
}

/// State of a file by which a change of it is noticed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stamp {
    /// Its length in bytes.
    pub size: u64,
    /// Its number in the file system.
    pub inode: u64,
    /// Time of the last change of the content, in nanoseconds since 1970.
    pub modified: i64,
    /// Time of the last change of the file, in nanoseconds since 1970.
    pub changed: i64,
}

/// A note as the index knows it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct IndexedNote {
    /// Path below the vault.
    pub(crate) path: Box<str>,
    pub(crate) stamp: Stamp,
    /// Number of words of each field.
    pub(crate) lengths: [u32; FIELDS],
}

/// Occurrences of a word in a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Posting {
    pub(crate) note: u32,
    pub(crate) counts: [u32; FIELDS],
}

fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    put(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// Reads numbers and texts out of bytes.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn number(&mut self) -> Result<u64, IndexError> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (first, rest) = self.0.split_first().ok_or(IndexError::Damaged)?;
            self.0 = rest;
            number |= u64::from(first & 0x7f) << shift;
            if first & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(IndexError::Damaged)
    }

    fn small(&mut self) -> Result<u32, IndexError> {
        u32::try_from(self.number()?).map_err(|_| IndexError::Damaged)
    }

    fn length(&mut self) -> Result<usize, IndexError> {
        usize::try_from(self.number()?).map_err(|_| IndexError::Damaged)
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], IndexError> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(IndexError::Damaged)?;
        self.0 = rest;
        Ok(taken)
    }

    fn text(&mut self) -> Result<&'a str, IndexError> {
        let length = self.length()?;
        std::str::from_utf8(self.take(length)?).map_err(|_| IndexError::Damaged)
    }

    fn posting(&mut self, last: &mut u32) -> Result<Posting, IndexError> {
        let note = last.checked_add(self.small()?).ok_or(IndexError::Damaged)?;
        *last = note;
        let fields = self.take(1)?[0];
        let mut counts = [0; FIELDS];
        for (field, count) in counts.iter_mut().enumerate() {
            if fields & (1 << field) != 0 {
                *count = self.small()?;
            }
        }
        Ok(Posting { note, counts })
    }
}

/// Postings of a word, encoded, to which more are added in the order of notes.
#[derive(Debug, Default)]
pub(crate) struct Postings {
    bytes: Vec<u8>,
    count: u32,
    last: u32,
}

impl Postings {
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(crate) fn add(&mut self, posting: Posting) {
        put(&mut self.bytes, u64::from(posting.note - self.last));
        self.last = posting.note;
        self.count += 1;
        let used = posting.counts.iter().enumerate();
        let fields = used.fold(0, |fields, (field, count)| {
            fields | (u8::from(*count > 0) << field)
        });
        self.bytes.push(fields);
        for count in posting.counts.iter().filter(|count| **count > 0) {
            put(&mut self.bytes, u64::from(*count));
        }
    }
}

/// Collects the words of notes, until they are written as a segment.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    words: HashMap<Box<str>, Postings>,
    pub(crate) notes: Vec<IndexedNote>,
    bytes: usize,
}

impl Builder {
    /// Adds a note with how often each of its words occurs in each field.
    pub(crate) fn add(&mut self, path: &str, stamp: Stamp, Document { counts, lengths }: Document) {
        let note = u32::try_from(self.notes.len()).expect("a segment is written long before");
        for (word, counts) in counts {
            let posting = Posting { note, counts };
            match self.words.get_mut(word.as_str()) {
                Some(postings) => {
                    postings.add(posting);
                    self.bytes += 4;
                }
                None => {
                    // Roughly what a word costs beside its postings.
                    self.bytes += word.len() + 100;
                    let mut postings = Postings::default();
                    postings.add(posting);
                    self.words.insert(word.into_boxed_str(), postings);
                }
            }
        }
        self.bytes += path.len() + 100;
        self.notes.push(IndexedNote {
            path: path.into(),
            stamp,
            lengths,
        });
    }

    /// Returns roughly the memory that it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Writes what was collected to a new file.
    pub(crate) fn write(self, path: &Path) -> io::Result<()> {
        let mut words: Vec<_> = self.words.into_iter().collect();
        words.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        let mut writer = Writer::new(path)?;
        for (word, postings) in &words {
            writer.add(word, postings)?;
        }
        writer.finish(&self.notes)
    }
}

/// Writes a segment, word by word.
pub(crate) struct Writer {
    file: BufWriter<File>,
    position: u64,
    words: Vec<u8>,
    blocks: Vec<u8>,
    count: usize,
    last: String,
}

impl Writer {
    pub(crate) fn new(path: &Path) -> io::Result<Self> {
        Ok(Self {
            file: BufWriter::with_capacity(1 << 18, File::create(path)?),
            position: 0,
            words: Vec::new(),
            blocks: Vec::new(),
            count: 0,
            last: String::new(),
        })
    }

    /// Adds a word, which sorts after all words so far.
    pub(crate) fn add(&mut self, word: &str, postings: &Postings) -> io::Result<()> {
        if self.count.is_multiple_of(BLOCK) {
            put_text(&mut self.blocks, word);
            put(&mut self.blocks, self.words.len() as u64);
            put(&mut self.blocks, self.position);
            self.last.clear();
        }
        let shared = word
            .bytes()
            .zip(self.last.bytes())
            .take_while(|(one, other)| one == other);
        let mut shared = shared.count();
        while !word.is_char_boundary(shared) {
            shared -= 1;
        }
        put(&mut self.words, shared as u64);
        put_text(&mut self.words, &word[shared..]);
        put(&mut self.words, u64::from(postings.count));
        put(&mut self.words, postings.bytes.len() as u64);
        self.last.truncate(shared);
        self.last.push_str(&word[shared..]);
        self.count += 1;
        self.position += postings.bytes.len() as u64;
        self.file.write_all(&postings.bytes)
    }

    /// Writes the rest, and waits until all of it is on disk.
    pub(crate) fn finish(mut self, notes: &[IndexedNote]) -> io::Result<()> {
        let mut tail = Vec::new();
        for note in notes {
            put_text(&mut tail, &note.path);
            put(&mut tail, note.stamp.size);
            put(&mut tail, note.stamp.inode);
            put(&mut tail, note.stamp.modified as u64);
            put(&mut tail, note.stamp.changed as u64);
            for length in note.lengths {
                put(&mut tail, u64::from(length));
            }
        }
        self.file.write_all(&self.words)?;
        self.file.write_all(&tail)?;
        self.file.write_all(&self.blocks)?;
        let sizes = [
            self.position,
            self.words.len() as u64,
            tail.len() as u64,
            self.blocks.len() as u64,
            notes.len() as u64,
        ];
        for size in sizes {
            self.file.write_all(&size.to_le_bytes())?;
        }
        self.file.write_all(MAGIC)?;
        let file = self.file.into_inner()?;
        file.sync_all()
    }
}

/// First word of a block, with the places of the block and of its first postings.
#[derive(Debug)]
struct Block {
    first: Box<str>,
    at: u64,
    postings: u64,
}

/// An open segment.
#[derive(Debug)]
pub(crate) struct Segment {
    file: File,
    blocks: Vec<Block>,
    pub(crate) notes: Vec<IndexedNote>,
    /// Places at which the words begin and end.
    words: (u64, u64),
}

impl Segment {
    pub(crate) fn open(path: &Path) -> Result<Self, IndexError> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        let footer_at = length
            .checked_sub(FOOTER as u64)
            .ok_or(IndexError::Damaged)?;
        let footer = read(&file, footer_at, FOOTER as u64)?;
        if &footer[40..] != MAGIC {
            return Err(IndexError::Damaged);
        }
        let mut sizes = footer[..40].chunks_exact(8).map(|size| {
            let size: [u8; 8] = size.try_into().expect("chunks of eight");
            u64::from_le_bytes(size)
        });
        let mut size = || sizes.next().unwrap_or_default();
        let (postings, words, tail, blocks, count) = (size(), size(), size(), size(), size());
        let whole = [words, tail, blocks]
            .iter()
            .try_fold(postings, |sum, size| sum.checked_add(*size));
        if whole != Some(footer_at) || count > tail {
            return Err(IndexError::Damaged);
        }
        let tail_at = postings + words;
        let bytes = read(&file, tail_at, tail)?;
        let notes = read_notes(Bytes(&bytes), count)?;
        let bytes = read(&file, tail_at + tail, blocks)?;
        let mut bytes = Bytes(&bytes);
        let mut blocks = Vec::new();
        while !bytes.0.is_empty() {
            let block = Block {
                first: bytes.text()?.into(),
                at: bytes.number()?,
                postings: bytes.number()?,
            };
            if block.at > words || block.postings > postings {
                return Err(IndexError::Damaged);
            }
            blocks.push(block);
        }
        Ok(Self {
            file,
            blocks,
            notes,
            words: (postings, tail_at),
        })
    }

    /// Returns the postings of a word, sorted by note.
    pub(crate) fn postings(&self, word: &str) -> Result<Vec<Posting>, IndexError> {
        let after = self.blocks.partition_point(|block| &*block.first <= word);
        let Some(number) = after.checked_sub(1) else {
            return Ok(Vec::new());
        };
        for entry in self.block(number)? {
            if entry.word == word {
                return self.decode(&entry);
            }
        }
        Ok(Vec::new())
    }

    fn decode(&self, entry: &WordEntry) -> Result<Vec<Posting>, IndexError> {
        if entry
            .at
            .checked_add(entry.bytes)
            .is_none_or(|end| end > self.words.0)
        {
            return Err(IndexError::Damaged);
        }
        let bytes = read(&self.file, entry.at, entry.bytes)?;
        let mut bytes = Bytes(&bytes);
        let mut postings = Vec::with_capacity(bytes.0.len() / 3);
        let mut last = 0;
        while !bytes.0.is_empty() {
            let posting = bytes.posting(&mut last)?;
            if posting.note as usize >= self.notes.len() {
                return Err(IndexError::Damaged);
            }
            postings.push(posting);
        }
        Ok(postings)
    }

    fn block(&self, number: usize) -> Result<Vec<WordEntry>, IndexError> {
        let block = &self.blocks[number];
        let from = self.words.0 + block.at;
        let to = match self.blocks.get(number + 1) {
            Some(next) => self.words.0 + next.at,
            None => self.words.1,
        };
        let length = to.checked_sub(from).ok_or(IndexError::Damaged)?;
        let bytes = read(&self.file, from, length)?;
        let mut bytes = Bytes(&bytes);
        let mut at = block.postings;
        let mut entries: Vec<WordEntry> = Vec::with_capacity(BLOCK);
        while !bytes.0.is_empty() {
            let shared = bytes.length()?;
            let before = entries.last().map_or("", |entry| entry.word.as_str());
            let mut word = before.get(..shared).ok_or(IndexError::Damaged)?.to_owned();
            word.push_str(bytes.text()?);
            bytes.number()?;
            let size = bytes.number()?;
            let entry = WordEntry {
                word,
                at,
                bytes: size,
            };
            at = at.checked_add(size).ok_or(IndexError::Damaged)?;
            entries.push(entry);
        }
        Ok(entries)
    }

    /// Returns all words in their order, one block in memory at a time.
    pub(crate) fn cursor(&self) -> Result<Cursor<'_>, IndexError> {
        let mut cursor = Cursor {
            segment: self,
            next_block: 0,
            entries: Vec::new().into_iter(),
            current: None,
        };
        cursor.advance()?;
        Ok(cursor)
    }
}

/// Word of a segment, with the place of its postings.
#[derive(Debug)]
struct WordEntry {
    word: String,
    at: u64,
    bytes: u64,
}

/// Place among the words of a segment.
pub(crate) struct Cursor<'a> {
    segment: &'a Segment,
    next_block: usize,
    entries: std::vec::IntoIter<WordEntry>,
    current: Option<WordEntry>,
}

impl Cursor<'_> {
    /// Returns the word here; `None` behind the last one.
    pub(crate) fn word(&self) -> Option<&str> {
        self.current.as_ref().map(|entry| entry.word.as_str())
    }

    /// Returns the postings of the word here, and goes on to the next one.
    pub(crate) fn take(&mut self) -> Result<Vec<Posting>, IndexError> {
        let Some(entry) = self.current.take() else {
            return Ok(Vec::new());
        };
        let postings = self.segment.decode(&entry)?;
        self.advance()?;
        Ok(postings)
    }

    fn advance(&mut self) -> Result<(), IndexError> {
        self.current = self.entries.next();
        if self.current.is_none() && self.next_block < self.segment.blocks.len() {
            self.entries = self.segment.block(self.next_block)?.into_iter();
            self.next_block += 1;
            self.current = self.entries.next();
        }
        Ok(())
    }
}

fn read_notes(mut bytes: Bytes<'_>, count: u64) -> Result<Vec<IndexedNote>, IndexError> {
    let mut notes = Vec::new();
    for _ in 0..count {
        let path = bytes.text()?.into();
        let stamp = Stamp {
            size: bytes.number()?,
            inode: bytes.number()?,
            modified: bytes.number()? as i64,
            changed: bytes.number()? as i64,
        };
        let mut lengths = [0; FIELDS];
        for length in &mut lengths {
            *length = bytes.small()?;
        }
        notes.push(IndexedNote {
            path,
            stamp,
            lengths,
        });
    }
    Ok(notes)
}

fn read(file: &File, at: u64, length: u64) -> Result<Vec<u8>, IndexError> {
    let length = usize::try_from(length).map_err(|_| IndexError::Damaged)?;
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, at)?;
    Ok(bytes)
}
