//! Server-sent events: positions for the dashboard, entries for programs.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    http::HeaderMap,
    response::{
        IntoResponse, Response, Sse,
        sse::{Event, KeepAlive},
    },
};
use futures_util::{Stream, StreamExt, stream};
use gyrus_contract::RunId;
use gyrus_journal::{Follower, LogEntry};
use gyrus_kernel::{RunState, log_name};
use gyrus_runtime::{self as runtime, BusError, EventPosition, TopicPattern};
use gyrus_surfaces::json;
use serde::Serialize;
use serde_json::Value;
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

use crate::{app::App, error::ApiError, heads::RunWord};

/// Interval of keep-alive comments, so that proxies do not close the connection.
const ALIVE_EVERY: Duration = Duration::from_secs(15);

/// Time after which a follower connects again, in milliseconds.
const RETRY: Duration = Duration::from_secs(1);

/// Maximum number of streams at once.
const MAX_STREAMS: u64 = 256;

struct StreamPlace(Arc<App>);

impl StreamPlace {
    fn take(app: &Arc<App>) -> Result<Self, ApiError> {
        use std::sync::atomic::Ordering;
        let streams = &app.counters.streams;
        let took = streams.try_update(Ordering::Relaxed, Ordering::Relaxed, |count| {
            (count < MAX_STREAMS).then_some(count + 1)
        });
        match took {
            Ok(_) => Ok(Self(Arc::clone(app))),
            Err(_) => Err(ApiError::new(
                axum::http::StatusCode::TOO_MANY_REQUESTS,
                format!("{MAX_STREAMS} streams are open already"),
            )),
        }
    }
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        use std::sync::atomic::Ordering;
        self.0.counters.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

fn respond(stream: impl Stream<Item = Result<Event, Infallible>> + Send + 'static) -> Response {
    let alive = KeepAlive::new().interval(ALIVE_EVERY);
    Sse::new(stream).keep_alive(alive).into_response()
}

/// Shortest time between two positions of the bus in one stream.
const BUS_EVERY: Duration = Duration::from_millis(100);

/// Streams the positions of runs, and the last position of the bus for those who want that: all at
/// first, then those that change. A follower that is slow gets the newest position of each run, and
/// none in between.
pub(crate) fn heads(app: &Arc<App>, with_bus: bool) -> Result<Response, ApiError> {
    let place = StreamPlace::take(app)?;
    let first = HeadFollower {
        changes: app.heads.changes(),
        stopping: app.stopping.clone(),
        place,
        seen: None,
        bus: (!with_bus).then_some(EventPosition(u64::MAX)),
        bus_from: Instant::now(),
    };
    let events = stream::unfold(first, |mut positions| async move {
        let event = positions.next().await?;
        Some((Ok(event), positions))
    });
    Ok(respond(events))
}

struct HeadFollower {
    place: StreamPlace,
    changes: watch::Receiver<u64>,
    stopping: watch::Receiver<bool>,
    /// Version of the last positions of runs that were sent.
    seen: Option<u64>,
    /// The position of the bus last reported; the highest possible if none is wanted.
    bus: Option<EventPosition>,
    /// Earliest time of the next message about the bus.
    bus_from: Instant,
}

impl HeadFollower {
    async fn next(&mut self) -> Option<Event> {
        let app = Arc::clone(&self.place.0);
        let bus = app.agents.bus();
        loop {
            let version = *self.changes.borrow_and_update();
            if self.seen.is_none_or(|seen| version > seen) {
                let heads = app.heads.since(self.seen.unwrap_or(0));
                self.seen = Some(version);
                let event = Event::default().event("heads").id(version.to_string());
                return Some(event.retry(RETRY).json_data(&heads).unwrap_or_default());
            }
            let last = bus.last_position().ok()?;
            let told = self.bus;
            if told.is_none_or(|told| last > told) && Instant::now() >= self.bus_from {
                self.bus = Some(last);
                self.bus_from = Instant::now() + BUS_EVERY;
                return Some(Event::default().event("bus").data(last.to_string()));
            }
            let (bus_from, told) = (self.bus_from, told.unwrap_or(last));
            let grown = async {
                bus.wait_beyond(told).await?;
                sleep_until(bus_from).await;
                Ok::<_, BusError>(())
            };
            tokio::select! {
                changed = self.changes.changed() => changed.ok()?,
                grown = grown => grown.ok()?,
                _ = self.stopping.wait_for(|stop| *stop) => return None,
            }
        }
    }
}

/// Streams the entries of a run after a number, as they reach the disk. The stream ends with the
/// run, or with the command that was to start it.
pub(crate) fn entries(app: &Arc<App>, run: RunId, after: u64) -> Result<Response, ApiError> {
    let place = StreamPlace::take(app)?;
    if app.store.exists(&log_name(run)) {
        return Ok(respond(following(place, run, after)?));
    }
    let later = async move {
        let place = begun(place, run).await?;
        // What cannot be read now is asked for again by whoever follows.
        following(place, run, after).ok()
    };
    let later = stream::once(later).filter_map(std::future::ready);
    Ok(respond(Box::pin(later.flatten())))
}

/// Waits until a run has begun; `None` if it will not.
async fn begun(place: StreamPlace, run: RunId) -> Option<StreamPlace> {
    let app = Arc::clone(&place.0);
    let mut runs = app.heads.changes();
    let mut commands = app.gateway.changes();
    let mut stopping = app.stopping.clone();
    while !app.store.exists(&log_name(run)) {
        if !app.gateway.with(|queue| queue.is_open(run)) {
            return None;
        }
        tokio::select! {
            changed = runs.changed() => changed.ok()?,
            changed = commands.changed() => changed.ok()?,
            _ = stopping.wait_for(|stop| *stop) => return None,
        }
    }
    Some(place)
}

fn following(
    place: StreamPlace,
    run: RunId,
    after: u64,
) -> Result<impl Stream<Item = Result<Event, Infallible>> + Send, ApiError> {
    let app = Arc::clone(&place.0);
    let reader = app.store.reader(&log_name(run))?;
    let follower = reader.follow(after.saturating_add(1))?;
    let is_over = match app.heads.of(run) {
        Some(head) => head.state == RunWord::Over,
        None => matches!(
            RunState::of(&app.store, run)?,
            RunState::Over(_) | RunState::NeverBegan | RunState::Record(_)
        ),
    };
    let end = if is_over { Some(reader.end()?) } else { None };
    let first = RunStream {
        place,
        run,
        follower,
        end,
        last: after,
        stopping: app.stopping.clone(),
    };
    Ok(stream::unfold(Some(first), |following| async move {
        let mut following = following?;
        let event = following.next().await?;
        let is_last = following.end.is_some_and(|end| following.last >= end);
        Some((Ok(event), (!is_last).then_some(following)))
    }))
}

struct RunStream {
    place: StreamPlace,
    run: RunId,
    follower: Follower,
    /// The number of the last entry of an ended run.
    end: Option<u64>,
    last: u64,
    stopping: watch::Receiver<bool>,
}

impl RunStream {
    async fn next(&mut self) -> Option<Event> {
        // The place is held for as long as somebody follows.
        let _ = &self.place;
        if self.end.is_some_and(|end| self.last >= end) {
            return None;
        }
        let entry = tokio::select! {
            entry = self.follower.next() => entry.ok()?,
            _ = self.stopping.wait_for(|stop| *stop) => return None,
        };
        Some(self.event(&entry))
    }

