//! The windows of a desktop, by the hints that window managers keep (Extended Window Manager Hints
//! 1.5, freedesktop.org).

use std::{collections::BTreeSet, fs, time::Duration};

use gyrus_contract::Bounds;
use x11rb::{
    connection::Connection as _,
    protocol::{
        res::{ClientIdMask, ClientIdSpec, ConnectionExt as _},
        xproto::{
            AtomEnum, ClientMessageEvent, ConnectionExt as _, EventMask, MapState, Window,
            WindowClass,
        },
    },
};

use super::display::{Display, DisplayError};

/// Maximum number of windows that are listed.
const MAX_WINDOWS: usize = 64;

/// Time limit for a window manager to do what it is asked, or for a program to ask back.
const OBEY: Duration = Duration::from_secs(3);

/// Maximum length of a title, in bytes.
const MAX_TITLE: usize = 400;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DesktopWindow {
    pub(super) id: Window,
    /// The title; untrusted text of the program.
    pub(super) title: String,
    /// The class, by which desktop files name the program: `Mousepad`.
    pub(super) class: String,
    /// The process, according to the socket or else to the window; 0 if neither tells.
    pub(super) process: u32,
    /// The connection to the X server that created the window: the same for all windows of a
    /// program.
    pub(super) client: u32,
    /// The user whose program shows the window, if it is not this process's user.
    pub(super) other_user: Option<u32>,
    /// The place of the window's content on the screen.
    pub(super) bounds: Bounds,
    pub(super) is_active: bool,
    /// Whether the window is drawn; not one that is minimised or on another workspace.
    pub(super) is_shown: bool,
    /// Whether the window is unknown to the window manager: a menu, a list, a hint.
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
        let (width, height) = self.size()?;
        let (width, height) = (i32::from(width), i32::from(height));
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

    /// Returns the frame around a window, which the window manager moves.
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

    /// Asks the window manager to raise a window and give it the keyboard focus.
    pub(super) fn activate(&self, window: Window) -> Result<(), DisplayError> {
        self.ask_manager("_NET_ACTIVE_WINDOW", window, [BY_PERSON, 0, 0, 0, 0])
    }

    /// Asks the window manager to close a window; its program may ask the person first.
    pub(super) fn close(&self, window: Window) -> Result<(), DisplayError> {
        self.ask_manager("_NET_CLOSE_WINDOW", window, [0, BY_PERSON, 0, 0, 0])
    }

    /// Waits until a condition on the windows is true, at most [`OBEY`]: a window manager obeys in
    /// its own time, and need not.
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

    /// Whether a window of this number exists.
    pub(super) fn is_there(&self, window: Window) -> Result<bool, DisplayError> {
        let asked = self.connection.get_geometry(window);
        let answer = asked.map_err(|error| error.to_string())?.reply();
        Ok(answer.is_ok())
    }

    fn window(&self, id: Window, bounds: Bounds) -> Result<DesktopWindow, DisplayError> {
        let process = self.process(id)?;
        let attributes = self.connection.get_window_attributes(id);
        let attributes = attributes.map_err(|error| error.to_string())?.reply();
        Ok(DesktopWindow {
            id,
            title: self.title(id)?,
            class: self.class(id)?,
            process,
            client: id & !self.connection.setup().resource_id_mask,
            other_user: None,
            bounds,
            is_active: false,
            is_shown: attributes.is_ok_and(|found| found.map_state == MapState::VIEWABLE),
            is_popup: false,
        })
    }

    /// Returns the process that shows a window, as the server knows it by the socket, or else as
    /// the window reports it.
    fn process(&self, window: Window) -> Result<u32, DisplayError> {
        let wanted = ClientIdSpec {
            client: window,
            mask: ClientIdMask::LOCAL_CLIENT_PID,
        };
        let asked = self.connection.res_query_client_ids(&[wanted]);
        let told = asked.map_err(|error| error.to_string())?.reply();
        // A server may lack the extension, and the window may be gone by now.
        let mut ids = told.map(|told| told.ids).unwrap_or_default().into_iter();
        if let Some(process) = ids.find_map(|id| id.value.first().copied()) {
            return Ok(process);
        }
        let said = self.numbers(window, "_NET_WM_PID")?;
        Ok(said.first().copied().unwrap_or(0))
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

/// Returns the user id of a process if it is known and not ours.
pub(super) fn other_user(process: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    // The second number is the one by which the kernel judges.
    let user = line.split_whitespace().nth(1)?.parse().ok()?;
    (user != rustix::process::geteuid().as_raw()).then_some(user)
}

/// The property that marks a window of gyrus.
pub(super) const OWN_WINDOW: &str = "_GYRUS_OWN_WINDOW";

impl Display {
    /// Returns the bounds of gyrus's own windows in view, which are painted over in pictures.
    pub(super) fn own_windows(&self) -> Result<Vec<Bounds>, DisplayError> {
        let words = |error: &dyn std::fmt::Display| error.to_string();
        let mark = self.atom(OWN_WINDOW)?;
        let asked = self.connection.query_tree(self.screen.root);
        let tree = asked.map_err(|error| words(&error))?.reply();
        let children = tree.map_err(|error| words(&error))?.children;
        // All questions before the first answer: there may be hundreds of windows.
        let mut asked = Vec::new();
        for window in children {
            let marked = self
                .connection
                .get_property(false, window, mark, AtomEnum::ANY, 0, 1);
            let place = self.connection.get_geometry(window);
            asked.push((
                marked.map_err(|error| words(&error))?,
                place.map_err(|error| words(&error))?,
            ));
        }
        let mut own = Vec::new();
        for (marked, place) in asked {
            // A window may be gone by now.
            let (Ok(marked), Ok(place)) = (marked.reply(), place.reply()) else {
                continue;
            };
            if marked.value_len > 0 {
                own.push(Bounds {
                    x: i32::from(place.x),
                    y: i32::from(place.y),
                    width: i32::from(place.width),
                    height: i32::from(place.height),
                });
            }
        }
        Ok(own)
    }
}
