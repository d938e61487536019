//! Messages to the holder of a log, from any process, whether or not anybody holds it.
//!
//! Each message is one file, created as a whole under its id and on disk before `send` returns. The
//! holder consumes a message: it removes the file after the effects of the message are durable, so
//! a message may be seen again after a crash, and its id identifies it.

use std::{io, path::PathBuf, sync::Arc};

use uuid::Uuid;

use crate::{
    Error, FolderWatch, blobs,
    segment::{LogFiles, TEMPORARY_PREFIX, write_all},
};

/// Maximum number of waiting messages.
pub(crate) const WAITING_LIMIT: usize = 1_000;

/// Maximum length of a message in bytes.
pub(crate) const MESSAGE_LIMIT: usize = 1 << 20;

/// Maximum number of attempts to send. An attempt is repeated when its temporary file was removed
/// by a process that took the log at that moment; this is unlikely to happen twice.
const SEND_ATTEMPTS: u32 = 3;

/// The messages that wait for the holder of a log.
#[derive(Debug, Clone)]
pub struct Inbox {
    files: Arc<LogFiles>,
}

impl Inbox {
    pub(crate) fn new(files: Arc<LogFiles>) -> Self {
        Self { files }
    }

    /// Adds a message to the inbox; on return it is on disk. `id` is a UUID of version 7 that the
    /// caller made: messages are read in its order, and sending the same one again is harmless. At
    /// most 1,000 messages of 1 MB wait.
    pub fn send(&self, id: &str, body: &str) -> Result<(), Error> {
        let path = self.path(id)?;
        if body.len() > MESSAGE_LIMIT {
            return Err(Error::TooLarge {
                what: "the message",
                bytes: body.len() as u64,
                limit: MESSAGE_LIMIT as u64,
            });
        }
        let waiting = self.ids()?;
        if waiting.len() >= WAITING_LIMIT && self.files.disk.metadata(&path).is_err() {
            let name = self.files.name.clone();
            return Err(Error::InboxFull {
                name,
                waiting: waiting.len(),
            });
        }
        let mut attempts = 1;
        loop {
            match self.put(&path, body) {
                Err(error)
                    if error.kind() == io::ErrorKind::NotFound && attempts < SEND_ATTEMPTS =>
                {
                    attempts += 1;
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Err(self.files.missing(error));
                }
                result => return result.map_err(Error::io("send the message", path)),
            }
        }
    }

    /// Writes the message. Always creates a new file, even if the message exists already: its
    /// sender may have been told that syncing it failed.
    fn put(&self, path: &std::path::Path, body: &str) -> io::Result<()> {
        let disk = &self.files.disk;
        let folder = self.files.inbox();
        let temporary = folder.join(format!(
            "{TEMPORARY_PREFIX}{}",
            gyrus_contract::time_ordered_uuid()
        ));
        let file = disk.create_new(&temporary)?;
        let put = write_all(file.as_ref(), body.as_bytes())
            .and_then(|()| file.sync())
            .and_then(|()| disk.rename(&temporary, path));
        if put.is_err() {
            // A leftover is removed when the log is taken next.
            let _ = disk.remove_file(&temporary);
        }
        put.and_then(|()| disk.sync_folder(&folder))
    }

    /// Returns the waiting messages with their ids, in order of arrival.
    pub fn messages(&self) -> Result<Vec<(String, String)>, Error> {
        let mut messages = Vec::new();
        for id in self.ids()? {
            let path = self.path(&id)?;
            let text = match self.files.disk.open(&path) {
                Ok(file) => blobs::read_whole(file.as_ref()),
                // Removed since we listed it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => Err(error),
            };
            let text = text
                .and_then(|text| {
                    String::from_utf8(text.unwrap_or_default()).map_err(io::Error::other)
                })
                .map_err(Error::io("read the message", path))?;
            messages.push((id, text));
        }
        Ok(messages)
    }

    /// Removes a consumed message. Removing one that is gone is harmless. After a crash it may be
    /// there again.
    pub fn remove(&self, id: &str) -> Result<(), Error> {
        let path = self.path(id)?;
        match self.files.disk.remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Error::io("remove the message", path)(error))
            }
            _ => Ok(()),
        }
    }

    /// Returns a watch that reports when a message may have arrived.
    pub fn watch(&self) -> Result<FolderWatch, Error> {
        let folder = self.files.inbox();
        self.files
            .disk
            .watch(&folder)
            .map_err(Error::io("watch", folder))
    }

    fn ids(&self) -> Result<Vec<String>, Error> {
        let names = self
            .files
            .disk
            .list(&self.files.inbox())
            .map_err(|error| self.files.missing(error))?;
        let mut ids: Vec<String> = names
            .iter()
            .filter_map(|name| name.strip_suffix(".json"))
            .filter(|id| canonical(id).as_deref() == Some(id))
            .map(str::to_owned)
            .collect();
        ids.sort_unstable();
        Ok(ids)
    }

    fn path(&self, id: &str) -> Result<PathBuf, Error> {
        let id = canonical(id).ok_or_else(|| Error::BadMessageId {
            given: id.chars().take(40).collect(),
        })?;
        Ok(self.files.inbox().join(format!("{id}.json")))
    }
}

/// Returns the canonical form of a UUID, which is the file's name.
fn canonical(id: &str) -> Option<String> {
    Uuid::try_parse(id).ok().map(|id| id.to_string())
}
