//! Tar archives, as `tar` and `npm pack` make them.
//! Source: the format of POSIX `pax`, and GNU tar's long names.

use std::io::Read;

use crate::files::{FilesError, SkillFile, SkillFiles, check_size};

/// Size of a block in bytes.
const BLOCK: usize = 512;

/// Maximum size of a name that does not fit into its header, in bytes.
const MAX_LONG_NAME: u64 = 4 << 10;

/// Maximum number of entries, folders included.
const MAX_ENTRIES: usize = 4_000;

/// Reads an archive.
pub(super) fn read(mut from: impl Read) -> Result<SkillFiles, FilesError> {
    let mut files = SkillFiles::default();
    let mut long_name = None;
    for _ in 0..MAX_ENTRIES {
        let mut block = [0; BLOCK];
        if !fill(&mut from, &mut block)? || block.iter().all(|byte| *byte == 0) {
            return Ok(files);
        }
        let header = Header::read(&block)?;
        let name = long_name.take().unwrap_or(header.name);
        match header.kind {
            b'0' | 0 => {
                check_size(&name, header.size)?;
                let file = SkillFile {
                    bytes: content(&mut from, header.size)?,
                    is_executable: header.is_executable,
                };
                // `tar -c .` writes names in this way.
                let name = name.strip_prefix("./").unwrap_or(&name).to_owned();
                files.add(name, file)?;
            }
            b'5' => {}
            // An extended header, or GNU's long name: of what follows.
            b'x' | b'L' if header.size <= MAX_LONG_NAME => {
                let bytes = content(&mut from, header.size)?;
                let text = String::from_utf8(bytes).map_err(|_| damaged("a name is not text"))?;
                long_name = if header.kind == b'x' {
                    pax_path(&text)
                } else {
                    Some(text.trim_end_matches('\0').to_owned())
                };
            }
            // About all entries; nothing in it is needed.
            b'g' if header.size <= MAX_LONG_NAME => {
                content(&mut from, header.size)?;
            }
            b'1' | b'2' => {
                return Err(FilesError::Path {
                    path: name,
                    reason: "it is a link, which may lead anywhere; put the file itself there",
                });
            }
            b'3' | b'4' | b'6' => {
                return Err(FilesError::Path {
                    path: name,
                    reason: "it is a pipe or a device",
                });
            }
            kind => {
                let kind = char::from(kind).escape_default();
                return Err(damaged(&format!(
                    "`{name}` is of a kind that is not read: {kind}"
                )));
            }
        }
    }
    Err(damaged(&format!("it has more than {MAX_ENTRIES} entries")))
}

struct Header {
    name: String,
    size: u64,
    kind: u8,
    is_executable: bool,
}

impl Header {
    fn read(block: &[u8; BLOCK]) -> Result<Self, FilesError> {
        let counted: u64 = block.iter().map(|byte| u64::from(*byte)).sum();
        let stored: u64 = block[148..156].iter().map(|byte| u64::from(*byte)).sum();
        // The sum is made as if it were eight spaces itself.
        if number(&block[148..156])? != counted - stored + 8 * 32 {
            return Err(damaged("a header has the wrong sum"));
        }
        let mut name = text(&block[..100])?;
        if block[257..262] == *b"ustar" && block[345] != 0 {
            name = format!("{}/{name}", text(&block[345..500])?);
        }
        Ok(Self {
            name,
            size: number(&block[124..136])?,
            kind: block[156],
            is_executable: number(&block[100..108])? & 0o100 != 0,
        })
    }
}

fn damaged(what: &str) -> FilesError {
    FilesError::Archive(what.to_owned())
}

/// Returns a text that ends with its field or with a zero.
fn text(field: &[u8]) -> Result<String, FilesError> {
    let end = field
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(field.len());
    let text = std::str::from_utf8(&field[..end]).map_err(|_| damaged("a name is not text"))?;
    Ok(text.to_owned())
}

/// Returns a number in octal digits.
fn number(field: &[u8]) -> Result<u64, FilesError> {
    let text = text(field)?;
    let digits = text.trim();
    if digits.is_empty() {
        return Ok(0);
    }
    u64::from_str_radix(digits, 8)
        .map_err(|_| damaged("a header holds no number where one belongs"))
}

/// Returns the path that an extended header names: records of `LENGTH KEY=VALUE`, a line each.
fn pax_path(records: &str) -> Option<String> {
    // The last one counts.
    records.lines().rev().find_map(|record| {
        let (_, pair) = record.split_once(' ')?;
        pair.strip_prefix("path=").map(str::to_owned)
    })
}

/// Reads a content and what fills its last block.
fn content(from: &mut impl Read, size: u64) -> Result<Vec<u8>, FilesError> {
    let mut bytes = Vec::new();
    let blocks = size.div_ceil(BLOCK as u64) * BLOCK as u64;
    let read = from.take(blocks).read_to_end(&mut bytes);
    read.map_err(|error| damaged(&error.to_string()))?;
    if (bytes.len() as u64) < size {
        return Err(damaged("it ends within a file"));
    }
    bytes.truncate(usize::try_from(size).unwrap_or(usize::MAX));
    Ok(bytes)
}

/// Fills the block; `false` at the end of the archive.
fn fill(from: &mut impl Read, block: &mut [u8; BLOCK]) -> Result<bool, FilesError> {
    let mut read = Vec::with_capacity(BLOCK);
    from.take(BLOCK as u64)
        .read_to_end(&mut read)
        .map_err(|error| damaged(&error.to_string()))?;
    match read.len() {
        0 => Ok(false),
        BLOCK => {
            block.copy_from_slice(&read);
            Ok(true)
        }
        _ => Err(damaged("it ends within a header")),
    }
}
