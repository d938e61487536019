//! The tools with which a run uses the screen: one type over one table. Each measures what it
//! would touch for the gate, and when it is called does it only if that is still so.

mod acts;
mod arguments;
mod evaluate;
mod fields;
mod files;
mod pages;
mod reads;

use std::sync::Arc;

use gyrus_contract::{
    ActionVerdict, Aim, Boxed, Cleared, ElementId, Repeat, ResolvedCall, ScreenError, Site, Starts,
    Tool, ToolCall, ToolOutput, ToolSpec, Touch, Unresolvable,
};

use self::arguments::{Action, Arguments};
use crate::{
    browser::{Browser, Session},
    input::{Held, Missed, Spot, Target},
    state::{TabState, Wake},
    takeover::HandOver,
};

/// Returns the tools of a browser.
pub fn tools(browser: &Arc<Browser>) -> Vec<Arc<dyn Tool>> {
    let tool = |(action, name, description): (Action, &str, &str)| -> Arc<dyn Tool> {
        let touches = match action {
            action if action.only_reads() => Vec::new(),
            Action::UploadFile => vec![Touch::Screen, Touch::Reads("path".to_owned())],
            _ => vec![Touch::Screen],
        };
        Arc::new(Hand {
            browser: browser.clone(),
            action,
            spec: ToolSpec {
                name: name.to_owned(),
                description: description.to_owned(),
                parameters: action.schema(),
                touches,
                repeat: if action.only_reads() {
                    Repeat::Freely
                } else {
                    Repeat::Never
                },
            },
        })
    };
    let mut tools: Vec<_> = arguments::TABLE.into_iter().map(tool).collect();
    tools.push(Arc::new(HandOver::new()));
    tools.push(Arc::new(evaluate::Evaluate::new(browser.clone())));
    tools
}

/// One tool.
struct Hand {
    browser: Arc<Browser>,
    action: Action,
    spec: ToolSpec,
}

/// Reason why a call failed; the message is for the model.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The action was not carried out.
    Refused(String),
    /// The action was begun and failed.
    Broke(String),
}

impl From<Missed> for Failure {
    fn from(missed: Missed) -> Self {
        Failure::Refused(missed.to_string())
    }
}

impl From<Held> for Failure {
    fn from(held: Held) -> Self {
        match held {
            Held::Lost { .. } => Failure::Broke(held.to_string()),
            held => Failure::Refused(held.to_string()),
        }
    }
}

impl From<ScreenError> for Failure {
    fn from(error: ScreenError) -> Self {
        Failure::Broke(error.to_string())
    }
}

impl From<Failure> for ToolOutput {
    fn from(failure: Failure) -> Self {
        let (text, verdict) = match failure {
            Failure::Refused(text) => (text, ActionVerdict::Refused),
            Failure::Broke(text) => (text, ActionVerdict::CannotTell),
        };
        ToolOutput {
            verdict,
            ..ToolOutput::error(text)
        }
    }
}

/// A call in progress.
pub(crate) struct Doing<'a> {
    session: &'a Session,
    tab: TabState,
    arguments: Arguments,
    aim: Option<&'a Aim>,
    call: &'a ResolvedCall,
    site: &'a dyn Site,
}

impl Tool for Hand {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        call: Cleared<ResolvedCall>,
        site: &'a dyn Site,
    ) -> Boxed<'a, ToolOutput> {
        Box::pin(async move { self.run(&call, site).await.unwrap_or_else(ToolOutput::from) })
    }

    fn aim<'a>(&'a self, call: &'a ToolCall) -> Boxed<'a, Result<Option<Aim>, Unresolvable>> {
        Box::pin(async move {
            if self.action.only_reads() {
                return Ok(None);
            }
            let aim = self.measure(call).await;
            aim.map(Some).map_err(|failure| Unresolvable {
                reason: match failure {
                    Failure::Refused(reason) | Failure::Broke(reason) => reason,
                },
            })
        })
    }
}

