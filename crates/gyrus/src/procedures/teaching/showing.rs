//! Keeps what a person shows, and judges it as for a run.

use std::{collections::BTreeMap, path::Path};

use gyrus::runtime::RunScreen;
use gyrus_contract::{
    Aim, Arguments as _, ClickCall, Element, ElementState, Gate, Judgement, LookOptions, Mode,
    ResolvedCall, ToolCall, Verdict, View,
};
use gyrus_gate::PolicyGate;
use gyrus_kernel::redact::Redactor;
use gyrus_procedures::{LearnedPlace, NotLearned, RecordedRun};
use parking_lot::{Mutex, MutexGuard};
use serde_json::json;

use super::seen::{StepBinding, TaughtSteps};
use crate::procedures::recording::{SECRET_MARK, commits, sent_form};

/// The parts that judge whether a press binds somebody.
pub(crate) struct TeachingParts {
    pub(crate) screen: RunScreen,
    pub(crate) gate: PolicyGate,
    /// Redacts known secrets in what the screen shows.
    pub(crate) redactor: Redactor,
}

/// Watches a person and records their steps.
pub(crate) struct TeachingSession {
    parts: TeachingParts,
    place: LearnedPlace,
    seen: Mutex<TaughtSteps>,
}

impl TeachingSession {
    /// Creates a session without recorded steps.
    pub(crate) fn new(parts: TeachingParts, place: LearnedPlace) -> Self {
        Self {
            parts,
            place,
            seen: Mutex::default(),
        }
    }

    /// Looks at the screen before the person controls it.
    pub(crate) async fn look_first(&self) {
        let view = self.look().await;
        self.seen().view = view;
    }

    pub(crate) fn opened(&self, call: ToolCall) {
        let mut seen = self.seen();
        let view = seen.view.clone();
        seen.add(view, call, StepBinding::Nobody);
    }

    /// Returns the person's steps as a run with this command.
    ///
    /// # Errors
    /// Some step cannot be repeated.
    pub(crate) fn recorded(
        &self,
        command: &str,
        checks: Vec<String>,
    ) -> Result<RecordedRun, NotLearned> {
        let mut seen = self.seen();
        let names_one = self.parts.redactor.redact(command) != command;
        if names_one || seen.mention(SECRET_MARK) {
            seen.refuse("a secret was typed, which is never kept");
        }
        let (steps, end) = seen.told()?;
        Ok(RecordedRun {
            command: command.to_owned(),
            place: self.place.clone(),
            steps,
            end,
            checks,
            answer: "Done, as it was shown.".to_owned(),
        })
    }

    pub(super) fn seen(&self) -> MutexGuard<'_, TaughtSteps> {
        self.seen.lock()
    }

    pub(super) fn refuse(&self, reason: &str) {
        self.seen().refuse(reason);
    }

    async fn look(&self) -> Option<View> {
        let look = LookOptions {
            frame: false,
            documents: 0,
        };
        let seen = self.parts.screen.shown().look(look).await.ok()?;
        let mut view = serde_json::to_value(seen.view).ok()?;
        self.parts.redactor.redact_json(&mut view);
        serde_json::from_value(view).ok()
    }

    /// Takes a look, and gives up learning for this reason if a field that holds a secret has the
    /// keyboard, or if nothing can be seen.
    pub(super) async fn look_for_secrets(&self, reason: &str) -> Option<View> {
        let Some(now) = self.look().await else {
            self.refuse("the screen could not be looked at");
            return None;
        };
        let is_secret = |element: &Element| {
            let has = |state| element.states.contains(&state);
            has(ElementState::Masked) && has(ElementState::Focused)
        };
        if now.elements.iter().any(is_secret) {
            self.refuse(reason);
        }
        Some(now)
    }

    /// Returns the target of a call, and the gate's verdict as for a run. The error is the reason,
    /// in words, why that cannot be told.
    async fn judged(&self, call: &ToolCall) -> Result<(Verdict, Aim), String> {
        let tools = self.parts.screen.tools();
        let tool = tools.iter().find(|tool| tool.spec().name == call.tool);
        let tool = tool.ok_or("there is no such tool")?;
        let aim = tool.aim(call).await.map_err(|why| why.reason)?;
        let aim = aim.ok_or("it touches nothing")?;
        let resolved = ResolvedCall {
            tool: call.tool.clone(),
            arguments: call.arguments.clone(),
            paths: BTreeMap::new(),
            command: None,
            files: Vec::new(),
            aim: Some(aim.clone()),
        };
        let under = Judgement {
            mode: Mode::Ask,
            undoable: false,
            link_was_seen: true,
            ..Judgement::outside_of_runs(Path::new("/"))
        };
        let verdict = self.parts.gate.judge(&resolved, tool.spec(), &under);
        Ok((verdict, aim))
    }

    /// Whether a call binds somebody. A call that cannot be judged may bind.
    pub(super) async fn binding(&self, call: &ToolCall) -> StepBinding {
        match self.judged(call).await {
            Ok((verdict, aim)) if !commits(&verdict, Some(&aim)) => StepBinding::Nobody,
            Ok((_, aim)) => StepBinding::Somebody(sent_form(&aim).map(Box::new)),
            Err(_) => StepBinding::Somebody(None),
        }
    }

    /// Turns the last press into a double click. In a field several clicks only select.
    pub(super) async fn pressed_again(&self, count: u32) {
        let Some((on, _)) = self.seen().pressed else {
            return;
        };
        if count > 2 {
            self.refuse("you clicked more than twice at one place");
            return;
        }
        let call = ToolCall::new(ClickCall::TOOL, json!({ "on": on, "kind": "double" }));
        let binding = self.binding(&call).await;
        self.seen().doubled(call, binding);
    }
}
