//! Publishing durable events, and subscribing to them by position.

use std::{collections::VecDeque, sync::Arc};

use gyrus_journal::Store;
use gyrus_kernel::now_ms;
use serde::Serialize;
use tokio::{sync::watch, time::sleep};

use super::{
    error::BusError,
    event_bus::{EventBus, check_patterns},
    history::{
        ControlRecord, ControlState, Durable, EventBatch, EventHistory, HistoryLimits,
        SubscriberProgress, SubscriberState,
    },
    position::{EventPosition, StartAt},
};
use crate::{
    event::Event,
    ledger::{TRY_AGAIN, is_of_disk},
    topic::TopicPattern,
};

/// Maximum number of durable subscribers, connected or not.
pub const DURABLE_SUBSCRIBERS: usize = 1_000;

/// Maximum length of a durable subscriber's name, in bytes.
const NAME_BYTES: usize = 200;

/// Number of positions that are read at once when reading backwards.
const READ_BACK: u64 = 64;

/// The next item of a durable subscription.
#[derive(Debug, Clone, PartialEq)]
pub enum DurableItem {
    Event(EventPosition, Arc<Event>),
    /// The events of these positions, of which some may have matched, are not kept any more: the
    /// subscriber was away for too long, or the history grew over its largest size.
    Lost {
        /// The first position.
        from: EventPosition,
        /// The last position.
        to: EventPosition,
    },
}

/// The state of a durable subscriber.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DurableStatus {
    pub name: String,
    /// The position of the last event that the subscriber acknowledged; 0 if there is none.
    pub acknowledged: EventPosition,
    /// Whether the subscriber has a subscription now.
    pub is_connected: bool,
    /// The time at which the subscriber last connected or acknowledged an event, in milliseconds
    /// since 1970, UTC.
    pub seen_ms: i64,
}

impl EventBus {
    /// Opens the bus with its durable events in `store`. May block for the disk.
    ///
    /// # Errors
    /// Returns [`BusError::InUse`] when another process, or another bus of this one, has them.
    pub fn open(store: &Store, limits: HistoryLimits) -> Result<Self, BusError> {
        let history = EventHistory::open(store, limits)?;
        Ok(Self::with_history(Some(Arc::new(history))))
    }

    /// Stores an event, publishes it as [`EventBus::publish`] does, and returns its position. The
    /// event is on disk then, and reaches every durable subscriber that matches. An event with the
    /// id of one of the last [`HistoryLimits::duplicate_window`] is neither stored nor published
    /// again; its position is that of the earlier one.
    ///
    /// # Errors
    /// After an error it is unknown whether the event was stored: publish it again under the same
    /// id.
    pub async fn publish_durable(
        &self,
        event: impl Into<Arc<Event>>,
    ) -> Result<EventPosition, BusError> {
        let event = event.into();
        event.check()?;
        if event.topic.is_private() {
            let what = "topic of a durable event";
            let reason = format!("`{}` is private to a conversation", event.topic);
            return Err(BusError::Invalid { what, reason });
        }
        let (position, is_new) = self.history()?.append(&event).await?;
        if is_new {
            self.deliver(&event).await;
        }
        Ok(position)
    }

    /// Subscribes to durable events as `name`: to those that are stored, from a position on, and
    /// then to new ones, in order of position. Each comes at least once, also if the process ends:
    /// start at [`StartAt::Acknowledged`] and acknowledge what is done. The history is kept for the
    /// subscriber until it has.
    ///
    /// # Errors
    /// Returns an error when the name is connected already, the position does not exist yet, or a
    /// limit is reached.
    pub async fn subscribe_durable(
        &self,
        name: &str,
        patterns: &[TopicPattern],
        start: StartAt,
    ) -> Result<DurableSubscription, BusError> {
        check_patterns(patterns)?;
        let history = Arc::clone(self.history()?);
        let passed = connect(&history, name, start)?;
        let subscription = DurableSubscription {
            name: name.to_owned(),
            patterns: patterns.to_vec(),
            passed,
            ready: VecDeque::new(),
            durable: history.durable(),
            history,
        };
        let subscribed = ControlRecord::Subscribed {
            name: name.to_owned(),
            acknowledged: passed,
            at_ms: now_ms(),
        };
        subscription.history.control.write(subscribed).await?;
        Ok(subscription)
    }

    /// Records on disk that a durable subscriber has handled everything up to a position. An
    /// earlier position than before changes nothing.
    ///
    /// # Errors
    /// Returns an error when there is no such subscriber or no such position.
    pub async fn acknowledge(&self, name: &str, position: EventPosition) -> Result<(), BusError> {
        acknowledge(self.history()?, name, position).await
    }

