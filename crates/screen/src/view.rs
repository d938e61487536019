//! Looks: the trees of all frames joined into one, and the picture.

mod join;
mod listeners;
mod memory;
mod picture;
mod pierce;
mod pixels;

use std::collections::BTreeMap;

use gyrus_contract::{
    Bounds, Element, ElementState, LookOptions, Picture, Rest, ScreenError, Scroll, Tab, View,
    ViewWithPicture,
};
use serde::Deserialize;
use serde_json::json;

use self::{
    join::{Area, FrameContent, Join, distance},
    memory::{HashedPicture, PageScale},
};
use crate::{
    browser::{Browser, BrowserSession},
    cdp::CdpError,
    settle::SETTLE_LIMIT,
    state::{PageFrame, TabState},
};

#[cfg(feature = "desktop")]
pub(crate) use self::pixels::Pixels;
pub(crate) use self::{
    join::FramePlace,
    memory::{LookMemory, MAX_WIDTH},
};

/// Script that reads a document at once.
pub(crate) const AT_ONCE: &str = "gyrus.walk()";

/// Script that reads a document once its next frame is painted: a picture that is being taken needs
/// that frame, and is made while the document is read.
const ONCE_PAINTED: &str = "gyrus.walkOncePainted()";

/// Maximum number of rounds per look in which nested closed shadow roots are opened.
const MAX_ROUNDS: usize = 4;

/// A reading of all frames of a tab.
#[derive(Default)]
pub(crate) struct TabReading {
    pub(crate) elements: Vec<Element>,
    pub(crate) scroll: Scroll,
    pub(crate) title: String,
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// Position of each read frame, by the frame's id.
    pub(crate) places: BTreeMap<String, FramePlace>,
    /// Ids of those frames that contain fields for secrets.
    secret: Vec<String>,
    /// Description of the part of the page that is not drawn yet in spite of waiting.
    drawing: String,
    /// Scaling and height of the page; `None` if nothing could be read.
    scaling: Option<(PageScale, f64)>,
    pub(crate) unread: Vec<String>,
}

impl BrowserSession {
    /// Waits for rest, and reads the view.
    pub(crate) async fn see(&self, look: LookOptions) -> Result<ViewWithPicture, ScreenError> {
        let rest = self.settle(SETTLE_LIMIT).await;
        let seen = self.glance(look, rest).await;
        // From now on, requests of a page do not count as effects of the input.
        self.state().holdings.looked();
        self.turn();
        seen
    }

    /// Reads the view at once.
    pub(crate) async fn glance(
        &self,
        look: LookOptions,
        rest: Rest,
    ) -> Result<ViewWithPicture, ScreenError> {
        // Read anew: where it is may have changed meanwhile.
        let tab = self.tab()?;
        let is_held = self.state().held_up_by(&tab).is_some();
        let (mut reading, frame) = match &tab.dialog {
            // The page does not answer until the dialog is gone.
            Some(_) => (self.nothing(&tab, "a dialog holds the page up"), None),
            None if is_held => (self.nothing(&tab, "a held request holds the page up"), None),
            None if look.frame => self.read_and_capture(&tab).await,
            None => (self.read_or_nothing(&tab, AT_ONCE).await, None),
        };
        if let Some(reason) = self.lost() {
            return Err(ScreenError::Lost { reason });
        }
        let mut state = self.state();
        reading.unread.extend(state.notes_of_held());
        if state.refused_downloads > 0 {
            let refused = state.refused_downloads;
            let note = format!("{refused} downloads were refused: this session has had too many");
            reading.unread.push(note);
        }
        let rest = match rest {
            Rest::Quiet if !reading.drawing.is_empty() => Rest::GaveUp {
                waiting_for: reading.drawing,
            },
            other => other,
        };
        let tabs = state.tabs.iter().map(|one| Tab {
            number: one.number,
            title: one.title.clone(),
            address: one.address.clone(),
            is_active: Some(one.number) == state.active,
        });
        let view = View {
            session: self.id.clone(),
            address: tab.address.clone(),
            title: reading.title,
            width: reading.width,
            height: reading.height,
            frame: None,
            hash: frame.as_ref().map(|frame| frame.hash),
            scroll: reading.scroll,
            elements: reading.elements,
            tabs: tabs.collect(),
            dialog: state.dialog_of(&tab),
            downloads: state.shown_downloads(),
            held: state.held_requests().map(|one| one.shown.clone()).collect(),
            rest,
            documents: state.documents,
            unread: reading.unread,
        };
        Ok(ViewWithPicture {
            view,
            frame: frame.map(|frame| frame.picture),
        })
    }

