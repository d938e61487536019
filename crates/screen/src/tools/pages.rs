//! Addresses, dialogs and tabs.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use gyrus_contract::{
    ActionVerdict, Aim, AimedElement, AnswerDialogCall, AnswerRequestCall, CloseTabCall,
    GoBackCall, OpenUrlCall, ReloadCall, Rest, Starts, SwitchTabCall, ToolOutput,
};
use serde::de::IgnoredAny;
use serde_json::json;

use super::action::{ActionCall, ActionFailure, ScreenToolAction, document_of, whole_page};
use crate::{
    browser::BrowserSession,
    cdp::CdpError,
    input::NoPageAnswer,
    navigate::{self, NavigationError},
    settle::{ARRIVAL_LIMIT, SETTLE_LIMIT},
    state::{LOGIN, LoginAnswer, PERMISSION, RequestHold, TabState},
    verdict::StateBefore,
};

/// Time limit for an answered dialog to close.
const DIALOG_LIMIT: Duration = Duration::from_secs(5);

impl From<NavigationError> for ActionFailure {
    fn from(unreached: NavigationError) -> Self {
        match unreached {
            NavigationError::Held(held) => held.into(),
            NavigationError::Browser(error) => ActionFailure::Broke(error.to_string()),
            NavigationError::Failed { .. } => ActionFailure::Broke(unreached.to_string()),
            NavigationError::Forbidden { .. } | NavigationError::NoHistory => {
                ActionFailure::Refused(format!("refused: {unreached}"))
            }
        }
    }
}

impl ScreenToolAction for OpenUrlCall {
    async fn aim(&self, session: &BrowserSession, tab: &TabState) -> Result<Aim, ActionFailure> {
        navigate::allowed(&self.url).map_err(|error| ActionFailure::Refused(error.to_string()))?;
        let address = self.url.clone();
        whole_page(session, tab, Starts::Opens { address })
    }

    async fn act(&self, doing: &ActionCall<'_>) -> Result<ToolOutput, ActionFailure> {
        let standing = StateBefore::of(&doing.session.state(), &doing.tab);
        navigate::allowed(&self.url)?;
        let rest = doing.session.go_to(&doing.tab, &self.url).await;
        doing.arrived(&standing, rest).await
    }
}

impl ScreenToolAction for GoBackCall {
    async fn aim(&self, session: &BrowserSession, tab: &TabState) -> Result<Aim, ActionFailure> {
        let earlier = session.earlier(tab).await;
        let (_, address) = earlier.map_err(|error| ActionFailure::Refused(error.to_string()))?;
        whole_page(session, tab, Starts::Follows { address })
    }

    async fn act(&self, doing: &ActionCall<'_>) -> Result<ToolOutput, ActionFailure> {
        let standing = StateBefore::of(&doing.session.state(), &doing.tab);
        let (_, earlier) = doing.session.earlier(&doing.tab).await?;
        doing.check_starts(
            |starts| matches!(starts, Starts::Follows { address } if *address == earlier),
        )?;
        let rest = doing.session.go_back(&doing.tab).await;
        doing.arrived(&standing, rest).await
    }
}

impl ScreenToolAction for ReloadCall {
    async fn aim(&self, session: &BrowserSession, tab: &TabState) -> Result<Aim, ActionFailure> {
        let address = tab.address.clone();
        whole_page(session, tab, Starts::Follows { address })
    }

    async fn act(&self, doing: &ActionCall<'_>) -> Result<ToolOutput, ActionFailure> {
        let standing = StateBefore::of(&doing.session.state(), &doing.tab);
        let rest = doing.session.load_again(&doing.tab).await;
        doing.arrived(&standing, rest).await
    }
}

impl ScreenToolAction for SwitchTabCall {
    async fn act(&self, doing: &ActionCall<'_>) -> Result<ToolOutput, ActionFailure> {
        let done = doing.session.switch_to(self.tab).await;
        doing
            .tab_changed(done, format!("Now at tab {}", self.tab))
            .await
    }
}

