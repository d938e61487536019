//! Cleaning up a run's inbox when it is taken up.

use std::collections::BTreeSet;

use gyrus_contract::{MessageBody, SurfaceMessage};
use gyrus_journal::{Inbox, LogReader};

use crate::{KernelError, Stop, log::parse};

/// Kinds of entries that consume messages.
const USING: [&str; 3] = ["run.steered", "approval.answered", "wait.ended"];

/// Removes messages that must not be used again: stop requests, which a person overruled by
/// resuming, and messages that an entry has consumed. The latter can be there at any time, since
/// their removal may not have reached the disk; so the whole journal is searched for each waiting
/// message.
pub(crate) fn tidy(inbox: &Inbox, reader: &LogReader) -> Result<(), KernelError> {
    let mut waiting = BTreeSet::new();
    for (id, body) in inbox.messages()? {
        let message: Option<SurfaceMessage> = serde_json::from_str(&body).ok();
        match message.map(|message| message.body) {
            Some(MessageBody::Background | MessageBody::Pause | MessageBody::Stop) => {
                inbox.remove(&id)?
            }
            Some(_) => {
                waiting.insert(id);
            }
            // It can never be used, and stays in the folder for a person to look at.
            None => {}
        }
    }
    if waiting.is_empty() {
        return Ok(());
    }
    for entry in reader.entries_back()? {
        let entry = entry?;
        if !USING.contains(&entry.kind.as_str()) {
            continue;
        }
        for used in parse(&entry).map_err(Stop::from)?.consumed_messages() {
            if waiting.remove(used) {
                inbox.remove(used)?;
            }
        }
        if waiting.is_empty() {
            break;
        }
    }
    Ok(())
}
