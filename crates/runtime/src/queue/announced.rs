//! The end of a command as an event, for whoever follows what was asked for.

use gyrus_contract::Origin;
use serde_json::json;

use super::command::{QueueCommand, QueueWork};
use crate::event::{EVENT_NAME_BYTES, Event, EventId};

/// Maximum number of characters of goal and summary.
const GIST: usize = 2_000;

/// Returns the event about the end of a command. It has the command's correlation id, or else the
/// command's own id.
pub(super) fn ended(command: &QueueCommand, code: Option<i32>, summary: &str) -> Event {
    let goal = match &command.work {
        QueueWork::Start(request) => Some(gyrus_text::clip(&request.goal.text, GIST)),
        QueueWork::Resume => None,
    };
    let payload = json!({
        "command": command.id,
        "run": command.run,
        "agent": command.agent,
        "from": command.from,
        "goal": goal,
        "code": code,
        "summary": gyrus_text::clip(summary, GIST),
    });
    let topic = "command.ended".parse().expect("it is a topic");
    // The summary may be in the words of a model.
    let mut event = Event::new(topic, "queue", Origin::Run, payload);
    event.id = EventId::derived(&format!("command/{}/ended", command.id));
    let given = command.correlation.as_ref();
    let given = given.filter(|given| (1..=EVENT_NAME_BYTES).contains(&given.len()));
    event.correlation = Some(given.unwrap_or(&command.id).clone());
    event
}
