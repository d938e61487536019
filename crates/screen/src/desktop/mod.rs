//! A screen that is a whole X11 desktop: windows, the accessible elements in them, and a picture.
//!
//! The one idea: a desktop is seen through two doors. The X server knows windows and pixels, the
//! accessibility bus knows elements with roles and names; both are asked at once and joined by
//! process and place into the same [`View`] that a page gives. By default the desktop is a nested
//! one, started and ended by gyrus, so that the person's own mouse and windows are left alone.
//!
//! Reading order: `stream` and `display` (the X server), `exclusive` (inputs that nothing comes
//! between), `capture` (pixels), `pointer`, `lent_keys` and
//! `keyboard`, `clipboard`, `windows`, `own_windows` (those of gyrus), `accessible`
//! (the accessibility bus), `cells` (of tables), `roles` (its words in those of ARIA), `numbers` (ids),
//! `enclosure` (where a desktop of its own runs), `launcher` (its programs), `nested` (that desktop),
//! `session` (an open desktop), `trees` (which elements are whose),
//! `places` (where its elements are), `window_tree` (what one window shows), `look` (joining all of it),
//! `status_dot` (what a person sees of the runs, and the key that stops them), `notifications` (what
//! they are told), `taken` (a desktop in a person's hands).

mod stream;
mod display;
mod exclusive;
mod capture;
mod pointer;
mod lent_keys;
mod keyboard;
mod clipboard;
mod windows;
mod status_dot;
mod notifications;
mod accessible;
mod questions;
mod cells;
mod walk;
mod gtk4;
mod open_menus;
mod roles;
mod numbers;
mod enclosure;
mod launcher;
mod saved_files;
mod connections;
mod nested;
mod reading;
mod session;
mod trees;
mod places;
mod window_tree;
mod look;
mod measure;
mod effects;
mod applications;
mod taken;
mod tools;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use gyrus_contract::{
    BoxedFuture, ConnectionPolicy, LookOptions, Screen, ScreenError, ViewWithPicture,
};
use tokio::sync::Mutex;

pub use connections::DesktopConnections;
pub use enclosure::{Enclosure, MakeEnclosure};
use nested::NestedDesktop;
pub use nested::{MISSING_PROGRAMS_HINT, NestedError, nested_parts};
pub use notifications::{ChosenNotification, NotificationChoice, NotificationService};
use numbers::ElementNumbers;
use session::{DesktopSession, unavailable};
pub use status_dot::{DotEvent, DotState, StatusDot};
pub use tools::desktop_tools;

/// Maximum time for the elements of a new window.
const FIRST_ELEMENTS: Duration = Duration::from_secs(10);

/// The place of a desktop.
#[derive(Clone)]
pub enum DesktopPlace {
    /// The person's own display, as `DISPLAY` names it, and their session bus.
    Own {
        /// The name of the display: `:0`.
        display: String,
    },
    /// A virtual display that nobody sees.
    Nested {
        /// Width in pixels.
        width: u16,
        /// Height in pixels.
        height: u16,
        /// Creates the enclosure in which the display and its programs run.
        enclosure: MakeEnclosure,
    },
}

/// A desktop, opened at the first look.
pub struct Desktop {
    place: DesktopPlace,
    connections: Arc<DesktopConnections>,
    open: Mutex<Option<DesktopSession>>,
}

impl Desktop {
    /// Creates a desktop at a place.
    pub fn new(place: DesktopPlace) -> Self {
        Self::connected(place, Arc::default())
    }

    /// Creates a desktop that asks these connections when its programs connect.
    pub fn connected(place: DesktopPlace, connections: Arc<DesktopConnections>) -> Self {
        Self {
            place,
            connections,
            open: Mutex::default(),
        }
    }

    /// Starts a program on a nested desktop and waits for its first window.
    ///
    /// # Errors
    /// The desktop cannot be opened, or the program cannot be started or shows nothing.
    pub async fn start(&self, program: &[String]) -> Result<(), ScreenError> {
        let mut open = self.open.lock().await;
        let session = self.session(&mut open).await?;
        session.start(program, &program.join(" ")).await?;
        look::wait_for_elements(session, FIRST_ELEMENTS).await;
        Ok(())
    }

    /// Ends a nested desktop with all its programs.
    pub async fn leave(&self) {
        if let Some(session) = self.open.lock().await.take()
            && let Some(nested) = session.nested
        {
            drop(session.display);
            nested.end().await;
        }
    }

    async fn session<'a>(
        &self,
        open: &'a mut Option<DesktopSession>,
    ) -> Result<&'a mut DesktopSession, ScreenError> {
        if open.is_none() {
            *open = Some(self.open().await?);
        }
        Ok(open.as_mut().expect("it was opened above"))
    }

    async fn open(&self) -> Result<DesktopSession, ScreenError> {
        let (nested, display) = match &self.place {
            DesktopPlace::Own { display } => {
                let shown = display::Display::connect(display).map_err(unavailable)?;
                (None, shown)
            }
            DesktopPlace::Nested {
                width,
                height,
                enclosure,
            } => {
                let enclosure = enclosure().map_err(unavailable)?;
                let nested = NestedDesktop::start_desktop(*width, *height, enclosure).await;
                let nested = nested.map_err(unavailable)?;
                let display = nested.connect().map_err(unavailable)?;
                (Some(nested), display)
            }
        };
        let accessible = accessible::Accessible::connect(nested.as_ref()).await;
        Ok(DesktopSession {
            id: uuid::Uuid::new_v4().to_string(),
            place: match (&self.place, &nested) {
                (DesktopPlace::Own { display }, _) => display.trim_start_matches(':').to_owned(),
                (DesktopPlace::Nested { .. }, Some(nested)) if nested.enclosure().is_confined() => {
                    "sandbox".to_owned()
                }
                (DesktopPlace::Nested { .. }, _) => "nested".to_owned(),
            },
            display,
            accessible,
            reconnected: None,
            has_new_bus: false,
            numbers: ElementNumbers::default(),
            nested,
            pressed: None,
            saved: BTreeSet::new(),
            connections: self.connections.clone(),
            offered: None,
        })
    }
}

impl Screen for Desktop {
    fn look(&self, wanted: LookOptions) -> BoxedFuture<'_, Result<ViewWithPicture, ScreenError>> {
        Box::pin(async move {
            let mut open = self.open.lock().await;
            let session = self.session(&mut open).await?;
            let seen = look::look(session, wanted).await;
            if seen.is_err() {
                // The next look opens another.
                *open = None;
            }
            seen
        })
    }

    fn connect_by(&self, policy: Arc<dyn ConnectionPolicy>) {
        self.connections.decide_by(policy);
    }
}
