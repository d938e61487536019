//! Actions that only read.

use std::time::Duration;

use gyrus_contract::{
    ExtractCall, FindCall, LookOptions, TakeScreenshotCall, ToolOutput, WaitCall,
};

use super::{DesktopAction, DesktopCall};
use crate::{
    desktop::{effects::DesktopBefore, look, session::lost},
    input::{InputTarget, UnusableTarget},
    tools::{
        action::ActionFailure,
        reads::{listed, pictured, saying, waited},
        texts::piece,
    },
};

/// Maximum time to wait for a change of the desktop.
const CHANGE_LIMIT: Duration = Duration::from_secs(10);

impl DesktopAction for FindCall {
    const ONLY_READS: bool = true;

    async fn act(&self, doing: &mut DesktopCall<'_>) -> Result<ToolOutput, ActionFailure> {
        let wanted = self.text.trim().to_lowercase();
        let reading = look::read(doing.session).await?;
        Ok(listed(&saying(&reading.elements, &wanted), || {
            format!("Nothing on the desktop says “{wanted}”.")
        }))
    }
}

impl DesktopAction for ExtractCall {
    const ONLY_READS: bool = true;

    async fn act(&self, doing: &mut DesktopCall<'_>) -> Result<ToolOutput, ActionFailure> {
        let reading = look::read(doing.session).await?;
        let active = |depth: u16, states: &std::collections::BTreeSet<_>| {
            depth == 0 && states.contains(&gyrus_contract::ElementState::Focused)
        };
        let mut elements = reading.elements.iter();
        let start = match self.on {
            Some(id) => elements
                .find(|one| one.id == id)
                .ok_or(UnusableTarget::Gone { id })?,
            None => elements
                .find(|one| active(one.depth, &one.states))
                .ok_or(UnusableTarget::Nothing)?,
        };
        let below = elements.take_while(|one| one.depth > start.depth);
        let mut lines = Vec::new();
        for element in std::iter::once(start).chain(below) {
            let spot = doing
                .session
                .find(&reading, InputTarget::Element(element.id))?;
            let text = if element.value.is_some() {
                doing.text_of(&spot).await
            } else {
                None
            };
            lines.push(text.unwrap_or_else(|| element.name.clone()));
        }
        Ok(piece(&lines.join("\n"), self.pages))
    }
}

/// Waits for a time, or for a change.
impl DesktopAction for WaitCall {
    const ONLY_READS: bool = true;

    async fn act(&self, doing: &mut DesktopCall<'_>) -> Result<ToolOutput, ActionFailure> {
        let reading = look::read(doing.session).await?;
        let standing = DesktopBefore::of(doing.session, reading, None).await?;
        let happened = match self.seconds {
            Some(seconds) => {
                tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
                true
            }
            None => {
                let change = doing.session.display.next_change();
                match tokio::time::timeout(CHANGE_LIMIT, change).await {
                    Ok(changed) => changed.map(|()| true).map_err(lost)?,
                    Err(_) => false,
                }
            }
        };
        if !happened {
            return Ok(ToolOutput::read(format!(
                "Waited {} seconds; nothing changed by itself.",
                CHANGE_LIMIT.as_secs()
            )));
        }
        let effects = doing.session.effects(&standing).await?;
        let words = match self.seconds {
            Some(seconds) => format!("Waited {seconds} seconds."),
            None => "Waited.".to_owned(),
        };
        Ok(waited(&words, &effects))
    }
}

impl DesktopAction for TakeScreenshotCall {
    const ONLY_READS: bool = true;

    async fn act(&self, doing: &mut DesktopCall<'_>) -> Result<ToolOutput, ActionFailure> {
        let wanted = LookOptions {
            frame: true,
            documents: 0,
        };
        let seen = look::look(doing.session, wanted).await?;
        pictured(seen, doing.site)
    }
}
