//! Answers sites that ask the browser for a login.

use serde::de::IgnoredAny;

use crate::{browser::BrowserSession, cdp::CdpError, state::LoginAnswer};

impl BrowserSession {
    /// Answers the question for a login in a tab. A login is kept.
    pub(crate) async fn answer_login(&self, tab: u32, answer: LoginAnswer) -> Result<(), CdpError> {
        let Some(request) = self.state().answer_login(tab, &answer) else {
            return Ok(());
        };
        let order = answer.order(&request.id);
        let call = self
            .cdp
            .call(&request.session, "Fetch.continueWithAuth", order);
        let _: IgnoredAny = call.await?;
        Ok(())
    }
}
