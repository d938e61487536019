//! Finds the target of an input on a desktop, with its present properties, and what lies at a point.

use gyrus_contract::{
    Aim, AimedElement, Bounds, Element, ElementId, ElementState, ScreenError, Starts,
};

use x11rb::protocol::xproto::Window;

use super::{
    look, places::is_within, pointer::ScreenPoint, reading::DesktopReading,
    session::DesktopSession, windows::DesktopWindow,
};
use crate::input::{InputTarget, UnusableTarget};

/// Maximum number of characters of a name in a message.
const MAX_NAME: usize = 80;

/// An element that can be used now.
#[derive(Debug, Clone)]
pub(super) struct DesktopSpot {
    pub(super) element: Element,
    pub(super) window: DesktopWindow,
    address: String,
    /// The point where the mouse reaches the element; `None` if it is not painted.
    pub(super) point: Option<ScreenPoint>,
    /// The uppermost window at that point: the element's own, or a menu.
    pub(super) top: Window,
    /// Description of another element that covers that point.
    covered: Option<String>,
}

/// Describes an element for people and models.
pub(super) fn words(element: &Element) -> String {
    let name = gyrus_text::shorten(&element.name, MAX_NAME);
    format!("{} “{name}”", element.role)
}

impl DesktopSpot {
    pub(super) fn id(&self) -> ElementId {
        self.element.id
    }

    pub(super) fn words(&self) -> String {
        words(&self.element)
    }

    pub(super) fn is(&self, state: ElementState) -> bool {
        self.element.states.contains(&state)
    }

    /// Whether a person can enter text into the element.
    pub(super) fn takes_text(&self) -> bool {
        ["textbox", "combobox", "spinbutton", "terminal"].contains(&&*self.element.role)
    }

    /// Whether the target is a window whose elements are unknown.
    pub(super) fn is_window(&self) -> bool {
        self.element.role == "window"
    }

    /// Returns the properties that the gate judges.
    pub(super) fn aim(&self, starts: Vec<Starts>) -> Aim {
        Aim {
            address: self.address.clone(),
            origin: self.address.to_lowercase(),
            element: Some(AimedElement {
                id: self.id(),
                role: self.element.role.clone(),
                name: self.element.name.clone(),
                states: self.element.states.clone(),
            }),
            form: None,
            starts,
            fills: Vec::new(),
        }
    }

    /// Returns the point, unless another element covers it.
    pub(super) fn reached(&self) -> Result<ScreenPoint, UnusableTarget> {
        if self.is(ElementState::OutOfView) && !self.is_window() {
            let why = format!("{} is out of view; scroll_to it first", self.words());
            return Err(UnusableTarget::Barred { why });
        }
        match (&self.covered, self.point) {
            (Some(by), _) => Err(UnusableTarget::Covered {
                element: self.words(),
                by: by.clone(),
            }),
            (None, None) => Err(UnusableTarget::Gone { id: self.id() }),
            (None, Some(point)) => Ok(point),
        }
    }

    /// Returns the effects of a click on the element, as far as its role tells.
    pub(super) fn click_starts(&self) -> Vec<Starts> {
        vec![match self.element.role.as_str() {
            "textbox" | "spinbutton" | "terminal" | "menu" | "menubar" | "tab" | "text"
            | "heading" | "tooltip" | "status" => Starts::Looking,
            "checkbox" | "radio" | "slider" | "menuitemcheckbox" | "menuitemradio" => {
                Starts::Chooses {
                    option: String::new(),
                }
            }
            _ => Starts::Acts,
        }]
    }
}

impl DesktopSession {
    pub(super) async fn locate(
        &mut self,
        target: InputTarget,
    ) -> Result<DesktopSpot, UnusableTarget> {
        let reading = look::read(self).await.map_err(|error| match error {
            ScreenError::Unavailable { reason }
            | ScreenError::Unreached { reason }
            | ScreenError::Lost { reason } => UnusableTarget::Unreadable { reason },
            other => UnusableTarget::Unreadable {
                reason: other.to_string(),
            },
        })?;
        self.find(&reading, target)
    }

