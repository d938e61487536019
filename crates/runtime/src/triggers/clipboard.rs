//! Triggers for the clipboard: one look every two seconds for all of them, and none if there are
//! none. A desktop tells nobody about a new text without a window of its own.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use gyrus_contract::Origin;
use serde_json::json;
use tokio::task::AbortHandle;

use super::{
    config::TriggerSource,
    error::TriggerError,
    firing::SetOff,
    record::{HeldBack, TriggerFact, TriggerMark},
    shared::{LiveTrigger, TriggersInner},
};

/// Time between two readings of the clipboard. Tests do not wait for so long.
const BETWEEN_LOOKS: Duration = if cfg!(test) {
    Duration::from_millis(2)
} else {
    Duration::from_secs(2)
};

/// Maximum number of characters of a text in an event.
const MAX_TEXT: usize = 32 << 10;

/// Follows the clipboard in a task, until it is aborted or the triggers are dropped.
pub(super) fn follow(shared: &Arc<TriggersInner>) -> AbortHandle {
    let weak = Arc::downgrade(shared);
    let reader = Arc::clone(&shared.clipboard);
    let wanted = Arc::clone(&shared.clipboard_wanted);
    let following = async move {
        let mut last: Option<Option<String>> = None;
        loop {
            let Some(shared) = Weak::upgrade(&weak) else {
                return;
            };
            let triggers = shared.clipboard_triggers();
            drop(shared);
            if triggers.is_empty() {
                last = None;
                wanted.notified().await;
                continue;
            }
            let read = reader.read().await;
            let Some(shared) = Weak::upgrade(&weak) else {
                return;
            };
            match read {
                Ok(text) => {
                    let is_new = last.as_ref().is_some_and(|last| *last != text);
                    for live in &triggers {
                        *live.problem.lock() = None;
                        if let Some(text) = text.as_deref().filter(|_| is_new) {
                            // What the disk or the bus refuses is the next text's loss alone.
                            let _ = shared.set_off_copied(live, text).await;
                        }
                    }
                    last = Some(text);
                }
                Err(why) => {
                    for live in &triggers {
                        *live.problem.lock() = Some(why.clone());
                    }
                }
            }
            drop((shared, triggers));
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
    };
    tokio::spawn(following).abort_handle()
}

impl TriggersInner {
    fn clipboard_triggers(&self) -> Vec<Arc<LiveTrigger>> {
        let live = self.live.lock();
        let own = live
            .values()
            .filter(|live| matches!(live.config.source, TriggerSource::Clipboard));
        own.cloned().collect()
    }

    async fn set_off_copied(&self, live: &LiveTrigger, text: &str) -> Result<(), TriggerError> {
        if self.is_working(&live.name.agent) {
            let held = TriggerFact::Held {
                name: live.name.clone(),
                why: HeldBack::OwnRun,
                at_ms: self.clock.now_ms(),
                mark: TriggerMark::default(),
            };
            return self.record(vec![held]).await;
        }
        let fired = self.look(&live.name, |record| record.fired);
        let hash = blake3::hash(text.as_bytes()).to_hex();
        let cut: String = text.chars().take(MAX_TEXT).collect();
        let topic = format!("agent.{}.inbox", live.name.agent);
        let what = SetOff {
            key: &format!("{fired}/{hash}"),
            payload: json!({"trigger": live.name.trigger, "text": cut, "cut": cut.len() < text.len()}),
            origin: Origin::Event { topic },
            mark: TriggerMark::default(),
        };
        self.set_off(live, what).await.map(drop)
    }
}
