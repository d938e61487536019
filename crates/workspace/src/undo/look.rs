//! Present state of a path.

use std::io;

use gyrus_contract::BlobId;
use rustix::{
    fs::{FileType, Stat},
    io::Errno,
};

use crate::{
    root::{self, RootFolder},
    snapshot::{MAX_FILE_BYTES, manifest::SnapshotEntry, name},
};

/// Present entry of a path, with the metadata to detect later changes.
pub(crate) struct PresentEntry {
    pub(crate) entry: SnapshotEntry,
    pub(crate) stat: Stat,
    pub(crate) content: Vec<u8>,
}

impl PresentEntry {
    /// Whether the path still has this entry, unchanged as far as its times show.
    pub(super) fn is_still(&self, root: &RootFolder<'_>, path: &[u8]) -> bool {
        let stamp = |stat: &Stat| {
            (
                stat.st_ino,
                stat.st_dev,
                stat.st_size,
                stat.st_mode,
                (stat.st_mtime, stat.st_mtime_nsec),
                (stat.st_ctime, stat.st_ctime_nsec),
            )
        };
        stat(root, path).is_ok_and(|now| now.is_some_and(|now| stamp(&now) == stamp(&self.stat)))
    }
}

/// Returns the status of a path; `None` if it does not exist, or only behind a link.
pub(super) fn stat(root: &RootFolder<'_>, path: &[u8]) -> io::Result<Option<Stat>> {
    let found = root
        .parent(name::path(path))
        .and_then(|(folder, name)| root::stat(folder, name));
    match found {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Examines a path without following links; a file is read. The error means that this failed.
pub(crate) fn look(root: &RootFolder<'_>, path: &[u8]) -> io::Result<Option<PresentEntry>> {
    let Some(stat) = stat(root, path)? else {
        return Ok(None);
    };
    let mode = Some(stat.st_mode & 0o777);
    let mut content = Vec::new();
    let entry = match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => SnapshotEntry::Folder { mode },
        FileType::Symlink => {
            let (folder, name) = root.parent(name::path(path))?;
            let target = rustix::fs::readlinkat(folder, name, Vec::new())?;
            let target = name::encode(target.as_bytes());
            SnapshotEntry::Link { target }
        }
        FileType::RegularFile => {
            let (folder, name) = root.parent(name::path(path))?;
            let file = root::open_file(folder, name)?
                .ok_or_else(|| io::Error::other("it changes just now"))?;
            content = root::read(&file, MAX_FILE_BYTES)?;
            SnapshotEntry::File {
                blob: BlobId::of(&content),
                bytes: content.len() as u64,
                place: None,
                apart: false,
                executable: stat.st_mode & 0o100 != 0,
                mode,
            }
        }
        _ => return Err(io::Error::other("it is not a file, folder or link")),
    };
    Ok(Some(PresentEntry {
        entry,
        stat,
        content,
    }))
}