impl Hand {
    async fn run(&self, call: &ResolvedCall, site: &dyn Site) -> Result<ToolOutput, Failure> {
        let arguments = Arguments::parse(self.action, &call.arguments).map_err(Failure::Refused)?;
        let session = self.browser.session(0).await?;
        let held = self.wake(&session, call, site);
        let doing = Doing {
            session: &session,
            tab: session.tab()?,
            arguments,
            aim: call.aim.as_ref(),
            call,
            site,
        };
        let done = match self.action {
            Action::OpenUrl | Action::GoBack | Action::Reload => doing.go(self.action).await,
            Action::Click => doing.click().await,
            Action::Hover => doing.hover().await,
            Action::TypeText => doing.type_text().await,
            Action::PressKey => doing.press_key().await,
            Action::SelectText => doing.select_text().await,
            Action::Scroll => doing.scroll().await,
            Action::ScrollTo => doing.scroll_to().await,
            Action::Drag => doing.drag().await,
            Action::SelectOption => doing.select_option().await,
            Action::UploadFile => doing.upload_file().await,
            Action::AnswerDialog => doing.answer_dialog().await,
            Action::AnswerRequest => doing.answer_request().await,
            Action::SwitchTab | Action::CloseTab => doing.change_tab(self.action).await,
            Action::Find => doing.find().await,
            Action::Extract => doing.extract().await,
            Action::Wait => doing.wait().await,
            Action::TakeScreenshot => doing.take_screenshot(&self.browser).await,
        };
        let lost = session.lost();
        let mut output = match (done, lost) {
            (Ok(output), _) => output,
            (Err(Failure::Refused(_)), Some(reason)) => {
                return Err(Failure::Broke(ScreenError::Lost { reason }.to_string()));
            }
            (Err(failure), _) => failure.into(),
        };
        let held = session.state().held_since(held);
        if !held.is_empty() {
            output.text.push_str(&format!(" {}", held.join(" ")));
            // The effect depends on the answer.
            output.verdict = ActionVerdict::CannotTell;
        }
        files::bring_downloads(&session, site, &mut output).await;
        Ok(output)
    }

    /// Holds requests to other sites from now until the next look, and returns the number of
    /// requests held so far. Where the gate allows a call only to look or to follow a link, only
    /// those of the present documents are held: later ones have received no data.
    fn wake(&self, session: &Session, call: &ResolvedCall, site: &dyn Site) -> u32 {
        if !self.action.only_reads() {
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
            state.holdings.wake = Some(Wake {
                allowed: site.sends_to().to_vec(),
                up_to: only_goes.then_some(documents),
                by: self.spec.name.clone(),
            });
        }
        session.state().holdings.counted
    }

    /// Returns the aim of the call for the gate.
    async fn measure(&self, call: &ToolCall) -> Result<Aim, Failure> {
        let arguments = Arguments::parse(self.action, &call.arguments).map_err(Failure::Refused)?;
        let session = self.browser.session(0).await?;
        let tab = session.tab()?;
        let key = arguments.key().map_err(Failure::Refused)?;
        if let Some(target) = arguments.target(self.action) {
            if self.action == Action::UploadFile {
                let mut aim = files::locate_upload(&session, &tab, target).await?.aim();
                let path = arguments.path.unwrap_or_default();
                let name = path.rsplit('/').next().unwrap_or_default().to_owned();
                aim.starts = vec![Starts::Uploads { names: vec![name] }];
                return Ok(aim);
            }
            let purpose = self.action.purpose(&arguments);
            let aim = session.locate(&tab, target, purpose, &key).await?.aim();
            return Ok(aim);
        }
        if self.action == Action::CloseTab {
            return closing(&session, &tab, &arguments).await;
        }
        if self.action == Action::AnswerRequest {
            return answer(&session, &tab, &arguments);
        }
        let starts = match self.action {
            Action::OpenUrl => {
                let address = arguments.url.clone().unwrap_or_default();
                crate::navigate::allowed(&address)
                    .map_err(|error| Failure::Refused(error.to_string()))?;
                Starts::Opens { address }
            }
            Action::GoBack => {
                let earlier = session.earlier(&tab).await;
                let (_, address) = earlier.map_err(|error| Failure::Refused(error.to_string()))?;
                Starts::Follows { address }
            }
            Action::Reload => Starts::Follows {
                address: tab.address.clone(),
            },
            Action::AnswerDialog => Starts::Answers {
                accepts: arguments.accept.unwrap_or_default(),
            },
            _ => Starts::Looking,
        };
        whole_page(&session, &tab, starts)
    }
}

