//! A screen that is a whole X11 desktop: windows, the accessible elements in them, and a picture.
//!
//! The one idea: a desktop is seen through two doors. The X server knows windows and pixels, the
//! accessibility bus knows elements with roles and names; both are asked at once and joined by
//! process and place into the same [`View`] that a page gives. By default the desktop is a nested
//! one, started and ended by gyrus, so that the person's own mouse and windows are left alone.
//!
//! Reading order: `display` (the X server), `capture` (pixels), `windows`, `own_windows`
//! (those of gyrus), `accessible` (the
//! accessibility bus), `descendants` (what lists keep to themselves), `roles` (its words in those of ARIA), `numbers` (ids), `nested` (a desktop of
//! its own), `session` (an open desktop), `look` (joining all of it), `status_dot` (what
//! a person sees of the runs, and the key that stops them).

mod display;
mod capture;
mod pointer;
mod keyboard;
mod windows;
mod own_windows;
mod status_dot;
mod accessible;
mod descendants;
mod roles;
mod numbers;
mod nested;
mod session;
mod look;
mod measure;
mod effects;
mod applications;
mod tools;

use std::time::Duration;

use gyrus_contract::{Boxed, Look, Screen, ScreenError, Seen};
use tokio::sync::Mutex;

use crate::RunCommand;
use nested::Nested;
pub use nested::{MISSING_PROGRAMS_HINT, NestedError, nested_parts};
use numbers::ElementNumbers;
use session::{Session, unavailable};
pub use status_dot::{DotEvent, DotState, StatusDot};
pub use tools::desktop_tools;

/// Maximum time for the elements of a new window.
const FIRST_ELEMENTS: Duration = Duration::from_secs(10);

/// The place of a desktop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DesktopPlace {
    /// The person's own display, as `DISPLAY` names it, and their session bus.
    Own {
        /// The name of the display: `:0`.
        display: String,
    },
    /// A display of its own that nobody sees.
    Nested {
        /// Width in pixels.
        width: u16,
        /// Height in pixels.
        height: u16,
    },
}

/// A desktop, opened when it is first looked at.
pub struct Desktop {
    place: DesktopPlace,
    run: RunCommand,
    open: Mutex<Option<Session>>,
}

impl Desktop {
    /// Creates a desktop. `run` starts its programs, which end with this process.
    pub fn new(place: DesktopPlace, run: RunCommand) -> Self {
        Self {
            place,
            run,
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

    /// Ends a nested desktop with everything on it.
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
        open: &'a mut Option<Session>,
    ) -> Result<&'a mut Session, ScreenError> {
        if open.is_none() {
            *open = Some(self.open().await?);
        }
        Ok(open.as_mut().expect("it was opened above"))
    }

    async fn open(&self) -> Result<Session, ScreenError> {
        let (nested, display, bus) = match &self.place {
            DesktopPlace::Own { display } => {
                let shown = display::Display::connect(display).map_err(unavailable)?;
                (None, shown, accessible::Bus::OfPerson)
            }
            DesktopPlace::Nested { width, height } => {
                let nested = Nested::start_desktop(*width, *height, &self.run).await;
                let nested = nested.map_err(unavailable)?;
                let display = nested.connect().map_err(unavailable)?;
                let bus = accessible::Bus::At(nested.bus_address());
                (Some(nested), display, bus)
            }
        };
        let accessible = accessible::Accessible::connect(bus).await;
        Ok(Session {
            id: uuid::Uuid::new_v4().to_string(),
            place: match &self.place {
                DesktopPlace::Own { display } => display.trim_start_matches(':').to_owned(),
                DesktopPlace::Nested { .. } => "nested".to_owned(),
            },
            display,
            accessible,
            numbers: ElementNumbers::default(),
            nested,
            pressed: None,
        })
    }
}

impl Screen for Desktop {
    fn look(&self, wanted: Look) -> Boxed<'_, Result<Seen, ScreenError>> {
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
}