    /// Removes a durable subscriber, so that no history is kept for it.
    ///
    /// # Errors
    /// Returns an error when there is no such subscriber, or it is connected.
    pub async fn unsubscribe_durable(&self, name: &str) -> Result<(), BusError> {
        let history = self.history()?;
        if find(&mut history.control.state(), name)?
            .connected
            .is_some()
        {
            let name = name.to_owned();
            return Err(BusError::Connected { name });
        }
        let name = name.to_owned();
        history
            .control
            .write(ControlRecord::Unsubscribed { name })
            .await
    }

    /// Returns the state of every durable subscriber, sorted by name; none without a history.
    pub fn durable_subscribers(&self) -> Vec<DurableStatus> {
        let Ok(history) = self.history() else {
            return Vec::new();
        };
        let state = history.control.state();
        let status = |(name, subscriber): (&String, &SubscriberState)| DurableStatus {
            name: name.clone(),
            acknowledged: EventPosition(subscriber.acknowledged),
            is_connected: subscriber.connected.is_some(),
            seen_ms: subscriber.seen_ms,
        };
        state.subscribers.iter().map(status).collect()
    }

    /// Reads durable events after a position whose topics match one of the patterns: at most
    /// `limit`, oldest first, and the position up to which was read. Positions that are not kept
    /// any more are passed over.
    pub async fn read(
        &self,
        after: EventPosition,
        patterns: &[TopicPattern],
        limit: usize,
    ) -> Result<(Vec<(EventPosition, Arc<Event>)>, EventPosition), BusError> {
        let history = self.history()?;
        let last = history.last();
        let (mut passed, mut events) = (after.0, Vec::new());
        while passed < last && events.len() < limit {
            let batch = history.read(passed + 1, last).await?;
            passed = batch.last.max(passed);
            for (position, event) in batch.events {
                if patterns.iter().any(|one| one.matches(&event.topic)) {
                    events.push((EventPosition(position), event));
                    if events.len() >= limit {
                        passed = position;
                        break;
                    }
                }
            }
        }
        Ok((events, EventPosition(passed)))
    }

    /// Reads wanted durable events before a position: at most `limit`, newest first, of at most
    /// `searched` positions. Returns them with the position down to which was read; 1 if there is
    /// nothing older.
    pub async fn read_back(
        &self,
        before: EventPosition,
        searched: u64,
        limit: usize,
        is_wanted: impl Fn(&Event) -> bool,
    ) -> Result<(Vec<(EventPosition, Arc<Event>)>, EventPosition), BusError> {
        let history = self.history()?;
        let mut down_to = before.0.min(history.last() + 1).max(1);
        let stop = history.oldest().max(down_to.saturating_sub(searched));
        let mut events = Vec::new();
        while down_to > stop && events.len() < limit {
            let from = stop.max(down_to.saturating_sub(READ_BACK));
            let (mut passed, mut stretch) = (from - 1, Vec::new());
            while passed < down_to - 1 {
                let batch = history.read(passed + 1, down_to - 1).await?;
                passed = batch.last.max(passed + 1);
                stretch.extend(batch.events);
            }
            down_to = from;
            let wanted = stretch.into_iter().rev().filter(|(_, one)| is_wanted(one));
            for (position, event) in wanted {
                events.push((EventPosition(position), event));
                if events.len() == limit {
                    down_to = position;
                    break;
                }
            }
        }
        let is_oldest = down_to <= history.oldest();
        Ok((events, EventPosition(if is_oldest { 1 } else { down_to })))
    }

    /// Waits until there are durable events after a position.
    ///
    /// # Errors
    /// Returns [`BusError::Closed`] once the bus is dropped.
    pub async fn wait_beyond(&self, position: EventPosition) -> Result<(), BusError> {
        let mut durable = self.history()?.durable();
        let grown = durable.wait_for(|durable| durable.is_closed || durable.last > position.0);
        match grown.await {
            Ok(durable) if !durable.is_closed => Ok(()),
            _ => Err(BusError::Closed),
        }
    }

    /// Returns the position of the last durable event; 0 if there is none.
    ///
    /// # Errors
    /// Returns an error when the bus keeps no history.
    pub fn last_position(&self) -> Result<EventPosition, BusError> {
        Ok(EventPosition(self.history()?.last()))
    }
}

fn find<'a>(state: &'a mut ControlState, name: &str) -> Result<&'a mut SubscriberState, BusError> {
    let unknown = || BusError::UnknownSubscriber {
        name: name.to_owned(),
    };
    state.subscribers.get_mut(name).ok_or_else(unknown)
}

async fn acknowledge(
    history: &EventHistory,
    name: &str,
    position: EventPosition,
) -> Result<(), BusError> {
    let last = EventPosition(history.last());
    if position > last {
        return Err(BusError::NoSuchPosition { position, last });
    }
    find(&mut history.control.state(), name)?;
    let acknowledged = ControlRecord::Acknowledged {
        name: name.to_owned(),
        position: position.0,
        at_ms: now_ms(),
    };
    history.control.write(acknowledged).await
}

