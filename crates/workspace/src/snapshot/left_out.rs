//! The entries of a folder whose contents its snapshot does not have, or has apart.

use gyrus_contract::BlobId;

use super::{
    SnapshotError,
    manifest::{Manifest, Skip, SnapshotContents, SnapshotEntry, drop_unused, load_contents},
};

/// An entry that is not laid out, or only where its content was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOutEntry {
    /// The path, as in [`super::Difference`].
    pub path: String,
    pub why: WhyLeftOut,
}

/// The reason why an entry is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhyLeftOut {
    /// It is or holds a secret.
    Secret,
    /// A pipe, socket or device.
    Special,
    /// It could not be read for lack of permission.
    Unreadable,
    /// It changed during every attempt to read it.
    Changing,
    /// A folder of build output, which its tools can rebuild.
    Rebuildable,
}

/// Returns what a snapshot leaves out or keeps apart, by path.
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

/// Returns a snapshot without the files that are kept apart: not even their hashes, by which a short
/// secret could be guessed, are in it.
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
