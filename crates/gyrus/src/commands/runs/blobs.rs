//! Blobs of a run: which belong to its history, and which to snapshots of its folder.

use std::collections::BTreeSet;

use gyrus_contract::BlobId;
use gyrus_journal::{Error, LogReader, Payload};
use gyrus_kernel::{Entry, Snapshot};
use serde_json::Value;

use crate::failure::Failure;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CountPictures {
    With,
    Without,
}

/// The blobs without which a run cannot be replayed: parts of its entries that were too large to
/// stand in them, and the frames of its prompts. Nothing that only snapshots name is among them.
pub(super) fn needed(
    reader: &LogReader,
    pictures: CountPictures,
) -> Result<BTreeSet<BlobId>, Failure> {
    let mut needed = BTreeSet::new();
    for entry in reader.entries(1)? {
        if let Payload::Json(payload) = entry?.payload {
            let value = serde_json::from_str(payload.get()).unwrap_or(Value::Null);
            let mut named = Vec::new();
            collect(&value, pictures, &mut named);
            while let Some((id, names_more)) = named.pop() {
                if !needed.insert(id) || !names_more {
                    continue;
                }
                // What is not JSON names nothing; what is gone cannot be looked at.
                let content = reader.blob(&id).unwrap_or_default();
                let value = serde_json::from_slice(&content).unwrap_or(Value::Null);
                collect(&value, pictures, &mut named);
            }
        }
    }
    Ok(needed)
}

/// Adds the blobs that a value names, each with whether its own content names more.
fn collect(value: &Value, pictures: CountPictures, named: &mut Vec<(BlobId, bool)>) {
    match value {
        Value::Object(fields) => {
            // A picture names its kind beside its blob.
            let is_picture = fields.contains_key("media_type");
            for (name, value) in fields {
                let id = value.as_str().and_then(|text| text.parse().ok());
                match (name.as_str(), id) {
                    ("blob", Some(id)) if is_picture => {
                        named.extend((pictures == CountPictures::With).then_some((id, false)));
                    }
                    ("blob" | "frame" | "containment", Some(id)) => named.push((id, true)),
                    // The files that it names are those of the folder.
                    ("withheld", Some(id)) => named.push((id, false)),
                    ("snapshot", _) => {}
                    _ => collect(value, pictures, named),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, pictures, named)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Whether a run has a snapshot of its folder that is not here.
pub(super) fn lacks_files(reader: &LogReader) -> Result<bool, Failure> {
    for entry in reader.entries(1)? {
        let snapshot = match gyrus_kernel::parse(&entry?) {
            Ok(Entry::RunStarted(started)) => started.snapshot,
            Ok(Entry::WorkspaceRecorded(recorded)) => Some(recorded.snapshot),
            Ok(Entry::CycleEnded(ended)) => ended.snapshot,
            _ => None,
        };
        if let Some(Snapshot::Blob(id)) = snapshot
            && matches!(reader.blob(&id), Err(Error::BlobMissing { .. }))
        {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parts_and_frames_are_needed_snapshots_are_not() {
        let id = |n: u8| BlobId::of(&[n]);
        let entry = json!({
            "frame": id(1),
            "snapshot": {"blob": id(2)},
            "fact": {"effect": "1.1", "fact": {"snapshot": {"blob": id(9)}}},
            "text": {"blob": id(3)},
            "lead": [{"parts": [{"type": "image", "blob": id(4), "media_type": "image/png"}]}],
            "items": [{"blob": id(5)}, {"is": {"message": "blob"}}],
            "before": id(6),
            "withheld": id(7),
            "containment": id(8),
        });
        let named = |pictures| {
            let mut named = Vec::new();
            collect(&entry, pictures, &mut named);
            named.into_iter().collect::<BTreeSet<_>>()
        };
        let mut expected = BTreeSet::from([
            (id(1), true),
            (id(3), true),
            (id(5), true),
            (id(7), false),
            (id(8), true),
        ]);
        assert_eq!(named(CountPictures::Without), expected);
        expected.insert((id(4), false));
        assert_eq!(named(CountPictures::With), expected);
    }
}
