//! The windows of a desktop and their elements, as they were read at one moment.

use std::collections::BTreeMap;

use gyrus_contract::{Bounds, Element, ElementId};

use super::{pointer::ScreenPoint, windows::DesktopWindow};

/// Contents of a desktop at one moment.
pub(super) struct DesktopReading {
    /// The windows with menus and hints, the uppermost first.
    pub(super) windows: Vec<DesktopWindow>,
    pub(super) elements: Vec<Element>,
    /// The part of the screen in which an element can be seen, where a box that scrolls limits it.
    pub(super) limits: BTreeMap<ElementId, Bounds>,
    pub(super) unread: Vec<String>,
    /// The width and the height of the screen in pixels.
    pub(super) size: (i32, i32),
}

impl DesktopReading {
    /// Returns the uppermost window at a point.
    pub(super) fn top(&self, (x, y): ScreenPoint) -> Option<&DesktopWindow> {
        let is_there = |window: &&DesktopWindow| window.is_shown && window.bounds.contains(x, y);
        self.windows.iter().find(is_there)
    }

    /// Returns the windows without menus and hints, the uppermost first.
    pub(super) fn listed(&self) -> Vec<DesktopWindow> {
        let listed = self.windows.iter().filter(|window| !window.is_popup);
        listed.cloned().collect()
    }

    /// Returns the reason why nothing on the desktop can be used, if a window unknown to the window
    /// manager covers all of it: that is how programs lock a screen.
    pub(super) fn locked(&self) -> Option<String> {
        let (width, height) = self.size;
        let covers = |window: &&DesktopWindow| {
            let bounds = window.bounds;
            window.is_popup
                && bounds.x <= 0
                && bounds.y <= 0
                && bounds.x + bounds.width >= width
                && bounds.y + bounds.height >= height
        };
        let cover = self.windows.iter().find(covers)?;
        let by = match cover.class.as_str() {
            "" => "a window without a name",
            class => class,
        };
        Some(format!(
            "the whole screen is covered by {by}, as a lock does; only a person can take that away"
        ))
    }
}
