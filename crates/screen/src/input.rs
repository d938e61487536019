//! Input: mouse, keys, wheel. All of it goes to the session of the page, in CSS pixels of its
//! window, also for frames with a process of their own: the browser finds those itself.

mod keys;
mod spot;

pub(crate) use keys::{Chord, Stroke, held_bits};
#[cfg(feature = "desktop")]
pub(crate) use spot::is_same_aim;
pub(crate) use spot::{InputTarget, Spot, UnusableTarget, quoted};

use std::time::Duration;

use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Value, json};

use crate::{
    browser::BrowserSession,
    cdp::CdpError,
    state::{BrowserState, LOGIN, TabState},
};

/// Number of mouse moves during a drag, and between two points of a longer path.
const DRAG_STEPS: usize = 10;
const VIA_STEPS: usize = 3;

/// Maximum time until the browser reports the start of a drag.
const DRAG_LIMIT: Duration = Duration::from_secs(1);

/// Time limit for anything that a page does in answer to an input.
const HOLD_LIMIT: Duration = Duration::from_secs(60);

/// Maximum characters of a text that is typed key by key; longer text is inserted at once, except
/// for its last character.
const TYPED_BY_KEY: usize = 100;

/// A point in CSS pixels of the window.
pub(crate) type PagePoint = (f64, f64);

/// Reason why a page does not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoPageAnswer {
    /// A dialog of the browser blocks the page.
    Dialog {
        kind: String,
        message: String,
    },
    /// A held request blocks the page.
    Request {
        what: String,
    },
    Crashed,
    Closed,
    /// The browser is gone, or does not answer.
    Lost {
        reason: String,
    },
}

impl NoPageAnswer {
    /// Returns the reason why a tab is held up, if it is.
    pub(crate) fn of(state: &BrowserState, number: u32) -> Option<Self> {
        let Some(tab) = state.tabs.iter().find(|tab| tab.number == number) else {
            return Some(NoPageAnswer::Closed);
        };
        if let Some(dialog) = &tab.dialog {
            return Some(NoPageAnswer::Dialog {
                kind: dialog.kind.clone(),
                message: dialog.message.clone(),
            });
        }
        if let Some(held) = state.held_up_by(tab) {
            return Some(NoPageAnswer::Request {
                what: held.to_string(),
            });
        }
        let crashed = state
            .targets
            .get(&tab.session)
            .is_some_and(|target| target.crashed);
        crashed.then_some(NoPageAnswer::Crashed)
    }
}

impl std::fmt::Display for NoPageAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NoPageAnswer::Dialog { kind, message } if kind == LOGIN => write!(
                f,
                "{message}; ask a person to log in with hand_over, or go on without it by answer_dialog"
            ),
            NoPageAnswer::Dialog { kind, message } => write!(
                f,
                "a dialog ({kind}) holds the page up: “{message}”; answer it with answer_dialog"
            ),
            NoPageAnswer::Request { what } => write!(
                f,
                "the page waits for {what}; answer it with answer_request"
            ),
            NoPageAnswer::Crashed => {
                f.write_str("the page crashed; reload it, or open another address")
            }
            NoPageAnswer::Closed => f.write_str("the tab was closed"),
            NoPageAnswer::Lost { reason } => write!(f, "the screen was lost: {reason}"),
        }
    }
}

/// A button of the mouse and the number of its presses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Press {
    /// The button: `left`, `right` or `middle`.
    pub(crate) button: &'static str,
    pub(crate) count: u32,
    /// Modifier keys, as the protocol's bits.
    pub(crate) modifiers: u32,
    /// Time for which the button stays down.
    pub(crate) hold: Duration,
}

/// A single press of the left button.
impl Default for Press {
    fn default() -> Self {
        Self {
            button: "left",
            count: 1,
            modifiers: 0,
            hold: Duration::ZERO,
        }
    }
}

