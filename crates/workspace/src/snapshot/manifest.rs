//! The JSON of a snapshot, and its chain of parents up to the full one.

use std::collections::{BTreeMap, BTreeSet};

use gyrus_contract::BlobId;
use serde::{Deserialize, Serialize};

use super::{MAX_BYTES, MAX_DELTAS, MAX_ENTRIES, MAX_FILE_BYTES, SnapshotError, name};

/// Version of the format that is written. 4 has separately stored contents, 3 packs, 2 modes and
/// folders that are left out. Versions 1 to 3 can be read.
const VERSION: u32 = 4;

/// Entries of a workspace by their encoded paths, relative and with `/` between parts.
pub(crate) type SnapshotEntries = BTreeMap<String, SnapshotEntry>;

/// A snapshot that was read or is about to be written.
#[derive(Debug)]
pub(crate) struct SnapshotContents {
    pub(super) id: BlobId,
    pub(crate) entries: SnapshotEntries,
    /// Blobs with the contents of many files, by number.
    pub(super) packs: Vec<BlobId>,
}

impl SnapshotContents {
    /// Creates contents whose files have a blob each.
    pub(crate) fn of_single_blobs(id: BlobId, entries: SnapshotEntries) -> Self {
        Self {
            id,
            entries,
            packs: Vec::new(),
        }
    }

    /// Returns the snapshot's name.
    pub(crate) fn id(&self) -> BlobId {
        self.id
    }
}

/// Position of a file's content: the number of the pack, and the first byte in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ContentPlace(pub(super) u32, pub(super) u32);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum SnapshotEntry {
    File {
        /// Hash of the content; without a pack, it is also the id of its blob.
        blob: BlobId,
        bytes: u64,
        #[serde(default, rename = "in", skip_serializing_if = "Option::is_none")]
        place: Option<ContentPlace>,
        /// Whether the entry is or holds a secret; its content is then kept apart and may be
        /// missing.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        apart: bool,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        executable: bool,
        /// Permission bits; `None` in version 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<u32>,
    },
    Link {
        target: String,
    },
    Folder {
        /// Permission bits, as of a file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<u32>,
    },
    Skipped {
        why: Skip,
    },
}

impl SnapshotEntry {
    /// Whether both entries are the same, as far as both are known.
    pub(crate) fn agrees(&self, other: &Self) -> bool {
        let modes = |one: &Option<u32>, two: &Option<u32>| match (one, two) {
            (Some(one), Some(two)) => one == two,
            (None, _) | (_, None) => true,
        };
        match (self, other) {
            (
                Self::File {
                    blob,
                    executable,
                    mode,
                    ..
                },
                Self::File {
                    blob: content,
                    executable: runs,
                    mode: other,
                    ..
                },
            ) => blob == content && executable == runs && modes(mode, other),
            (Self::Folder { mode }, Self::Folder { mode: other }) => modes(mode, other),
            (one, other) => one == other,
        }
    }
}

/// Reason why the content of an entry is not in the snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Skip {
    /// A pipe, socket or device.
    Special,
    /// The entry could not be read for lack of permission.
    Unreadable,
    /// The file changed during every attempt to read it.
    Changing,
    /// A folder of build output, which its tools can rebuild.
    Rebuildable,
}

/// A snapshot in stored form: full without a parent, otherwise the differences from it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredSnapshot {
    version: u32,
    parent: Option<BlobId>,
    #[serde(default)]
    packs: Vec<BlobId>,
    entries: SnapshotEntries,
    #[serde(default)]
    removed: BTreeSet<String>,
}

/// A snapshot in the form for writing.
#[derive(Debug, Serialize)]
pub(super) struct Manifest<'a> {
    version: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<BlobId>,
    /// New packs; their numbers continue those of the parent.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    packs: &'a [BlobId],
    entries: BTreeMap<&'a str, &'a SnapshotEntry>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    removed: Vec<&'a str>,
}

/// Approximate bytes of an entry in JSON.
const ENTRY_BYTES: usize = 200;

impl<'a> Manifest<'a> {
    pub(super) fn full(packs: &'a [BlobId], entries: &'a SnapshotEntries) -> Self {
        Self {
            version: VERSION,
            parent: None,
            packs,
            entries: entries
                .iter()
                .map(|(path, entry)| (path.as_str(), entry))
                .collect(),
            removed: Vec::new(),
        }
    }

    /// Returns the differences that turn `before` into `packs` and `now`.
    pub(super) fn delta(
        before: &'a SnapshotContents,
        packs: &'a [BlobId],
        now: &'a SnapshotEntries,
    ) -> Self {
        let entries = now
            .iter()
            .filter(|(path, entry)| before.entries.get(*path) != Some(entry))
            .map(|(path, entry)| (path.as_str(), entry))
            .collect();
        let removed = before
            .entries
            .keys()
            .filter(|path| !now.contains_key(*path))
            .map(String::as_str)
            .collect();
        Self {
            version: VERSION,
            parent: Some(before.id),
            packs: &packs[before.packs.len()..],
            entries,
            removed,
        }
    }

