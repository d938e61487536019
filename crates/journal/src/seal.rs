//! The seal of a log: a file beside the segments that states how many entries were on disk when
//! the log was finished, the hash of the last one, and which blobs the log had.
//!
//! The end of a log is the one part of it that nothing later proves. A seal does, so that a lost or
//! changed end of a finished log is damage and not a tail. It names entries by the head of their
//! chain. It lists blobs, so that a missing one is found without knowledge of what entries name;
//! dropping blobs on purpose rewrites the list first.
//!
//! A log without a seal is not finished, or was written before there were seals.

use std::{io, path::PathBuf};

use gyrus_contract::{BlobId, Digest};
use serde::{Deserialize, Serialize};

use crate::{
    Error, blobs,
    segment::{LogFiles, TEMPORARY_PREFIX, read_signed, signed, write_all},
};

/// The version of the format of seals that this program writes and reads.
const SEAL: u32 = 1;

/// The statement of a seal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Seal {
    sealed: u32,
    log: String,
    /// Number of entries, all of which were on disk.
    pub(crate) entries: u64,
    /// The hash of the last entry.
    pub(crate) head: Digest,
    /// The blobs of the log, sorted.
    pub(crate) blobs: Vec<BlobId>,
}

impl Seal {
    /// Creates the seal of a log with these entries and its present blobs.
    pub(crate) fn of(files: &LogFiles, entries: u64, head: Digest) -> Result<Self, Error> {
        Ok(Self {
            sealed: SEAL,
            log: files.name.to_string(),
            entries,
            head,
            blobs: blobs::list(files)?,
        })
    }

    /// Returns the seal as the bytes of its file.
    pub(crate) fn encode(&self, files: &LogFiles) -> Vec<u8> {
        signed(self, &files.key)
    }

    /// Returns the seal of a log; `None` if the log has none.
    pub(crate) fn read(files: &LogFiles) -> Result<Option<Self>, Error> {
        let path = path(files);
        let file = match files.disk.open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io("open", path)(error)),
        };
        let bytes = blobs::read_whole(file.as_ref()).map_err(Error::io("read", path))?;
        Self::parse(files, &bytes.unwrap_or_default()).map(Some)
    }

    fn parse(files: &LogFiles, bytes: &[u8]) -> Result<Self, Error> {
        let bad = |why: String| Error::BadSeal {
            name: files.name.clone(),
            why,
        };
        let line = bytes
            .strip_suffix(b"\n")
            .ok_or_else(|| bad("it is cut".to_owned()))?;
        let seal: Self = read_signed(line, &files.key).map_err(bad)?;
        if seal.sealed > SEAL {
            let why = format!("it has format {}, this program reads {SEAL}", seal.sealed);
            return Err(bad(why));
        }
        Ok(seal)
    }

    /// Writes the seal to disk, in place of an earlier one. Only the lock's holder may call this.
    pub(crate) fn write(&self, files: &LogFiles) -> Result<(), Error> {
        let temporary = files.folder.join(format!("{TEMPORARY_PREFIX}seal"));
        // Removes what a failed attempt left behind.
        let _ = files.disk.remove_file(&temporary);
        let file = files
            .disk
            .create_new(&temporary)
            .map_err(Error::io("create", &temporary))?;
        write_all(file.as_ref(), &self.encode(files))
            .and_then(|()| file.sync())
            .map_err(Error::io("write", &temporary))?;
        files.put_in_place(&temporary, &path(files))
    }

    /// Removes the seal of a log, durably, if it covers entries after `last`.
    pub(crate) fn remove_beyond(files: &LogFiles, last: u64) -> Result<(), Error> {
        if Self::read(files)?.is_none_or(|seal| seal.entries <= last) {
            return Ok(());
        }
        let path = path(files);
        files
            .disk
            .remove_file(&path)
            .map_err(Error::io("remove", path))?;
        files
            .disk
            .sync_folder(&files.folder)
            .map_err(Error::io("sync", &files.folder))
    }

    /// Rewrites the seal of a log, if it has one, to list only the blobs in `kept`.
    pub(crate) fn keep_blobs(
        files: &LogFiles,
        kept: &dyn Fn(&BlobId) -> bool,
    ) -> Result<(), Error> {
        let Some(mut seal) = Self::read(files)? else {
            return Ok(());
        };
        let before = seal.blobs.len();
        seal.blobs.retain(kept);
        if seal.blobs.len() < before {
            seal.write(files)?;
        }
        Ok(())
    }
}

/// Whether a log has a seal, intact or damaged.
pub(crate) fn exists(files: &LogFiles) -> bool {
    files.disk.metadata(&path(files)).is_ok()
}

pub(crate) fn path(files: &LogFiles) -> PathBuf {
    files.folder.join("sealed")
}