/// Returns the positions of the mouse along a path, its points included.
fn steps(path: &[PagePoint]) -> Vec<PagePoint> {
    let each = if path.len() > 2 {
        VIA_STEPS
    } else {
        DRAG_STEPS
    };
    let parts = (1..=each).map(|step| step as f64 / each as f64);
    path.windows(2)
        .flat_map(|ends| {
            let (from, to) = (ends[0], ends[1]);
            let at = move |part: f64| {
                (
                    from.0 + (to.0 - from.0) * part,
                    from.1 + (to.1 - from.1) * part,
                )
            };
            parts.clone().map(at)
        })
        .collect()
}

impl BrowserSession {
    /// Runs a future for a tab for as long as the tab is not held up.
    pub(crate) async fn unless_held<T>(
        &self,
        tab: &TabState,
        doing: impl Future<Output = T>,
    ) -> Result<T, NoPageAnswer> {
        if let Some(held) = NoPageAnswer::of(&self.state(), tab.number) {
            return Err(held);
        }
        let held = async {
            let held = self
                .wait(HOLD_LIMIT, |state| NoPageAnswer::of(state, tab.number))
                .await;
            held.unwrap_or_else(|| NoPageAnswer::Lost {
                reason: self
                    .lost()
                    .unwrap_or_else(|| "it does not answer".to_owned()),
            })
        };
        tokio::select! {
            biased;
            done = doing => Ok(done),
            held = held => Err(held),
        }
    }

    pub(crate) async fn order(
        &self,
        tab: &TabState,
        method: &str,
        params: Value,
    ) -> Result<(), CdpError> {
        let done: IgnoredAny = self.cdp.call(&tab.session, method, params).await?;
        let _ = done;
        Ok(())
    }

    async fn mouse(&self, tab: &TabState, params: Value) -> Result<(), CdpError> {
        self.order(tab, "Input.dispatchMouseEvent", params).await
    }

    pub(crate) async fn point_at(&self, tab: &TabState, (x, y): PagePoint) -> Result<(), CdpError> {
        self.mouse(tab, json!({"type": "mouseMoved", "x": x, "y": y}))
            .await
    }

    /// Presses and releases a button.
    pub(crate) async fn press(
        &self,
        tab: &TabState,
        (x, y): PagePoint,
        press: Press,
    ) -> Result<(), CdpError> {
        let event = |kind: &str, count: u32| {
            json!({
                "type": kind, "x": x, "y": y, "button": press.button, "clickCount": count,
                "modifiers": press.modifiers,
            })
        };
        if !press.hold.is_zero() {
            self.mouse(tab, event("mousePressed", 1)).await?;
            tokio::time::sleep(press.hold).await;
            return self.mouse(tab, event("mouseReleased", 1)).await;
        }
        let events = (1..=press.count)
            .flat_map(|count| [event("mousePressed", count), event("mouseReleased", count)])
            .map(|params| self.mouse(tab, params));
        // Sent at once, carried out one after the other.
        let done = futures_util::future::join_all(events).await;
        done.into_iter().collect()
    }

    pub(crate) async fn wheel(
        &self,
        tab: &TabState,
        (x, y): PagePoint,
        (across, down): PagePoint,
    ) -> Result<(), CdpError> {
        let turned =
            json!({"type": "mouseWheel", "x": x, "y": y, "deltaX": across, "deltaY": down});
        self.mouse(tab, turned).await
    }

    /// Drags along points, with the mouse alone or, if the page starts it, with the browser's own
    /// drag and drop. A page decides at the press whether it `is_draggable`.
    pub(crate) async fn drag(
        &self,
        tab: &TabState,
        path: &[PagePoint],
        is_draggable: impl Future<Output = bool>,
    ) -> Result<(), CdpError> {
        self.state().dragged = None;
        let intercept = "Input.setInterceptDrags";
        self.order(tab, intercept, json!({"enabled": true})).await?;
        let dragged = self.drag_intercepted(tab, path, is_draggable).await;
        self.cdp
            .send(&tab.session, intercept, json!({"enabled": false}));
        dragged
    }

