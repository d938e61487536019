//! Small files stored many to a blob, because a blob of its own costs a file, a sync and two names.
//!
//! A pack is the contents of files, one after the other. Where it ends follows from the files in
//! it, as far as its bounds leave room: so two folders that are nearly the same have nearly the
//! same packs, whoever took their snapshots, and the store keeps equal packs once.

use std::{cell::RefCell, collections::HashMap};

use gyrus_contract::BlobId;

use super::{
    SnapshotError,
    manifest::{Contents, Entries, Entry, Place},
};

/// A file longer than this has a blob of its own.
pub(super) const MAX_PACKED: usize = 1 << 20;
/// Bytes of a pack; more than [`MAX_PACKED`].
const MAX_PACK: usize = 2 << 20;
/// No pack ends earlier, but for the last.
const MIN_PACK: usize = 512 << 10;
/// A pack goes on for so many bytes on average after that.
const SPAN: u64 = 1 << 20;

/// Stores what is not stored yet.
pub(super) struct Packer<P> {
    put: P,
    /// All packs so far, by their numbers, those of earlier snapshots first.
    packs: Vec<BlobId>,
    /// The next pack.
    filling: Vec<u8>,
    /// Something lies in it, if only an empty file.
    begun: bool,
    stored: HashMap<BlobId, Option<Place>>,
}

impl<P, E> Packer<P>
where
    P: FnMut(&[u8]) -> Result<BlobId, E>,
{
    /// `put` stores a blob; `packs` and `entries` are those of the snapshot before.
    pub(super) fn new(put: P, packs: Vec<BlobId>, entries: Option<&Entries>) -> Self {
        let stored = entries.into_iter().flat_map(Entries::values);
        let stored = stored.filter_map(|entry| match entry {
            Entry::File { blob, place, .. } => Some((*blob, *place)),
            Entry::Link { .. } | Entry::Folder { .. } | Entry::Skipped { .. } => None,
        });
        Self {
            put,
            packs,
            filling: Vec::new(),
            begun: false,
            stored: stored.collect(),
        }
    }

    /// Stores the content of a file, at the latest with [`Packer::finish`].
    pub(super) fn add(&mut self, content: &[u8]) -> Result<(BlobId, Option<Place>), E> {
        let blob = BlobId::of(content);
        if let Some(place) = self.stored.get(&blob) {
            return Ok((blob, *place));
        }
        let place = if content.len() > MAX_PACKED {
            (self.put)(content)?;
            None
        } else {
            Some(self.pack(content, &blob)?)
        };
        self.stored.insert(blob, place);
        Ok((blob, place))
    }

    fn pack(&mut self, content: &[u8], blob: &BlobId) -> Result<Place, E> {
        if self.filling.len() + content.len() > MAX_PACK {
            self.end_pack()?;
        }
        let number = |number: usize| u32::try_from(number).expect("limits keep numbers small");
        let place = Place(number(self.packs.len()), number(self.filling.len()));
        self.filling.extend_from_slice(content);
        self.begun = true;
        let by_content = blob
            .as_bytes()
            .first_chunk()
            .map_or(0, |first| u64::from(u32::from_le_bytes(*first)) % SPAN);
        // The longer a file, the likelier it is the last.
        if self.filling.len() >= MIN_PACK && by_content < content.len() as u64 {
            self.end_pack()?;
        }
        Ok(place)
    }

    fn end_pack(&mut self) -> Result<(), E> {
        self.packs.push((self.put)(&self.filling)?);
        self.filling.clear();
        self.begun = false;
        Ok(())
    }

    /// Stores what waits, and returns all packs and what stores a blob.
    pub(super) fn finish(mut self) -> Result<(Vec<BlobId>, P), E> {
        if self.begun {
            self.end_pack()?;
        }
        Ok((self.packs, self.put))
    }
}

/// The pack that was read last: files that are read one after the other mostly lie in the same.
#[derive(Debug, Default)]
pub(crate) struct Opened(RefCell<Option<(u32, Vec<u8>)>>);

impl Contents {
    /// The content of a file of this snapshot, checked.
    pub(crate) fn read<E>(
        &self,
        file: &Entry,
        opened: &Opened,
        load: impl Fn(&BlobId) -> Result<Vec<u8>, E>,
    ) -> Result<Vec<u8>, SnapshotError<E>> {
        let malformed = |reason: String| SnapshotError::Malformed {
            id: self.id,
            reason,
        };
        let Entry::File {
            blob, bytes, place, ..
        } = file
        else {
            return Err(malformed("what is no file has no content".to_owned()));
        };
        let length = usize::try_from(*bytes).unwrap_or(usize::MAX);
        let Some(Place(number, at)) = *place else {
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
