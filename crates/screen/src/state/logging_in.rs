//! Sites that ask the browser for a login, as the state knows them.

use gyrus_contract::Dialog;
use serde::Deserialize;

use super::{
    BrowserState, EventReaction,
    held::InterceptedRequest,
    logins::{KIND, LoginAnswer, LoginRequest},
};
use crate::cdp::CdpEvent;

/// Maximum characters of a site's own words about a login.
const MAX_REALM: usize = 100;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AuthRequired {
    request_id: String,
    #[serde(default)]
    frame_id: String,
    auth_challenge: Challenge,
}

#[derive(Deserialize)]
struct Challenge {
    #[serde(default)]
    source: String,
    origin: String,
    #[serde(default)]
    realm: String,
}

impl BrowserState {
    /// Handles a site's question for a login: it gets the one that is known, once, and then a person
    /// is asked.
    pub(crate) fn take_login(&mut self, event: &CdpEvent<'_>) -> Option<EventReaction> {
        let asked: AuthRequired = event.params()?;
        let request = InterceptedRequest {
            session: event.session.to_owned(),
            id: asked.request_id,
        };
        let challenge = asked.auth_challenge;
        let tab = self.tab_of_frame(&asked.frame_id).map(|tab| tab.number);
        if challenge.source == "Proxy" {
            let answer = LoginAnswer::Default;
            return Some(EventReaction::LogIn { request, answer });
        }
        if let Some(login) = self.logins.next(&challenge.origin, &challenge.realm) {
            login.is_given = true;
            let answer = LoginAnswer::Give {
                user: login.user.clone(),
                password: login.password.clone(),
            };
            return Some(EventReaction::LogIn { request, answer });
        }
        self.logins.forget(&challenge.origin, &challenge.realm);
        if self.logins.has_window {
            let answer = LoginAnswer::Default;
            return Some(EventReaction::LogIn { request, answer });
        }
        let tab = self.tabs.iter_mut().find(|one| Some(one.number) == tab);
        let Some(tab) = tab.filter(|tab| tab.dialog.is_none()) else {
            let answer = LoginAnswer::Cancel;
            return Some(EventReaction::LogIn { request, answer });
        };
        let realm = gyrus_text::shorten(&challenge.realm, MAX_REALM);
        tab.dialog = Some(Dialog {
            kind: KIND.to_owned(),
            message: format!(
                "{} wants a user name and a password (“{realm}”)",
                challenge.origin
            ),
            offered: String::new(),
        });
        self.dialogs += 1;
        let tab = tab.number;
        self.logins.wanted.retain(|one| one.tab != tab);
        self.logins.wanted.push(LoginRequest {
            request,
            tab,
            origin: challenge.origin,
            realm: challenge.realm,
        });
        None
    }

    /// Removes the request of a tab that waits for a login, with the tab's dialog, and stores a
    /// login.
    pub(crate) fn answer_login(
        &mut self,
        tab: u32,
        answer: &LoginAnswer,
    ) -> Option<InterceptedRequest> {
        let at = self.logins.wanted.iter().position(|one| one.tab == tab)?;
        let wanted = self.logins.wanted.remove(at);
        if let Some(tab) = self.tabs.iter_mut().find(|one| one.number == tab) {
            tab.dialog = None;
        }
        self.changes += 1;
        if let LoginAnswer::Give { user, password } = answer {
            // Without the file the next session is asked again.
            let _ = self.logins.learn(&wanted, user, password);
        }
        Some(wanted.request)
    }
}
