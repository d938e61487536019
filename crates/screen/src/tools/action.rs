//! An action on the screen: how it is measured and done, and how it fails.

use gyrus_contract::{
    ActionVerdict, Aim, AimedElement, Arguments, ElementId, ResolvedCall, ScreenError, Site,
    Starts, ToolOutput, Unresolvable, WrongArguments,
};

use crate::{
    browser::{Browser, BrowserSession},
    input::{InputTarget, NoPageAnswer, Spot, UnusableTarget},
    state::TabState,
};

/// An action on the screen, by the arguments of its tool.
pub(crate) trait ScreenToolAction: Arguments + Sync + 'static {
    /// Whether the action only reads the page, so that it needs no measuring.
    const ONLY_READS: bool = false;

    /// Name of the argument with the path of a file that the action reads.
    const READS: Option<&'static str> = None;

    /// Returns the target of the input with its purpose, in the words of `page/aim.js`; `None` if
    /// it acts on the page as a whole.
    fn target(&self) -> Option<(InputTarget, &'static str)> {
        None
    }

    /// Measures what the action would touch.
    fn aim(
        &self,
        session: &BrowserSession,
        tab: &TabState,
    ) -> impl Future<Output = Result<Aim, ActionFailure>> + Send {
        async {
            match self.target() {
                Some((target, purpose)) => {
                    Ok(session.locate(tab, target, purpose, "").await?.aim())
                }
                None => whole_page(session, tab, Starts::Looking),
            }
        }
    }

    fn act(
        &self,
        doing: &ActionCall<'_>,
    ) -> impl Future<Output = Result<ToolOutput, ActionFailure>> + Send;
}

/// Reason why a call failed; the message is for the model.
#[derive(Debug)]
pub(crate) enum ActionFailure {
    /// The action was not carried out.
    Refused(String),
    /// The action was begun and failed.
    Broke(String),
}

impl From<WrongArguments> for ActionFailure {
    fn from(wrong: WrongArguments) -> Self {
        ActionFailure::Refused(wrong.to_string())
    }
}

impl From<UnusableTarget> for ActionFailure {
    fn from(missed: UnusableTarget) -> Self {
        ActionFailure::Refused(missed.to_string())
    }
}

impl From<NoPageAnswer> for ActionFailure {
    fn from(held: NoPageAnswer) -> Self {
        match held {
            NoPageAnswer::Lost { .. } => ActionFailure::Broke(held.to_string()),
            held => ActionFailure::Refused(held.to_string()),
        }
    }
}

impl From<ScreenError> for ActionFailure {
    fn from(error: ScreenError) -> Self {
        ActionFailure::Broke(error.to_string())
    }
}

impl From<ActionFailure> for ToolOutput {
    fn from(failure: ActionFailure) -> Self {
        let (text, verdict) = match failure {
            ActionFailure::Refused(text) => (text, ActionVerdict::Refused),
            ActionFailure::Broke(text) => (text, ActionVerdict::CannotTell),
        };
        ToolOutput {
            verdict,
            ..ToolOutput::error(text)
        }
    }
}

impl From<ActionFailure> for Unresolvable {
    fn from(failure: ActionFailure) -> Self {
        let (ActionFailure::Refused(reason) | ActionFailure::Broke(reason)) = failure;
        Unresolvable { reason }
    }
}

/// A call in progress.
pub(crate) struct ActionCall<'a> {
    pub(super) browser: &'a Browser,
    pub(super) session: &'a BrowserSession,
    pub(super) tab: TabState,
    pub(super) call: &'a ResolvedCall,
    pub(super) site: &'a dyn Site,
}

/// Returns the aim of a page as if it were an element.
pub(super) fn document_of(session: &BrowserSession, tab: &TabState) -> ElementId {
    let state = session.state();
    let frame = state.frames.get(&tab.target);
    ElementId {
        document: frame.map_or(1, |frame| frame.document.max(1)),
        number: 0,
    }
}

pub(super) fn whole_page(
    session: &BrowserSession,
    tab: &TabState,
    starts: Starts,
) -> Result<Aim, ActionFailure> {
    let id = document_of(session, tab);
    let state = session.state();
    let frame = state.frames.get(&tab.target);
    let dialog = matches!(starts, Starts::Answers { .. });
    let question = state.question_of(tab).filter(|_| dialog);
    let (address, origin) = match (question, frame) {
        (Some(question), _) => (&question.origin, question.origin.clone()),
        (None, Some(frame)) => (&tab.address, frame.origin.clone()),
        (None, None) => (&tab.address, String::new()),
    };
    let element = match (dialog, state.dialog_of(tab)) {
        (false, _) => None,
        (true, Some(dialog)) => Some(AimedElement {
            id,
            role: dialog.kind,
            name: dialog.message,
            states: std::collections::BTreeSet::new(),
        }),
        (true, None) => {
            return Err(ActionFailure::Refused(
                "there is no dialog to answer".to_owned(),
            ));
        }
    };
    Ok(Aim {
        address: address.clone(),
        origin,
        element,
        form: None,
        starts: vec![starts],
        fills: Vec::new(),
    })
}

impl ActionCall<'_> {
    /// Finds the judged element again; another one is refused.
    pub(super) async fn judged(
        &self,
        target: InputTarget,
        purpose: &str,
        key: &str,
    ) -> Result<Spot, ActionFailure> {
        let spot = self.session.locate(&self.tab, target, purpose, key).await?;
        let judged = self.call.aim.as_ref().ok_or_else(|| {
            ActionFailure::Refused(
                "refused: what this would touch was not measured and judged".to_owned(),
            )
        })?;
        spot.is_as_judged(judged).map_err(ActionFailure::Refused)?;
        let preparing = self.session.ask::<bool>(&spot.frame, "gyrus.prepare()");
        // A document that went away meanwhile is noticed by what comes next.
        let _ = self.session.unless_held(&self.tab, preparing).await?;
        Ok(spot)
    }
}
