//! The protocol as it is, for measurements and tests that compare what we see with what the
//! browser itself says. Nothing of a run goes this way.

use std::time::Instant;

use gyrus_contract::{Look, Rest, ScreenError, Seen};
use serde_json::Value;

use crate::{browser::Browser, settle::SETTLE_LIMIT};

impl Browser {
    /// Orders something of the page that is looked at and hands back what comes of it.
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

    /// Orders something that counts as an input, and waits for rest as after one.
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

    /// A look that does not wait for rest.
    ///
    /// # Errors
    /// When there is no page.
    #[doc(hidden)]
    pub async fn glance(&self, look: Look) -> Result<Seen, ScreenError> {
        let session = self.session(look.documents).await?;
        session.glance(look, Rest::Quiet).await
    }
}
