//! The screen of runs: a browser or a desktop.

use std::sync::Arc;

use gyrus_contract::{Screen, Tool};
use gyrus_screen::Browser;
#[cfg(feature = "desktop")]
use gyrus_screen::Desktop;

/// The screen of runs.
#[derive(Clone)]
pub enum RunScreen {
    /// A browser.
    Browser(Arc<Browser>),
    /// A desktop.
    #[cfg(feature = "desktop")]
    Desktop(Arc<Desktop>),
}

impl RunScreen {
    /// Returns the tools with which a run uses it.
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        match self {
            Self::Browser(browser) => gyrus_screen::tools(browser),
            #[cfg(feature = "desktop")]
            Self::Desktop(desktop) => gyrus_screen::desktop_tools(desktop),
        }
    }

    /// Returns it as runs look at it.
    pub(super) fn shown(&self) -> Arc<dyn Screen> {
        match self {
            Self::Browser(browser) => browser.clone(),
            #[cfg(feature = "desktop")]
            Self::Desktop(desktop) => desktop.clone(),
        }
    }

    /// Returns the browser, if it is one.
    pub fn browser(&self) -> Option<&Arc<Browser>> {
        match self {
            Self::Browser(browser) => Some(browser),
            #[cfg(feature = "desktop")]
            Self::Desktop(_) => None,
        }
    }

    /// Ends it, with what was started on it.
    pub async fn leave(&self) {
        match self {
            Self::Browser(browser) => browser.leave().await,
            #[cfg(feature = "desktop")]
            Self::Desktop(desktop) => desktop.leave().await,
        }
    }
}