/// Marks a subscriber as connected, and returns the position before its first event.
fn connect(history: &EventHistory, name: &str, start: StartAt) -> Result<u64, BusError> {
    if !(1..=NAME_BYTES).contains(&name.len()) {
        let what = "name of a durable subscriber";
        let reason = format!("it must have 1 to {NAME_BYTES} bytes");
        return Err(BusError::Invalid { what, reason });
    }
    let (oldest, last) = (history.oldest(), history.last());
    let mut state = history.control.state();
    let known = state.subscribers.get(name);
    if known.is_some_and(|subscriber| subscriber.connected.is_some()) {
        let name = name.to_owned();
        return Err(BusError::Connected { name });
    }
    if known.is_none() && state.subscribers.len() >= DURABLE_SUBSCRIBERS {
        let (what, limit) = ("durable subscribers", DURABLE_SUBSCRIBERS);
        return Err(BusError::TooMany { what, limit });
    }
    let passed = match start {
        StartAt::Oldest => oldest - 1,
        StartAt::Next => last,
        StartAt::Position(position) if (1..=last + 1).contains(&position.0) => position.0 - 1,
        StartAt::Position(position) => {
            let last = EventPosition(last);
            return Err(BusError::NoSuchPosition { position, last });
        }
        StartAt::Acknowledged => known.map_or(oldest - 1, |known| known.acknowledged),
    };
    let subscriber = state
        .subscribers
        .entry(name.to_owned())
        .or_insert(SubscriberState {
            acknowledged: passed,
            seen_ms: now_ms(),
            connected: None,
        });
    subscriber.connected = Some(SubscriberProgress {
        delivered: 0,
        passed,
    });
    Ok(passed)
}

/// The receiving end of a durable subscription. Dropping it disconnects the subscriber, which stays
/// known.
#[derive(Debug)]
pub struct DurableSubscription {
    name: String,
    patterns: Vec<TopicPattern>,
    /// The position up to which all matching events are returned or ready.
    passed: u64,
    ready: VecDeque<DurableItem>,
    durable: watch::Receiver<Durable>,
    history: Arc<EventHistory>,
}

impl DurableSubscription {
    /// Waits for the next event that matches and returns it, however long the disk refuses to be read.
    /// Dropping the future loses nothing.
    ///
    /// # Errors
    /// Returns [`BusError::Closed`] once the bus is dropped, and an error when the history is damaged.
    pub async fn next(&mut self) -> Result<DurableItem, BusError> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                self.note_progress(Some(&item));
                return Ok(item);
            }
            let durable = *self.durable.borrow_and_update();
            if durable.is_closed {
                return Err(BusError::Closed);
            }
            if self.passed < durable.last {
                match self.history.read(self.passed + 1, durable.last).await {
                    Err(error) if is_of_disk(&error) => sleep(TRY_AGAIN).await,
                    batch => self.accept(batch?),
                }
            } else if self.durable.changed().await.is_err() {
                return Err(BusError::Closed);
            }
        }
    }

    /// Records that everything up to a position was handled, however long the disk refuses that.
    ///
    /// # Errors
    /// There is no such position.
    pub async fn acknowledge(&self, position: EventPosition) -> Result<(), BusError> {
        loop {
            match acknowledge(&self.history, &self.name, position).await {
                Err(error) if is_of_disk(&error) => sleep(TRY_AGAIN).await,
                acknowledged => return acknowledged,
            }
        }
    }

    /// Returns the name of the subscriber.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn accept(&mut self, batch: EventBatch) {
        self.passed = batch.last;
        if let Some((from, to)) = batch.lost {
            self.ready.push_back(DurableItem::Lost {
                from: EventPosition(from),
                to: EventPosition(to),
            });
        }
        for (position, event) in batch.events {
            if self.patterns.iter().any(|one| one.matches(&event.topic)) {
                let position = EventPosition(position);
                self.ready.push_back(DurableItem::Event(position, event));
            }
        }
        if self.ready.is_empty() {
            self.note_progress(None);
        }
    }

    fn note_progress(&self, item: Option<&DurableItem>) {
        let mut state = self.history.control.state();
        let Some(subscriber) = state.subscribers.get_mut(&self.name) else {
            return;
        };
        let Some(progress) = &mut subscriber.connected else {
            return;
        };
        progress.passed = match item {
            Some(DurableItem::Event(position, _)) => {
                progress.delivered = position.0;
                position.0
            }
            Some(DurableItem::Lost { to, .. }) => to.0,
            None => self.passed,
        };
        if self.ready.is_empty() {
            progress.passed = self.passed;
        }
    }
}

impl Drop for DurableSubscription {
    fn drop(&mut self) {
        let mut state = self.history.control.state();
        if let Some(subscriber) = state.subscribers.get_mut(&self.name) {
            subscriber.acknowledged = subscriber.settled();
            subscriber.seen_ms = now_ms();
            subscriber.connected = None;
        }
    }
}
