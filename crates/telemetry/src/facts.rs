//! Facts of loops as attributes, without their texts, and how severe an entry is.

use gyrus_kernel::{Ending, Entry};
use opentelemetry_proto::tonic::{common::v1::KeyValue, logs::v1::SeverityNumber};
use serde_json::Value;

use crate::attributes::{flag, number, text};

/// Maximum number of attributes of a fact.
const MAX_ATTRIBUTES: usize = 16;

/// Fields of facts whose values are one of a few words, without content: the kind, and the key.
const WORDS: [(&str, &str); 6] = [
    ("phase", "text"),
    ("changeset.state", "from"),
    ("changeset.state", "event"),
    ("changeset.state", "to"),
    ("memory.compacted", "how"),
    ("batch.stopped", "verdict"),
];

/// Returns the attributes of a fact without its texts: numbers, what is true or false, and the
/// words that are one of a few.
pub(crate) fn words(kind: &str, fact: &Value) -> Vec<KeyValue> {
    let fields = fact.as_object().into_iter().flatten();
    let attributes = fields.filter_map(|(key, value)| {
        let name = || format!("gyrus.fact.{key}");
        match value {
            Value::Bool(is) => Some(flag(&name(), *is)),
            Value::Number(n) => Some(number(&name(), n.as_i64()?)),
            Value::String(word) if WORDS.contains(&(kind, key)) => Some(text(&name(), word)),
            Value::Null | Value::String(_) | Value::Array(_) | Value::Object(_) => None,
        }
    });
    attributes.take(MAX_ATTRIBUTES).collect()
}

pub(crate) fn severity(entry: &Entry) -> SeverityNumber {
    match entry {
        Entry::RunEnded(ended) if matches!(ended.ending, Ending::Failed { .. }) => {
            SeverityNumber::Error
        }
        Entry::RunParked(parked)
            if matches!(
                parked.ending,
                Ending::ModelUnreachable { .. } | Ending::Stuck { .. }
            ) =>
        {
            SeverityNumber::Error
        }
        Entry::BudgetWarning(_) | Entry::CycleDropped(_) | Entry::RunHandedOver(_) => {
            SeverityNumber::Warn
        }
        Entry::ToolResulted(result) if result.is_error => SeverityNumber::Warn,
        Entry::ModelReply(reply)
            if !matches!(reply.came, gyrus_kernel::AttemptResult::Reply { .. }) =>
        {
            SeverityNumber::Warn
        }
        _ => SeverityNumber::Info,
    }
}
