//! Setting a trigger off: what holds it back, and its event.

use gyrus_contract::{Origin, Principal};
use serde_json::{Value, json};

use super::{
    config::TriggerSource,
    error::TriggerError,
    record::{HeldBack, MAX_REMEMBERED, TriggerFact, TriggerMark, day_of},
    shared::{LiveTrigger, TriggersInner},
    signature::{self, HookHead},
    when,
};
use crate::{Event, EventId, Topic, blocking};

/// The name under which events of triggers are published.
const FROM: &str = "trigger";

/// The fate of a delivery to a webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryFate {
    /// The trigger fired.
    Fired,
    /// The same delivery arrived before.
    Repeated,
    /// The trigger did not fire. A delivery that only a pause or a budget held back may be repeated.
    Held(HeldBack),
}

pub(super) struct SetOff<'k> {
    /// Distinguishes the cause from all others of the trigger.
    pub(super) key: &'k str,
    pub(super) payload: Value,
    pub(super) origin: Origin,
    pub(super) mark: TriggerMark,
}

impl TriggersInner {
    /// Fires a trigger unless something holds it back; returns the reason if so.
    pub(super) async fn set_off(
        &self,
        live: &LiveTrigger,
        what: SetOff<'_>,
    ) -> Result<Option<HeldBack>, TriggerError> {
        let _one = live.firing.lock().await;
        self.set_off_alone(live, what).await
    }

    /// Fires a trigger whose lock the caller holds.
    async fn set_off_alone(
        &self,
        live: &LiveTrigger,
        mut what: SetOff<'_>,
    ) -> Result<Option<HeldBack>, TriggerError> {
        let at_ms = self.clock.now_ms();
        let held = self.held(live, &what.payload, at_ms).await;
        what.mark.values = when::values(&live.config.when, &what.payload);
        let Some(why) = held else {
            self.publish(live, what, at_ms).await?;
            return Ok(None);
        };
        if matches!(why, HeldBack::Budget | HeldBack::Paused) {
            // It did not count, so it may come again.
            what.mark.delivery = None;
        }
        if why == HeldBack::Budget {
            self.tell_budget(live, at_ms).await?;
        }
        let held = TriggerFact::Held {
            name: live.name.clone(),
            why,
            at_ms,
            mark: what.mark,
        };
        self.record(vec![held]).await?;
        Ok(Some(why))
    }

    async fn held(&self, live: &LiveTrigger, payload: &Value, at_ms: i64) -> Option<HeldBack> {
        let (is_paused, holds, wakes) = self.look(&live.name, |record| {
            let holds = when::all_hold(&live.config.when, payload, &record.mark.values);
            (record.paused.is_some(), holds, record.wakes_today(at_ms))
        });
        if is_paused {
            return Some(HeldBack::Paused);
        }
        if !holds {
            return Some(HeldBack::Condition);
        }
        let is_over = live.config.wakes.is_some_and(|limit| wakes >= limit)
            || self.has_used_up_budget(live, at_ms).await;
        is_over.then_some(HeldBack::Budget)
    }

    async fn has_used_up_budget(&self, live: &LiveTrigger, at_ms: i64) -> bool {
        if live.budget.is_unlimited() {
            return false;
        }
        let (gateway, agent) = (self.gateway.clone(), live.name.agent.clone());
        let used = blocking(move || gateway.used_on_day_of(&agent, at_ms)).await;
        live.budget.is_used_up(used)
    }

    /// Publishes, once a day, that a budget holds a trigger back.
    async fn tell_budget(&self, live: &LiveTrigger, at_ms: i64) -> Result<(), TriggerError> {
        let day = day_of(at_ms);
        if self.look(&live.name, |record| record.told_day) == Some(day) {
            return Ok(());
        }
        let why = "the budget of the day is used up";
        self.tell(live, "limited", &day.to_string(), why).await
    }

    /// Publishes an event about a trigger on `agent.NAME.trigger.WORD`.
    pub(super) async fn tell(
        &self,
        live: &LiveTrigger,
        word: &str,
        key: &str,
        why: &str,
    ) -> Result<(), TriggerError> {
        let name = &live.name;
        let topic = topic(&format!("agent.{}.trigger.{word}", name.agent));
        let payload = json!({"trigger": name.trigger, "why": why});
        let mut event = Event::new(topic, FROM, Origin::Kernel, payload);
        event.id = EventId::derived(&format!("{}/{}/{word}/{key}", name.agent, name.trigger));
        self.agents.bus().publish_durable(event).await?;
        Ok(())
    }

    async fn publish(
        &self,
        live: &LiveTrigger,
        what: SetOff<'_>,
        at_ms: i64,
    ) -> Result<(), TriggerError> {
        let id = event_id(live, what.key);
        let inbox = topic(&format!("agent.{}.inbox", live.name.agent));
        let from = format!("{FROM} {}", live.name.trigger);
        let mut event = Event::new(inbox, from, what.origin, what.payload);
        event.id = id;
        event.at_ms = at_ms;
        event.correlation = Some(id.to_string());
        // Before the log: whoever does this again publishes the same event, which is stored once.
        self.agents.bus().publish_durable(event).await?;
        let fired = TriggerFact::Fired {
            name: live.name.clone(),
            event: id,
            at_ms,
            mark: what.mark,
        };
        self.record(vec![fired]).await
    }

    pub(super) async fn fire_by_hand(
        &self,
        live: &LiveTrigger,
        by: &Principal,
    ) -> Result<(), TriggerError> {
        let _one = live.firing.lock().await;
        let what = SetOff {
            key: &EventId::new().to_string(),
            payload: json!({"trigger": live.name.trigger, "fired_by": by.id}),
            origin: Origin::Kernel,
            mark: TriggerMark::default(),
        };
        self.publish(live, what, self.clock.now_ms()).await
    }

    pub(super) async fn deliver(
        &self,
        live: &LiveTrigger,
        head: HookHead<'_>,
        body: &[u8],
    ) -> Result<DeliveryFate, TriggerError> {
        let TriggerSource::Webhook { secret } = &live.config.source else {
            return Err(TriggerError::NotFound {
                agent: live.name.agent.clone(),
                trigger: live.name.trigger.clone(),
            });
        };
        let secret = secret.as_ref().ok_or(TriggerError::NoSecret)?;
        let now = self.clock.now_ms();
        signature::check(secret, head, body, now)?;
        let payload: Value = serde_json::from_slice(body).map_err(TriggerError::NotJson)?;
        let mut rate = live.firing.lock().await;
        let delivery = event_id(live, head.id);
        let (is_known, remembered) = self.look(&live.name, |record| {
            (record.has_delivery(&delivery), record.deliveries(now))
        });
        if is_known {
            return Ok(DeliveryFate::Repeated);
        }
        if !rate.admits(now) || remembered >= MAX_REMEMBERED {
            return Err(TriggerError::TooMany);
        }
        let topic = format!("agent.{}.inbox", live.name.agent);
        let what = SetOff {
            key: head.id,
            payload,
            origin: Origin::Event { topic },
            mark: TriggerMark {
                delivery: Some(delivery),
                ..TriggerMark::default()
            },
        };
        let held = self.set_off_alone(live, what).await?;
        Ok(held.map_or(DeliveryFate::Fired, DeliveryFate::Held))
    }
}

fn event_id(live: &LiveTrigger, key: &str) -> EventId {
    EventId::derived(&format!("{}/{}/{key}", live.name.agent, live.name.trigger))
}

fn topic(text: &str) -> Topic {
    text.parse().expect("names of agents are words of a topic")
}
