//! The memory of triggers, as the fold of one log for all of them.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use crate::{EventId, ledger::Fold};

/// Length of a day in milliseconds. Days are those of UTC.
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// Time for which ids of deliveries are remembered: longer than a signature counts.
const REMEMBERED_MS: u64 = 15 * 60 * 1000;

/// Maximum number of remembered delivery ids of a trigger: more than its rate lets in meanwhile,
/// and few enough for the records of 256 triggers to be one batch of the log.
pub(super) const MAX_REMEMBERED: usize = 2_000;

/// Maximum number of firings of a trigger whose results are awaited.
const MAX_AWAITED: usize = 100;

/// The reason why a trigger did not fire in spite of its cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HeldBack {
    /// A condition was false.
    Condition,
    /// A budget of the day is used up.
    Budget,
    /// The trigger is paused.
    Paused,
    /// A run of the agent itself was at work, and may be the cause.
    OwnRun,
}

/// The position from which a trigger continues.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TriggerMark {
    /// The last examined instant of the schedule, in UTC milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor_ms: Option<i64>,
    /// The fingerprint of the files, or of the schedule that the cursor belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// Hashes of the values with which the next payload is compared, by their pointers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, String>,
    /// The delivery of a webhook, which counts once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<EventId>,
}

/// A firing of a trigger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TriggerFiring {
    pub event: EventId,
    /// The time, in UTC milliseconds.
    pub at_ms: i64,
    /// The end of the run that the firing started, as one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
}

/// The memory of a trigger.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TriggerRecord {
    /// The place from which the trigger continues.
    #[serde(flatten)]
    pub mark: TriggerMark,
    /// Number of firings.
    #[serde(default)]
    pub fired: u64,
    /// Day of the last firing, in days since 1970, and the number of firings on that day.
    #[serde(default)]
    pub wakes: (i64, u64),
    /// Number of times that the trigger was held back, by the reason.
    #[serde(default)]
    pub held: BTreeMap<HeldBack, u64>,
    /// The last day on which an exhausted budget was reported.
    pub told_day: Option<i64>,
    /// Number of consecutive firings without use.
    #[serde(default)]
    pub useless: u32,
    /// The reason why the trigger is paused.
    pub paused: Option<String>,
    pub last: Option<TriggerFiring>,
    /// Firings whose runs have not ended.
    #[serde(default)]
    awaited: VecDeque<EventId>,
    /// Recent deliveries with their times, for recognising repeated ones.
    #[serde(default)]
    deliveries: VecDeque<(i64, EventId)>,
}

impl TriggerRecord {
    /// Returns the number of firings on the day of this time.
    pub fn wakes_today(&self, now_ms: i64) -> u64 {
        let (day, wakes) = self.wakes;
        if day == day_of(now_ms) { wakes } else { 0 }
    }

    pub(super) fn has_delivery(&self, id: &EventId) -> bool {
        self.deliveries.iter().any(|(_, known)| known == id)
    }

    /// Returns the number of remembered deliveries at this time.
    pub(super) fn deliveries(&self, now_ms: i64) -> usize {
        let counts = |(at, _): &&(i64, EventId)| is_remembered(*at, now_ms);
        self.deliveries.iter().filter(counts).count()
    }

    pub(super) fn awaits(&self, event: &EventId) -> bool {
        self.awaited.contains(event)
    }

    fn take_mark(&mut self, at_ms: i64, mark: TriggerMark) {
        if mark.cursor_ms.is_some() {
            self.mark.cursor_ms = mark.cursor_ms;
        }
        if mark.fingerprint.is_some() {
            self.mark.fingerprint = mark.fingerprint;
        }
        self.mark.values.extend(mark.values);
        if let Some(delivery) = mark.delivery {
            self.deliveries.retain(|(at, _)| is_remembered(*at, at_ms));
            if self.deliveries.len() >= MAX_REMEMBERED {
                self.deliveries.pop_front();
            }
            self.deliveries.push_back((at_ms, delivery));
        }
    }
}

/// Whether a delivery is remembered that came at a time. Its signature counts no more if the clock was
/// set far back since.
fn is_remembered(came_ms: i64, now_ms: i64) -> bool {
    now_ms.abs_diff(came_ms) <= REMEMBERED_MS
}

/// Returns the day of a time, in days since 1970.
pub(super) fn day_of(at_ms: i64) -> i64 {
    at_ms.div_euclid(DAY_MS)
}

/// Returns a hash of settings, by which changes are noticed.
pub(super) fn settings_hash(settings: &impl std::fmt::Debug) -> String {
    let text = format!("{settings:?}");
    blake3::hash(text.as_bytes()).to_hex()[..16].to_owned()
}

/// The name of a trigger: its agent and its own name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TriggerName {
    pub agent: String,
    /// The name, unique among the agent's triggers.
    pub trigger: String,
}

