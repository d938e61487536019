//! The windows of a desktop, by the hints that window managers keep (Extended Window Manager Hints
//! 1.5, freedesktop.org).

use std::collections::BTreeSet;

use std::time::Duration;

use gyrus_contract::Bounds;
use x11rb::{
    connection::Connection as _,
    protocol::xproto::{
        ClientMessageEvent, ConnectionExt as _, EventMask, MapState, Window, WindowClass,
    },
};

use super::display::{Display, DisplayError};

/// Maximum number of windows that are listed.
const MAX_WINDOWS: usize = 64;

/// Time in which a window manager does what it is asked, or a program asks back.
const OBEY: Duration = Duration::from_secs(3);

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
    /// The connection to the X server that made it: the same for all windows of a program.
    pub(super) client: u32,
    /// The place of its content on the screen.
    pub(super) bounds: Bounds,
    pub(super) is_active: bool,
    /// Whether it is drawn: not one that is minimised or on another workspace.
    pub(super) is_shown: bool,
    /// Whether it is none that a window manager knows: a menu, a list, a hint.
    pub(super) is_popup: bool,
}

/// The source of a request to the window manager: a person's tool, not an application (EWMH).
const BY_PERSON: u32 = 2;

impl Display {
    /// Returns the windows with menus and hints, the uppermost last.
    pub(super) fn windows_and_popups(&self) -> Result<Vec<DesktopWindow>, DisplayError> {
        let mut windows = self.windows()?;
        let mut frames = BTreeSet::new();
        for window in &windows {
            frames.insert(self.frame(window.id)?);
        }
        let tree = self.connection.query_tree(self.screen.root);
        let tree = tree.map_err(|error| error.to_string())?.reply();
        let tops = tree.map_err(|error| error.to_string())?.children;
        for top in tops.into_iter().filter(|top| !frames.contains(top)) {
            let attributes = self.connection.get_window_attributes(top);
            let Ok(attributes) = attributes.map_err(|error| error.to_string())?.reply() else {
                continue;
            };
            let is_painted = attributes.map_state == MapState::VIEWABLE
                && attributes.class == WindowClass::INPUT_OUTPUT
                && attributes.override_redirect;
            let Some(bounds) = self.bounds(top)?.filter(|_| is_painted) else {
                continue;
            };
            let (width, height) = (
                i32::from(self.screen.width_in_pixels),
                i32::from(self.screen.height_in_pixels),
            );
            let is_on_screen = bounds.x < width
                && bounds.y < height
                && bounds.x + bounds.width > 0
                && bounds.y + bounds.height > 0;
            if bounds.width > 2 && bounds.height > 2 && is_on_screen {
                windows.push(DesktopWindow {
                    is_popup: true,
                    ..self.window(top, bounds)?
                });
            }
        }
        Ok(windows)
    }

    /// Returns the window around a window that the window manager moves.
    fn frame(&self, window: Window) -> Result<Window, DisplayError> {
        let mut frame = window;
        loop {
            let asked = self.connection.query_tree(frame);
            match asked.map_err(|error| error.to_string())?.reply() {
                Ok(tree) if tree.parent != self.screen.root && tree.parent != 0 => {
                    frame = tree.parent;
                }
                // It may be gone by now.
                Ok(_) | Err(_) => return Ok(frame),
            }
        }
    }

    /// Has the window manager show a window, uppermost and with the keyboard.
    pub(super) fn activate(&self, window: Window) -> Result<(), DisplayError> {
        self.ask_manager("_NET_ACTIVE_WINDOW", window, [BY_PERSON, 0, 0, 0, 0])
    }

    /// Has the window manager close a window, which its program may ask about.
    pub(super) fn close(&self, window: Window) -> Result<(), DisplayError> {
        self.ask_manager("_NET_CLOSE_WINDOW", window, [0, BY_PERSON, 0, 0, 0])
    }

    /// Waits until this is so of the windows, at most [`OBEY`]: a window manager obeys in its own
    /// time, and need not.
    pub(super) async fn until_windows(
        &self,
        are: impl Fn(&[DesktopWindow]) -> bool,
    ) -> Result<(), DisplayError> {
        let obeyed = async {
            while !are(&self.windows()?) {
                self.next_change().await?;
            }
            Ok(())
        };
        tokio::time::timeout(OBEY, obeyed).await.unwrap_or(Ok(()))
    }

    fn ask_manager(&self, what: &str, window: Window, data: [u32; 5]) -> Result<(), DisplayError> {
        let message = ClientMessageEvent::new(32, window, self.atom(what)?, data);
        let masks = EventMask::SUBSTRUCTURE_REDIRECT | EventMask::SUBSTRUCTURE_NOTIFY;
        self.connection
            .send_event(false, self.screen.root, masks, message)
            .map_err(|error| error.to_string())?;
        self.connection.flush().map_err(|error| error.to_string())
    }

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
                is_active: active.first() == Some(&id),
                ..self.window(id, bounds)?
            });
        }
        Ok(windows)
    }

    fn window(&self, id: Window, bounds: Bounds) -> Result<DesktopWindow, DisplayError> {
        let process = self.numbers(id, "_NET_WM_PID")?;
        let attributes = self.connection.get_window_attributes(id);
        let attributes = attributes.map_err(|error| error.to_string())?.reply();
        Ok(DesktopWindow {
            id,
            title: self.title(id)?,
            class: self.class(id)?,
            process: process.first().copied().unwrap_or(0),
            client: id & !self.connection.setup().resource_id_mask,
            bounds,
            is_active: false,
            is_shown: attributes.is_ok_and(|found| found.map_state == MapState::VIEWABLE),
            is_popup: false,
        })
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
