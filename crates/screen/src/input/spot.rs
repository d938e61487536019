//! Finds the target of an input: an element, by its id or by a point of the picture, with its
//! current properties and the point where the mouse reaches it.

use std::collections::BTreeSet;

use gyrus_contract::{Aim, AimedElement, DragEnd, ElementId, ElementState, Form, SentForm, Starts};
use serde::Deserialize;

use super::{NoPageAnswer, PagePoint};
use crate::{
    browser::BrowserSession,
    cdp::CdpError,
    sent::{ExpectedForm, sends_the_same, with_state},
    state::{PageFrame, TabState},
    view::MAX_WIDTH,
};

/// Maximum nesting of frames.
const MAX_DEPTH: usize = 32;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum InputTarget {
    Element(ElementId),
    /// A point in pixels of the picture.
    Point(f64, f64),
    /// The element with the keyboard focus.
    Keyboard,
}

impl InputTarget {
    /// Returns the target of arguments: the element, else the point, else the keyboard's.
    pub(crate) fn of(on: Option<ElementId>, at: Option<[f64; 2]>) -> Self {
        match (on, at) {
            (Some(id), _) => Self::Element(id),
            (None, Some([x, y])) => Self::Point(x, y),
            (None, None) => Self::Keyboard,
        }
    }
}

impl From<DragEnd> for InputTarget {
    fn from(end: DragEnd) -> Self {
        match end {
            DragEnd::Element(id) => Self::Element(id),
            DragEnd::Point([x, y]) => Self::Point(x, y),
        }
    }
}

/// Reason why a target cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum UnusableTarget {
    /// The element is no longer on a page.
    Gone {
        id: ElementId,
    },
    /// Another element covers the target.
    Covered {
        element: String,
        by: String,
    },
    /// There is no element at the point.
    Nothing,
    /// The element is in another tab.
    OtherTab {
        number: u32,
    },
    Held(NoPageAnswer),
    /// Nothing at the point may be used now.
    #[cfg(feature = "desktop")]
    Barred {
        why: String,
    },
    /// The page's answer does not have the expected form.
    Unreadable {
        reason: String,
    },
}

impl std::fmt::Display for UnusableTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            UnusableTarget::Gone { id } => write!(
                f,
                "refused: gone: {id} is no longer on the page; look again"
            ),
            UnusableTarget::Covered { element, by } => write!(
                f,
                "refused: {element} cannot be reached: {by} is in the way; use that, close it, or scroll"
            ),
            UnusableTarget::Nothing => {
                f.write_str("refused: nothing is there; look again and point inside the picture")
            }
            UnusableTarget::OtherTab { number } => {
                write!(f, "refused: it stands in tab {number}; switch_tab first")
            }
            UnusableTarget::Held(held) => held.fmt(f),
            #[cfg(feature = "desktop")]
            UnusableTarget::Barred { why } => write!(f, "refused: {why}"),
            UnusableTarget::Unreadable { reason } => {
                write!(f, "the page cannot be read: {reason}; look again")
            }
        }
    }
}

impl From<NoPageAnswer> for UnusableTarget {
    fn from(held: NoPageAnswer) -> Self {
        UnusableTarget::Held(held)
    }
}