    fn event(&mut self, entry: &LogEntry) -> Event {
        self.last = entry.seq;
        if entry.kind == "run.ended" {
            self.end = Some(entry.seq);
        }
        Event::default()
            .event("entry")
            .id(entry.seq.to_string())
            .retry(RETRY)
            .json_data(json::line(self.run, entry))
            .unwrap_or_default()
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct PlacedEvent {
    pub(crate) position: u64,
    #[serde(flatten)]
    pub(crate) event: Arc<runtime::Event>,
}

/// Maximum number of events in a follower's memory, each of at most 256 KiB.
const EVENTS_AHEAD: usize = 16;

/// Streams durable events behind a position, as they reach the disk. A slow follower reads them
/// from disk when it comes to them.
pub(crate) fn events(
    app: &Arc<App>,
    pattern: TopicPattern,
    after: EventPosition,
) -> Result<Response, ApiError> {
    let place = StreamPlace::take(app)?;
    let stopping = app.stopping.clone();
    let ready = std::collections::VecDeque::new();
    let first = (place, pattern, stopping, after, ready);
    let events = stream::unfold(
        first,
        |(place, pattern, mut stopping, mut passed, mut ready)| async move {
            let bus = place.0.agents.bus().clone();
            while ready.is_empty() {
                let patterns = std::slice::from_ref(&pattern);
                let (events, to) = bus.read(passed, patterns, EVENTS_AHEAD).await.ok()?;
                ready.extend(events);
                let is_at_end = to == passed;
                passed = to;
                if ready.is_empty() && is_at_end {
                    tokio::select! {
                        grown = bus.wait_beyond(passed) => grown.ok()?,
                        _ = stopping.wait_for(|stop| *stop) => return None,
                    }
                }
            }
            let (position, event) = ready.pop_front()?;
            let position = position.0;
            let event = Event::default()
                .event("event")
                .id(position.to_string())
                .retry(RETRY)
                .json_data(PlacedEvent { position, event })
                .unwrap_or_default();
            Some((Ok(event), (place, pattern, stopping, passed, ready)))
        },
    );
    Ok(respond(events))
}

/// Returns the number of the last event that a follower received before its connection broke.
pub(crate) fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>, ApiError> {
    let last = headers.get("last-event-id");
    let last = last.map(|last| {
        let number = last.to_str().ok().and_then(|last| last.trim().parse().ok());
        number.ok_or_else(|| ApiError::bad_request("invalid Last-Event-ID: it is not a number"))
    });
    last.transpose()
}

pub(crate) fn value(run: RunId, entry: &LogEntry) -> Value {
    serde_json::to_value(json::line(run, entry)).unwrap_or_default()
}