impl ScreenToolAction for CloseTabCall {
    /// Text that was typed there is lost with the tab.
    async fn aim(
        &self,
        session: &BrowserSession,
        looked_at: &TabState,
    ) -> Result<Aim, ActionFailure> {
        let number = self.tab.unwrap_or(looked_at.number);
        let tab = session.numbered_tab(number);
        let tab = tab.map_err(|why| ActionFailure::Refused(format!("refused: {why}")))?;
        let frames = session.state().frames_of(&tab);
        let asking = frames
            .iter()
            .map(|(_, frame)| session.ask::<u32>(frame, "gyrus.typed()"));
        let asked = session.unless_held(&tab, futures_util::future::join_all(asking));
        // A page that does not answer may contain anything; one that crashed contains nothing more.
        let is_typed = match asked.await {
            Ok(all) => all
                .into_iter()
                .any(|count| count.is_ok_and(|count| count > 0)),
            Err(NoPageAnswer::Crashed | NoPageAnswer::Closed) => false,
            Err(
                NoPageAnswer::Dialog { .. }
                | NoPageAnswer::Request { .. }
                | NoPageAnswer::Lost { .. },
            ) => true,
        };
        let mut aim = whole_page(session, &tab, Starts::Looking)?;
        if is_typed {
            aim.starts = vec![Starts::Answers { accepts: true }];
            aim.element = Some(AimedElement {
                id: document_of(session, &tab),
                role: "beforeunload".to_owned(),
                name: format!("tab {number}"),
                states: BTreeSet::new(),
            });
        }
        Ok(aim)
    }

    async fn act(&self, doing: &ActionCall<'_>) -> Result<ToolOutput, ActionFailure> {
        let number = self.tab.unwrap_or(doing.tab.number);
        let done = doing.session.close(number).await;
        doing
            .tab_changed(done, format!("Closed tab {number}"))
            .await
    }
}

impl ScreenToolAction for AnswerDialogCall {
    async fn aim(&self, session: &BrowserSession, tab: &TabState) -> Result<Aim, ActionFailure> {
        whole_page(
            session,
            tab,
            Starts::Answers {
                accepts: self.accept,
            },
        )
    }