/// Returns the aim of closing a tab: text typed there is lost with it.
async fn closing(
    session: &Session,
    looked_at: &TabState,
    arguments: &Arguments,
) -> Result<Aim, Failure> {
    let number = arguments.tab.unwrap_or(looked_at.number);
    let tab = session.numbered_tab(number);
    let tab = tab.map_err(|why| Failure::Refused(format!("refused: {why}")))?;
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
        Err(Held::Crashed | Held::Closed) => false,
        Err(Held::Dialog { .. } | Held::Request { .. } | Held::Lost { .. }) => true,
    };
    let mut aim = whole_page(session, &tab, Starts::Looking)?;
    if is_typed {
        aim.starts = vec![Starts::Answers { accepts: true }];
        aim.element = Some(gyrus_contract::Aimed {
            id: document_of(session, &tab),
            role: "beforeunload".to_owned(),
            name: format!("tab {number}"),
            states: std::collections::BTreeSet::new(),
        });
    }
    Ok(aim)
}

/// Returns the aim of a page as if it were an element.
fn document_of(session: &Session, tab: &TabState) -> ElementId {
    let state = session.state();
    let frame = state.frames.get(&tab.target);
    ElementId {
        document: frame.map_or(1, |frame| frame.document.max(1)),
        number: 0,
    }
}

/// Returns the aim of an answer to a held request: the page that sends it, and its destination.
fn answer(session: &Session, tab: &TabState, arguments: &Arguments) -> Result<Aim, Failure> {
    let held = pages::held(session, arguments.request.unwrap_or_default())?;
    let starts = match arguments.accept.unwrap_or_default() {
        true => pages::sends(&held),
        false => Starts::Looking,
    };
    let mut aim = whole_page(session, tab, starts)?;
    if let Some(frame) = session.state().frames.get(&held.frame) {
        aim.address.clone_from(&frame.address);
        aim.origin.clone_from(&frame.origin);
    }
    Ok(aim)
}

/// Returns the aim of an action on a page and not on an element of it.
fn whole_page(session: &Session, tab: &TabState, starts: Starts) -> Result<Aim, Failure> {
    let id = document_of(session, tab);
    let state = session.state();
    let frame = state.frames.get(&tab.target);
    let dialog = matches!(starts, Starts::Answers { .. });
    let element = match (dialog, &tab.dialog) {
        (false, _) => None,
        (true, Some(dialog)) => Some(gyrus_contract::Aimed {
            id,
            role: dialog.kind.clone(),
            name: dialog.message.clone(),
            states: std::collections::BTreeSet::new(),
        }),
        (true, None) => return Err(Failure::Refused("there is no dialog to answer".to_owned())),
    };
    Ok(Aim {
        address: tab.address.clone(),
        origin: frame.map(|frame| frame.origin.clone()).unwrap_or_default(),
        element,
        form: None,
        starts: vec![starts],
    })
}

impl Doing<'_> {
    /// Finds the judged element again; another one is refused.
    async fn judged(&self, target: Target, purpose: &str, key: &str) -> Result<Spot, Failure> {
        let spot = self.session.locate(&self.tab, target, purpose, key).await?;
        let judged = self.aim.ok_or_else(|| {
            Failure::Refused(
                "refused: what this would touch was not measured and judged".to_owned(),
            )
        })?;
        spot.is_as_judged(judged).map_err(Failure::Refused)?;
        let preparing = self.session.ask::<bool>(&spot.frame, "gyrus.prepare()");
        // A document that went away meanwhile is noticed by what comes next.
        let _ = self.session.unless_held(&self.tab, preparing).await?;
        Ok(spot)
    }
}
