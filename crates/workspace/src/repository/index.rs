//! The index file (versions 2, 3 and 4), from which the next commit is made.
//!
//! A command's index is never copied: its entries are read, checked and compared one by one, and
//! the changes are merged into the person's own. A changed entry has no times or sizes of files
//! (git then compares the file itself), and extensions are dropped, since each is a cache that
//! could contradict the entries.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha1::{Digest as _, Sha1};

use super::{index_path, names::ObjectId};

/// Maximum bytes of an index: about a million files.
pub(super) const MAX_INDEX: u64 = 128 << 20;
/// Maximum total size of the index's paths in bytes, which version 4 compresses.
const MAX_PATHS: usize = 256 << 20;
/// Maximum number of paths that one command may change.
const MAX_CHANGES: usize = 500_000;

const ASSUME_UNCHANGED: u16 = 0x8000;
const EXTENDED: u16 = 0x4000;
const STAGE: u16 = 0x3000;
const NAME_LENGTH: u16 = 0x0fff;
const SKIP_WORKTREE: u16 = 0x4000;
const INTENT_TO_ADD: u16 = 0x2000;

/// Size of an entry before its flags, without the object's name, in bytes.
const STAT: usize = 40;
const FIXED: usize = STAT + 20;

/// Entries by path: a file, or up to three sides of a conflict.
pub(super) type IndexEntries = BTreeMap<Vec<u8>, Vec<IndexEntry>>;

/// An index entry without its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IndexEntry {
    pub(super) content: EntryContent,
    /// Times, device, inode, owner and size of the file; its mode is in the content.
    stat: [u8; STAT],
    /// The marks `assume-unchanged` and `skip-worktree`, which a person sets.
    marks: (bool, bool),
}

/// Content of an entry of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryContent {
    /// Mode: 0o100644, 0o100755 for a program, 0o120000 for a symbolic link, 0o160000 for a
    /// submodule.
    pub mode: u32,
    /// Object with its content; the commit of a submodule.
    pub object: ObjectId,
    /// Stage: 0, or the side of a conflict: 1 base, 2 ours, 3 theirs.
    pub stage: u8,
    /// Whether the content is still to be added.
    pub intent_to_add: bool,
}

impl IndexEntry {
    /// Creates an entry without file times, which makes git compare it with the file before use.
    pub(super) fn new(content: EntryContent, marks: (bool, bool)) -> Self {
        Self {
            content,
            stat: [0; STAT],
            marks,
        }
    }

    pub(super) fn marks(&self) -> (bool, bool) {
        self.marks
    }
}

/// Reason why an index cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum IndexError {
    /// The bytes are not an index.
    #[error("it is damaged")]
    Damaged,
    /// The form of the index is not supported.
    #[error("it is {0}, which is not supported")]
    NotSupported(&'static str),
    /// The index exceeds one of the limits.
    #[error("it is too large")]
    TooLarge,
    /// The path is not allowed in a commit.
    #[error("the path `{path}` in it is refused: {reason}")]
    Path { path: String, reason: &'static str },
}

pub(super) fn parse(bytes: &[u8]) -> Result<IndexEntries, IndexError> {
    let number = |at: usize| {
        let four = bytes.get(at..at + 4)?.try_into().ok()?;
        Some(u32::from_be_bytes(four))
    };
    let (version, count) = match (bytes.get(..4), number(4), number(8)) {
        (Some(b"DIRC"), Some(version @ 2..=4), Some(count)) => (version, count),
        _ => return Err(IndexError::Damaged),
    };
    // The entries are followed by extensions and a hash of the file.
    let end = bytes.len().checked_sub(20).ok_or(IndexError::Damaged)?;
    let mut reader = IndexReader {
        bytes: &bytes[..end],
        at: 12,
        version,
        path: Vec::new(),
    };
    let mut entries = IndexEntries::new();
    let mut length = 0;
    for _ in 0..count {
        let (path, entry) = reader.entry().ok_or(IndexError::Damaged)??;
        length += path.len();
        if length > MAX_PATHS {
            return Err(IndexError::TooLarge);
        }
        let sides = entries.entry(path).or_default();
        let follows = match sides.last() {
            None => true,
            Some(last) => last.content.stage > 0 && last.content.stage < entry.content.stage,
        };
        if !follows {
            return Err(IndexError::Damaged);
        }
        sides.push(entry);
    }
    reader.check_extensions()?;
    Ok(entries)
}

struct IndexReader<'a> {
    bytes: &'a [u8],
    at: usize,
    version: u32,
    /// Path of the entry before.
    path: Vec<u8>,
}

