//! Zip archives: the directory at the end says what there is, and the entries must agree with it.
//! Source: PKWARE's APPNOTE.TXT, sections 4.3 and 4.4.

use std::io::Read as _;

use crate::files::{SkillFile, SkillFiles, SkillFilesError, check_size};

/// Signature and length of the record at the very end.
const END: (&[u8], usize) = (b"PK\x05\x06", 22);

/// Signature and length of an entry of the directory.
const ENTRY: (&[u8], usize) = (b"PK\x01\x02", 46);

/// Signature and length of the header before a file's content.
const LOCAL: (&[u8], usize) = (b"PK\x03\x04", 30);

/// Maximum length of the comment behind the last record, in bytes.
const MAX_COMMENT: usize = 1 << 16;

/// Maximum number of entries, folders included.
const MAX_ENTRIES: usize = 4_000;

/// Number of the operating system whose file modes an entry has.
const UNIX: u8 = 3;

/// Kinds of files in a Unix mode: all, regular files, folders.
const KINDS: (u32, u32, u32) = (0o170_000, 0o100_000, 0o040_000);

pub(super) fn read(archive: &[u8]) -> Result<SkillFiles, SkillFilesError> {
    let end = find_end(archive)?;
    let count = usize::from(u16_at(archive, end + 10)?);
    if count > MAX_ENTRIES {
        return Err(damaged(&format!("it has more than {MAX_ENTRIES} entries")));
    }
    let mut at = u32_at(archive, end + 16)? as usize;
    let mut files = SkillFiles::default();
    for _ in 0..count {
        let entry = bytes(archive, at, ENTRY.1)?;
        if !entry.starts_with(ENTRY.0) {
            return Err(damaged("its directory is not where it should be"));
        }
        let lengths = [28, 30, 32].map(|offset| u16_at(archive, at + offset));
        let [name_length, extra, comment] = lengths;
        let name_length = usize::from(name_length?);
        let name = bytes(archive, at + ENTRY.1, name_length)?;
        let name = std::str::from_utf8(name).map_err(|_| damaged("a name is not text"))?;
        if let Some(file) = read_entry(archive, at, name)? {
            files.add(name.to_owned(), file)?;
        }
        at += ENTRY.1 + name_length + usize::from(extra?) + usize::from(comment?);
    }
    Ok(files)
}

/// Reads the file of an entry; `None` if it is a folder.
fn read_entry(archive: &[u8], at: usize, name: &str) -> Result<Option<SkillFile>, SkillFilesError> {
    let is_unix = bytes(archive, at + 5, 1)?[0] == UNIX;
    let mode = u32_at(archive, at + 38)? >> 16;
    let kind = if is_unix { mode & KINDS.0 } else { 0 };
    if name.ends_with('/') || kind == KINDS.2 {
        return Ok(None);
    }
    if kind != 0 && kind != KINDS.1 {
        return Err(SkillFilesError::Path {
            path: name.to_owned(),
            reason: "it is a link or a device; put the file itself there",
        });
    }
    if u16_at(archive, at + 8)? & 1 != 0 {
        return Err(damaged(&format!("`{name}` is encrypted")));
    }
    let (stored, size) = (u32_at(archive, at + 20)?, u32_at(archive, at + 24)?);
    check_size(name, size.into())?;
    let local = u32_at(archive, at + 42)? as usize;
    if !bytes(archive, local, LOCAL.1)?.starts_with(LOCAL.0) {
        return Err(damaged(&format!("`{name}` is not where it should be")));
    }
    let local_name = usize::from(u16_at(archive, local + 26)?);
    if bytes(archive, local + LOCAL.1, local_name)? != name.as_bytes() {
        return Err(damaged(&format!(
            "`{name}` has another name in front of it"
        )));
    }
    let extra = usize::from(u16_at(archive, local + 28)?);
    let stored = bytes(
        archive,
        local + LOCAL.1 + local_name + extra,
        stored as usize,
    )?;
    let content = match u16_at(archive, at + 10)? {
        0 => stored.to_vec(),
        8 => {
            let mut content = Vec::new();
            // One byte more tells that it unpacks to more than it says.
            let inflated = flate2::read::DeflateDecoder::new(stored)
                .take(u64::from(size) + 1)
                .read_to_end(&mut content);
            inflated.map_err(|error| damaged(&format!("`{name}`: {error}")))?;
            content
        }
        method => {
            let what = format!("`{name}` is packed by method {method}, which is not read");
            return Err(damaged(&what));
        }
    };
    if content.len() != size as usize {
        return Err(damaged(&format!("`{name}` is not as long as it says")));
    }
    Ok(Some(SkillFile {
        bytes: content,
        is_executable: is_unix && mode & 0o100 != 0,
    }))
}

fn find_end(archive: &[u8]) -> Result<usize, SkillFilesError> {
    let last = archive.len().checked_sub(END.1);
    let last = last.ok_or_else(|| damaged("it is too short"))?;
    let first = last.saturating_sub(MAX_COMMENT);
    (first..=last)
        .rev()
        .find(|at| archive[*at..].starts_with(END.0))
        .ok_or_else(|| damaged("its directory is missing"))
}

fn damaged(what: &str) -> SkillFilesError {
    SkillFilesError::Archive(what.to_owned())
}

fn bytes(archive: &[u8], at: usize, length: usize) -> Result<&[u8], SkillFilesError> {
    let end = at.checked_add(length);
    end.and_then(|end| archive.get(at..end))
        .ok_or_else(|| damaged("it ends too early"))
}

fn u16_at(archive: &[u8], at: usize) -> Result<u16, SkillFilesError> {
    let two = bytes(archive, at, 2)?;
    Ok(u16::from_le_bytes([two[0], two[1]]))
}

fn u32_at(archive: &[u8], at: usize) -> Result<u32, SkillFilesError> {
    let four = bytes(archive, at, 4)?;
    Ok(u32::from_le_bytes([four[0], four[1], four[2], four[3]]))
}
