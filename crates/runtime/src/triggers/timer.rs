//! The one timer of all schedules.

use std::sync::{Arc, Weak};

use futures_util::{StreamExt as _, stream};
use gyrus_contract::Origin;
use jiff::Timestamp;
use serde_json::json;
use tokio::task::AbortHandle;

use super::{
    config::TriggerSource,
    error::TriggerError,
    firing::SetOff,
    missed::{self, GRACE_MS},
    record::{TriggerFact, TriggerMark, settings_hash},
    shared::{LiveTrigger, TriggersInner},
};

/// Number of triggers that fire at once: they wait for the disk together.
const AT_ONCE: usize = 64;

/// The clock may be set back by this much before schedules begin anew, in milliseconds: less than
/// this and no instant fires twice.
const SET_BACK_MS: i64 = 60 * 60 * 1000;

/// Time after which a failed firing is tried again, in milliseconds.
const AGAIN_MS: i64 = 10_000;

/// Follows the clock in a task, until it is aborted or the triggers are dropped.
pub(super) fn follow(shared: &Arc<TriggersInner>) -> AbortHandle {
    let weak = Arc::downgrade(shared);
    let (clock, rescheduled) = (Arc::clone(&shared.clock), Arc::clone(&shared.rescheduled));
    tokio::spawn(async move {
        while let Some(shared) = Weak::upgrade(&weak) {
            let next = shared.fire_due().await;
            drop(shared);
            let waiting = async {
                match next {
                    Some(next) => clock.wait_until(next).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = waiting => {}
                () = rescheduled.notified() => {}
            }
        }
    })
    .abort_handle()
}

impl TriggersInner {
    /// Fires every schedule that is due, and returns the next instant of any.
    async fn fire_due(self: &Arc<Self>) -> Option<i64> {
        let now = self.clock.now_ms();
        let mut all: Vec<Arc<LiveTrigger>> = self.live.lock().values().cloned().collect();
        all.retain(|live| matches!(live.config.source, TriggerSource::Cron { .. }));
        let due: Vec<_> = all
            .iter()
            .filter(|live| self.is_due(live, now))
            .cloned()
            .collect();
        let firing = stream::iter(due).map(|live| Arc::clone(self).fire_or_delay(live, now));
        firing.buffer_unordered(AT_ONCE).collect::<()>().await;
        all.iter().filter_map(|live| *live.next_ms.lock()).min()
    }

    async fn fire_or_delay(self: Arc<Self>, live: Arc<LiveTrigger>, now: i64) {
        if self.fire_schedule(&live, now).await.is_err() {
            // The bus or the disk failed, and may be back.
            *live.next_ms.lock() = Some(now.saturating_add(AGAIN_MS));
        }
    }

    /// Whether the timer has to check a schedule: its instant has come, it is new, or the clock was
    /// set back.
    fn is_due(&self, live: &LiveTrigger, now: i64) -> bool {
        let next = *live.next_ms.lock();
        let cursor = self.look(&live.name, |record| record.mark.cursor_ms);
        next.is_none_or(|next| next <= now) || is_set_back(cursor, now)
    }

    async fn fire_schedule(&self, live: &LiveTrigger, now: i64) -> Result<(), TriggerError> {
        let TriggerSource::Cron {
            schedule,
            zone,
            missed,
        } = &live.config.source
        else {
            return Ok(());
        };
        let settings = settings_hash(&(schedule, zone.iana_name(), missed));
        let (cursor, same) = self.look(&live.name, |record| {
            let mark = &record.mark;
            (mark.cursor_ms, mark.fingerprint.as_ref() == Some(&settings))
        });
        let cursor = match cursor {
            Some(cursor) if same && !is_set_back(Some(cursor), now) => cursor,
            // A schedule that is new, or was changed, has missed nothing.
            _ => {
                let mark = TriggerMark {
                    cursor_ms: Some(now),
                    fingerprint: Some(settings),
                    ..TriggerMark::default()
                };
                let name = live.name.clone();
                self.record(vec![TriggerFact::Marked { name, mark }])
                    .await?;
                now
            }
        };
        let mut last = cursor;
        for instant in missed::due((schedule, zone, *missed), cursor, now) {
            let at = Timestamp::from_millisecond(instant).map(|at| at.to_string());
            let mut payload = json!({"trigger": live.name.trigger, "at": at.unwrap_or_default()});
            if now - instant > GRACE_MS {
                payload["missed"] = json!(true);
            }
            let what = SetOff {
                key: &instant.to_string(),
                payload,
                origin: Origin::Kernel,
                mark: TriggerMark {
                    cursor_ms: Some(instant),
                    ..TriggerMark::default()
                },
            };
            self.set_off(live, what).await?;
            last = instant;
        }
        // What was left out is behind it.
        let next = missed::next(schedule, zone, last.max(now));
        *live.next_ms.lock() = next;
        Ok(())
    }
}

fn is_set_back(cursor: Option<i64>, now: i64) -> bool {
    cursor.is_some_and(|cursor| cursor.saturating_sub(now) > SET_BACK_MS)
}
