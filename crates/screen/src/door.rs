//! Direct access to the protocol, for measurements and tests that compare our results with the
//! browser's own. Runs do not use it.

use std::time::Instant;

use gyrus_contract::{LookOptions, Rest, ScreenError, ViewWithPicture};
use serde_json::Value;

use crate::{browser::Browser, settle::SETTLE_LIMIT};

impl Browser {
    /// Sends a command to the current page and returns its result.
    ///
    /// # Errors
    /// When there is no page, or the browser refuses.
    #[doc(hidden)]
    pub async fn devtools(&self, method: &str, params: Value) -> Result<Value, ScreenError> {
        let session = self.session(0).await?;
        let tab = session.tab()?;
        let answered = session.cdp.call(&tab.session, method, params).await;
        answered.map_err(|error| ScreenError::Unavailable {
            reason: error.to_string(),
        })
    }

    /// Sends a command that counts as an input, and waits for rest as after one.
    ///
    /// # Errors
    /// When there is no page, or the browser refuses.
    #[doc(hidden)]
    pub async fn rest_after(&self, method: &str, params: Value) -> Result<Rest, ScreenError> {
        let session = self.session(0).await?;
        session.state().acted = Some(Instant::now());
        self.devtools(method, params).await?;
        Ok(session.settle(SETTLE_LIMIT).await)
    }

    /// Looks at the page without waiting for rest.
    ///
    /// # Errors
    /// When there is no page.
    #[doc(hidden)]
    pub async fn glance(&self, look: LookOptions) -> Result<ViewWithPicture, ScreenError> {
        let session = self.session(look.documents).await?;
        session.glance(look, Rest::Quiet).await
    }
}
