//! Navigation: addresses, history, tabs.

use std::time::{Duration, Instant};

use gyrus_contract::{Rest, ScreenError};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::json;

use crate::{
    browser::{Browser, BrowserSession, block_requests},
    cdp::CdpError,
    input::NoPageAnswer,
    settle::ARRIVAL_LIMIT,
    state::{EventReaction, LoginAnswer, TabState},
};

const CLOSING_LIMIT: Duration = Duration::from_secs(5);

/// Reason why a page could not be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NavigationError {
    #[error("`{address}` is not opened: {why}. Only http and https addresses are")]
    Forbidden { address: String, why: &'static str },
    #[error("{0}")]
    Held(NoPageAnswer),
    #[error("{address} cannot be reached: {reason}")]
    Failed { address: String, reason: String },
    #[error("there is no earlier page in this tab")]
    NoHistory,
    #[error(transparent)]
    Browser(#[from] CdpError),
}

impl From<NoPageAnswer> for NavigationError {
    fn from(held: NoPageAnswer) -> Self {
        NavigationError::Held(held)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TabHistory {
    current_index: usize,
    entries: Vec<HistoryEntry>,
}

#[derive(Deserialize)]
struct HistoryEntry {
    id: i64,
    url: String,
}

impl Browser {
    /// Opens an address in the current tab, for a person who asked for exactly this.
    ///
    /// # Errors
    /// When there is no browser, or it cannot go there.
    pub async fn open(&self, address: &str) -> Result<(), ScreenError> {
        let session = self.session(0).await?;
        let tab = session.tab()?;
        match session.go_to(&tab, address).await {
            // The page shows a dialog, which is answered at the screen.
            Ok(_) | Err(NavigationError::Held(NoPageAnswer::Dialog { .. })) => Ok(()),
            // So does a window.
            Err(NavigationError::Browser(CdpError::TimedOut { .. })) if session.launch.visible => {
                Ok(())
            }
            Err(error) => Err(ScreenError::Unreached {
                reason: error.to_string(),
            }),
        }
    }
}

/// Checks that an address may be opened: none that reads this machine's files or runs in the page.
pub(crate) fn allowed(address: &str) -> Result<(), NavigationError> {
    let forbidden = |why| {
        Err(NavigationError::Forbidden {
            address: gyrus_text::shorten(address, 200).into_owned(),
            why,
        })
    };
    if address == "about:blank" {
        return Ok(());
    }
    // Browsers drop blanks before, and tabs and line ends within.
    if address
        .chars()
        .any(|one| one.is_control() || one.is_whitespace())
    {
        return forbidden("it holds blanks or control characters");
    }
    match address
        .split_once(':')
        .map(|(scheme, _)| scheme.to_ascii_lowercase())
        .as_deref()
    {
        Some("http" | "https") => Ok(()),
        Some("javascript" | "data" | "blob" | "vbscript") => {
            forbidden("it would run in the page what it holds itself")
        }
        Some("file" | "filesystem") => forbidden("it reads files of this machine; use `read`"),
        Some(
            "chrome" | "about" | "devtools" | "view-source" | "chrome-extension" | "edge" | "brave",
        ) => forbidden("it is a page of the browser's own"),
        Some(_) => forbidden("other programs would open it"),
        None => forbidden("it is not a whole address"),
    }
}

impl BrowserSession {
    /// Opens an address and waits until its document has come to rest.
    pub(crate) async fn go_to(
        &self,
        tab: &TabState,
        address: &str,
    ) -> Result<Rest, NavigationError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct NavigateResult {
            error_text: Option<String>,
        }
        let order = json!({"url": address});
        let going = self.cdp.call(&tab.session, "Page.navigate", order);
        let went: NavigateResult = self.leave(tab, going).await?;
        match went.error_text {
            // The response was downloaded instead of shown, or another navigation was quicker.
            Some(text) if text != "net::ERR_ABORTED" => Err(NavigationError::Failed {
                address: address.to_owned(),
                reason: text,
            }),
            _ => Ok(self.settle(ARRIVAL_LIMIT).await),
        }
    }

    pub(crate) async fn load_again(&self, tab: &TabState) -> Result<Rest, NavigationError> {
        let document = self
            .state()
            .frames
            .get(&tab.target)
            .map(|frame| frame.document);
        let crashed = NoPageAnswer::of(&self.state(), tab.number) == Some(NoPageAnswer::Crashed);
        let going = self.cdp.call(&tab.session, "Page.reload", json!({}));
        let _: IgnoredAny = if crashed {
            going.await?
        } else {
            self.leave(tab, going).await?
        };
        self.arrive(tab, document).await;
        Ok(self.settle(ARRIVAL_LIMIT).await)
    }

    /// Goes to the previous page in the tab's history.
    pub(crate) async fn go_back(&self, tab: &TabState) -> Result<Rest, NavigationError> {
        let (id, _) = self.earlier(tab).await?;
        let document = self
            .state()
            .frames
            .get(&tab.target)
            .map(|frame| frame.document);
        let going = self.cdp.call(
            &tab.session,
            "Page.navigateToHistoryEntry",
            json!({"entryId": id}),
        );
        let _: IgnoredAny = self.leave(tab, going).await?;
        self.arrive(tab, document).await;
        Ok(self.settle(ARRIVAL_LIMIT).await)
    }

    /// Returns the previous page of the history: its number and address.
    pub(crate) async fn earlier(&self, tab: &TabState) -> Result<(i64, String), NavigationError> {
        let asking = self
            .cdp
            .call(&tab.session, "Page.getNavigationHistory", json!({}));
        let history: TabHistory = self.unless_held(tab, asking).await??;
        let before = history
            .current_index
            .checked_sub(1)
            .ok_or(NavigationError::NoHistory)?;
        let mut entries = history.entries.into_iter();
        // The empty page with which a tab begins is not one to go back to.
        let entry = entries
            .nth(before)
            .filter(|entry| entry.url != "about:blank");
        let entry = entry.ok_or(NavigationError::NoHistory)?;
        Ok((entry.id, entry.url))
    }

    /// Runs a navigation that leaves the page. The page may ask for confirmation. From now on, this
    /// counts as the last input.
    async fn leave<T>(
        &self,
        tab: &TabState,
        going: impl Future<Output = Result<T, CdpError>>,
    ) -> Result<T, NavigationError> {
        self.state().acted = Some(Instant::now());
        self.give_up_held(tab);
        // A crashed page can be left, and one that is being left; one with a dialog cannot.
        let held = NoPageAnswer::of(&self.state(), tab.number);
        match held {
            Some(NoPageAnswer::Crashed | NoPageAnswer::Request { .. }) => Ok(going.await?),
            Some(held) => Err(held.into()),
            None => Ok(self.unless_held(tab, going).await??),
        }
    }

    /// Blocks the held requests of a tab that is about to leave its page.
    fn give_up_held(&self, tab: &TabState) {
        let mut state = self.state();
        for (frame, _) in state.frames_of(tab) {
            state.doom(&frame);
        }
        if let Some(EventReaction::Block { requests }) = state.blocking_order() {
            block_requests(&self.cdp, requests);
        }
    }

    /// Waits for another document, or for another address within the current one.
    async fn arrive(&self, tab: &TabState, document: Option<u32>) {
        let address = self
            .state()
            .frames
            .get(&tab.target)
            .map(|frame| frame.address.clone());
        self.wait(ARRIVAL_LIMIT, |state| {
            if state
                .tabs
                .iter()
                .any(|one| one.number == tab.number && one.dialog.is_some())
            {
                return Some(());
            }
            let frame = state.frames.get(&tab.target)?;
            let came = Some(frame.document) != document || Some(&frame.address) != address.as_ref();
            (came && frame.world.is_some()).then_some(())
        })
        .await;
    }

    /// Switches to another tab.
    pub(crate) async fn switch_to(&self, number: u32) -> Result<(), String> {
        let tab = self.numbered_tab(number)?;
        let done: Result<IgnoredAny, CdpError> = self
            .cdp
            .call("", "Target.activateTarget", json!({"targetId": tab.target}))
            .await;
        done.map_err(|error| error.to_string())?;
        self.state().active = Some(number);
        Ok(())
    }

    /// Closes a tab, even one that is held up or crashed.
    pub(crate) async fn close(&self, number: u32) -> Result<(), String> {
        let tab = self.numbered_tab(number)?;
        self.give_up_held(&tab);
        if self.state().tabs.len() == 1 {
            // A browser without a page ends.
            let opened = self.open_tab().await;
            opened.map_err(|error| error.to_string())?;
        }
        if tab.dialog.is_some() {
            let no = json!({"accept": false});
            self.cdp
                .send(&tab.session, "Page.handleJavaScriptDialog", no);
        }
        let done: Result<IgnoredAny, CdpError> = self
            .cdp
            .call("", "Target.closeTarget", json!({"targetId": tab.target}))
            .await;
        done.map_err(|error| error.to_string())?;
        let gone = |state: &crate::state::BrowserState| {
            let is_open = state.tabs.iter().any(|tab| tab.number == number);
            (!is_open && !state.tabs.is_empty()).then_some(())
        };
        let closed = self.wait(CLOSING_LIMIT, gone).await;
        closed
            .ok_or_else(|| format!("tab {number} does not close; answer its dialog if it has one"))
    }

    pub(crate) fn numbered_tab(&self, number: u32) -> Result<TabState, String> {
        let state = self.state();
        let found = state.tabs.iter().find(|tab| tab.number == number).cloned();
        found.ok_or_else(|| {
            let open: Vec<String> = state
                .tabs
                .iter()
                .map(|tab| tab.number.to_string())
                .collect();
            format!("there is no tab {number}; open are {}", open.join(", "))
        })
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_of_the_web_are_opened() {
        for address in ["http://a.example/", "HTTPS://a.example", "about:blank"] {
            assert!(allowed(address).is_ok(), "{address}");
        }
        for address in [
            "javascript:alert(1)",
            "JavaScript:alert(1)",
            " javascript:alert(1)",
            "java\tscript:alert(1)",
            "data:text/html,x",
            "file:///etc/passwd",
            "chrome://crash",
            "about:version",
            "view-source:http://a.example",
            "blob:http://a.example/x",
            "mailto:a@b.example",
            "a.example",
            "",
        ] {
            assert!(allowed(address).is_err(), "{address}");
        }
    }
}
