//! Waits for a screen to come to rest, by events and never for a fixed time.
//!
//! At rest means: no navigation and no request since the last input is in progress; every document
//! in view that came since then is parsed; fonts and images in view are loaded, or hang for longer than a
//! bound, which is waited for once; no operable element is animated; and operable elements have not
//! moved for two frames. Those two frames are the quiet window: a later
//! change, by a timer that is not visible, is a change of its own.
//!
//! Requests that never end by themselves do not count: streams of events, sockets, beacons, media,
//! and fetches that go on for longer than [`LONG`], unless the input asked for them at once. What an
//! input makes a page send over a socket is answered within a second, or never (see `PageSockets`).

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use gyrus_contract::Rest;

use crate::{
    browser::BrowserSession,
    state::{BrowserState, PageFrame, PendingRequest, TabState},
};

/// Maximum wait for rest after an input, and before a look.
pub(crate) const SETTLE_LIMIT: Duration = Duration::from_secs(5);

/// Maximum wait for rest after a navigation.
pub(crate) const ARRIVAL_LIMIT: Duration = Duration::from_secs(10);

/// Duration after which a fetch counts as a long poll or a stream.
const LONG: Duration = Duration::from_secs(1);

/// Time after an input within which a fetch counts as its effect: it is waited for however long it
/// takes, within the limit.
const AT_ONCE: Duration = Duration::from_millis(250);

/// Maximum time to wait for requests that no script needs: images, icons, manifests. Images in view
/// are waited for longer by `page/settle.js`.
const DECORATION: Duration = Duration::from_millis(500);

/// Extra time for a page whose scripts are too busy to report their state.
const GRACE: Duration = Duration::from_millis(500);

/// Kinds of requests that are not awaited.
const ENDLESS: [&str; 7] = [
    "EventSource",
    "WebSocket",
    "Ping",
    "CSPViolationReport",
    "Prefetch",
    "Media",
    "TextTrack",
];

/// Activity of a tab, as reported by the browser.
#[derive(Debug, PartialEq, Eq)]
enum GoingOn {
    Nothing,
    /// Waiting ends with this result.
    Over(Rest),
    /// A description of the activity; `until` is the time at which it ceases to count, if it does.
    Something {
        what: String,
        until: Option<Instant>,
    },
}

impl BrowserSession {
    /// Waits until the current tab has come to rest.
    pub(crate) async fn settle(&self, limit: Duration) -> Rest {
        let deadline = Instant::now() + limit;
        loop {
            if self.lost().is_some() {
                return Rest::Gone;
            }
            let Some(tab) = self.state().active_tab().cloned() else {
                return Rest::Gone;
            };
            let now = Instant::now();
            let left = deadline.saturating_duration_since(now);
            let going = going_on(&self.state(), &tab, now);
            match &going {
                GoingOn::Over(rest) => return rest.clone(),
                GoingOn::Something { what, .. } if left.is_zero() => {
                    let waiting_for = what.clone();
                    return Rest::GaveUp { waiting_for };
                }
                GoingOn::Something { until, .. } => {
                    let wake =
                        until.map_or(left, |until| left.min(until.saturating_duration_since(now)));
                    // The activity may cease to count by its age alone, which causes no event.
                    let wake = wake.max(Duration::from_millis(1));
                    self.wait(wake, |state| is_different(state, &tab, &going))
                        .await;
                }
                GoingOn::Nothing => {
                    let disturbed = self.wait(left + GRACE, |state| {
                        let now = going_on(state, &tab, Instant::now());
                        (now != GoingOn::Nothing || state.active != Some(tab.number)).then_some(())
                    });
                    tokio::select! {
                        biased;
                        waiting = self.documents_at_rest(&tab, left) => {
                            let again = going_on(&self.state(), &tab, Instant::now());
                            if let Some(waiting_for) = waiting {
                                return Rest::GaveUp { waiting_for };
                            }
                            if again == GoingOn::Nothing {
                                return Rest::Quiet;
                            }
                        }
                        disturbed = disturbed => if disturbed.is_none() && self.lost().is_none() {
                            return Rest::GaveUp {
                                waiting_for: "the page's scripts, which run without a pause".to_owned(),
                            };
                        }
                    }
                }
            }
        }
    }

    /// Returns what the visible documents of a tab still wait for when the time limit passes.
    async fn documents_at_rest(&self, tab: &TabState, limit: Duration) -> Option<String> {
        let frames = self.frames_in_view(tab).await;
        let asking = frames.iter().map(|frame| async move {
            let is_new = self.state().is_since_input(frame.arrived);
            let ask = format!("gyrus.settled({}, {is_new})", limit.as_millis());
            // A document that goes away returns nothing; the next round asks its successor.
            self.ask::<String>(frame, &ask).await.unwrap_or_default()
        });
        let waiting = futures_util::future::join_all(asking).await;
        waiting.into_iter().find(|what| !what.is_empty())
    }

