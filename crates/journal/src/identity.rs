//! The identity of a store, by which it knows the logs that began in it; see `birth`.

use serde::{Deserialize, Serialize};

use crate::{FileMetadata, LogName};

/// The identity of a store at the time when it was opened.
#[derive(Debug)]
pub(crate) enum StoreIdentity {
    /// The disk is a simulation, on which every log is the store's own.
    Simulated,
    /// The store was created or adopted on this machine at this place.
    Own(OwnIdentity),
    /// The store was copied here.
    Copied,
}

/// The contents of an identity that counts.
#[derive(Debug)]
pub(crate) struct OwnIdentity {
    pub(crate) key: [u8; 32],
    /// The time of creation, in nanoseconds since 1970.
    pub(crate) since_ns: i64,
}

/// The properties of a file by which it differs from copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FilePlace {
    pub(crate) inode: u64,
    /// Creation time of the file in nanoseconds since 1970, if the file system records it.
    pub(crate) created_ns: Option<i64>,
}

impl From<FileMetadata> for FilePlace {
    fn from(metadata: FileMetadata) -> Self {
        Self {
            inode: metadata.inode,
            created_ns: metadata.created_ns,
        }
    }
}

impl OwnIdentity {
    /// Returns the hash that marks a log as begun in the store.
    pub(crate) fn hash(&self, name: &LogName, place: FilePlace) -> String {
        let text = format!("{name}\n{} {:?}", place.inode, place.created_ns);
        blake3::keyed_hash(&self.key, text.as_bytes()).to_string()
    }
}