    async fn act(&self, doing: &ActionCall<'_>) -> Result<ToolOutput, ActionFailure> {
        let Some(dialog) = doing.session.state().dialog_of(&doing.tab) else {
            return Err(ActionFailure::Refused(
                "refused: there is no dialog to answer".to_owned(),
            ));
        };
        let judged = doing.call.aim.as_ref().and_then(|aim| aim.element.as_ref());
        if judged.is_none_or(|judged| judged.role != dialog.kind || judged.name != dialog.message) {
            return Err(ActionFailure::Refused(format!(
                "refused: moved: the dialog is another one now: “{}”",
                dialog.message
            )));
        }
        let accept = self.accept;
        match dialog.kind.as_str() {
            LOGIN => return log_in(self, doing).await,
            PERMISSION => return doing.permit(self).await,
            _ => {}
        }
        let mut order = json!({"accept": accept});
        if let Some(text) = &self.text {
            let text = doing
                .site
                .reveal(text)
                .map_err(|error| ActionFailure::Refused(error.to_string()))?;
            order["promptText"] = json!(text);
        }
        let count = doing.session.state().dialogs;
        doing.session.state().acted = Some(Instant::now());
        let answered: Result<IgnoredAny, CdpError> = doing
            .session
            .cdp
            .call(&doing.tab.session, "Page.handleJavaScriptDialog", order)
            .await;
        answered.map_err(|error| ActionFailure::Broke(error.to_string()))?;
        let number = doing.tab.number;
        doing
            .session
            .wait(DIALOG_LIMIT, |state| {
                let same = state
                    .tabs
                    .iter()
                    .any(|tab| tab.number == number && tab.dialog.is_some());
                (!same || state.dialogs > count).then_some(())
            })
            .await;
        let rest = doing.session.settle(SETTLE_LIMIT).await;
        let (next, count) = {
            let state = doing.session.state();
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
}

/// Answers a site that asks for a login: with a secret, never with a password in the model's words.
async fn log_in(
    call: &AnswerDialogCall,
    doing: &ActionCall<'_>,
) -> Result<ToolOutput, ActionFailure> {
    let answer = if call.accept {
        let given = call.text.as_deref().and_then(|text| text.split_once(':'));
        let (user, secret) = given
            .filter(|(_, secret)| secret.starts_with("⟦secret:") && secret.ends_with('⟧'))
            .ok_or_else(|| {
                ActionFailure::Refused(
                    "refused: the page wants a user name and a password; ask a person with \
                     hand_over, or give `text` as NAME:⟦secret:KEY⟧ with a secret that you know of"
                        .to_owned(),
                )
            })?;
        let reveal = |text: &str| {
            let revealed = doing.site.reveal(text);
            revealed.map_err(|error| ActionFailure::Refused(error.to_string()))
        };
        LoginAnswer::Give {
            user: reveal(user)?,
            password: reveal(secret)?,
        }
    } else {
        LoginAnswer::Cancel
    };
    let standing = StateBefore::of(&doing.session.state(), &doing.tab);
    doing.session.state().acted = Some(Instant::now());
    let answered = doing.session.answer_login(doing.tab.number, answer).await;
    answered.map_err(|error| ActionFailure::Broke(error.to_string()))?;
    let rest = doing.session.settle(ARRIVAL_LIMIT).await;
    doing.arrived(&standing, Ok(rest)).await
}

/// Sends a held request, or blocks it.
impl ScreenToolAction for AnswerRequestCall {
    /// Measures the page that sends the request, and the destination.
    async fn aim(&self, session: &BrowserSession, tab: &TabState) -> Result<Aim, ActionFailure> {
        let held = held(session, self.request)?;
        let starts = if self.accept {
            sends(&held)
        } else {
            Starts::Looking
        };
        let mut aim = whole_page(session, tab, starts)?;
        if let Some(frame) = session.state().frames.get(&held.frame) {
            aim.address.clone_from(&frame.address);
            aim.origin.clone_from(&frame.origin);
        }
        aim.element = held.link;
        Ok(aim)
    }

    async fn act(&self, doing: &ActionCall<'_>) -> Result<ToolOutput, ActionFailure> {
        let number = self.request;
        let accept = self.accept;
        let held = held(doing.session, number)?;
        if accept {
            let wanted = sends(&held);
            doing.check_starts(|starts| *starts == wanted)?;
        }
        let standing = doing.session.watch(&doing.tab, None, "").await;
        // Taken out here, so that it is answered only once.
        let taken = doing.session.state().answered(number);
        let taken = taken.ok_or_else(|| gone(number))?;
        let answered: Result<IgnoredAny, CdpError> = if accept {
            let order = json!({"requestId": taken.id.id});
            let going = &doing.session.cdp;
            going
                .call(&taken.id.session, "Fetch.continueRequest", order)
                .await
        } else {
            crate::browser::block_requests(&doing.session.cdp, vec![taken.id]);
            Ok(IgnoredAny)
        };
        answered.map_err(|error| ActionFailure::Broke(format!("{}: {error}", taken.shown)))?;
        let rest = doing.session.settle(SETTLE_LIMIT).await;
        let effects = doing
            .session
            .effects(&doing.tab, None, &standing, rest)
            .await;
        let done = if accept {
            format!("Let {} go", taken.shown)
        } else {
            format!("Turned {} away", taken.shown)
        };
        Ok(ToolOutput {
            verdict: ActionVerdict::Changed,
            ..doing.told(&done, &effects)
        })
    }
}

impl ActionCall<'_> {
    fn check_starts(&self, wanted: impl Fn(&Starts) -> bool) -> Result<(), ActionFailure> {
        let judged = self
            .call
            .aim
            .as_ref()
            .is_some_and(|aim| aim.starts.iter().any(wanted));
        if judged {
            Ok(())
        } else {
            Err(ActionFailure::Refused(
                "refused: moved: this is no longer what was judged; look again".to_owned(),
            ))
        }
    }

    /// Returns the output of going to a page.
    async fn arrived(
        &self,
        standing: &StateBefore,
        rest: Result<Rest, NavigationError>,
    ) -> Result<ToolOutput, ActionFailure> {
        let rest = match rest {
            Ok(rest) => rest,
            // The page asks for confirmation before it is left.
            Err(NavigationError::Held(NoPageAnswer::Dialog { .. })) => Rest::Dialog,
            Err(error) => return Err(error.into()),
        };
        let effects = self.session.effects(&self.tab, None, standing, rest).await;
        let now = self.session.tab()?;
        let title = gyrus_text::shorten(&now.title, 100);
        Ok(self.told(&format!("At {} “{title}”", now.address), &effects))
    }

    async fn tab_changed(
        &self,
        done: Result<(), String>,
        text: String,
    ) -> Result<ToolOutput, ActionFailure> {
        done.map_err(|why| ActionFailure::Refused(format!("refused: {why}")))?;
        let rest = self.session.settle(SETTLE_LIMIT).await;
        let now = self.session.tab()?;
        let mut text = format!("{text}. Looked at is tab {}: {}.", now.number, now.address);
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
fn held(session: &BrowserSession, number: u32) -> Result<RequestHold, ActionFailure> {
    let state = session.state();
    let mut held = state.held_requests();
    let found = held.find(|one| one.shown.number == number).cloned();
    found.ok_or_else(|| gone(number))
}

/// Returns the effect of sending a held request.
fn sends(held: &RequestHold) -> Starts {
    Starts::Sends {
        method: held.shown.method.clone(),
        address: held.shown.address.clone(),
        bytes: held.shown.bytes,
    }
}

fn gone(number: u32) -> ActionFailure {
    ActionFailure::Refused(format!(
        "refused: gone: no request {number} waits for an answer; look again"
    ))
}