impl<'a> IndexReader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let taken = self.bytes.get(self.at..self.at.checked_add(length)?)?;
        self.at += length;
        Some(taken)
    }

    fn short(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }

    fn entry(&mut self) -> Option<Result<(Vec<u8>, IndexEntry), IndexError>> {
        let start = self.at;
        let fixed = self.take(FIXED)?;
        let mut stat: [u8; STAT] = fixed[..STAT].try_into().ok()?;
        let mode = u32::from_be_bytes(stat[24..28].try_into().ok()?);
        stat[24..28].fill(0);
        let object = ObjectId::from_bytes(&fixed[STAT..])?;
        let flags = self.short()?;
        let extended = match flags & EXTENDED {
            0 => 0,
            _ if self.version == 2 => return None,
            _ => self.short()?,
        };
        if extended & !(SKIP_WORKTREE | INTENT_TO_ADD) != 0 {
            return None;
        }
        let path = match self.version {
            4 => self.compressed_path()?,
            _ => self.padded_path(start)?,
        };
        if mode == 0o040_000 {
            return Some(Err(IndexError::NotSupported("a sparse index")));
        }
        let stage = u8::try_from((flags & STAGE) >> 12).ok()?;
        if path.is_empty() {
            return Some(Err(IndexError::NotSupported("a split index")));
        }
        if ![0o100_644, 0o100_755, 0o120_000, 0o160_000].contains(&mode) {
            return None;
        }
        let content = EntryContent {
            mode,
            object,
            stage,
            intent_to_add: extended & INTENT_TO_ADD != 0,
        };
        let marks = (flags & ASSUME_UNCHANGED != 0, extended & SKIP_WORKTREE != 0);
        Some(Ok((
            path,
            IndexEntry {
                content,
                stat,
                marks,
            },
        )))
    }

    fn until_zero(&mut self) -> Option<&'a [u8]> {
        let length = self.bytes[self.at..].iter().position(|byte| *byte == 0)?;
        let text = self.take(length)?;
        self.at += 1;
        Some(text)
    }

    fn padded_path(&mut self, start: usize) -> Option<Vec<u8>> {
        let path = self.until_zero()?.to_vec();
        let length = (self.at - start).next_multiple_of(8);
        self.at = start + length;
        (self.at <= self.bytes.len()).then_some(path)
    }

    fn compressed_path(&mut self) -> Option<Vec<u8>> {
        let mut byte = self.take(1)?[0];
        let mut drop = usize::from(byte & 0x7f);
        while byte & 0x80 != 0 {
            byte = self.take(1)?[0];
            drop = drop.checked_add(1)?.checked_mul(128)? | usize::from(byte & 0x7f);
        }
        let keep = self.path.len().checked_sub(drop)?;
        self.path.truncate(keep);
        let rest = self.until_zero()?;
        self.path.extend_from_slice(rest);
        // A chain of ever longer paths would need far more memory than the file.
        (self.path.len() <= 4_096).then(|| self.path.clone())
    }

    /// Reads extensions: those in capitals are optional; of the others, git refuses unknown ones.
    fn check_extensions(&mut self) -> Result<(), IndexError> {
        while self.at < self.bytes.len() {
            let name = self.take(4).ok_or(IndexError::Damaged)?;
            let length = self.take(4).and_then(|four| four.try_into().ok());
            let length = u32::from_be_bytes(length.ok_or(IndexError::Damaged)?);
            match name {
                b"link" => return Err(IndexError::NotSupported("a split index")),
                b"sdir" => return Err(IndexError::NotSupported("a sparse index")),
                [b'A'..=b'Z', ..] => {}
                _ => return Err(IndexError::NotSupported("of an unknown form")),
            }
            self.take(length as usize).ok_or(IndexError::Damaged)?;
        }
        Ok(())
    }
}