    pub(crate) async fn picture_of(&self, tab: &TabState) -> Option<Picture> {
        let (_, shot) = self.read_and_capture(tab).await;
        Some(shot?.picture)
    }

    async fn read_or_nothing(&self, tab: &TabState, how: &str) -> TabReading {
        let reading = self.read(tab, how).await;
        reading.unwrap_or_else(|error| self.nothing(tab, &error.to_string()))
    }

    /// Returns the element tree and a picture of the same moment, as far as possible.
    async fn read_and_capture(&self, tab: &TabState) -> (TabReading, Option<HashedPicture>) {
        // Scaled as before, most likely: then neither has to wait for the other.
        let before = self.memory.lock().scaling;
        let guess = before.unwrap_or(PageScale {
            width: f64::from(self.launch.width),
            density: self.launch.density,
            zoom: 1.0,
        });
        let height = f64::from(self.launch.height);
        let had_secrets = self.memory.lock().had_secrets;
        let (captured, mut reading) = if had_secrets {
            (None, self.read_or_nothing(tab, AT_ONCE).await)
        } else {
            let capture = self.capture(tab, guess, height);
            let reading = self.read_or_nothing(tab, ONCE_PAINTED);
            let (captured, reading) = tokio::join!(capture, reading);
            (Some(captured), reading)
        };
        let Some((scaling, height)) = reading.scaling else {
            return (reading, None);
        };
        let has_secrets =
            !reading.secret.is_empty() || reading.elements.iter().any(|one| self.is_secret(one));
        {
            let mut memory = self.memory.lock();
            memory.scaling = Some(scaling);
            memory.had_secrets = has_secrets;
        }
        let captured = match captured {
            Some(captured) if scaling == guess && !has_secrets => captured,
            // The positions of secrets must be known both before the picture is taken and after.
            _ => self.capture(tab, scaling, height).await,
        };
        let shot = match captured {
            Ok(captured) => {
                let covered = self.to_cover(&reading).await;
                self.develop(captured, covered)
            }
            Err(error) => Err(error.to_string()),
        };
        match shot {
            Ok(shot) => (reading, Some(shot)),
            Err(error) => {
                reading.unread.push(format!("the picture: {error}"));
                (reading, None)
            }
        }
    }

    /// Whether an element must be kept from pictures because it shows a secret.
    fn is_secret(&self, one: &Element) -> bool {
        let is_shown = one
            .value
            .as_deref()
            .map_or(one.role != "button", |value| !value.is_empty());
        let is_masked = one.states.contains(&ElementState::Masked);
        is_shown && is_masked || self.recognises(&one.name, one.value.as_deref())
    }

    /// Returns the areas to paint over: secrets where they were before the picture was taken, and
    /// where they are now.
    async fn to_cover(&self, reading: &TabReading) -> Vec<Bounds> {
        let mut covered: Vec<Bounds> = reading
            .elements
            .iter()
            .filter(|one| self.is_secret(one))
            .filter_map(|one| one.bounds)
            .collect();
        for id in &reading.secret {
            let frame = self.state().frames.get(id).cloned();
            let (Some(frame), Some(place)) = (frame, reading.places.get(id)) else {
                continue;
            };
            // A frame that has gone is no longer visible.
            let boxes: Vec<[f64; 4]> = self
                .ask(&frame, "gyrus.secretBoxes()")
                .await
                .unwrap_or_default();
            covered.extend(boxes.into_iter().map(|corner| place.bounds(corner)));
        }
        covered.sort_unstable_by_key(|one| (one.y, one.x, one.width, one.height));
        covered.dedup();
        covered
    }

    pub(crate) fn tab(&self) -> Result<TabState, ScreenError> {
        let tab = self.state().active_tab().cloned();
        tab.ok_or_else(|| ScreenError::Lost {
            reason: self
                .lost()
                .unwrap_or_else(|| "its last page was closed".to_owned()),
        })
    }

    fn nothing(&self, tab: &TabState, why: &str) -> TabReading {
        let (width, height) = self.frame_size();
        TabReading {
            title: tab.title.clone(),
            width,
            height,
            unread: vec![format!("the page: {why}")],
            ..TabReading::default()
        }
    }

    /// Returns the size of the picture in pixels, if the page has the requested size.
    fn frame_size(&self) -> (u32, u32) {
        let (width, height) = (self.launch.width.max(1), self.launch.height.max(1));
        if width > MAX_WIDTH {
            (MAX_WIDTH, height * MAX_WIDTH / width)
        } else {
            (width, height)
        }
    }

