//! Tar archives, as `tar` and `npm pack` make them.

use std::io::{self, Read};

use tar::{Archive, EntryType};

use crate::files::{SkillFile, SkillFiles, SkillFilesError, check_size};

/// Maximum number of entries, folders included.
const MAX_ENTRIES: usize = 4_000;

pub(super) fn read(from: impl Read) -> Result<SkillFiles, SkillFilesError> {
    let unreadable = |error: io::Error| damaged(error.to_string());
    let mut files = SkillFiles::default();
    let mut archive = Archive::new(from);
    for (count, entry) in archive.entries().map_err(unreadable)?.enumerate() {
        if count == MAX_ENTRIES {
            return Err(damaged(format!("it has more than {MAX_ENTRIES} entries")));
        }
        let mut entry = entry.map_err(unreadable)?;
        let name = String::from_utf8(entry.path_bytes().into_owned());
        let name = name.map_err(|_| damaged("a name is not text"))?;
        match entry.header().entry_type() {
            EntryType::Regular => {
                let size = entry.size();
                check_size(&name, size)?;
                let mode = entry.header().mode().map_err(unreadable)?;
                let mut bytes = Vec::new();
                entry.read_to_end(&mut bytes).map_err(unreadable)?;
                if (bytes.len() as u64) < size {
                    return Err(damaged("it ends within a file"));
                }
                // `tar -c .` writes names in this way.
                let name = name.strip_prefix("./").unwrap_or(&name).to_owned();
                let is_executable = mode & 0o100 != 0;
                let file = SkillFile {
                    bytes,
                    is_executable,
                };
                files.add(name, file)?;
            }
            // The other is about all entries; nothing in it is needed.
            EntryType::Directory | EntryType::XGlobalHeader => {}
            EntryType::Link | EntryType::Symlink => {
                return Err(SkillFilesError::Path {
                    path: name,
                    reason: "it is a link, which may lead anywhere; put the file itself there",
                });
            }
            EntryType::Char | EntryType::Block | EntryType::Fifo => {
                return Err(SkillFilesError::Path {
                    path: name,
                    reason: "it is a pipe or a device",
                });
            }
            kind => {
                let kind = char::from(kind.as_byte()).escape_default();
                return Err(damaged(format!(
                    "`{name}` is of a kind that is not read: {kind}"
                )));
            }
        }
    }
    Ok(files)
}

fn damaged(what: impl Into<String>) -> SkillFilesError {
    SkillFilesError::Archive(what.into())
}
