//! Packs: blobs with many small files, because a blob for each costs a file, a sync and two names.
//!
//! A pack is the contents of files, one after the other. Its end is determined by the files in it,
//! within its bounds: so two folders that are nearly the same have nearly the same packs, and the
//! store keeps equal packs once. Contents that are kept apart have packs of their own, which are
//! kept apart as well.

use std::{
    cell::RefCell,
    collections::{HashMap, HashSet},
    path::Path,
};

use gyrus_contract::BlobId;

use super::{
    SnapshotError,
    manifest::{ContentPlace, SnapshotContents, SnapshotEntries, SnapshotEntry},
};
use crate::contents::{ContentStore, ContentToKeep};

/// Maximum bytes of a file in a pack; a longer one has a blob of its own.
pub(super) const MAX_PACKED: usize = 1 << 20;
/// Maximum bytes of a pack; more than [`MAX_PACKED`].
const MAX_PACK: usize = 2 << 20;
/// Minimum bytes of a pack, except for the last.
const MIN_PACK: usize = 512 << 10;
/// Average number of bytes in a pack after its minimum size.
const SPAN: u64 = 1 << 20;

/// Stores contents that are not stored yet.
pub(super) struct Packer<'a, S> {
    store: &'a mut S,
    /// All packs so far, by number, those of earlier snapshots first; `None` for the one being
    /// filled.
    packs: Vec<Option<BlobId>>,
    /// The pack being filled.
    open: PackWriter,
    /// The pack being filled with separately stored contents.
    apart: PackWriter,
    stored: HashMap<BlobId, PackPlace>,
}

/// A pack being filled. It gets its number with the first file, even an empty one.
#[derive(Default)]
struct PackWriter {
    number: Option<usize>,
    bytes: Vec<u8>,
}

/// Place of a stored content.
#[derive(Debug, Clone, Copy)]
pub(super) struct PackPlace {
    /// Position in a pack; `None` for a blob of its own.
    pub(super) place: Option<ContentPlace>,
    pub(super) apart: bool,
}

impl<'a, S: ContentStore> Packer<'a, S> {
    /// Starts from the `packs` and `entries` of the snapshot before.
    pub(super) fn new(
        store: &'a mut S,
        packs: Vec<BlobId>,
        entries: Option<&SnapshotEntries>,
    ) -> Self {
        let stored = entries.into_iter().flat_map(SnapshotEntries::values);
        let stored = stored.filter_map(|entry| match entry {
            SnapshotEntry::File {
                blob, place, apart, ..
            } => {
                let (place, apart) = (*place, *apart);
                Some((*blob, PackPlace { place, apart }))
            }
            SnapshotEntry::Link { .. }
            | SnapshotEntry::Folder { .. }
            | SnapshotEntry::Skipped { .. } => None,
        });
        Self {
            store,
            packs: packs.into_iter().map(Some).collect(),
            open: PackWriter::default(),
            apart: PackWriter::default(),
            stored: stored.collect(),
        }
    }

    /// Stores the contents of files, at the latest with [`Packer::finish`]. A content that the last
    /// snapshot has, wherever, is not judged again.
    pub(super) fn add(
        &mut self,
        files: &[(&Path, &[u8])],
    ) -> Result<Vec<(BlobId, PackPlace)>, S::Error> {
        let ids: Vec<BlobId> = files
            .iter()
            .map(|(_, content)| BlobId::of(content))
            .collect();
        let mut seen = HashSet::new();
        let mut is_new = |id: &BlobId| !self.stored.contains_key(id) && seen.insert(*id);
        let new: Vec<usize> = (0..files.len()).filter(|at| is_new(&ids[*at])).collect();
        let judged: Vec<_> = new.iter().map(|at| files[*at]).collect();
        let judged = ContentToKeep::all(self.store.secrecy(), &judged);
        for (at, judged) in new.into_iter().zip(judged) {
            let place = if judged.content().len() > MAX_PACKED {
                judged.put(self.store)?;
                None
            } else {
                Some(self.pack(&judged, &ids[at])?)
            };
            let apart = judged.is_apart();
            self.stored.insert(ids[at], PackPlace { place, apart });
        }
        Ok(ids.iter().map(|id| (*id, self.stored[id])).collect())
    }

