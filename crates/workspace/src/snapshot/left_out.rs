//! The entries of a folder whose contents its snapshot does not have, or has apart.

use gyrus_contract::BlobId;

use super::{
    SnapshotError,
    manifest::{Manifest, Skip, SnapshotContents, SnapshotEntry, drop_unused, load_contents},
};

/// An entry that is not laid out, or only if its content was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOutEntry {
    /// The path, as in [`super::Difference`].
    pub path: String,
    pub why: WhyLeftOut,
}

/// Reason why a snapshot omits an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhyLeftOut {
    /// The entry is or holds a secret.
    Secret,
    /// A pipe, socket or device.
    Special,
    /// The entry could not be read for lack of permission.
    Unreadable,
    /// The entry changed during every attempt to read it.
    Changing,
    /// The entry is a folder of build output, which its tools can rebuild.
    Rebuildable,
}

/// Returns the entries that a snapshot leaves out or stores separately, by path.
///
/// # Errors
/// The store's error, or a refused snapshot.
pub fn left_out<E>(
    id: &BlobId,
    load: impl Fn(&BlobId) -> Result<Vec<u8>, E>,
) -> Result<Vec<LeftOutEntry>, SnapshotError<E>> {
    let entries = load_contents(id, &load)?.entries;
    let left_out = entries.into_iter().filter_map(|(path, entry)| {
        let why = match entry {
            SnapshotEntry::File { apart: true, .. } => WhyLeftOut::Secret,
            SnapshotEntry::Skipped { why } => match why {
                Skip::Special => WhyLeftOut::Special,
                Skip::Unreadable => WhyLeftOut::Unreadable,
                Skip::Changing => WhyLeftOut::Changing,
                Skip::Rebuildable => WhyLeftOut::Rebuildable,
            },
            SnapshotEntry::File { .. }
            | SnapshotEntry::Link { .. }
            | SnapshotEntry::Folder { .. } => return None,
        };
        Some(LeftOutEntry { path, why })
    });
    Ok(left_out.collect())
}

/// Returns a snapshot without the files that are stored separately: not even their hashes, by which
/// a short secret could be guessed, are in it.
///
/// # Errors
/// The store's error, or a refused snapshot.
pub fn without_secrets<E>(
    id: &BlobId,
    load: impl Fn(&BlobId) -> Result<Vec<u8>, E>,
) -> Result<Vec<u8>, SnapshotError<E>> {
    let SnapshotContents {
        mut entries,
        mut packs,
        ..
    } = load_contents(id, &load)?;
    entries.retain(|_, entry| !matches!(entry, SnapshotEntry::File { apart: true, .. }));
    drop_unused(&mut packs, &mut entries);
    Ok(Manifest::full(&packs, &entries).to_bytes())
}
