//! The person's view of a page: pictures of it as they change, and the data around it.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use axum::body::Bytes;
use base64::{Engine, prelude::BASE64_STANDARD};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{sync::mpsc, time::MissedTickBehavior};

use super::{
    cast_frame::{CastFrame, CastFrameEvent},
    desk::TakeoverDesk,
    wire::{PICTURE, WORDS, chunk},
};
use crate::{
    browser::BrowserSession,
    state::{BrowserState, TabState},
};

/// Grades of picture quality, best first: JPEG's quality and the longest side in pixels.
const GRADES: [(u32, u32); 3] = [(80, 1920), (60, 1280), (40, 960)];

/// Time to send a picture above which the quality is lowered.
const SLOW: Duration = Duration::from_millis(250);

/// Number of consecutive quick pictures after which the quality is raised.
const QUICK: u32 = 60;

/// Time after which titles are requested again: a page may get its title, or another one, with no
/// event that says so.
const TITLES_AGE: Duration = Duration::from_secs(1);

/// Maximum characters of a title.
const MAX_TITLE: usize = 200;

/// Sends pictures and data until the receiver is gone.
pub(super) async fn show(
    session: Arc<BrowserSession>,
    desk: Arc<TakeoverDesk>,
    out: mpsc::Sender<Bytes>,
) {
    let session = &*session;
    let (cast, mut frames) = mpsc::unbounded_channel();
    let own = cast.downgrade();
    // An earlier receiver gets no more pictures.
    session.state().cast = Some(cast);
    let mut changes = session.changes();
    let mut showing = CastPage::default();
    let mut told = Value::Null;
    let mut titles = tokio::time::interval(TITLES_AGE);
    titles.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let (tab, now) = {
            let state = session.state();
            (state.active_tab().cloned(), words(&state, &desk))
        };
        if now != told {
            if out
                .send(chunk(WORDS, now.to_string().as_bytes()))
                .await
                .is_err()
            {
                break;
            }
            told = now;
            ask_titles(session).await;
            titles.reset();
            continue;
        }
        showing.turn_to(session, tab.as_ref());
        // A page that is left at that moment gives none, nor does the cast that began on it: it is
        // tried again after the next change.
        if showing.owes
            && let Some(tab) = &tab
            && let Some(picture) = still(session, tab).await
        {
            showing.owes = false;
            if out.send(chunk(PICTURE, &picture)).await.is_err() {
                break;
            }
        }
        tokio::select! {
            frame = frames.recv() => {
                let Some(frame) = frame else { return };
                if !showing.send((session, &desk), frame, &out).await {
                    break;
                }
            }
            changed = changes.changed() => if changed.is_err() { return },
            _ = titles.tick() => ask_titles(session).await,
            () = out.closed() => break,
        }
    }
    let is_last = own.upgrade().is_some_and(|own| {
        let state = session.state();
        state
            .cast
            .as_ref()
            .is_some_and(|cast| cast.same_channel(&own))
    });
    if let Some(shown) = showing.session.filter(|_| is_last) {
        stop(session, &shown);
    }
}