/// Properties of an element as its frame reports them.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct ElementProperties {
    number: u32,
    x: f64,
    y: f64,
    /// Position of the window in the document while it is pinch-zoomed.
    left: f64,
    top: f64,
    pub(crate) words: String,
    address: String,
    origin: String,
    role: String,
    name: String,
    states: BTreeSet<ElementState>,
    form: Option<Form>,
    /// The data that the element's form sends after a click.
    sends: Option<SentForm>,
    starts: Vec<Starts>,
    /// Way in which text is entered: `line`, `text`, `rich`, `keys`, `set`, `slide`, `select`, `file`,
    /// `control`.
    pub(crate) kind: String,
    covered: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum SpotAnswer {
    Gone {
        #[expect(dead_code, reason = "only its presence tells")]
        gone: bool,
    },
    Nothing {
        #[expect(dead_code, reason = "only its presence tells")]
        nothing: bool,
    },
    Frame {
        frame: String,
        x: f64,
        y: f64,
    },
    Told(Box<ElementProperties>),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum BoxAnswer {
    Gone {
        #[expect(dead_code, reason = "only its presence tells")]
        gone: bool,
    },
    At {
        x: f64,
        y: f64,
        left: f64,
        top: f64,
        covered: Option<String>,
    },
}

/// An element that can be used now.
#[derive(Debug, Clone)]
pub(crate) struct Spot {
    pub(crate) frame_id: String,
    pub(crate) frame: PageFrame,
    pub(crate) told: ElementProperties,
    /// The point where the mouse reaches the element.
    pub(crate) point: PagePoint,
}

impl Spot {
    pub(crate) fn id(&self) -> ElementId {
        ElementId {
            document: self.frame.document,
            number: self.told.number,
        }
    }

    pub(crate) fn number(&self) -> u32 {
        self.told.number
    }

    /// Returns where the mouse reaches a point of the element's document. Frames that are scaled are
    /// taken for unscaled.
    pub(crate) fn seen_at(&self, x: f64, y: f64) -> PagePoint {
        (
            self.point.0 + x - self.told.x,
            self.point.1 + y - self.told.y,
        )
    }

    /// Returns the form that a click on the element sends, with its values.
    pub(crate) fn sent_form(&self) -> Option<ExpectedForm> {
        let (form, sends) = (self.told.form.as_ref()?, self.told.sends.as_ref()?);
        Some(ExpectedForm::new(form, sends))
    }

    pub(crate) fn name(&self) -> &str {
        &self.told.name
    }

    pub(crate) fn is(&self, state: ElementState) -> bool {
        self.told.states.contains(&state)
    }

    /// Returns the properties that the gate judges.
    pub(crate) fn aim(&self) -> Aim {
        let told = &self.told;
        Aim {
            address: told.address.clone(),
            origin: told.origin.clone(),
            element: Some(AimedElement {
                id: self.id(),
                role: told.role.clone(),
                name: told.name.clone(),
                states: told.states.clone(),
            }),
            form: told.form.clone().map(|form| Form {
                sends: told.sends.as_ref().map(with_state),
                ..form
            }),
            starts: told.starts.clone(),
            fills: Vec::new(),
        }
    }

    /// Checks that the element is still the judged one. The error describes the difference.
    pub(crate) fn is_as_judged(&self, judged: &Aim) -> Result<(), String> {
        is_same_aim(judged, &self.aim(), &self.told.words)
    }
}

/// Checks that the present target of an input, an element with this description, is the judged one.
/// The error describes the difference.
pub(crate) fn is_same_aim(judged: &Aim, now: &Aim, words: &str) -> Result<(), String> {
    let moved = |what: String| Err(format!("refused: moved ({what}); look again"));
    let (Some(was), Some(is)) = (&judged.element, &now.element) else {
        return moved("nothing was aimed at".to_owned());
    };
    if was.id != is.id || was.role != is.role {
        return moved(format!("now there: {words}"));
    }
    // A changed number in a label, like a countdown, does not make it another label.
    let letters =
        |name: &str| -> String { name.chars().filter(|one| one.is_alphabetic()).collect() };
    if letters(&was.name) != letters(&is.name) {
        return moved(format!("it is now called: {words}"));
    }
    if judged.origin != now.origin {
        return moved(format!("the page is now of {}", now.origin));
    }
    let sent = |form: &Option<Form>| {
        form.as_ref()
            .map(|form| (form.action.clone(), form.method.clone()))
    };
    let starts = |aim: &Aim| -> Vec<Starts> {
        let own = |one: &&Starts| !matches!(one, Starts::Uploads { .. });
        aim.starts.iter().filter(own).cloned().collect()
    };
    if !sends_the_same(judged, now) {
        return moved("what its form would send has changed".to_owned());
    }
    if starts(judged) != starts(now) && !matches!(judged.starts[..], [Starts::Uploads { .. }])
        || sent(&judged.form) != sent(&now.form)
    {
        return moved("using it would now do something else".to_owned());
    }
    Ok(())
}

/// Returns a text as a string literal inside an expression.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

impl BrowserSession {
    /// Finds the target of an input, and scrolls it into view. `purpose` is its purpose, in the
    /// words of `page/aim.js`.
    pub(crate) async fn locate(
        &self,
        tab: &TabState,
        target: InputTarget,
        purpose: &str,
        key: &str,
    ) -> Result<Spot, UnusableTarget> {
        let located = self.unless_held(tab, async {
            let frames = self.state().frames_of(tab);
            self.own_frames(&frames).await;
            let (purposed, keyed) = (quoted(purpose), quoted(key));
            match target {
                InputTarget::Element(id) => {
                    let spot = self.locate_element(tab, id, purpose, key).await?;
                    // Without a point the element need not be visible.
                    if ["key", "set", "glance"].contains(&purpose) {
                        Ok(spot)
                    } else {
                        self.in_window(spot).await
                    }
                }
                InputTarget::Point(x, y) => {
                    let start =
                        format!("gyrus.aimAtPicture({x}, {y}, {MAX_WIDTH}, {purposed}, {keyed})");
                    let next = |x, y| format!("gyrus.aimAt({x}, {y}, {purposed}, {keyed})");
                    self.in_window(self.descend(tab, start, next).await?).await
                }
                InputTarget::Keyboard => {
                    let ask = format!("gyrus.aimAtFocus({purposed}, {keyed})");
                    self.descend(tab, ask.clone(), |_, _| ask.clone()).await
                }
            }
        });
        let mut spot: Spot = located.await??;
        // What a link sends over a socket cannot be held: it is judged by what the link says.
        let follows = |starts: &Starts| matches!(starts, Starts::Follows { .. });
        if purpose == "click" && spot.told.starts.iter().any(follows) {
            let can_send = self.state().sockets.is_open(&spot.frame.session);
            spot.told
                .states
                .extend(can_send.then_some(ElementState::Clickable));
        }
        Ok(spot)
    }

    async fn locate_element(
        &self,
        tab: &TabState,
        id: ElementId,
        purpose: &str,
        key: &str,
    ) -> Result<Spot, UnusableTarget> {
        let gone = || UnusableTarget::Gone { id };
        let (frame_id, frame) = {
            let state = self.state();
            let (frame_id, frame) = state.frame_of_document(id.document).ok_or_else(gone)?;
            let own = state.tab_of_frame(frame_id).ok_or_else(gone)?;
            if own.number != tab.number {
                return Err(UnusableTarget::OtherTab { number: own.number });
            }
            (frame_id.clone(), frame.clone())
        };
        let ask = format!(
            "gyrus.aim({}, {}, {})",
            id.number,
            quoted(purpose),
            quoted(key)
        );
        let told = match self.ask::<SpotAnswer>(&frame, &ask).await {
            Ok(SpotAnswer::Told(told)) => *told,
            Ok(SpotAnswer::Gone { .. } | SpotAnswer::Nothing { .. } | SpotAnswer::Frame { .. }) => {
                return Err(gone());
            }
            Err(error) => return Err(self.unreadable(&error, Some(id))),
        };
        if let Some(by) = told.covered.clone() {
            return Err(UnusableTarget::Covered {
                element: told.words,
                by,
            });
        }
        Ok(Spot {
            frame_id,
            frame,
            point: (told.x, told.y),
            told,
        })
    }

    /// Descends from the main frame to the frame that contains the answer.
    async fn descend(
        &self,
        tab: &TabState,
        start: String,
        next: impl Fn(f64, f64) -> String,
    ) -> Result<Spot, UnusableTarget> {
        let mut frame_id = tab.target.clone();
        let mut ask = start;
        for _ in 0..MAX_DEPTH {
            let frame = self
                .state()
                .frames
                .get(&frame_id)
                .cloned()
                .ok_or(UnusableTarget::Nothing)?;
            match self.ask::<SpotAnswer>(&frame, &ask).await {
                Ok(SpotAnswer::Told(told)) => {
                    let spot = Spot {
                        frame_id,
                        frame,
                        point: (told.x, told.y),
                        told: *told,
                    };
                    return Ok(spot);
                }
                Ok(SpotAnswer::Frame { frame, x, y }) => {
                    ask = next(x, y);
                    frame_id = frame;
                }
                Ok(SpotAnswer::Gone { .. } | SpotAnswer::Nothing { .. }) => {
                    return Err(UnusableTarget::Nothing);
                }
                Err(error) => return Err(self.unreadable(&error, None)),
            }
        }
        Err(UnusableTarget::Nothing)
    }

    /// Converts the point of a spot from its own frame to the window, through the frames around it,
    /// which are scrolled where they hide it.
    async fn in_window(&self, mut spot: Spot) -> Result<Spot, UnusableTarget> {
        let id = spot.id();
        let mut window = (spot.told.left, spot.told.top);
        let mut at = (spot.frame_id.clone(), spot.frame.clone());
        for _ in 0..MAX_DEPTH {
            let Some(parent_id) = at.1.parent.clone() else {
                break;
            };
            let parent = self.state().frames.get(&parent_id).cloned();
            let parent = parent.ok_or(UnusableTarget::Gone { id })?;
            let (x, y) = spot.point;
            let ask = format!("gyrus.through({}, {x}, {y})", quoted(&at.0));
            let around = self.ask::<BoxAnswer>(&parent, &ask).await;
            match around.map_err(|error| self.unreadable(&error, Some(id)))? {
                BoxAnswer::At {
                    covered: Some(by), ..
                } => {
                    return Err(UnusableTarget::Covered {
                        element: spot.told.words,
                        by,
                    });
                }
                BoxAnswer::At {
                    x, y, left, top, ..
                } => {
                    spot.point = (x, y);
                    window = (left, top);
                }
                BoxAnswer::Gone { .. } => return Err(UnusableTarget::Gone { id }),
            }
            at = (parent_id, parent);
        }
        spot.point = (spot.point.0 - window.0, spot.point.1 - window.1);
        Ok(spot)
    }

    fn unreadable(&self, error: &CdpError, id: Option<ElementId>) -> UnusableTarget {
        if let Some(reason) = self.lost() {
            return UnusableTarget::Held(NoPageAnswer::Lost { reason });
        }
        match (id, error) {
            // The document went away during the question.
            (Some(id), CdpError::Refused { .. } | CdpError::Gone { .. }) => {
                UnusableTarget::Gone { id }
            }
            _ => UnusableTarget::Unreadable {
                reason: error.to_string(),
            },
        }
    }
}
