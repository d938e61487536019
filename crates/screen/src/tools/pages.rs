//! Addresses, dialogs and tabs.

use std::time::{Duration, Instant};

use gyrus_contract::{ActionVerdict, Rest, Starts, ToolOutput};
use serde::de::IgnoredAny;
use serde_json::json;

use super::{Doing, Failure, arguments::Action};
use crate::{
    browser::Session,
    cdp::CdpError,
    input::Held,
    navigate::{self, Unreached},
    settle::SETTLE_LIMIT,
    state::Holding,
    verdict::Standing,
};

/// Maximum time until an answered dialog has gone.
const DIALOG_LIMIT: Duration = Duration::from_secs(5);

impl From<Unreached> for Failure {
    fn from(unreached: Unreached) -> Self {
        match unreached {
            Unreached::Held(held) => held.into(),
            Unreached::Browser(error) => Failure::Broke(error.to_string()),
            Unreached::Failed { .. } => Failure::Broke(unreached.to_string()),
            Unreached::Forbidden { .. } | Unreached::NoHistory => {
                Failure::Refused(format!("refused: {unreached}"))
            }
        }
    }
}

impl Doing<'_> {
    fn check_starts(&self, wanted: impl Fn(&Starts) -> bool) -> Result<(), Failure> {
        let judged = self.aim.is_some_and(|aim| aim.starts.iter().any(wanted));
        match judged {
            true => Ok(()),
            false => Err(Failure::Refused(
                "refused: moved: this is no longer what was judged; look again".to_owned(),
            )),
        }
    }

    pub(super) async fn go(&self, action: Action) -> Result<ToolOutput, Failure> {
        let standing = Standing::of(&self.session.state(), &self.tab);
        let rest = match action {
            Action::GoBack => {
                let (_, earlier) = self.session.earlier(&self.tab).await?;
                self.check_starts(
                    |starts| matches!(starts, Starts::Follows { address } if *address == earlier),
                )?;
                self.session.go_back(&self.tab).await
            }
            Action::Reload => self.session.load_again(&self.tab).await,
            _ => {
                let address = self.arguments.url.as_deref().unwrap_or_default();
                navigate::allowed(address)?;
                self.session.go_to(&self.tab, address).await
            }
        };
        let rest = match rest {
            Ok(rest) => rest,
            // The page asks for confirmation before it is left.
            Err(Unreached::Held(Held::Dialog { .. })) => Rest::Dialog,
            Err(error) => return Err(error.into()),
        };
        let effects = self.session.effects(&self.tab, None, &standing, rest).await;
        let now = self.session.tab()?;
        let title = gyrus_text::shorten(&now.title, 100);
        Ok(self.told(&format!("At {} “{title}”", now.address), &effects))
    }

    pub(super) async fn answer_dialog(&self) -> Result<ToolOutput, Failure> {
        let Some(dialog) = self.tab.dialog.clone() else {
            return Err(Failure::Refused(
                "refused: there is no dialog to answer".to_owned(),
            ));
        };
        let judged = self.aim.and_then(|aim| aim.element.as_ref());
        if judged.is_none_or(|judged| judged.role != dialog.kind || judged.name != dialog.message) {
            return Err(Failure::Refused(format!(
                "refused: moved: the dialog is another one now: “{}”",
                dialog.message
            )));
        }
        let accept = self.arguments.accept.unwrap_or_default();
        let mut order = json!({"accept": accept});
        if let Some(text) = &self.arguments.text {
            let text = self
                .site
                .reveal(text)
                .map_err(|error| Failure::Refused(error.to_string()))?;
            order["promptText"] = json!(text);
        }
        let count = self.session.state().dialogs;
        self.session.state().acted = Some(Instant::now());
        let answered: Result<IgnoredAny, CdpError> = self
            .session
            .cdp
            .call(&self.tab.session, "Page.handleJavaScriptDialog", order)
            .await;
        answered.map_err(|error| Failure::Broke(error.to_string()))?;
        let number = self.tab.number;
        self.session
            .wait(DIALOG_LIMIT, |state| {
                let same = state
                    .tabs
                    .iter()
                    .any(|tab| tab.number == number && tab.dialog.is_some());
                (!same || state.dialogs > count).then_some(())
            })
            .await;
        let rest = self.session.settle(SETTLE_LIMIT).await;
        let (next, count) = {
            let state = self.session.state();
            (
                state.active_tab().and_then(|tab| tab.dialog.clone()),
                state.dialogs,
            )
        };
        let verb = if accept { "Accepted" } else { "Dismissed" };
        let mut text = format!("{verb} the dialog “{}”.", dialog.message);
        match (next, rest) {
            (Some(next), _) => text.push_str(&format!(
                " Another one opened, the {}. of this session ({}): “{}”. If they do not end, close_tab.",
                count, next.kind, next.message
            )),
            (None, Rest::GaveUp { waiting_for }) => text.push_str(&format!(" Still waiting for {waiting_for}.")),
            (None, Rest::Gone) => text.push_str(" The page has gone."),
            (None, Rest::Quiet | Rest::Dialog | Rest::Held) => {}
        }
        Ok(ToolOutput {
            verdict: ActionVerdict::Changed,
            ..ToolOutput::read(text)
        })
    }

    /// Sends a held request, or blocks it.
    pub(super) async fn answer_request(&self) -> Result<ToolOutput, Failure> {
        let number = self.arguments.request.unwrap_or_default();
        let accept = self.arguments.accept.unwrap_or_default();
        let held = held(self.session, number)?;
        if accept {
            let wanted = sends(&held);
            self.check_starts(|starts| *starts == wanted)?;
        }
        let standing = self.session.watch(&self.tab, None, "").await;
        // Taken out here, so that it is answered only once.
        let taken = self.session.state().answered(number);
        let taken = taken.ok_or_else(|| gone(number))?;
        let answered: Result<IgnoredAny, CdpError> = match accept {
            true => {
                let order = json!({"requestId": taken.id.id});
                let going = &self.session.cdp;
                going
                    .call(&taken.id.session, "Fetch.continueRequest", order)
                    .await
            }
            false => {
                crate::browser::turn_away(&self.session.cdp, vec![taken.id]);
                Ok(IgnoredAny)
            }
        };
        answered.map_err(|error| Failure::Broke(format!("{}: {error}", taken.shown)))?;
        let rest = self.session.settle(SETTLE_LIMIT).await;
        let effects = self.session.effects(&self.tab, None, &standing, rest).await;
        let done = match accept {
            true => format!("Let {} go", taken.shown),
            false => format!("Turned {} away", taken.shown),
        };
        Ok(ToolOutput {
            verdict: ActionVerdict::Changed,
            ..self.told(&done, &effects)
        })
    }

    pub(super) async fn change_tab(&self, action: Action) -> Result<ToolOutput, Failure> {
        let number = self.arguments.tab.unwrap_or(self.tab.number);
        let (done, verb) = match action {
            Action::CloseTab => (self.session.close(number).await, "Closed"),
            _ => (self.session.switch_to(number).await, "Now at"),
        };
        done.map_err(|why| Failure::Refused(format!("refused: {why}")))?;
        let rest = self.session.settle(SETTLE_LIMIT).await;
        let now = self.session.tab()?;
        let mut text = format!(
            "{verb} tab {number}. Looked at is tab {}: {}.",
            now.number, now.address
        );
        if let Rest::GaveUp { waiting_for } = rest {
            text.push_str(&format!(" Still waiting for {waiting_for}."));
        }
        Ok(ToolOutput {
            verdict: ActionVerdict::Changed,
            ..ToolOutput::read(text)
        })
    }
}

/// Returns a request that waits for an answer.
pub(super) fn held(session: &Session, number: u32) -> Result<Holding, Failure> {
    let state = session.state();
    let mut held = state.held_requests();
    let found = held.find(|one| one.shown.number == number).cloned();
    found.ok_or_else(|| gone(number))
}

/// Returns the effect of sending a held request.
pub(super) fn sends(held: &Holding) -> Starts {
    Starts::Sends {
        method: held.shown.method.clone(),
        address: held.shown.address.clone(),
        bytes: held.shown.bytes,
    }
}

fn gone(number: u32) -> Failure {
    Failure::Refused(format!(
        "refused: gone: no request {number} waits for an answer; look again"
    ))
}
