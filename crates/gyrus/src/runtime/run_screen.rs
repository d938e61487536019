//! The screen of runs: a browser or a desktop.

use std::sync::Arc;

use gyrus_contract::{Picture, Screen, ScreenError, Tool};
#[cfg(feature = "desktop")]
use gyrus_screen::Desktop;
use gyrus_screen::{Browser, GivenBack};

#[derive(Clone)]
pub enum RunScreen {
    Browser(Arc<Browser>),
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

    /// Returns the screen as runs see it.
    pub fn shown(&self) -> Arc<dyn Screen> {
        match self {
            Self::Browser(browser) => browser.clone(),
            #[cfg(feature = "desktop")]
            Self::Desktop(desktop) => desktop.clone(),
        }
    }

    /// Hands the screen to a person, and waits until they give it back. Their page shows `reason`,
    /// the run's own words for why it asked them. `told` gets the address of the page, which admits
    /// one browser. Dropping this takes the screen back.
    ///
    /// # Errors
    /// When there is no screen, no port, or the screen is lost meanwhile.
    pub async fn take_over(
        &self,
        reason: Option<&str>,
        told: impl FnOnce(&str) + Send,
    ) -> Result<GivenBack, ScreenError> {
        match self {
            Self::Browser(browser) => browser.take_over(reason, None, told).await,
            #[cfg(feature = "desktop")]
            Self::Desktop(desktop) => desktop.take_over(reason, told).await,
        }
    }

    /// Returns a picture of the screen for somebody who watches; `None` while it shows nothing.
    pub async fn watch(&self) -> Option<Picture> {
        match self {
            Self::Browser(browser) => browser.watch().await,
            #[cfg(feature = "desktop")]
            Self::Desktop(desktop) => desktop.watch().await,
        }
    }

    /// Returns the browser, if the screen is one.
    pub fn browser(&self) -> Option<&Arc<Browser>> {
        match self {
            Self::Browser(browser) => Some(browser),
            #[cfg(feature = "desktop")]
            Self::Desktop(_) => None,
        }
    }

    /// Closes the screen, with the programs that were started on it.
    pub async fn leave(&self) {
        match self {
            Self::Browser(browser) => browser.leave().await,
            #[cfg(feature = "desktop")]
            Self::Desktop(desktop) => desktop.leave().await,
        }
    }
}