    /// Finds the target of an input in the last reading.
    pub(super) fn find(
        &self,
        reading: &DesktopReading,
        target: InputTarget,
    ) -> Result<DesktopSpot, UnusableTarget> {
        if let Some(why) = reading.locked() {
            return Err(UnusableTarget::Barred { why });
        }
        let element = match target {
            InputTarget::Element(id) => {
                let found = reading.elements.iter().find(|element| element.id == id);
                found.ok_or(UnusableTarget::Gone { id })?
            }
            InputTarget::Point(x, y) => {
                let at = (x.round() as i32, y.round() as i32);
                self.hit(reading, at).ok_or(UnusableTarget::Nothing)?
            }
            InputTarget::Keyboard => focused(reading).ok_or(UnusableTarget::Nothing)?,
        };
        let gone = || UnusableTarget::Gone { id: element.id };
        let window = self.numbers.window(element.id.document).ok_or_else(gone)?;
        let window = reading.windows.iter().find(|one| one.id == window);
        let window = window.ok_or_else(gone)?.clone();
        if let Some(user) = window.other_user {
            let why = format!(
                "the window “{}” is shown by a program of another user (number {user}); a run uses \
                 those of its own only",
                gyrus_text::shorten(&window.title, MAX_NAME)
            );
            return Err(UnusableTarget::Barred { why });
        }
        let point = match target {
            InputTarget::Point(x, y) => Some((x.round() as i32, y.round() as i32)),
            InputTarget::Element(_) | InputTarget::Keyboard => element
                .bounds
                .and_then(|bounds| Self::middle(element.id, bounds, reading, &window)),
        };
        let covered = point.and_then(|at| self.covered(reading, element, at));
        let top = point.and_then(|at| reading.top(at));
        let top = top.map_or(window.id, |top| top.id);
        Ok(DesktopSpot {
            element: element.clone(),
            address: self.address(Some(&window)),
            window,
            point,
            top,
            covered,
        })
    }

    /// Returns the middle of the visible part of an element, within its window, its menu, the box
    /// in which it scrolls, and the screen.
    fn middle(
        id: ElementId,
        bounds: Bounds,
        reading: &DesktopReading,
        window: &DesktopWindow,
    ) -> Option<ScreenPoint> {
        let menu = |one: &&DesktopWindow| one.is_popup && is_within(bounds, one.bounds);
        let around = reading.windows.iter().find(menu).unwrap_or(window).bounds;
        let screen = Bounds {
            x: 0,
            y: 0,
            width: reading.size.0,
            height: reading.size.1,
        };
        let limit = reading.limits.get(&id).copied();
        let all = || [bounds, around, screen].into_iter().chain(limit);
        let inside = |start: fn(&Bounds) -> i32, length: fn(&Bounds) -> i32| {
            let from = all().map(|one| start(&one)).max()?;
            let end = all().map(|one| start(&one) + length(&one)).min()?;
            (end > from).then(|| from + (end - from) / 2)
        };
        Some((
            inside(|one| one.x, |one| one.width)?,
            inside(|one| one.y, |one| one.height)?,
        ))
    }

    /// Returns the element that an input at a point reaches: in the uppermost window there, the
    /// last in reading order, which is drawn over those around it.
    fn hit<'r>(&self, reading: &'r DesktopReading, (x, y): ScreenPoint) -> Option<&'r Element> {
        let top = reading.top((x, y))?;
        let client = |element: &Element| {
            let id = self.numbers.window(element.id.document)?;
            let window = reading.windows.iter().find(|window| window.id == id)?;
            Some(window.client)
        };
        let own = |element: &&Element| {
            if top.is_popup {
                let bounds = element.bounds;
                let is_inside = bounds.is_some_and(|bounds| is_within(bounds, top.bounds));
                is_inside && client(element) == Some(top.client)
            } else {
                self.numbers.window(element.id.document) == Some(top.id)
            }
        };
        let at = |element: &&Element| {
            let bounds = element
                .bounds
                .filter(|_| !element.states.contains(&ElementState::OutOfView));
            bounds.is_some_and(|bounds| bounds.contains(x, y))
        };
        let there = || reading.elements.iter().filter(own).filter(at);
        // A menu lies over what its window shows, also over elements that come after it.
        let is_entry = |element: &&Element| element.role.starts_with("menu");
        let entry = there().rfind(|element| top.is_popup && is_entry(element));
        entry.or_else(|| there().next_back())
    }

    /// Returns a description of the element that covers another one at a point.
    fn covered(
        &self,
        reading: &DesktopReading,
        element: &Element,
        at: ScreenPoint,
    ) -> Option<String> {
        let Some(hit) = self.hit(reading, at) else {
            return Some(reading.top(at).map_or_else(
                || "no window".to_owned(),
                |top| format!("a menu or hint of {}", top.class),
            ));
        };
        if hit.id == element.id || is_below(reading, hit, element) {
            return None;
        }
        // What only says something lets the pointer through, or belongs to what it describes.
        let is_text = matches!(hit.role.as_str(), "text" | "img" | "group");
        let is_same_window = hit.id.document == element.id.document;
        (!(is_text && is_same_window)).then(|| words(hit))
    }
}

/// Whether an element is a descendant of another.
fn is_below(reading: &DesktopReading, element: &Element, of: &Element) -> bool {
    let all = reading.elements.iter().skip_while(|one| one.id != of.id);
    let mut below = all.skip(1).take_while(|one| one.depth > of.depth);
    below.any(|one| one.id == element.id)
}

/// Returns the element with the keyboard: in the active window the innermost that says so, or the
/// window.
fn focused(reading: &DesktopReading) -> Option<&Element> {
    let is_active = |element: &&Element| {
        element.role == "window"
            && element.depth == 0
            && element.states.contains(&ElementState::Focused)
    };
    let window = reading.elements.iter().find(is_active)?;
    reading.elements.iter().rfind(|element| {
        element.id.document == window.id.document && element.states.contains(&ElementState::Focused)
    })
}
