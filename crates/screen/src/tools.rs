//! The tools with which a run uses the screen: a table of [`Action`]s. Each measures what it would
//! touch for the gate, and when it is called does it only if that is still so.

pub(crate) mod action;
mod acts;
mod evaluate;
pub(crate) mod fields;
mod files;
mod fill;
mod pages;
mod permissions;
pub(crate) mod reads;
pub(crate) mod texts;

use std::{marker::PhantomData, sync::Arc};

use gyrus_contract::{
    ActionVerdict, Aim, AimedElement, AnswerDialogCall, AnswerRequestCall, BuiltIn, ClickCall,
    CloseTabCall, DragCall, ExtractCall, FindCall, GoBackCall, HoverCall, OpenUrlCall,
    PressKeyCall, ReloadCall, Repeat, ResolvedCall, ScreenError, ScrollCall, ScrollToCall,
    SelectOptionCall, SelectTextCall, Site, Starts, SwitchTabCall, TakeScreenshotCall, Tool,
    ToolCall, ToolOutput, Touch, TypeTextCall, TypedTool, Unresolvable, UploadFileCall, WaitCall,
};

use serde_json::{Value, json};

use self::action::{ActionCall, ActionFailure, ScreenToolAction};
use crate::{
    browser::{Browser, BrowserSession},
    state::{MaySend, Wake},
    takeover::HandOverTool,
};

/// Returns the tools of a browser.
pub fn tools(browser: &Arc<Browser>) -> Vec<Arc<dyn Tool>> {
    vec![
        tool::<OpenUrlCall>(browser),
        tool::<GoBackCall>(browser),
        tool::<ReloadCall>(browser),
        tool::<ClickCall>(browser),
        tool::<HoverCall>(browser),
        tool::<TypeTextCall>(browser),
        tool::<PressKeyCall>(browser),
        tool::<SelectTextCall>(browser),
        tool::<ScrollCall>(browser),
        tool::<ScrollToCall>(browser),
        tool::<DragCall>(browser),
        tool::<SelectOptionCall>(browser),
        tool::<UploadFileCall>(browser),
        tool::<AnswerDialogCall>(browser),
        tool::<AnswerRequestCall>(browser),
        tool::<SwitchTabCall>(browser),
        tool::<CloseTabCall>(browser),
        tool::<FindCall>(browser),
        tool::<ExtractCall>(browser),
        tool::<WaitCall>(browser),
        tool::<TakeScreenshotCall>(browser),
        Arc::new(BuiltIn::new(HandOverTool)),
        Arc::new(BuiltIn::new(evaluate::Evaluate(browser.clone()))),
    ]
}

fn tool<A: ScreenToolAction>(browser: &Arc<Browser>) -> Arc<dyn Tool> {
    Arc::new(BuiltIn::new(Hand::<A> {
        browser: browser.clone(),
        action: PhantomData,
    }))
}

/// The tool of an action.
struct Hand<A> {
    browser: Arc<Browser>,
    action: PhantomData<fn() -> A>,
}

impl<A: ScreenToolAction> TypedTool for Hand<A> {
    type Arguments = A;
    type Failure = ActionFailure;
    const REPEAT: Repeat = if A::ONLY_READS {
        Repeat::Freely
    } else {
        Repeat::Never
    };

    fn touches(&self) -> Vec<Touch> {
        let screen = (!A::ONLY_READS).then_some(Touch::Screen);
        let reads = A::READS.map(|argument| Touch::Reads(argument.to_owned()));
        screen.into_iter().chain(reads).collect()
    }

    async fn run(
        &self,
        action: A,
        call: &ResolvedCall,
        site: &dyn Site,
    ) -> Result<ToolOutput, ActionFailure> {
        let session = self.browser.session(0).await?;
        let held = Self::wake(&session, call, site);
        let doing = ActionCall {
            browser: &self.browser,
            session: &session,
            tab: session.tab()?,
            call,
            site,
        };
        let done = action.act(&doing).await;
        let lost = session.lost();
        let mut output = match (done, lost) {
            (Ok(output), _) => output,
            (Err(ActionFailure::Refused(_)), Some(reason)) => {
                return Err(ActionFailure::Broke(
                    ScreenError::Lost { reason }.to_string(),
                ));
            }
            (Err(failure), _) => failure.into(),
        };
        let held = session.state().held_since(held);
        if !held.is_empty() {
            output.text.push_str(&format!(" {}", held.join(" ")));
            // The effect depends on the answer.
            output.verdict = ActionVerdict::CannotTell;
        }
        let others = session.state().told_of_other_forms();
        if !others.is_empty() {
            output.text.push_str(&others);
            output.verdict = ActionVerdict::CannotTell;
        }
        if !A::ONLY_READS {
            output.value = page_of(&session);
        }
        files::bring_downloads(&session, site, &mut output).await;
        Ok(output)
    }

    async fn aim(&self, call: &ToolCall) -> Result<Option<Aim>, Unresolvable> {
        if A::ONLY_READS {
            return Ok(None);
        }
        let measured = async {
            let action = A::parse(&call.arguments)?;
            let session = self.browser.session(0).await?;
            let tab = session.tab()?;
            action.aim(&session, &tab).await
        };
        Ok(Some(measured.await?))
    }
}

/// Returns the link that an input follows.
fn followed(aim: &Aim) -> Option<AimedElement> {
    let follows = |starts: &Starts| matches!(starts, Starts::Follows { .. });
    aim.element
        .clone()
        .filter(|_| aim.starts.iter().any(follows))
}

fn address_of(starts: &Starts) -> Option<String> {
    match starts {
        Starts::Follows { address } => Some(address.clone()),
        _ => None,
    }
}

/// Returns the page that is looked at after an action, for a loop that opens it again if it loses its
/// screen.
fn page_of(session: &BrowserSession) -> Option<Value> {
    let tab = session.tab().ok()?;
    Some(json!({"page": tab.address}))
}

impl<A: ScreenToolAction> Hand<A> {
    /// Holds requests to other sites from now until the next look, and returns the number of
    /// requests held so far. Where the gate allows a call only to look or to follow a link, only
    /// those of the present documents are held: later ones have received no data.
    fn wake(session: &BrowserSession, call: &ResolvedCall, site: &dyn Site) -> u32 {
        if !A::ONLY_READS {
            session.turn();
            let starts = call.aim.iter().flat_map(|aim| &aim.starts);
            let goes = |starts: &Starts| {
                matches!(
                    starts,
                    Starts::Looking | Starts::Follows { .. } | Starts::Opens { .. }
                )
            };
            let only_goes = starts.clone().count() > 0 && starts.clone().all(goes);
            let mut state = session.state();
            let documents = state.documents;
            let _ = state.told_of_other_forms();
            let sends = if site.sends_only_the_form() {
                MaySend::NothingYet
            } else {
                MaySend::Anything
            };
            let up_to_now = only_goes || site.sends_only_the_form();
            state.holdings.wake = Some(Wake {
                allowed: site.sends_to().to_vec(),
                up_to: up_to_now.then_some(documents),
                sends,
                by: A::TOOL.to_owned(),
                link: call.aim.as_ref().filter(|_| only_goes).and_then(followed),
                link_to: call
                    .aim
                    .iter()
                    .flat_map(|aim| &aim.starts)
                    .find_map(address_of),
                until: None,
            });
        }
        session.state().holdings.counted
    }
}