/// Writes an index: version 3 if an entry needs it, otherwise 2.
pub(super) fn serialise(entries: &IndexEntries) -> Vec<u8> {
    let sides = || {
        entries
            .iter()
            .flat_map(|(path, sides)| sides.iter().map(move |e| (path, e)))
    };
    let extended = |entry: &IndexEntry| entry.marks.1 || entry.content.intent_to_add;
    let version: u32 = if sides().any(|(_, entry)| extended(entry)) {
        3
    } else {
        2
    };
    let count = u32::try_from(sides().count()).expect("its size was bounded when it was read");
    let mut bytes = b"DIRC".to_vec();
    bytes.extend(version.to_be_bytes());
    bytes.extend(count.to_be_bytes());
    for (path, entry) in sides() {
        let start = bytes.len();
        let content = &entry.content;
        bytes.extend(&entry.stat[..24]);
        bytes.extend(content.mode.to_be_bytes());
        bytes.extend(&entry.stat[28..]);
        bytes.extend(content.object.as_bytes());
        let length = u16::try_from(path.len()).map_or(NAME_LENGTH, |len| len.min(NAME_LENGTH));
        let mut flags = length | u16::from(content.stage) << 12;
        flags |= if entry.marks.0 { ASSUME_UNCHANGED } else { 0 };
        if extended(entry) {
            let mut more = if entry.marks.1 { SKIP_WORKTREE } else { 0 };
            more |= if content.intent_to_add {
                INTENT_TO_ADD
            } else {
                0
            };
            bytes.extend((flags | EXTENDED).to_be_bytes());
            bytes.extend(more.to_be_bytes());
        } else {
            bytes.extend(flags.to_be_bytes());
        }
        bytes.extend(path);
        // At least one zero byte, up to a multiple of eight.
        let end = start + (bytes.len() - start + 1).next_multiple_of(8);
        bytes.resize(end, 0);
    }
    let hash = Sha1::digest(&bytes);
    bytes.extend_from_slice(&hash);
    bytes
}

/// The change of one path of an index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexChange {
    /// Path below the work tree.
    #[serde(with = "index_path::as_text")]
    pub path: Vec<u8>,
    /// Old entries; empty if the path was not in the index.
    pub before: Vec<EntryContent>,
    /// New entries; empty if the path was removed from the index.
    pub after: Vec<EntryContent>,
}

/// Returns the changes from `before` to `after`. The paths of new entries are checked as git does
/// on a checkout.
pub(super) fn compare(
    before: &IndexEntries,
    after: &IndexEntries,
) -> Result<Vec<IndexChange>, IndexError> {
    let mut changes = Vec::new();
    let gone = before.keys().filter(|path| !after.contains_key(*path));
    for path in gone.chain(after.keys()) {
        let change = IndexChange {
            path: path.clone(),
            before: contents(before.get(path)),
            after: contents(after.get(path)),
        };
        if change.before == change.after {
            continue;
        }
        if !change.after.is_empty() {
            let refused = |reason| IndexError::Path {
                path: String::from_utf8_lossy(path).into_owned(),
                reason,
            };
            let is_link = change.after.iter().any(|entry| entry.mode == 0o120_000);
            index_path::check(path, is_link).map_err(refused)?;
            if clashes(path, after) {
                return Err(refused("it is a file and a folder at once"));
            }
        }
        if changes.len() == MAX_CHANGES {
            return Err(IndexError::TooLarge);
        }
        changes.push(change);
    }
    changes.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(changes)
}

/// Whether a path is a file and a folder at once, which is possible only in a conflict.
pub(super) fn clashes(path: &[u8], entries: &IndexEntries) -> bool {
    let whole = |sides: &Vec<IndexEntry>| sides.iter().any(|entry| entry.content.stage == 0);
    if !entries.get(path).is_some_and(whole) {
        return false;
    }
    let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    let mut above = slashes.map(|(at, _)| &path[..at]);
    if above.any(|above| entries.get(above).is_some_and(whole)) {
        return true;
    }
    let folder = [path, b"/"].concat();
    let mut below = entries.range(folder.clone()..);
    below
        .next()
        .is_some_and(|(next, sides)| next.starts_with(&folder) && whole(sides))
}

/// Returns the contents of the entries of one path.
pub(super) fn contents(sides: Option<&Vec<IndexEntry>>) -> Vec<EntryContent> {
    let sides = sides.map(Vec::as_slice).unwrap_or_default();
    sides.iter().map(|entry| entry.content).collect()
}

/// Returns an index with the same entries and checked paths, without extensions.
pub(super) fn cleaned(mut entries: IndexEntries) -> Result<Vec<u8>, IndexError> {
    compare(&IndexEntries::new(), &entries)?;
    for entry in entries.values_mut().flatten() {
        *entry = IndexEntry::new(entry.content, (false, false));
    }
    Ok(serialise(&entries))
}

/// Returns the number of paths whose `assume-unchanged` or `skip-worktree` was set: marks that hide
/// changes from a person, and so are not carried over.
pub(super) fn newly_marked(before: &IndexEntries, after: &IndexEntries) -> usize {
    let marked = |sides: &Vec<IndexEntry>| sides.iter().any(|entry| entry.marks != (false, false));
    let new = after
        .iter()
        .filter(|(path, sides)| marked(sides) && !before.get(*path).is_some_and(marked));
    new.count()
}