    async fn drag_intercepted(
        &self,
        tab: &TabState,
        path: &[PagePoint],
        is_draggable: impl Future<Output = bool>,
    ) -> Result<(), CdpError> {
        let [from, .., to] = path else {
            return Ok(());
        };
        let button = |kind: &str, (x, y): PagePoint| {
            let buttons = i32::from(kind != "mouseReleased");
            json!({
                "type": kind, "x": x, "y": y, "button": "left", "buttons": buttons, "clickCount": 1,
            })
        };
        let carry = async |kind: &str, (x, y): PagePoint, data: &Value| {
            let event = json!({"type": kind, "x": x, "y": y, "data": data});
            self.order(tab, "Input.dispatchDragEvent", event).await
        };
        self.mouse(tab, button("mousePressed", *from)).await?;
        let is_draggable = is_draggable.await;
        let mut carried = None;
        for (at, point) in steps(path).into_iter().enumerate() {
            self.mouse(tab, button("mouseMoved", point)).await?;
            if is_draggable && at == 1 {
                carried = self.wait(DRAG_LIMIT, |state| state.dragged.clone()).await;
            }
            if let Some(data) = &carried {
                if at == 1 {
                    carry("dragEnter", point, data).await?;
                }
                carry("dragOver", point, data).await?;
            }
        }
        if let Some(data) = &carried {
            carry("drop", *to, data).await?;
        }
        self.mouse(tab, button("mouseReleased", *to)).await
    }

    /// Presses and releases a key with its modifiers.
    pub(crate) async fn strike(&self, tab: &TabState, chord: &Chord) -> Result<(), CdpError> {
        let events = chord.events().into_iter();
        let events = events.map(|event| self.order(tab, "Input.dispatchKeyEvent", event));
        let done = futures_util::future::join_all(events).await;
        done.into_iter().collect()
    }

    /// Enters text at the keyboard focus. Short text comes as a person types it, key by key; of
    /// long text only the last character does, so that what listens to keys hears of it.
    pub(crate) async fn type_in(
        &self,
        tab: &TabState,
        text: &str,
        lines: bool,
    ) -> Result<(), CdpError> {
        let by_key = text.chars().count() <= TYPED_BY_KEY;
        let last = text.char_indices().last().map_or(0, |(at, _)| at);
        let (bulk, keyed) = text.split_at(if by_key { 0 } else { last });
        let mut events = Vec::new();
        if !bulk.is_empty() {
            events.push(("Input.insertText", json!({"text": bulk})));
        }
        for stroke in Stroke::of(keyed, lines) {
            match stroke {
                Stroke::Key(chord) => {
                    let keys = chord.events().into_iter();
                    events.extend(keys.map(|event| ("Input.dispatchKeyEvent", event)));
                }
                Stroke::Text(text) => events.push(("Input.insertText", json!({"text": text}))),
            }
        }
        let events = events
            .into_iter()
            .map(|(method, params)| self.order(tab, method, params));
        let done = futures_util::future::join_all(events).await;
        done.into_iter().collect()
    }

    /// Sets the files of a file input, given by its object in our world or by the browser's number.
    pub(crate) async fn give_files(
        &self,
        session: &str,
        node: Value,
        file: &std::path::Path,
    ) -> Result<(), CdpError> {
        let mut order = json!({"files": [file.to_string_lossy()]});
        if let (Some(order), Value::Object(node)) = (order.as_object_mut(), node) {
            order.extend(node);
        }
        let done: Result<IgnoredAny, CdpError> =
            self.cdp.call(session, "DOM.setFileInputFiles", order).await;
        done.map(|_| ())
    }

    /// Returns the object of an expression in our world of a frame.
    pub(crate) async fn object(
        &self,
        session: &str,
        world: i64,
        expression: &str,
    ) -> Option<Value> {
        #[derive(Deserialize)]
        struct ObjectResult {
            result: RemoteElement,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct RemoteElement {
            object_id: Option<String>,
        }
        let order = json!({"expression": expression, "contextId": world});
        let found: ObjectResult = self
            .cdp
            .call(session, "Runtime.evaluate", order)
            .await
            .ok()?;
        Some(json!({"objectId": found.result.object_id?}))
    }
}
