//! Reads and sets the clipboard.

use gyrus_contract::{
    ActionVerdict, Aim, AimedElement, DesktopClipboardCall, ElementId, Starts, ToolOutput,
};

use super::{DesktopAction, DesktopCall, whole_desktop};
use crate::{
    desktop::{clipboard, session::DesktopSession},
    tools::{action::ActionFailure, fields::cut},
};

/// Maximum characters of text that reading returns.
const MAX_SHOWN: usize = 50_000;

fn touches(session: &DesktopSession, call: &DesktopClipboardCall) -> Aim {
    let starts = match call.text {
        Some(_) => Starts::Types,
        None => Starts::Looking,
    };
    Aim {
        element: Some(AimedElement {
            id: ElementId {
                document: 1,
                number: 0,
            },
            role: "clipboard".to_owned(),
            name: "the clipboard".to_owned(),
            states: [].into(),
        }),
        ..whole_desktop(session, vec![starts])
    }
}

impl DesktopAction for DesktopClipboardCall {
    async fn aim(&self, session: &mut DesktopSession) -> Result<Aim, ActionFailure> {
        Ok(touches(session, self))
    }

    async fn act(&self, doing: &mut DesktopCall<'_>) -> Result<ToolOutput, ActionFailure> {
        if *doing.judged_aim()? != touches(doing.session, self) {
            let why = "refused: what this would touch was not judged";
            return Err(ActionFailure::Refused(why.to_owned()));
        }
        let failed = |why| ActionFailure::Broke(format!("the clipboard cannot be used: {why}"));
        let display = doing.session.connect_again().map_err(failed)?;
        let Some(given) = &self.text else {
            let read = clipboard::read(display).await.map_err(failed)?;
            if read.text.is_empty() {
                return Ok(ToolOutput::read("The clipboard holds no text."));
            }
            let kept = gyrus_text::first_bytes(&read.text, MAX_SHOWN);
            let more = if read.is_cut || kept.len() < read.text.len() {
                "\n[cut here: there is more]"
            } else {
                ""
            };
            return Ok(ToolOutput::read(format!("{kept}{more}")));
        };
        let revealed = doing.site.reveal(given);
        let text = revealed.map_err(|error| ActionFailure::Refused(error.to_string()))?;
        if text.len() > clipboard::MAX_TEXT {
            let most = clipboard::MAX_TEXT >> 10;
            return Err(ActionFailure::Refused(format!(
                "refused: the text is longer than {most} KiB"
            )));
        }
        let offered = clipboard::offer(display, text).await.map_err(failed)?;
        doing.session.offered = Some(offered);
        let done = format!("The clipboard holds “{}” now.", cut(given));
        Ok(ToolOutput {
            verdict: ActionVerdict::Changed,
            ..ToolOutput::read(done)
        })
    }
}