    /// Returns the number of entries in the manifest.
    pub(super) fn len(&self) -> usize {
        self.entries.len() + self.removed.len()
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.len() * ENTRY_BYTES);
        serde_json::to_writer(&mut bytes, self)
            .expect("a manifest has string keys and plain values only");
        bytes
    }
}

/// Forgets packs that no entry needs any more.
pub(super) fn drop_unused(packs: &mut Vec<BlobId>, entries: &mut SnapshotEntries) {
    let places = entries.values_mut().filter_map(|entry| match entry {
        SnapshotEntry::File { place, .. } => place.as_mut(),
        SnapshotEntry::Link { .. }
        | SnapshotEntry::Folder { .. }
        | SnapshotEntry::Skipped { .. } => None,
    });
    let mut kept = Vec::new();
    let mut numbers = BTreeMap::new();
    for ContentPlace(number, _) in places {
        *number = *numbers.entry(*number).or_insert_with_key(|number| {
            kept.extend(usize::try_from(*number).ok().and_then(|at| packs.get(at)));
            u32::try_from(kept.len() - 1).expect("there are no more than before")
        });
    }
    *packs = kept;
}

/// Loads a whole snapshot, checked: safe to lay out below any folder.
pub(crate) fn load_contents<E>(
    id: &BlobId,
    load: &impl Fn(&BlobId) -> Result<Vec<u8>, E>,
) -> Result<SnapshotContents, SnapshotError<E>> {
    let malformed = |reason: String| SnapshotError::Malformed { id: *id, reason };
    let mut chain = Vec::new();
    let mut next = Some(*id);
    while let Some(blob) = next {
        if chain.len() > MAX_DELTAS as usize {
            return Err(malformed(format!(
                "it goes back over more than {MAX_DELTAS} deltas"
            )));
        }
        let bytes = load(&blob).map_err(SnapshotError::Store)?;
        let manifest: StoredSnapshot = serde_json::from_slice(&bytes)
            .map_err(|e| malformed(format!("{blob} is not a snapshot: {e}")))?;
        if !(1..=VERSION).contains(&manifest.version) {
            let version = manifest.version;
            return Err(malformed(format!(
                "version {version} is unknown; use a newer gyrus"
            )));
        }
        next = manifest.parent;
        chain.push(manifest);
    }
    let mut entries = SnapshotEntries::new();
    let mut packs = Vec::new();
    for manifest in chain.into_iter().rev() {
        for path in &manifest.removed {
            entries.remove(path);
        }
        entries.extend(manifest.entries);
        packs.extend(manifest.packs);
    }
    check(&entries).map_err(malformed)?;
    Ok(SnapshotContents {
        id: *id,
        entries,
        packs,
    })
}

fn check(entries: &SnapshotEntries) -> Result<(), String> {
    let mut total = 0_u64;
    for (path, entry) in entries {
        let Some(bytes) = name::decode(path) else {
            return Err(format!("the path `{path}` is not escaped as it should be"));
        };
        if name::parts(&bytes).is_none() {
            return Err(format!(
                "the path `{path}` leaves the folder or is not plain"
            ));
        }
        if let Some((parent, _)) = path.rsplit_once('/')
            && !matches!(entries.get(parent), Some(SnapshotEntry::Folder { .. }))
        {
            return Err(format!("`{path}` does not lie in a folder of the snapshot"));
        }
        match entry {
            SnapshotEntry::File { bytes, .. } if *bytes > MAX_FILE_BYTES => {
                return Err(format!("`{path}` is larger than {MAX_FILE_BYTES} bytes"));
            }
            SnapshotEntry::File {
                mode: Some(mode), ..
            }
            | SnapshotEntry::Folder { mode: Some(mode) }
                if *mode > 0o777 =>
            {
                return Err(format!("`{path}` has a mode that is none"));
            }
            SnapshotEntry::File { bytes, .. } => total = total.saturating_add(*bytes),
            SnapshotEntry::Link { target } => match name::decode(target) {
                Some(target) if !target.is_empty() && !target.contains(&0) => {}
                _ => return Err(format!("the link `{path}` has no possible target")),
            },
            SnapshotEntry::Folder { .. } | SnapshotEntry::Skipped { .. } => {}
        }
    }
    if entries.len() as u64 > MAX_ENTRIES || total > MAX_BYTES {
        return Err(format!(
            "{} entries with {total} bytes are over the limits",
            entries.len()
        ));
    }
    Ok(())
}
