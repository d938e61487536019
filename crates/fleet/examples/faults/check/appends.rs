//! The history of conditional appends holds.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{appends::Attempted, reader::Message};

/// Beginning of the subjects of the workload.
const SUBJECTS: &str = "inbox.appends-";

/// Returns what is wrong with the appends, compared with what the stream has.
pub(crate) fn check(history: &[Attempted], messages: &[Message]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut places: BTreeMap<(&str, &[u8]), Vec<u64>> = BTreeMap::new();
    let mut last: BTreeMap<&str, u64> = BTreeMap::new();
    let own = messages.iter();
    for message in own.filter(|message| message.subject.starts_with(SUBJECTS)) {
        let key = (message.subject.as_str(), &*message.body);
        places.entry(key).or_default().push(message.position);
        let before = last.insert(&message.subject, message.position).unwrap_or(0);
        let text: Value = serde_json::from_slice(&message.body).unwrap_or_default();
        if text["expected"].as_u64() != Some(before) {
            wrong.push(format!(
                "message {} of {} expected {} before it, and {before} is",
                message.position, message.subject, text["expected"]
            ));
        }
    }
    for attempted in history {
        let name = || {
            let length = attempted.body.len().min(100);
            format!(
                "{} {}",
                attempted.subject,
                String::from_utf8_lossy(&attempted.body[..length])
            )
        };
        let key = (attempted.subject.as_str(), &*attempted.body);
        let found = places.remove(&key).unwrap_or_default();
        if found.len() > 1 {
            wrong.push(format!("{} is there {} times", name(), found.len()));
        }
        for told in &attempted.stored {
            if !found.contains(told) {
                wrong.push(format!(
                    "{} was stored at {told}, and is at {found:?}",
                    name()
                ));
            }
        }
        if attempted.stored.is_empty() && attempted.unknown == 0 && !found.is_empty() {
            wrong.push(format!("{} was refused, and is at {found:?}", name()));
        }
    }
    for ((subject, _), found) in places {
        wrong.push(format!("{subject}: nobody appended {found:?}"));
    }
    wrong
}
