//! Fields that a click fills in before it presses its button, so that a form is asked about once.

use gyrus_contract::{
    ActionVerdict, Aim, ClickCall, ElementId, FieldText, ResolvedCall, SelectOptionCall, Starts,
    ToolOutput, TypeTextCall,
};
use serde::Deserialize;
use serde_json::json;

use super::action::{ActionCall, ActionFailure, ScreenToolAction};
use crate::{
    browser::BrowserSession,
    input::{InputTarget, UnusableTarget, quoted},
    state::TabState,
};

/// Value of a field, which is missing for a secret.
#[derive(Deserialize)]
struct FieldContent {
    /// Whether the field holds the letters and digits that were typed.
    is_like: bool,
    value: Option<String>,
}

/// Returns what filling in each field touches.
pub(super) async fn aims(
    call: &ClickCall,
    session: &BrowserSession,
    tab: &TabState,
) -> Result<Vec<Aim>, ActionFailure> {
    let mut aims = Vec::new();
    for field in &call.fill {
        let target = InputTarget::Element(field.0);
        let spot = session.locate(tab, target, "set", "").await?;
        aims.push(match spot.told.kind.as_str() {
            "select" => choice(field).aim(session, tab).await?,
            "control" | "file" => {
                let why = format!("refused: {} cannot be filled in", spot.told.words);
                return Err(ActionFailure::Refused(why));
            }
            _ => typing(field).aim(session, tab).await?,
        });
    }
    Ok(aims)
}

/// Returns the values in a document's fields after the filling, for its scripts.
pub(super) fn meant(call: &ClickCall) -> String {
    let document = call.on.map(|on| on.document);
    let own = call
        .fill
        .iter()
        .filter(|one| Some(one.0.document) == document);
    let own = own.map(|one| json!([one.0.number, one.1]));
    if call.fill.is_empty() {
        String::new()
    } else {
        json!(own.collect::<Vec<_>>()).to_string()
    }
}

fn choice(field: &FieldText) -> SelectOptionCall {
    SelectOptionCall {
        on: field.0,
        option: field.1.clone(),
    }
}

fn typing(field: &FieldText) -> TypeTextCall {
    TypeTextCall {
        text: field.1.clone(),
        on: Some(field.0),
        at: None,
        replace: true,
        submit: false,
    }
}

impl ActionCall<'_> {
    /// Fills in the fields of a click as they were judged. An output is that of a failure after the
    /// first of them.
    pub(super) async fn fill_in(
        &self,
        click: &ClickCall,
    ) -> Result<Option<ToolOutput>, ActionFailure> {
        let judged = self.call.aim.iter().flat_map(|aim| &aim.fills);
        let judged: Vec<_> = click.fill.iter().zip(judged).collect();
        if judged.len() < click.fill.len() {
            let why = "refused: what this would fill in was not measured and judged";
            return Err(ActionFailure::Refused(why.to_owned()));
        }
        let mut done = 0_usize;
        for (field, aim) in &judged {
            let filled = self.fill_one(field, aim).await;
            match filled {
                Ok(output) if !output.is_error => done += 1,
                Err(failure) if done == 0 => return Err(failure),
                Ok(output) => return Ok(Some(stopped(done, &output.text))),
                Err(failure) => return Ok(Some(stopped(done, &ToolOutput::from(failure).text))),
            }
        }
        // A page may have changed one because of another.
        for (field, _) in judged.iter().filter(|(_, aim)| is_typed(aim)) {
            if let Some(why) = self.differs(field).await? {
                return Ok(Some(stopped(done, &why)));
            }
        }
        Ok(None)
    }

    async fn fill_one(&self, field: &FieldText, aim: &Aim) -> Result<ToolOutput, ActionFailure> {
        let call = ResolvedCall {
            aim: Some(aim.clone()),
            ..self.call.clone()
        };
        let doing = ActionCall {
            browser: self.browser,
            session: self.session,
            tab: self.tab.clone(),
            call: &call,
            site: self.site,
        };
        if is_typed(aim) {
            Box::pin(typing(field).act(&doing)).await
        } else {
            Box::pin(choice(field).act(&doing)).await
        }
    }

    /// Describes how a field's value differs from the typed text, if in more than punctuation.
    async fn differs(
        &self,
        FieldText(on, text): &FieldText,
    ) -> Result<Option<String>, ActionFailure> {
        let text = self.site.reveal(text);
        let text = text.map_err(|error| ActionFailure::Refused(error.to_string()))?;
        let frame = self.frame_of(*on)?;
        let ask = format!("gyrus.holds({}, {}, true)", on.number, quoted(&text));
        let asking = self.session.ask::<FieldContent>(&frame, &ask);
        let held = self.session.unless_held(&self.tab, asking).await?;
        Ok(match held {
            Ok(held) if held.is_like => None,
            Ok(held) => Some(match held.value {
                Some(value) => format!("{on} holds “{value}”"),
                None => format!("{on} holds something else"),
            }),
            Err(_) => Some(format!("{on} has gone")),
        })
    }

    pub(super) fn frame_of(
        &self,
        id: ElementId,
    ) -> Result<crate::state::PageFrame, UnusableTarget> {
        let state = self.session.state();
        let found = state.frame_of_document(id.document);
        found
            .map(|(_, frame)| frame.clone())
            .ok_or(UnusableTarget::Gone { id })
    }
}

fn is_typed(aim: &Aim) -> bool {
    aim.starts.contains(&Starts::Types)
}

fn stopped(done: usize, why: &str) -> ToolOutput {
    let done = gyrus_text::counted(done, "field");
    ToolOutput {
        verdict: ActionVerdict::Changed,
        ..ToolOutput::error(format!(
            "Filled in {done}, and nothing was pressed: {why}. Look at it before you go on."
        ))
    }
}
