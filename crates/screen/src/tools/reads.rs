//! Actions that only read.

use std::time::Duration;

use gyrus_contract::{
    ActionVerdict, Element, ElementState, FindCall, Image, LookOptions, Rest, Screen, Site,
    TakeScreenshotCall, ToolOutput, ViewWithPicture, WaitCall,
};

use super::action::{ActionCall, ActionFailure, ScreenToolAction};
use crate::{settle::SETTLE_LIMIT, verdict::InputEffects, view::AT_ONCE};

/// Maximum number of elements that `find` lists.
const MAX_FOUND: usize = 30;

/// Maximum time to wait for a change of the page.
const CHANGE_LIMIT: Duration = Duration::from_secs(10);

impl ScreenToolAction for FindCall {
    const ONLY_READS: bool = true;

    async fn act(&self, doing: &ActionCall<'_>) -> Result<ToolOutput, ActionFailure> {
        let wanted = self.text.trim().to_lowercase();
        let reading = doing
            .session
            .unless_held(&doing.tab, doing.session.read(&doing.tab, AT_ONCE))
            .await?;
        let reading = reading.map_err(|error| ActionFailure::Broke(error.to_string()))?;
        let found = saying(&reading.elements, &wanted);
        Ok(listed(&found, || {
            format!("Nothing on the page says “{wanted}”.")
        }))
    }
}

/// Returns the elements whose name or value contains words in lower case.
pub(crate) fn saying<'e>(elements: &'e [Element], wanted: &str) -> Vec<&'e Element> {
    let has = |text: &str| text.to_lowercase().contains(wanted);
    let said = |one: &&Element| has(&one.name) || one.value.as_deref().is_some_and(has);
    elements.iter().filter(said).collect()
}

/// Lists the found elements, one per line.
pub(crate) fn listed(found: &[&Element], nothing: impl FnOnce() -> String) -> ToolOutput {
    if found.is_empty() {
        return ToolOutput::read(nothing());
    }
    let mut lines: Vec<String> = found.iter().take(MAX_FOUND).map(|one| line(one)).collect();
    if found.len() > MAX_FOUND {
        lines.push(format!(
            "… and {} more: say more of it",
            found.len() - MAX_FOUND
        ));
    }
    ToolOutput::read(lines.join("\n"))
}

/// Waits for a time, or for a change: for timers and for jobs elsewhere, which cause no event.
impl ScreenToolAction for WaitCall {
    const ONLY_READS: bool = true;

    async fn act(&self, doing: &ActionCall<'_>) -> Result<ToolOutput, ActionFailure> {
        let standing = doing.session.watch(&doing.tab, None, "").await;
        if let Some(seconds) = self.seconds {
            let time = tokio::time::sleep(Duration::from_secs_f64(seconds));
            doing.session.unless_held(&doing.tab, time).await?;
            let rest = doing.session.settle(SETTLE_LIMIT).await;
            let (tab, session) = (&doing.tab, doing.session);
            let effects = session.effects(tab, None, &standing, rest).await;
            return Ok(waited(&format!("Waited {seconds} seconds."), &effects));
        }
        let frames = doing.session.state().frames_of(&doing.tab);
        let ask = format!("gyrus.change({})", CHANGE_LIMIT.as_millis());
        let mut changes: futures_util::stream::FuturesUnordered<_> = frames
            .iter()
            .map(|(_, frame)| async {
                // A document that goes away is a change too, which the state reports.
                doing
                    .session
                    .ask::<bool>(frame, &ask)
                    .await
                    .unwrap_or(false)
            })
            .collect();
        let in_a_page = async {
            use futures_util::StreamExt;
            while let Some(changed) = changes.next().await {
                if changed {
                    return;
                }
            }
            std::future::pending().await
        };
        let downloads = |state: &crate::state::BrowserState| {
            let ended = |one: &&crate::state::DownloadOf| {
                one.shown.state != gyrus_contract::DownloadState::Running
            };
            state.downloads.iter().filter(ended).count()
        };
        let ended = downloads(&doing.session.state());
        let outside = doing.session.wait(CHANGE_LIMIT, |state| {
            let document = state
                .frames
                .get(&doing.tab.target)
                .map(|frame| frame.document);
            let held = crate::input::NoPageAnswer::of(state, doing.tab.number).is_some();
            let changed = document != standing.document() || downloads(state) > ended;
            (held || changed || state.active != Some(doing.tab.number)).then_some(())
        });
        let happened = tokio::select! {
            () = in_a_page => true,
            outside = outside => outside.is_some(),
        };
        let rest = doing.session.settle(SETTLE_LIMIT).await;
        let effects = doing
            .session
            .effects(&doing.tab, None, &standing, rest)
            .await;
        if happened {
            return Ok(waited("Waited.", &effects));
        }
        Ok(ToolOutput::read(format!(
            "Waited {} seconds; nothing changed by itself.",
            CHANGE_LIMIT.as_secs()
        )))
    }
}

/// Returns the result of waiting, with what changed meanwhile. What cannot be told is not called a
/// change: nothing was done.
pub(crate) fn waited(waited: &str, effects: &InputEffects) -> ToolOutput {
    let mut output = ToolOutput::read(format!("{waited} {}", effects.say()));
    if effects.verdict == ActionVerdict::Changed {
        output.verdict = ActionVerdict::Changed;
    }
    output
}

impl ScreenToolAction for TakeScreenshotCall {
    const ONLY_READS: bool = true;

    async fn act(&self, doing: &ActionCall<'_>) -> Result<ToolOutput, ActionFailure> {
        let look = LookOptions {
            frame: true,
            documents: 0,
        };
        let seen = doing.browser.look(look).await?;
        pictured(seen, doing.site)
    }
}

/// Returns the picture of a look.
pub(crate) fn pictured(
    seen: ViewWithPicture,
    site: &dyn Site,
) -> Result<ToolOutput, ActionFailure> {
    let Some(frame) = seen.frame else {
        return Err(ActionFailure::Broke(format!(
            "there is no picture: {}",
            seen.view.unread.join("; ")
        )));
    };
    let blob = site.keep(&frame.bytes).map_err(ActionFailure::Broke)?;
    let mut output = ToolOutput::read(format!(
        "{} × {} pixels of {}",
        frame.width, frame.height, seen.view.address
    ));
    if let Rest::GaveUp { waiting_for } = seen.view.rest {
        output
            .text
            .push_str(&format!(", still waiting for {waiting_for}"));
    }
    output.images.push(Image {
        blob,
        media_type: frame.media_type.to_owned(),
        width: frame.width,
        height: frame.height,
    });
    Ok(output)
}

pub(crate) fn line(element: &Element) -> String {
    let mut line = format!("{} {} “{}”", element.id, element.role, element.name);
    let is_masked = element.states.contains(&ElementState::Masked);
    match &element.value {
        Some(value) if is_masked && value.is_empty() => line.push_str(" (empty)"),
        Some(_) if is_masked => line.push_str(" (filled)"),
        Some(value) => line.push_str(&format!(" = “{value}”")),
        None => {}
    }
    match element.bounds {
        None => line.push_str(" (not painted)"),
        Some(_) if element.states.contains(&ElementState::OutOfView) => {
            line.push_str(" (out of view)")
        }
        Some(bounds) => line.push_str(&format!(
            " at {},{}",
            bounds.x + bounds.width / 2,
            bounds.y + bounds.height / 2
        )),
    }
    line
}
