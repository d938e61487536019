//! Request and reply.

use std::{sync::Arc, time::Duration};

use super::{error::BusError, event_bus::EventBus, replies::deadline};
use crate::event::Event;

impl EventBus {
    /// Publishes an event and waits for the first reply to it (see [`Event::reply`]). Replies that
    /// come later are dropped and counted.
    ///
    /// # Errors
    /// Returns an error at once when nobody subscribes to the topic, and after `within` when no
    /// reply has come.
    pub async fn request(&self, event: Event, within: Duration) -> Result<Arc<Event>, BusError> {
        let topic = event.topic.clone();
        self.check_responders(&topic)?;
        let deadline = deadline(within);
        let (replies, _) = self.converse(event, 1, deadline).await?;
        let reply = replies.next(deadline).await;
        reply.ok_or(BusError::TimedOut { topic, within })
    }
}
