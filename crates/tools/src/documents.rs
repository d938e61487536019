//! The text files of a folder, found by a bounded walk.

use std::{fmt::Write as _, fs::File, io::Read as _, path::PathBuf};

use gyrus_text::counted;
use rustix::fs::FileType;

use crate::{
    background::Deadline,
    failure::ToolFailure,
    place::AccessPlace,
    walk::{FolderWalk, WalkExtent},
};

/// Maximum bytes of one document.
const MAX_FILE_BYTES: u64 = 2 << 20;

/// Maximum bytes of all documents together.
const MAX_BYTES: usize = 64 << 20;

pub(crate) struct TextFile {
    /// Path below the folder.
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

/// The documents below a folder, in the order of a walk that leaves out hidden and ignored files.
pub(crate) struct Documents {
    walk: FolderWalk,
    bytes: usize,
    found: usize,
    left_out: usize,
}

impl Documents {
    pub(crate) fn below(place: &AccessPlace<'_>) -> Result<Self, ToolFailure> {
        let extent = WalkExtent::everywhere(false);
        let walk = FolderWalk::below(place, extent, "; name the folder above")?;
        Ok(Self {
            walk,
            bytes: 0,
            found: 0,
            left_out: 0,
        })
    }

    /// Returns the next document; `None` at the end, or when the walk was cut off.
    pub(crate) fn next(&mut self, deadline: &Deadline) -> Option<TextFile> {
        loop {
            let next = self.walk.next(deadline)?;
            if next.kind != FileType::RegularFile {
                continue;
            }
            match self.walk.open(&next).ok().and_then(text) {
                Some(text) if self.bytes + text.len() <= MAX_BYTES => {
                    self.found += 1;
                    self.bytes += text.len();
                    let path = next.path;
                    return Some(TextFile { path, text });
                }
                Some(_) | None => self.left_out += 1,
            }
        }
    }

    pub(crate) fn found(&self) -> usize {
        self.found
    }

    /// Returns notes in brackets on the numbers of found and omitted documents.
    pub(crate) fn note(&self) -> String {
        let (found, left_out) = (self.found, self.left_out);
        let mut note = format!("[searched: {}]\n", counted(found, "document"));
        if left_out > 0 {
            let _ = writeln!(
                note,
                "[left out: {} with no text, unreadable or too large]",
                counted(left_out, "file")
            );
        }
        note + &self.walk.note()
    }
}

fn text(file: File) -> Option<String> {
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).ok()?;
    let is_whole = bytes.len() as u64 <= MAX_FILE_BYTES;
    let text = String::from_utf8(bytes).ok().filter(|_| is_whole)?;
    (!text.contains('\0')).then_some(text)
}