    fn pack(
        &mut self,
        judged: &ContentToKeep<'_>,
        blob: &BlobId,
    ) -> Result<ContentPlace, S::Error> {
        let content = judged.content();
        if self.filling(judged.is_apart()).bytes.len() + content.len() > MAX_PACK {
            self.end_pack(judged.is_apart())?;
        }
        let next = self.packs.len();
        let filling = self.filling(judged.is_apart());
        let index = *filling.number.get_or_insert(next);
        let number = |number: usize| u32::try_from(number).expect("limits keep numbers small");
        let place = ContentPlace(number(index), number(filling.bytes.len()));
        filling.bytes.extend_from_slice(content);
        let length = filling.bytes.len();
        if index == next {
            self.packs.push(None);
        }
        let by_content = blob
            .as_bytes()
            .first_chunk()
            .map_or(0, |first| u64::from(u32::from_le_bytes(*first)) % SPAN);
        // The longer a file, the likelier it is the last.
        if length >= MIN_PACK && by_content < content.len() as u64 {
            self.end_pack(judged.is_apart())?;
        }
        Ok(place)
    }

    fn filling(&mut self, apart: bool) -> &mut PackWriter {
        if apart {
            &mut self.apart
        } else {
            &mut self.open
        }
    }

    /// Stores one of the two packs, if it was begun.
    fn end_pack(&mut self, apart: bool) -> Result<(), S::Error> {
        let PackWriter { number, bytes } = std::mem::take(self.filling(apart));
        let Some(number) = number else {
            return Ok(());
        };
        self.packs[number] = Some(if apart {
            self.store.put_apart(&bytes)?
        } else {
            self.store.put(&bytes)?
        });
        Ok(())
    }

    /// Stores the remaining packs, and returns all packs and the store.
    pub(super) fn finish(mut self) -> Result<(Vec<BlobId>, &'a mut S), S::Error> {
        self.end_pack(false)?;
        self.end_pack(true)?;
        Ok((self.packs.into_iter().flatten().collect(), self.store))
    }
}

/// The last pack that was read, since consecutive files are mostly in the same one.
#[derive(Debug, Default)]
pub(crate) struct OpenPack(RefCell<Option<(u32, Vec<u8>)>>);

impl SnapshotContents {
    /// Returns the content of a file of this snapshot, checked.
    pub(crate) fn read<E>(
        &self,
        file: &SnapshotEntry,
        opened: &OpenPack,
        load: impl Fn(&BlobId) -> Result<Vec<u8>, E>,
    ) -> Result<Vec<u8>, SnapshotError<E>> {
        let malformed = |reason: String| SnapshotError::Malformed {
            id: self.id,
            reason,
        };
        let SnapshotEntry::File {
            blob, bytes, place, ..
        } = file
        else {
            return Err(malformed("only files have content".to_owned()));
        };
        let length = usize::try_from(*bytes).unwrap_or(usize::MAX);
        let Some(ContentPlace(number, at)) = *place else {
            let content = load(blob).map_err(SnapshotError::Store)?;
            if content.len() != length {
                let reason = format!("the content {blob} is not as long as it says");
                return Err(malformed(reason));
            }
            return Ok(content);
        };
        let index = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        let mut opened = opened.0.borrow_mut();
        if opened.as_ref().is_none_or(|(last, _)| *last != number) {
            let pack = self.packs.get(index(number));
            let pack = pack.ok_or_else(|| malformed(format!("it has no pack {number}")))?;
            *opened = Some((number, load(pack).map_err(SnapshotError::Store)?));
        }
        let pack = opened.as_ref().map_or(&[][..], |(_, pack)| pack);
        let content = pack
            .get(index(at)..index(at).saturating_add(length))
            .filter(|content| BlobId::of(content) == *blob);
        content.map(<[u8]>::to_vec).ok_or_else(|| {
            malformed(format!(
                "the content {blob} is not where it says, in pack {number}"
            ))
        })
    }
}