/// A fact about triggers.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", content = "payload")]
pub enum TriggerFact {
    /// A trigger fired: the event is on the bus.
    #[serde(rename = "trigger.fired")]
    Fired {
        #[serde(flatten)]
        name: TriggerName,
        event: EventId,
        /// The time, in UTC milliseconds.
        at_ms: i64,
        /// The place from which the trigger continues.
        mark: TriggerMark,
    },
    /// A trigger was set off and did not fire.
    #[serde(rename = "trigger.held")]
    Held {
        #[serde(flatten)]
        name: TriggerName,
        why: HeldBack,
        /// The time, in UTC milliseconds.
        at_ms: i64,
        /// The place from which the trigger continues.
        mark: TriggerMark,
    },
    /// A trigger continues from another position without having fired.
    #[serde(rename = "trigger.marked")]
    Marked {
        #[serde(flatten)]
        name: TriggerName,
        /// The place from which the trigger continues.
        mark: TriggerMark,
    },
    /// The run that a firing started has ended.
    #[serde(rename = "trigger.ended")]
    Ended {
        #[serde(flatten)]
        name: TriggerName,
        event: EventId,
        /// Whether the run was of use.
        useful: bool,
        /// The end as one sentence.
        summary: String,
    },
    #[serde(rename = "trigger.paused")]
    Paused {
        #[serde(flatten)]
        name: TriggerName,
        why: String,
    },
    /// A pause was lifted.
    #[serde(rename = "trigger.resumed")]
    Resumed {
        #[serde(flatten)]
        name: TriggerName,
    },
    /// A trigger is no longer described by its agent's file.
    #[serde(rename = "trigger.removed")]
    Removed {
        #[serde(flatten)]
        name: TriggerName,
    },
    /// The complete record of a trigger, in place of facts that were folded away.
    #[serde(rename = "trigger.record")]
    Record {
        #[serde(flatten)]
        name: TriggerName,
        record: Box<TriggerRecord>,
    },
}

/// The records of all triggers.
#[derive(Debug, Default)]
pub struct TriggerBook(pub(super) BTreeMap<TriggerName, TriggerRecord>);

impl TriggerBook {
    pub fn get(&self, name: &TriggerName) -> Option<&TriggerRecord> {
        self.0.get(name)
    }

    /// Returns the triggers of an agent.
    pub fn of_agent<'b>(
        &'b self,
        agent: &str,
    ) -> impl Iterator<Item = (&'b TriggerName, &'b TriggerRecord)> {
        let first = TriggerName {
            agent: agent.to_owned(),
            trigger: String::new(),
        };
        let agent = agent.to_owned();
        let from = self.0.range(first..);
        from.take_while(move |(name, _)| name.agent == agent)
    }
}

impl Fold for TriggerBook {
    const LOG_KIND: &'static str = "triggers";
    type Fact = TriggerFact;

    fn apply(&mut self, fact: TriggerFact) {
        match fact {
            TriggerFact::Fired {
                name,
                event,
                at_ms,
                mark,
            } => {
                let record = self.0.entry(name).or_default();
                record.take_mark(at_ms, mark);
                record.fired += 1;
                record.wakes = (day_of(at_ms), record.wakes_today(at_ms) + 1);
                record.last = Some(TriggerFiring {
                    event,
                    at_ms,
                    result: None,
                });
                record.awaited.push_back(event);
                if record.awaited.len() > MAX_AWAITED {
                    record.awaited.pop_front();
                }
            }
            TriggerFact::Held {
                name,
                why,
                at_ms,
                mark,
            } => {
                let record = self.0.entry(name).or_default();
                record.take_mark(at_ms, mark);
                *record.held.entry(why).or_default() += 1;
                if why == HeldBack::Budget {
                    record.told_day = Some(day_of(at_ms));
                }
            }
            TriggerFact::Marked { name, mark } => {
                self.0.entry(name).or_default().take_mark(0, mark);
            }
            TriggerFact::Ended {
                name,
                event,
                useful,
                summary,
            } => {
                let record = self.0.entry(name).or_default();
                record.awaited.retain(|awaited| *awaited != event);
                record.useless = if useful { 0 } else { record.useless + 1 };
                if let Some(last) = &mut record.last
                    && last.event == event
                {
                    last.result = Some(summary);
                }
            }
            TriggerFact::Paused { name, why } => {
                self.0.entry(name).or_default().paused = Some(why);
            }
            TriggerFact::Resumed { name } => {
                let record = self.0.entry(name).or_default();
                record.paused = None;
                record.useless = 0;
            }
            TriggerFact::Removed { name } => {
                self.0.remove(&name);
            }
            TriggerFact::Record { name, record } => {
                self.0.insert(name, *record);
            }
        }
    }

    fn facts(&self) -> Vec<TriggerFact> {
        let record = |(name, record): (&TriggerName, &TriggerRecord)| TriggerFact::Record {
            name: name.clone(),
            record: Box::new(record.clone()),
        };
        self.0.iter().map(record).collect()
    }
}
