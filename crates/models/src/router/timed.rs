//! A model as the router returns it: its replies are timed, and it is asked only for what it
//! supports.

use std::{borrow::Cow, path::PathBuf, sync::Arc};

use gyrus_contract::{
    BoxedFuture, Delta, Model, ModelError, Prompt, Reply, Simplification, ThinkingEffort,
};
use parking_lot::Mutex;

use super::{RouterClock, health::ModelHealth};
use crate::{call_reader::READ_FROM_TEXT, learned::LearnedModels};

/// The chosen model, whose complete replies are timed.
pub(super) struct TimedModel {
    pub(super) model: Arc<dyn Model>,
    /// Index in the router's candidates.
    pub(super) index: usize,
    /// Whether the model's replies can be bound to a schema. Other models are asked without one:
    /// every prompt with a schema also describes the form in words.
    pub(super) takes_schemas: bool,
    /// Whether the model is bound by a schema once it writes a call as text: a small one often
    /// writes none.
    pub(super) may_be_bound: bool,
    /// The effort of thinking for this question.
    pub(super) effort: Option<ThinkingEffort>,
    pub(super) health: Arc<Mutex<Vec<ModelHealth>>>,
    /// The folder in which the time of replies is stored for later runs.
    pub(super) kept_in: Option<PathBuf>,
    pub(super) clock: RouterClock,
}

impl Model for TimedModel {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn inner(&self) -> Option<&dyn Model> {
        Some(&*self.model)
    }

    fn reply<'a>(
        &'a self,
        prompt: &'a Prompt,
        deltas: &'a mut (dyn FnMut(Delta) + Send),
    ) -> BoxedFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move {
            let begun = (self.clock)();
            let drops_schema = prompt.output_schema.is_some() && !self.takes_schemas;
            let mut prompt = Cow::Borrowed(prompt);
            if drops_schema {
                prompt.to_mut().output_schema = None;
            }
            if let (None, Some(effort)) = (prompt.effort, self.effort) {
                prompt.to_mut().effort = Some(effort);
            }
            let reply = self.model.reply(&prompt, deltas).await?;
            let time = (self.clock)().saturating_duration_since(begun);
            let changed = {
                let mut healths = self.health.lock();
                healths
                    .get_mut(self.index)
                    .and_then(|health| health.took(time))
            };
            if let Some(folder) = self.kept_in.as_ref().filter(|_| self.may_be_bound)
                && is_written_as_text(&reply)
            {
                // Runs that begin later find it; this one goes on as it began.
                let name = self.model.name();
                let _ = LearnedModels::add_refusal(folder, name, Simplification::OneObject);
            }
            if let Some((median, folder)) = changed.zip(self.kept_in.as_ref()) {
                // Without it, a later run learns it again.
                let _ = LearnedModels::add_latency(folder, self.model.name(), median);
            }
            Ok(reply)
        })
    }
}

/// Whether the reply has a call that was parsed from its text.
fn is_written_as_text(reply: &Reply) -> bool {
    let mut repairs = reply.tool_calls().flat_map(|call| &call.repairs);
    repairs.any(|repair| repair == READ_FROM_TEXT)
}
