//! The JSON of a snapshot, and following it back to the full one.

use std::collections::{BTreeMap, BTreeSet};

use gyrus_contract::BlobId;
use serde::{Deserialize, Serialize};

use super::{MAX_BYTES, MAX_DELTAS, MAX_ENTRIES, MAX_FILE_BYTES, SnapshotError, name};

/// The format that is written: 2 has modes, and folders that are left out. 1 is read too.
const VERSION: u32 = 2;

/// Everything in a workspace by its encoded path, relative and with `/` between parts.
pub(crate) type Entries = BTreeMap<String, Entry>;

/// One thing in a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Entry {
    File {
        blob: BlobId,
        bytes: u64,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        executable: bool,
        /// Who may read, write and execute it; version 1 does not say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<u32>,
    },
    Link {
        target: String,
    },
    Folder {
        /// As of a file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<u32>,
    },
    Skipped {
        why: Skip,
    },
}

impl Entry {
    /// Whether both say the same, as far as both say it.
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

/// Why the content of something is not in the snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Skip {
    /// A pipe, socket or device.
    Special,
    /// The system would not let it be read.
    Unreadable,
    /// It changed under every attempt to read it.
    Changing,
    /// A folder of build output, which its tools make again.
    Rebuildable,
}

/// A snapshot as it is stored: full without a parent, else what differs from it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Manifest {
    version: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parent: Option<BlobId>,
    entries: Entries,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    removed: BTreeSet<String>,
}

impl Manifest {
    pub(super) fn full(entries: Entries) -> Self {
        Self {
            version: VERSION,
            parent: None,
            entries,
            removed: BTreeSet::new(),
        }
    }

    /// What turns `before`, the content of `parent`, into `now`.
    pub(super) fn delta(parent: BlobId, before: &Entries, now: &Entries) -> Self {
        let entries = now
            .iter()
            .filter(|(path, entry)| before.get(*path) != Some(entry))
            .map(|(path, entry)| (path.clone(), entry.clone()))
            .collect();
        let removed = before
            .keys()
            .filter(|path| !now.contains_key(*path))
            .cloned()
            .collect();
        Self {
            version: VERSION,
            parent: Some(parent),
            entries,
            removed,
        }
    }

    /// How many entries it mentions.
    pub(super) fn len(&self) -> usize {
        self.entries.len() + self.removed.len()
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a manifest has string keys and plain values only")
    }
}

/// The whole content of a snapshot, checked: safe to lay out below any folder.
pub(crate) fn load_entries<E>(
    id: &BlobId,
    load: &impl Fn(&BlobId) -> Result<Vec<u8>, E>,
) -> Result<Entries, SnapshotError<E>> {
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
        let manifest: Manifest = serde_json::from_slice(&bytes)
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
    let mut entries = Entries::new();
    for manifest in chain.into_iter().rev() {
        for path in &manifest.removed {
            entries.remove(path);
        }
        entries.extend(manifest.entries);
    }
    check(&entries).map_err(malformed)?;
    Ok(entries)
}

fn check(entries: &Entries) -> Result<(), String> {
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
            && !matches!(entries.get(parent), Some(Entry::Folder { .. }))
        {
            return Err(format!("`{path}` does not lie in a folder of the snapshot"));
        }
        match entry {
            Entry::File { bytes, .. } if *bytes > MAX_FILE_BYTES => {
                return Err(format!("`{path}` is larger than {MAX_FILE_BYTES} bytes"));
            }
            Entry::File {
                mode: Some(mode), ..
            }
            | Entry::Folder { mode: Some(mode) }
                if *mode > 0o777 =>
            {
                return Err(format!("`{path}` has a mode that is none"));
            }
            Entry::File { bytes, .. } => total = total.saturating_add(*bytes),
            Entry::Link { target } => match name::decode(target) {
                Some(target) if !target.is_empty() && !target.contains(&0) => {}
                _ => return Err(format!("the link `{path}` has no possible target")),
            },
            Entry::Folder { .. } | Entry::Skipped { .. } => {}
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
