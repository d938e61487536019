//! Everything that was stored is still there, unchanged.

use crate::reader::{Message, Seen};

/// Returns what is wrong with a stream.
pub(crate) fn check(stream: &'static str, messages: &[Message], seen: &Seen) -> Vec<String> {
    let mut wrong = Vec::new();
    for pair in messages.windows(2) {
        if pair[1].position != pair[0].position + 1 {
            wrong.push(format!(
                "{stream}: after message {} comes message {}",
                pair[0].position, pair[1].position
            ));
        }
    }
    if let Some(first) = messages.first().filter(|first| first.position != 1) {
        wrong.push(format!(
            "{stream}: the first message is message {}",
            first.position
        ));
    }
    for ((_, position), digest) in seen.range((stream, 0)..=(stream, u64::MAX)) {
        let place = messages.binary_search_by_key(position, |message| message.position);
        match place.ok().map(|place| &messages[place]) {
            None => wrong.push(format!(
                "{stream}: message {position} was stored and is gone"
            )),
            Some(message) if message.digest() != *digest => wrong.push(format!(
                "{stream}: message {position} was stored and is another one now"
            )),
            Some(_) => {}
        }
    }
    wrong
}
