//! An open desktop.

use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant},
};

use gyrus_contract::ScreenError;

use super::{
    accessible::Accessible,
    clipboard::Offer,
    connections::DesktopConnections,
    display::{Display, DisplayError},
    nested::NestedDesktop,
    numbers::ElementNumbers,
    pointer::ScreenPoint,
    windows::DesktopWindow,
};

/// Maximum time for a program's first window.
const FIRST_WINDOW: Duration = Duration::from_secs(20);

/// Time limit for a program to show a window after another program asked it to.
const CALLED: Duration = Duration::from_secs(2);

pub(super) struct DesktopSession {
    /// The session's id, which is part of every view.
    pub(super) id: String,
    /// The place in addresses: `sandbox` for a nested one that is confined, `nested` for another one,
    /// or the name of the person's display.
    pub(super) place: String,
    pub(super) display: Display,
    /// The accessibility bus, or the reason why there is none.
    pub(super) accessible: Result<Accessible, String>,
    /// The time of the last attempt to connect to the accessibility bus again.
    pub(super) reconnected: Option<Instant>,
    /// Whether the accessibility bus has been replaced since the beginning.
    pub(super) has_new_bus: bool,
    pub(super) numbers: ElementNumbers,
    /// The nested desktop, which lives as long as the session.
    pub(super) nested: Option<NestedDesktop>,
    /// The last press of a button, with its place: two in a short time are a double click.
    pub(super) pressed: Option<(Instant, ScreenPoint)>,
    /// Names of the files in the desktop's own folder that were reported.
    pub(super) saved: BTreeSet<String>,
    pub(super) connections: Arc<DesktopConnections>,
    /// The run's text on the clipboard.
    pub(super) offered: Option<Offer>,
}

/// Time between two attempts to connect to the accessibility bus again.
const RECONNECT: Duration = Duration::from_secs(30);

impl DesktopSession {
    /// Connects to the accessibility bus again, which gave this reason for not answering. A bus that
    /// ended is started anew by the session bus.
    pub(super) async fn reconnect(&mut self, why: String) {
        self.accessible = Err(why);
        if self.reconnected.is_some_and(|at| at.elapsed() < RECONNECT) {
            return;
        }
        self.reconnected = Some(Instant::now());
        if let Ok(accessible) = Accessible::connect(self.nested.as_ref()).await {
            self.accessible = Ok(accessible);
            self.has_new_bus = true;
        }
    }

    /// Opens another connection to the display, only to receive the events that are asked for.
    pub(super) fn connect_again(&self) -> Result<Display, DisplayError> {
        match &self.nested {
            Some(nested) => nested.connect_only(),
            None => self.display.again(),
        }
    }

    /// Returns the address of a window: the desktop and the program; that of the desktop alone if
    /// there is none.
    pub(super) fn address(&self, window: Option<&DesktopWindow>) -> String {
        let class = window.map(|window| format!("/{}", window.class));
        format!("x11:{}{}", self.place, class.unwrap_or_default())
    }

    /// Starts a program on a nested desktop and waits for its first window. `name` is its name in
    /// messages.
    pub(super) async fn start(&mut self, words: &[String], name: &str) -> Result<(), ScreenError> {
        let before = self.display.windows().map_err(lost)?;
        let Some(nested) = &mut self.nested else {
            return Err(unavailable(
                "programs are started on a nested desktop only; start it yourself",
            ));
        };
        let ended = nested.start(words).map_err(unavailable)?;
        let display = &self.display;
        let window = async {
            let is_old = |id: u32| before.iter().any(|old| old.id == id);
            while display
                .windows()
                .map_err(lost)?
                .iter()
                .all(|window| is_old(window.id))
            {
                display.next_change().await.map_err(lost)?;
            }
            Ok(())
        };
        let shown = tokio::time::timeout(FIRST_WINDOW, async {
            tokio::pin!(window);
            let end = tokio::select! {
                shown = &mut window => return shown,
                end = ended => end,
            };
            if end.is_success {
                // It may have asked one of its kind that runs already to open the file.
                let called = tokio::time::timeout(CALLED, window).await;
                return called.unwrap_or(Ok(()));
            }
            Err(unavailable(end.words))
        });
        shown.await.unwrap_or_else(|_| {
            let seconds = FIRST_WINDOW.as_secs();
            Err(unavailable(format!(
                "{name} has shown no window for {seconds} seconds"
            )))
        })?;
        // The window manager gives it the keyboard a moment later.
        let is_given = |windows: &[DesktopWindow]| windows.iter().any(|window| window.is_active);
        display.until_windows(is_given).await.map_err(lost)
    }
}

/// Returns the error for a desktop that cannot be opened.
pub(super) fn unavailable(reason: impl ToString) -> ScreenError {
    ScreenError::Unavailable {
        reason: reason.to_string(),
    }
}

/// Returns the error for a desktop whose session failed.
pub(super) fn lost(reason: impl ToString) -> ScreenError {
    ScreenError::Lost {
        reason: reason.to_string(),
    }
}
