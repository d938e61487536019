//! The windows of a desktop, by the hints that window managers keep (Extended Window Manager Hints
//! 1.5, freedesktop.org).

use gyrus_contract::Bounds;
use x11rb::protocol::xproto::{ConnectionExt as _, Window};

use super::display::{Display, DisplayError};

/// Maximum number of windows that are listed.
const MAX_WINDOWS: usize = 64;

/// Maximum length of a title, in bytes.
const MAX_TITLE: usize = 400;

/// A window of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DesktopWindow {
    pub(super) id: Window,
    /// The title; untrusted text of the program.
    pub(super) title: String,
    /// The class, by which desktop files name the program: `Mousepad`.
    pub(super) class: String,
    /// The process, as it says itself; 0 if it does not.
    pub(super) process: u32,
    /// The place of its content on the screen.
    pub(super) bounds: Bounds,
    pub(super) is_active: bool,
}

impl Display {
    /// Returns the windows, the uppermost last. Without a window manager there are none.
    pub(super) fn windows(&self) -> Result<Vec<DesktopWindow>, DisplayError> {
        let root = self.screen.root;
        let listed = self.numbers(root, "_NET_CLIENT_LIST_STACKING")?;
        let active = self.numbers(root, "_NET_ACTIVE_WINDOW")?;
        let newest = listed.len().saturating_sub(MAX_WINDOWS);
        let mut windows = Vec::new();
        for &id in &listed[newest..] {
            let Some(bounds) = self.bounds(id)? else {
                continue;
            };
            windows.push(DesktopWindow {
                id,
                title: self.title(id)?,
                class: self.class(id)?,
                process: self
                    .numbers(id, "_NET_WM_PID")?
                    .first()
                    .copied()
                    .unwrap_or(0),
                bounds,
                is_active: active.first() == Some(&id),
            });
        }
        Ok(windows)
    }

    fn title(&self, window: Window) -> Result<String, DisplayError> {
        let mut bytes = self.property(window, "_NET_WM_NAME")?;
        if bytes.is_empty() {
            bytes = self.property(window, "WM_NAME")?;
        }
        let text = String::from_utf8_lossy(&bytes);
        Ok(gyrus_text::first_bytes(&text, MAX_TITLE).to_owned())
    }

    /// Returns the second of the two texts of the class: the program's, not the window's.
    fn class(&self, window: Window) -> Result<String, DisplayError> {
        let bytes = self.property(window, "WM_CLASS")?;
        let class = bytes.split(|byte| *byte == 0).nth(1).unwrap_or_default();
        let text = String::from_utf8_lossy(class);
        Ok(gyrus_text::first_bytes(&text, MAX_TITLE).to_owned())
    }

    /// Returns the place of a window; `None` if it is gone.
    fn bounds(&self, window: Window) -> Result<Option<Bounds>, DisplayError> {
        let geometry = self.connection.get_geometry(window);
        let place = self
            .connection
            .translate_coordinates(window, self.screen.root, 0, 0);
        let (Ok(geometry), Ok(place)) = (
            geometry.map_err(|error| error.to_string())?.reply(),
            place.map_err(|error| error.to_string())?.reply(),
        ) else {
            return Ok(None);
        };
        Ok(Some(Bounds {
            x: i32::from(place.dst_x),
            y: i32::from(place.dst_y),
            width: i32::from(geometry.width),
            height: i32::from(geometry.height),
        }))
    }
}
