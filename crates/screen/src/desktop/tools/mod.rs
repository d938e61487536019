//! The tools with which a run uses a desktop: those of a browser, as far as they make sense here, and
//! one that starts applications. Each measures what it would touch for the gate, and when it is
//! called does it only if that is still so.

mod acts;
mod choices;
mod clipboard;
mod fields;
mod files;
mod reads;
mod windows;

use std::{marker::PhantomData, sync::Arc};

use gyrus_contract::{
    ActionVerdict, Aim, Arguments, BuiltIn, ClickCall, CloseTabCall, DesktopClipboardCall,
    DragCall, ExtractCall, FindCall, HoverCall, OpenApplicationCall, PressKeyCall, Repeat,
    ResolvedCall, ScrollCall, ScrollToCall, SelectOptionCall, SelectTextCall, Site, Starts,
    SwitchTabCall, TakeScreenshotCall, Tool, ToolCall, ToolOutput, Touch, TypeTextCall, TypedTool,
    Unresolvable, UploadFileCall, WaitCall,
};

use super::{
    Desktop,
    display::NotSentReason,
    effects::DesktopBefore,
    look,
    measure::DesktopSpot,
    session::{DesktopSession, lost},
};
use crate::{
    input::{InputTarget, is_same_aim},
    takeover::HandOverTool,
    tools::action::ActionFailure,
    verdict::InputEffects,
};

/// Returns the tools of a desktop.
pub fn desktop_tools(desktop: &Arc<Desktop>) -> Vec<Arc<dyn Tool>> {
    vec![
        tool::<OpenApplicationCall>(desktop),
        tool::<ClickCall>(desktop),
        tool::<HoverCall>(desktop),
        tool::<TypeTextCall>(desktop),
        tool::<PressKeyCall>(desktop),
        tool::<SelectTextCall>(desktop),
        tool::<ScrollCall>(desktop),
        tool::<ScrollToCall>(desktop),
        tool::<DragCall>(desktop),
        tool::<SelectOptionCall>(desktop),
        tool::<UploadFileCall>(desktop),
        tool::<SwitchTabCall>(desktop),
        tool::<CloseTabCall>(desktop),
        tool::<FindCall>(desktop),
        tool::<ExtractCall>(desktop),
        tool::<DesktopClipboardCall>(desktop),
        tool::<WaitCall>(desktop),
        tool::<TakeScreenshotCall>(desktop),
        Arc::new(BuiltIn::new(HandOverTool)),
    ]
}

fn tool<A: DesktopAction>(desktop: &Arc<Desktop>) -> Arc<dyn Tool> {
    Arc::new(BuiltIn::new(DesktopHand::<A> {
        desktop: desktop.clone(),
        action: PhantomData,
    }))
}

/// An action on a desktop, by the arguments of its tool.
trait DesktopAction: Arguments + Sync + 'static {
    /// Whether the action only reads the desktop, so that it needs no measuring.
    const ONLY_READS: bool = false;

    /// Name of the argument with the path of a file that the action reads.
    const READS: Option<&'static str> = None;

    /// Measures what the action would touch; by default the desktop as a whole, to look at it.
    fn aim(
        &self,
        session: &mut DesktopSession,
    ) -> impl Future<Output = Result<Aim, ActionFailure>> + Send {
        let aim = whole_desktop(session, vec![Starts::Looking]);
        async { Ok(aim) }
    }

    fn act(
        &self,
        doing: &mut DesktopCall<'_>,
    ) -> impl Future<Output = Result<ToolOutput, ActionFailure>> + Send;
}

/// Returns the aim of an action on no window.
fn whole_desktop(session: &DesktopSession, starts: Vec<Starts>) -> Aim {
    Aim {
        address: session.address(None),
        origin: session.address(None),
        element: None,
        form: None,
        starts,
        fills: Vec::new(),
    }
}

/// The tool of an action.
struct DesktopHand<A> {
    desktop: Arc<Desktop>,
    action: PhantomData<fn() -> A>,
}

