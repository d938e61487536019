//! Decides from a view which call a replay makes next.

use gyrus_contract::{AnswerDialogCall, Arguments as _, Rest, ToolCall, View};
use gyrus_procedures::{ProcedureStep, ReplaySight, SlotValues};
use serde_json::Value;

use crate::Replays;

pub(super) struct ReplayPosition<'a> {
    pub(super) replays: &'a Replays,
    /// The values of the command, and the ids found since.
    pub(super) values: &'a SlotValues,
    /// The address at which the run began.
    pub(super) start: &'a str,
    /// Number of executed steps.
    pub(super) step: usize,
    /// Whether the conditions after the last step are still unchecked.
    pub(super) unchecked: bool,
}

pub(super) enum NextDeed {
    Call {
        call: ToolCall,
        /// The ids in the address of the link to click.
        found: Vec<String>,
    },
    /// All steps are executed, and all conditions hold.
    Done,
}

impl ReplayPosition<'_> {
    fn sight<'v>(&'v self, view: &'v View) -> ReplaySight<'v> {
        ReplaySight {
            view,
            start: self.start,
            slots: &self.replays.procedure.slots,
            values: self.values,
        }
    }

    /// Whether a view shows that the last step took effect.
    pub(super) fn has_happened(&self, view: &View) -> bool {
        self.check_last(view).is_ok()
    }

    fn check_last(&self, view: &View) -> Result<(), String> {
        let view = &*gyrus_procedures::in_use(view);
        let last = self.step.checked_sub(1);
        let last = last.and_then(|last| self.replays.procedure.steps.get(last));
        let sight = self.sight(view);
        for condition in last.iter().flat_map(|step| &step.after) {
            condition.check(&sight)?;
        }
        Ok(())
    }

    /// Returns the next deed.
    pub(super) fn next(&self, view: &View) -> Result<NextDeed, String> {
        if let Rest::GaveUp { waiting_for } = &view.rest {
            return Err(format!("the page is not at rest: {waiting_for}"));
        }
        if let Some(held) = view.held.first() {
            return Err(format!("a request is held: {held}"));
        }
        if self.unchecked {
            self.check_last(view)?;
        }
        let view = &*gyrus_procedures::in_use(view);
        let sight = self.sight(view);
        let procedure = &self.replays.procedure;
        let Some(step) = procedure.steps.get(self.step) else {
            for condition in &procedure.ends {
                condition.check(&sight)?;
            }
            return Ok(NextDeed::Done);
        };
        let answers = step.tool == AnswerDialogCall::TOOL;
        if let Some(dialog) = view.dialog.as_ref().filter(|_| !answers) {
            return Err(format!("the browser asks “{}”", dialog.message));
        }
        if let Some(unread) = view.unread.first().filter(|_| step.commits) {
            return Err(format!("a part of the page could not be read: {unread}"));
        }
        for condition in &step.before {
            condition.check(&sight)?;
        }
        let mut call = call_of(step, &self.replays.values)?;
        let mut found = Vec::new();
        for (argument, anchor) in &step.targets {
            let id = anchor.find(&sight).map_err(|miss| miss.to_string())?;
            found.extend(step.found(&sight, id)?);
            call.arguments[argument] = Value::String(id.to_string());
        }
        Ok(NextDeed::Call { call, found })
    }
}

/// Returns the call of a step with these values, without the elements that it touches.
pub(super) fn call_of(step: &ProcedureStep, values: &SlotValues) -> Result<ToolCall, String> {
    let mut arguments = step.arguments.clone();
    for (pointer, text) in &step.texts {
        let place = arguments.pointer_mut(pointer);
        let place = place.ok_or_else(|| format!("the argument `{pointer}` is missing"))?;
        *place = Value::String(text.filled(values));
    }
    Ok(ToolCall::new(&step.tool, arguments))
}
