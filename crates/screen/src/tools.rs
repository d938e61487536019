//! The tools with which a run uses the screen: a table of [`Action`]s. Each measures what it would
//! touch for the gate, and when it is called does it only if that is still so.

mod acts;
mod evaluate;
mod fields;
mod files;
mod pages;
mod reads;

use std::{marker::PhantomData, sync::Arc};

use gyrus_contract::{
    ActionVerdict, Aim, Aimed, AnswerDialogCall, AnswerRequestCall, Arguments, BuiltIn, ClickCall,
    CloseTabCall, DragCall, ElementId, ExtractCall, FindCall, GoBackCall, HoverCall, OpenUrlCall,
    PressKeyCall, ReloadCall, Repeat, ResolvedCall, ScreenError, ScrollCall, ScrollToCall,
    SelectOptionCall, SelectTextCall, Site, Starts, SwitchTabCall, TakeScreenshotCall, Tool,
    ToolCall, ToolOutput, Touch, TypeTextCall, TypedTool, Unresolvable, UploadFileCall, WaitCall,
    WrongArguments,
};

use crate::{
    browser::{Browser, Session},
    input::{Held, Missed, Spot, Target},
    state::{TabState, Wake},
    takeover::HandOver,
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
        Arc::new(BuiltIn::new(HandOver)),
        Arc::new(BuiltIn::new(evaluate::Evaluate(browser.clone()))),
    ]
}

fn tool<A: Action>(browser: &Arc<Browser>) -> Arc<dyn Tool> {
    Arc::new(BuiltIn::new(Hand::<A> {
        browser: browser.clone(),
        action: PhantomData,
    }))
}

/// An action on the screen, by the arguments of its tool.
pub(crate) trait Action: Arguments + Sync + 'static {
    /// Whether it only reads the page. Such an action is not measured.
    const ONLY_READS: bool = false;

    /// The argument with the path of a file that it reads.
    const READS: Option<&'static str> = None;

    /// Returns the target of the input with its purpose, in the words of `page/aim.js`; `None` if
    /// it acts on the page as a whole.
    fn target(&self) -> Option<(Target, &'static str)> {
        None
    }

    /// Measures what it would touch.
    fn aim(
        &self,
        session: &Session,
        tab: &TabState,
    ) -> impl Future<Output = Result<Aim, Failure>> + Send {
        async {
            match self.target() {
                Some((target, purpose)) => {
                    Ok(session.locate(tab, target, purpose, "").await?.aim())
                }
                None => whole_page(session, tab, Starts::Looking),
            }
        }
    }

    /// Does it.
    fn act(&self, doing: &Doing<'_>) -> impl Future<Output = Result<ToolOutput, Failure>> + Send;
}

/// The tool of an action.
struct Hand<A> {
    browser: Arc<Browser>,
    action: PhantomData<fn() -> A>,
}

/// Reason why a call failed; the message is for the model.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The action was not carried out.
    Refused(String),
    /// The action was begun and failed.
    Broke(String),
}

impl From<WrongArguments> for Failure {
    fn from(wrong: WrongArguments) -> Self {
        Failure::Refused(wrong.to_string())
    }
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

impl From<Failure> for Unresolvable {
    fn from(failure: Failure) -> Self {
        let (Failure::Refused(reason) | Failure::Broke(reason)) = failure;
        Unresolvable { reason }
    }
}

/// A call in progress.
pub(crate) struct Doing<'a> {
    browser: &'a Browser,
    session: &'a Session,
    tab: TabState,
    call: &'a ResolvedCall,
    site: &'a dyn Site,
}

impl<A: Action> TypedTool for Hand<A> {
    type Arguments = A;
    type Failure = Failure;
    const REPEAT: Repeat = match A::ONLY_READS {
        true => Repeat::Freely,
        false => Repeat::Never,
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
    ) -> Result<ToolOutput, Failure> {
        let session = self.browser.session(0).await?;
        let held = Self::wake(&session, call, site);
        let doing = Doing {
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

impl<A: Action> Hand<A> {
    /// Holds requests to other sites from now until the next look, and returns the number of
    /// requests held so far. Where the gate allows a call only to look or to follow a link, only
    /// those of the present documents are held: later ones have received no data.
    fn wake(session: &Session, call: &ResolvedCall, site: &dyn Site) -> u32 {
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
            state.holdings.wake = Some(Wake {
                allowed: site.sends_to().to_vec(),
                up_to: only_goes.then_some(documents),
                by: A::TOOL.to_owned(),
            });
        }
        session.state().holdings.counted
    }
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

/// Returns the aim of an action on a page and not on an element of it.
fn whole_page(session: &Session, tab: &TabState, starts: Starts) -> Result<Aim, Failure> {
    let id = document_of(session, tab);
    let state = session.state();
    let frame = state.frames.get(&tab.target);
    let dialog = matches!(starts, Starts::Answers { .. });
    let element = match (dialog, &tab.dialog) {
        (false, _) => None,
        (true, Some(dialog)) => Some(Aimed {
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
        let judged = self.call.aim.as_ref().ok_or_else(|| {
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