impl<A: DesktopAction> TypedTool for DesktopHand<A> {
    type Arguments = A;
    type Failure = ActionFailure;
    const REPEAT: Repeat = if A::ONLY_READS {
        Repeat::Freely
    } else {
        Repeat::Never
    };

    fn touches(&self) -> Vec<Touch> {
        let screen = (!A::ONLY_READS).then_some(Touch::Desktop);
        let reads = A::READS.map(|argument| Touch::Reads(argument.to_owned()));
        screen.into_iter().chain(reads).collect()
    }

    async fn run(
        &self,
        action: A,
        call: &ResolvedCall,
        site: &dyn Site,
    ) -> Result<ToolOutput, ActionFailure> {
        let mut open = self.desktop.open.lock().await;
        let session = self.desktop.session(&mut open).await?;
        let mut doing = DesktopCall {
            session,
            call,
            site,
        };
        let output = action.act(&mut doing).await;
        if output.is_err() {
            leave_lost(&mut open);
        }
        Ok(output.unwrap_or_else(Into::into))
    }

    async fn aim(&self, call: &ToolCall) -> Result<Option<Aim>, Unresolvable> {
        if A::ONLY_READS {
            return Ok(None);
        }
        let measured = async {
            let action = A::parse(&call.arguments)?;
            let mut open = self.desktop.open.lock().await;
            let session = self.desktop.session(&mut open).await?;
            let aim = action.aim(session).await;
            if aim.is_err() {
                leave_lost(&mut open);
            }
            aim
        };
        Ok(Some(measured.await?))
    }
}

/// Leaves a desktop whose server is gone or hangs; the next look or call opens another.
fn leave_lost(open: &mut Option<DesktopSession>) {
    if open.as_ref().is_some_and(|one| one.display.sync().is_err()) {
        *open = None;
    }
}

/// A call in progress.
struct DesktopCall<'a> {
    session: &'a mut DesktopSession,
    call: &'a ResolvedCall,
    site: &'a dyn Site,
}

impl DesktopCall<'_> {
    fn judged_aim(&self) -> Result<&Aim, ActionFailure> {
        self.call.aim.as_ref().ok_or_else(|| {
            ActionFailure::Refused(
                "refused: what this would touch was not measured and judged".to_owned(),
            )
        })
    }

    /// Finds the judged element again, with what was there at that time; another one is refused.
    async fn judged(
        &mut self,
        target: InputTarget,
        starts: impl Fn(&DesktopSpot) -> Vec<Starts>,
    ) -> Result<(DesktopSpot, DesktopBefore), ActionFailure> {
        let reading = look::read(self.session).await?;
        let spot = self.session.find(&reading, target)?;
        let now = spot.aim(starts(&spot));
        is_same_aim(self.judged_aim()?, &now, &spot.words()).map_err(ActionFailure::Refused)?;
        let standing = DesktopBefore::of(self.session, reading, Some(spot.id())).await?;
        Ok((spot, standing))
    }
}

/// Returns the output that describes an input and its effects.
fn told(done: &str, effects: &InputEffects) -> ToolOutput {
    ToolOutput {
        verdict: effects.verdict,
        ..ToolOutput::read(format!("{done}. {}", effects.say()))
    }
}

/// Notes that the program did not confirm that it read the keys, so that they may still have an
/// effect.
fn unconfirmed(effects: &mut InputEffects) {
    if effects.verdict != ActionVerdict::Changed {
        effects.verdict = ActionVerdict::CannotTell;
        effects
            .words
            .push("the program has not said that it read the keys that were sent".to_owned());
    }
}

/// Returns the failure for an input that was begun and broke off.
fn unknown(why: impl std::fmt::Display) -> ActionFailure {
    ActionFailure::Broke(format!(
        "{} (nobody knows whether the input took effect: look for that before you repeat it)",
        lost(why)
    ))
}

/// Returns the failure for an input that was not sent.
fn elsewhere(why: NotSentReason) -> ActionFailure {
    ActionFailure::Refused(format!("refused: {why}, so nothing was sent; look again"))
}
