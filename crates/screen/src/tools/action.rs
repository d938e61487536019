//! An action on the screen: how it is measured and done, and how it fails.

use gyrus_contract::{
    ActionVerdict, Aim, Aimed, Arguments, ElementId, ResolvedCall, ScreenError, Site, Starts,
    ToolOutput, Unresolvable, WrongArguments,
};

use crate::{
    browser::{Browser, Session},
    input::{Held, Missed, Spot, Target},
    state::TabState,
};

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
    pub(super) browser: &'a Browser,
    pub(super) session: &'a Session,
    pub(super) tab: TabState,
    pub(super) call: &'a ResolvedCall,
    pub(super) site: &'a dyn Site,
}

/// Returns the aim of a page as if it were an element.
pub(super) fn document_of(session: &Session, tab: &TabState) -> ElementId {
    let state = session.state();
    let frame = state.frames.get(&tab.target);
    ElementId {
        document: frame.map_or(1, |frame| frame.document.max(1)),
        number: 0,
    }
}

/// Returns the aim of an action on a page and not on an element of it.
pub(super) fn whole_page(
    session: &Session,
    tab: &TabState,
    starts: Starts,
) -> Result<Aim, Failure> {
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
        (true, Some(dialog)) => Some(Aimed {
            id,
            role: dialog.kind,
            name: dialog.message,
            states: std::collections::BTreeSet::new(),
        }),
        (true, None) => return Err(Failure::Refused("there is no dialog to answer".to_owned())),
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

impl Doing<'_> {
    /// Finds the judged element again; another one is refused.
    pub(super) async fn judged(
        &self,
        target: Target,
        purpose: &str,
        key: &str,
    ) -> Result<Spot, Failure> {
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