    /// Reads all frames of a tab at once, the main frame with the given script, and joins them.
    pub(crate) async fn read(&self, tab: &TabState, how: &str) -> Result<TabReading, CdpError> {
        let frames = self.state().frames_of(tab);
        self.own_frames(&frames).await;
        let reading = frames.iter().map(|(id, frame)| async move {
            let how = if *id == tab.target { how } else { AT_ONCE };
            (id.clone(), self.walk(frame, how).await)
        });
        let mut walked: BTreeMap<String, Result<FrameContent, CdpError>> =
            futures_util::future::join_all(reading)
                .await
                .into_iter()
                .collect();
        let main = match walked.remove(&tab.target) {
            Some(main) => main?,
            None => {
                return Err(CdpError::Gone {
                    reason: "the page has no document".to_owned(),
                });
            }
        };
        let mut join = Join {
            frames: frames.into_iter().collect(),
            walked,
            ..Join::default()
        };
        let (width, height) = (main.width.max(1.0), main.height);
        let scale = (f64::from(MAX_WIDTH) / width).min(1.0);
        // Pinching shows a part of the viewport, larger.
        let zoomed = scale * main.zoom;
        let place = FramePlace {
            x: -main.left * zoomed,
            y: -main.top * zoomed,
            across: zoomed,
            down: zoomed,
        };
        let [x, y, whole_width, whole_height] = main.scroll;
        let scroll = Scroll {
            x: distance((x + main.left) * zoomed),
            y: distance((y + main.top) * zoomed),
            width: distance(whole_width * zoomed),
            height: distance(whole_height * zoomed),
        };
        let scaling = PageScale {
            width,
            density: main.density,
            zoom: main.zoom,
        };
        let (title, drawing) = (main.title.clone(), main.drawing.clone());
        let seen = Area::sized(width * scale, height * scale);
        join.add_main(&tab.target, main, place, seen);
        Ok(TabReading {
            elements: join.elements,
            scroll,
            title,
            width: distance(width * scale),
            height: distance(height * scale),
            places: join.places,
            secret: join.secret,
            drawing,
            scaling: Some((scaling, height)),
            unread: join.unread,
        })
    }

    /// Reads a frame, twice if it contains closed shadow roots that were not opened yet.
    async fn walk(&self, frame: &PageFrame, how: &str) -> Result<FrameContent, CdpError> {
        // Without it, elements that only listen are missing.
        let _ = self.hear(frame).await;
        let mut walked: FrameContent = self.ask(frame, how).await?;
        for _ in 0..MAX_ROUNDS {
            if walked.suspects == 0 || self.open_roots(frame).await? == 0 {
                break;
            }
            let _ = self.hear(frame).await;
            walked = self.ask(frame, AT_ONCE).await?;
        }
        Ok(walked)
    }

    /// Evaluates an expression that returns JSON text, in our world of a frame.
    pub(crate) async fn ask<T: serde::de::DeserializeOwned>(
        &self,
        frame: &PageFrame,
        expression: &str,
    ) -> Result<T, CdpError> {
        #[derive(Deserialize)]
        struct TextResult {
            result: RemoteText,
            #[serde(rename = "exceptionDetails")]
            exception: Option<serde_json::Value>,
        }
        #[derive(Deserialize)]
        struct RemoteText {
            value: Option<String>,
        }
        let Some(world) = frame.world else {
            return Err(CdpError::Gone {
                reason: "the frame has no document".to_owned(),
            });
        };
        let evaluated: TextResult = self
            .cdp
            .call(
                &frame.session,
                "Runtime.evaluate",
                json!({
                    "expression": expression,
                    "contextId": world,
                    "returnByValue": true,
                    "awaitPromise": true,
                }),
            )
            .await?;
        let unreadable = |reason: String| CdpError::Unreadable {
            method: gyrus_text::shorten(expression, 60).into_owned(),
            reason,
        };
        let text = match (evaluated.result.value, evaluated.exception) {
            (Some(text), None) => text,
            (_, exception) => return Err(unreadable(format!("{exception:?}"))),
        };
        serde_json::from_str(&text).map_err(|error| unreadable(error.to_string()))
    }
}

impl Browser {
    /// Returns a picture of the current page, with secrets covered as in the run's own pictures;
    /// `None` while there is no browser, or its page cannot be read.
    pub async fn watch(&self) -> Option<Picture> {
        let session = self.open_session()?;
        let tab = session.tab().ok()?;
        if tab.dialog.is_some() || session.state().held_up_by(&tab).is_some() {
            return None;
        }
        session.picture_of(&tab).await
    }
}