    /// Returns the visible frames of a tab, and notes their ids. In other frames the browser paints
    /// nothing and delays timers: waiting for them takes seconds, and nothing of them shows.
    async fn frames_in_view(&self, tab: &TabState) -> Vec<PageFrame> {
        let all = self.state().frames_of(tab);
        self.own_frames(&all).await;
        let mut all: BTreeMap<String, PageFrame> = all.into_iter().collect();
        let mut ids = BTreeSet::from([tab.target.clone()]);
        let mut shown: Vec<PageFrame> = all.remove(&tab.target).into_iter().collect();
        let mut index = 0;
        while index < shown.len() && !all.is_empty() {
            let inner: Vec<String> = self
                .ask(&shown[index], "gyrus.framesInView()")
                .await
                .unwrap_or_default();
            for id in inner {
                shown.extend(all.remove(&id));
                ids.insert(id);
            }
            index += 1;
        }
        self.memory.lock().shown = ids;
        shown
    }
}

/// Whether the tab's activity differs from before.
fn is_different(state: &BrowserState, tab: &TabState, before: &GoingOn) -> Option<()> {
    let going = going_on(state, tab, Instant::now());
    (going != *before || state.active != Some(tab.number)).then_some(())
}

fn going_on(state: &BrowserState, tab: &TabState, now: Instant) -> GoingOn {
    let Some(tab) = state.tabs.iter().find(|one| one.number == tab.number) else {
        return GoingOn::Over(Rest::Gone);
    };
    if tab.dialog.is_some() {
        return GoingOn::Over(Rest::Dialog);
    }
    if state.held_up_by(tab).is_some() {
        return GoingOn::Over(Rest::Held);
    }
    if state
        .targets
        .get(&tab.session)
        .is_none_or(|target| target.crashed)
    {
        return GoingOn::Over(Rest::Gone);
    }
    let something = |what: &str, until| GoingOn::Something {
        what: what.to_owned(),
        until,
    };
    match state.frames.get(&tab.target) {
        Some(frame) if frame.navigating.is_some() && state.is_since_input(frame.navigating) => {
            return something("the page, which is being loaded", None);
        }
        Some(frame) if frame.world.is_some() => {}
        _ => return something("the page, which is on its way", None),
    }
    if let Some(until) = state.sockets.answer_until(&tab.session, now) {
        return something("an answer over the page's socket", Some(until));
    }
    if state.requests.is_empty() {
        return GoingOn::Nothing;
    }
    let frames = state.frames_of(tab);
    let mut counting: Option<(&PendingRequest, Option<Instant>)> = None;
    for ((_, number), request) in &state.requests {
        if state.is_held(number) || !frames.iter().any(|(id, _)| *id == request.frame) {
            continue;
        }
        match counts(request, state.acted, now) {
            Counts::No => {}
            Counts::Until(until) => counting = counting.or(Some((request, Some(until)))),
            Counts::Yes => {
                counting = Some((request, None));
                break;
            }
        }
    }
    match counting {
        Some((request, until)) => {
            let address = gyrus_text::shorten(&request.address, 120);
            something(&format!("an answer from {address}"), until)
        }
        None => GoingOn::Nothing,
    }
}

enum Counts {
    Yes,
    Until(Instant),
    No,
}

fn counts(request: &PendingRequest, acted: Option<Instant>, now: Instant) -> Counts {
    let before = acted.is_some_and(|acted| request.since < acted);
    if before || ENDLESS.contains(&request.kind.as_str()) {
        return Counts::No;
    }
    let at_once = acted.is_some_and(|acted| request.since - acted < AT_ONCE);
    let until = match request.kind.as_str() {
        "Image" | "Other" | "Manifest" => request.since + DECORATION,
        "Fetch" | "XHR" if request.answered || !at_once => request.since + LONG,
        _ => return Counts::Yes,
    };
    if until > now {
        Counts::Until(until)
    } else {
        Counts::No
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(kind: &str, since: Instant, answered: bool) -> PendingRequest {
        PendingRequest {
            kind: kind.to_owned(),
            address: String::new(),
            since,
            answered,
            frame: String::new(),
        }
    }

    #[test]
    fn what_never_ends_is_not_waited_for() {
        let start = Instant::now();
        let after = |ms| start + Duration::from_millis(ms);
        let check = |kind, since, answered, now| match counts(
            &request(kind, since, answered),
            Some(start),
            now,
        ) {
            Counts::Yes => "yes",
            Counts::Until(_) => "for now",
            Counts::No => "no",
        };
        assert_eq!(check("Script", after(10), false, after(4000)), "yes");
        assert_eq!(check("EventSource", after(10), false, after(20)), "no");
        assert_eq!(check("Ping", after(10), false, after(20)), "no");
        assert_eq!(check("Fetch", after(10), false, after(4000)), "yes");
        assert_eq!(check("Fetch", after(10), true, after(500)), "for now");
        assert_eq!(check("Fetch", after(10), true, after(4000)), "no");
        assert_eq!(check("XHR", after(900), false, after(1000)), "for now");
        assert_eq!(check("XHR", after(900), false, after(2000)), "no");
        assert_eq!(check("Image", after(10), false, after(500)), "for now");
        assert_eq!(check("Image", after(10), false, after(600)), "no");
        let before = start.checked_sub(Duration::from_millis(5)).unwrap();
        assert_eq!(check("Script", before, false, after(1)), "no");
    }
}
