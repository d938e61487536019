//! `gyrus runs prune`

use std::{collections::BTreeSet, time::Duration};

use clap::Args;
use gyrus_contract::{BlobId, RunId};
use gyrus_journal::{Payload, Reader, Store};
use gyrus_kernel::log_name;
use serde_json::Value;

use super::Standing;
use crate::{
    Gyrus, console::put, exit::Code, failure::Failure, own_child, select, time::parse_duration,
};

/// Free the space of old runs, keeping their journals
///
/// Snapshots of folders and pictures go, of runs that are over for long enough. Such a run can
/// still be shown, verified and replayed; a fork of it works in place only.
#[derive(Args)]
pub(crate) struct Prune {
    /// How long a run must have been over
    #[arg(long, value_name = "DURATION", default_value = "30d", value_parser = parse_duration)]
    older_than: Duration,
}

impl Prune {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        own_child::refuse("prune runs")?;
        let store = gyrus.store()?;
        let age_ms = i64::try_from(self.older_than.as_millis()).unwrap_or(i64::MAX);
        let before_ms = jiff::Timestamp::now()
            .as_millisecond()
            .saturating_sub(age_ms);
        let (mut runs, mut bytes) = (0_u64, 0_u64);
        for run in select::all(&store)? {
            if let Some(dropped) = prune(&store, run, before_ms)? {
                runs += u64::from(dropped > 0);
                bytes += dropped;
            }
        }
        let freed = store.sweep()?;
        put(&format!(
            "dropped {bytes} bytes of {runs} runs; {freed} bytes of disk are free again\n"
        ))?;
        Ok(Code::Reached)
    }
}

/// Drops what a run that was over before `before_ms` does not need; `None` if it is not.
fn prune(store: &Store, run: RunId, before_ms: i64) -> Result<Option<u64>, Failure> {
    if !matches!(Standing::of(store, run), Standing::Over(_)) {
        return Ok(None);
    }
    let name = log_name(run);
    let reader = store.reader(&name)?;
    let last = reader.entries_back()?.next().transpose()?;
    if last.is_none_or(|entry| entry.at_ms > before_ms) {
        return Ok(None);
    }
    let needed = needed(&reader)?;
    Ok(Some(
        store.drop_blobs(&name, &|blob| !needed.contains(blob))?,
    ))
}

/// The blobs without which a run cannot be replayed: parts of its entries that were too large to
/// stand in them, and the frames of its prompts.
fn needed(reader: &Reader) -> Result<BTreeSet<BlobId>, Failure> {
    let mut needed = BTreeSet::new();
    for entry in reader.entries(1)? {
        if let Payload::Json(payload) = entry?.payload {
            let value = serde_json::from_str(payload.get()).unwrap_or(Value::Null);
            collect(&value, &mut needed);
        }
    }
    Ok(needed)
}

fn collect(value: &Value, needed: &mut BTreeSet<BlobId>) {
    match value {
        Value::Object(fields) => {
            // A picture names its kind beside its blob.
            let is_picture = fields.contains_key("media_type");
            for (name, value) in fields {
                let id = value.as_str().and_then(|text| text.parse().ok());
                match (name.as_str(), id) {
                    ("blob", Some(id)) if !is_picture => drop(needed.insert(id)),
                    ("frame", Some(id)) => drop(needed.insert(id)),
                    ("snapshot", _) => {}
                    _ => collect(value, needed),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, needed)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parts_and_frames_are_needed_pictures_and_snapshots_are_not() {
        let id = |n: u8| BlobId::of(&[n]);
        let entry = json!({
            "frame": id(1),
            "snapshot": {"blob": id(2)},
            "text": {"blob": id(3)},
            "lead": [{"parts": [{"type": "image", "blob": id(4), "media_type": "image/png"}]}],
            "items": [{"blob": id(5)}, {"is": {"message": "blob"}}],
        });
        let mut needed = BTreeSet::new();
        collect(&entry, &mut needed);
        assert_eq!(needed, BTreeSet::from([id(1), id(3), id(5)]));
    }
}