/// Requests the titles of pages: the browser reports the title of a page before it has one, and
/// later only on request.
async fn ask_titles(session: &BrowserSession) {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct TargetAnswer {
        target_info: TargetInfoAnswer,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct TargetInfoAnswer {
        target_id: String,
        title: String,
    }
    // One by one: a list of all would include tabs that are not the run's.
    let tabs = session.state().tabs.clone();
    let asking = tabs.iter().map(|tab| {
        let order = json!({"targetId": tab.target});
        session.cdp.call("", "Target.getTargetInfo", order)
    });
    let asked: Vec<Result<TargetAnswer, _>> = futures_util::future::join_all(asking).await;
    let mut state = session.state();
    for target in asked.into_iter().flatten().map(|one| one.target_info) {
        let mut tabs = state.tabs.iter_mut();
        if let Some(tab) = tabs.find(|tab| tab.target == target.target_id) {
            tab.title = gyrus_text::shorten(&target.title, MAX_TITLE).into_owned();
        }
    }
}

/// Captures a picture of a page that does not change and therefore sends none.
async fn still(session: &BrowserSession, tab: &TabState) -> Option<Vec<u8>> {
    #[derive(Deserialize)]
    struct Screenshot {
        data: String,
    }
    let order = json!({"format": "jpeg", "quality": GRADES[0].0});
    let asking = session
        .cdp
        .call(&tab.session, "Page.captureScreenshot", order);
    let captured: Screenshot = session.unless_held(tab, asking).await.ok()?.ok()?;
    BASE64_STANDARD.decode(captured.data).ok()
}

/// Stops the pictures of a page.
pub(super) fn stop(session: &BrowserSession, of: &str) {
    session.cdp.send(of, "Page.stopScreencast", json!({}));
    session
        .cdp
        .send(of, "Input.setInterceptDrags", json!({"enabled": false}));
}

/// The page whose pictures are sent, and their quality.
#[derive(Default)]
struct CastPage {
    session: Option<String>,
    /// Whether no picture of the page was sent yet.
    owes: bool,
    grade: usize,
    quick: u32,
}

impl CastPage {
    /// Shows this page from here on.
    fn turn_to(&mut self, page: &BrowserSession, tab: Option<&TabState>) {
        let wanted = tab.map(|tab| tab.session.clone());
        if wanted == self.session {
            if self.owes {
                self.start(page);
            }
            return;
        }
        if let Some(before) = &self.session {
            stop(page, before);
        }
        self.session = wanted;
        if let Some(now) = &self.session {
            let send = |method, params| page.cdp.send(now, method, params);
            send("Input.setInterceptDrags", json!({"enabled": true}));
            send("Page.bringToFront", json!({}));
        }
        self.owes = true;
        self.start(page);
    }

    fn start(&self, page: &BrowserSession) {
        if let Some(shown) = &self.session {
            let (quality, side) = GRADES[self.grade];
            let order = json!({
                "format": "jpeg", "quality": quality, "maxWidth": side, "maxHeight": side,
            });
            // Only a screencast that begins shows a page that stands still.
            page.cdp.send(shown, "Page.stopScreencast", json!({}));
            page.cdp.send(shown, "Page.startScreencast", order);
        }
    }

    /// Returns `false` if the receiver is gone.
    async fn send(
        &mut self,
        (page, desk): (&BrowserSession, &TakeoverDesk),
        frame: CastFrame,
        out: &mpsc::Sender<Bytes>,
    ) -> bool {
        let CastFrameEvent {
            data,
            metadata,
            number,
        } = frame.shot;
        if Some(&frame.session) == self.session.as_ref()
            && let Ok(picture) = BASE64_STANDARD.decode(data)
        {
            desk.is_shown(metadata.device_width, metadata.device_height);
            let since = Instant::now();
            if out.send(chunk(PICTURE, &picture)).await.is_err() {
                return false;
            }
            self.adapt(page, since.elapsed());
        }
        // The next one comes when this was taken: a slow line gets fewer.
        let ack = json!({"sessionId": number});
        page.cdp
            .send(&frame.session, "Page.screencastFrameAck", ack);
        true
    }

    fn adapt(&mut self, page: &BrowserSession, took: Duration) {
        let before = self.grade;
        self.quick = if took > SLOW { 0 } else { self.quick + 1 };
        if took > SLOW {
            self.grade = (self.grade + 1).min(GRADES.len() - 1);
        } else if self.quick >= QUICK {
            self.grade = self.grade.saturating_sub(1);
            self.quick = 0;
        }
        if self.grade != before {
            self.start(page);
        }
    }
}

/// Returns the data around the picture.
fn words(state: &BrowserState, desk: &TakeoverDesk) -> Value {
    let tabs = state.tabs.iter().map(|tab| {
        json!({
            "number": tab.number,
            "title": tab.title,
            "address": tab.address,
            "active": Some(tab.number) == state.active,
        })
    });
    let active = state.active_tab();
    let dialog = active.and_then(|tab| tab.dialog.as_ref());
    let frame = active.and_then(|tab| state.frames.get(&tab.target));
    json!({
        "reason": desk.reason,
        "tabs": tabs.collect::<Vec<_>>(),
        "loading": frame.is_some_and(|frame| frame.navigating.is_some()),
        "dialog": dialog.map(|dialog| json!({
            "kind": dialog.kind, "message": dialog.message, "offered": dialog.offered,
        })),
    })
}
