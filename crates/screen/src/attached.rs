//! A session in a browser that a person started. Unlike a session in our own browser, it leaves the
//! person's tabs alone: no command goes to the whole browser (it would affect the person's tabs),
//! our own tabs are opened and attached to one by one, and at the end only they are closed.

use std::{collections::BTreeSet, time::Duration};

use gyrus_contract::ScreenError;
use serde::{Deserialize, de::IgnoredAny};
use serde_json::json;

use crate::{
    DebuggingPort, Launch, LaunchError, Profile,
    browser::{BrowserSession, block_requests, unavailable},
    cdp::CdpError,
    launch::BrowserFuture,
    socket,
    state::{BrowserState, Whose},
};

/// Maximum time for our own tabs to close.
const LEAVING_LIMIT: Duration = Duration::from_secs(5);

impl BrowserSession {
    /// Attaches to the browser at `at`, and closes tabs that an earlier connection `left` there.
    pub(crate) async fn attach(
        at: &DebuggingPort,
        left: BTreeSet<String>,
        documents: u32,
    ) -> Result<Self, ScreenError> {
        let wire = socket::connect(at, socket::LIMIT).await;
        let wire = wire.map_err(unavailable)?;
        let state = BrowserState {
            documents,
            whose: Whose::Theirs,
            debugging: Some(at.port()),
            ..BrowserState::default()
        };
        // The folder is only for files lent to pages: the browser has a profile.
        let folder = Profile::ephemeral();
        let folder = folder.map_err(LaunchError::from).map_err(unavailable)?;
        let nothing: Option<BrowserFuture> = None;
        let session = Self::over(wire, nothing, &Launch::default(), folder, state);
        let entered = session.enter(left).await;
        entered.map_err(|error| {
            let why = session.lost().unwrap_or(error);
            unavailable(format!("the browser at {at} was not attached to: {why}"))
        })?;
        Ok(session)
    }

    /// Opens a tab of our own and waits for its page.
    async fn enter(&self, left: BTreeSet<String>) -> Result<(), String> {
        for target in left {
            let order = json!({"targetId": target});
            self.cdp.send("", "Target.closeTarget", order);
        }
        // Needed to tell tabs that our own open from all others.
        let order = json!({
            "discover": true,
            "filter": [{"type": "page"}, {"exclude": true}],
        });
        let told: Result<IgnoredAny, CdpError> =
            self.cdp.call("", "Target.setDiscoverTargets", order).await;
        told.map_err(|error| error.to_string())?;
        let opened = self.open_tab().await;
        opened.map_err(|error| error.to_string())?;
        self.first_page().await
    }

    /// Opens an empty tab; in a person's browser in a window of its own, so that it does not
    /// replace a page that they look at.
    pub(crate) async fn open_tab(&self) -> Result<(), CdpError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct TargetCreated {
            target_id: String,
        }
        let whose = self.state().whose;
        let order = json!({"url": "about:blank", "newWindow": whose == Whose::Theirs});
        let created: TargetCreated = self.cdp.call("", "Target.createTarget", order).await?;
        if whose == Whose::Theirs {
            let target = created.target_id;
            self.state().own.insert(target.clone());
            let order = json!({"targetId": target, "flatten": true});
            let _: IgnoredAny = self.cdp.call("", "Target.attachToTarget", order).await?;
        }
        Ok(())
    }

    /// Returns the reason why a browser that still runs has no page left for the run.
    pub(crate) fn emptied(&self) -> Option<String> {
        let state = self.state();
        let is_empty = state.whose == Whose::Theirs && state.tabs.is_empty();
        is_empty.then(|| "the last tab of the run was closed".to_owned())
    }

    /// Blocks all held requests, because a browser that only loses its connection would send them.
    pub(crate) fn turn_all_away(&self) {
        let state = self.state();
        let held = state.held_requests().map(|one| one.id.clone()).collect();
        block_requests(&self.cdp, held);
    }

    /// Closes the run's own tabs, with all that is open in them, and waits until they have gone.
    pub(crate) async fn close_own_tabs(&self) {
        self.turn_all_away();
        let own = self.state().own.clone();
        for target in own {
            let order = json!({"targetId": target});
            self.cdp.send("", "Target.closeTarget", order);
        }
        let mut answered = BTreeSet::new();
        self.wait(LEAVING_LIMIT, |state| {
            // The page asks for confirmation before it is left.
            let asking = state.tabs.iter().filter(|tab| tab.dialog.is_some());
            for tab in asking {
                if answered.insert((tab.session.clone(), state.dialogs)) {
                    let yes = json!({"accept": true});
                    self.cdp
                        .send(&tab.session, "Page.handleJavaScriptDialog", yes);
                }
            }
            state.own.is_empty().then_some(())
        })
        .await;
    }
}
