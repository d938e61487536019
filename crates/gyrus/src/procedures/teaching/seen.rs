//! The steps that a person made, as far as they were seen.

use std::collections::BTreeMap;

use gyrus_contract::{
    ActionVerdict, Arguments as _, ClickCall, EffectId, Element, ElementId, ElementState, Form,
    Observation, Origin, SelectOptionCall, Text, ToolCall, TypeTextCall, View,
};
use gyrus_procedures::{NotLearned, RecordedStep};
use serde_json::json;

/// Roles of elements that a press uses.
pub(super) const USED: [&str; 13] = [
    "button",
    "link",
    "tab",
    "menuitem",
    "menuitemcheckbox",
    "menuitemradio",
    "option",
    "treeitem",
    "gridcell",
    "checkbox",
    "radio",
    "switch",
    "combobox",
];

/// Roles of fields with a text or a choice.
pub(super) const FIELDS: [&str; 8] = [
    "textbox",
    "searchbox",
    "spinbutton",
    "combobox",
    "listbox",
    "slider",
    "date",
    "time",
];

/// Roles of controls that are on or off.
pub(super) const TOGGLES: [&str; 3] = ["checkbox", "radio", "switch"];

/// Maximum distance between press and release of a click, as a fraction of the picture.
const STILL: f64 = 0.02;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StepBinding {
    Nobody,
    /// The step binds somebody, by this form if it sends one.
    Somebody(Option<Box<Form>>),
}

#[derive(Default)]
pub(super) struct TaughtSteps {
    steps: Vec<RecordedStep>,
    pub(super) view: Option<View>,
    /// The element that the last press used, if the press is a step, and the position of the press.
    pub(super) pressed: Option<(ElementId, (f64, f64))>,
    /// The reason why the work cannot be repeated.
    refused: Option<String>,
}

impl TaughtSteps {
    pub(super) fn refuse(&mut self, reason: &str) {
        self.refused.get_or_insert_with(|| reason.to_owned());
    }

    /// Returns the steps, and the last view.
    ///
    /// # Errors
    /// The steps cannot be repeated.
    pub(super) fn told(&self) -> Result<(Vec<RecordedStep>, Option<View>), NotLearned> {
        match self.refused.clone() {
            Some(reason) => Err(NotLearned::Unrepeatable { reason }),
            None => Ok((self.steps.clone(), self.view.clone())),
        }
    }

    pub(super) fn mention(&self, text: &str) -> bool {
        let mut steps = self.steps.iter();
        steps.any(|step| step.call.arguments.to_string().contains(text))
    }

    /// Refuses a drag. In a field it only selects, or sets what is read later.
    pub(super) fn released(&mut self, x: f64, y: f64) {
        let is_away = |from: f64, to: f64| (from - to).abs() > STILL;
        if self
            .pressed
            .is_some_and(|(_, place)| is_away(place.0, x) || is_away(place.1, y))
        {
            self.refuse("you dragged something");
        }
    }

    pub(super) fn doubled(&mut self, call: ToolCall, binding: StepBinding) {
        if let Some(last) = self.steps.last_mut() {
            last.call = call;
            last.commits |= binding != StepBinding::Nobody;
        }
    }

    pub(super) fn add(&mut self, view: Option<View>, call: ToolCall, binding: StepBinding) {
        let number = u32::try_from(self.steps.len()).unwrap_or(u32::MAX);
        let origin = Origin::Tool {
            name: call.tool.clone(),
        };
        let observation = Observation {
            effect: EffectId::cycle(1).then(number),
            call_id: call.id.clone(),
            tool: call.tool.clone(),
            text: Text::new("", origin),
            value: None,
            images: Vec::new(),
            is_error: false,
            verdict: ActionVerdict::Changed,
            artifacts: Vec::new(),
            claim: None,
        };
        self.steps.push(RecordedStep {
            view,
            call,
            observation,
            commits: binding != StepBinding::Nobody,
            form: match binding {
                StepBinding::Somebody(form) => form.map(|form| *form),
                StepBinding::Nobody => None,
            },
            waited_ms: 0,
        });
    }

    /// Adds the steps that gave the fields of one document their present values.
    pub(super) fn add_changes(&mut self, now: &View) {
        if let Some(before) = self.view.clone() {
            self.add_changes_since(before, now);
        }
        self.view = Some(now.clone());
    }

    fn add_changes_since(&mut self, mut before: View, now: &View) {
        let after: BTreeMap<ElementId, &Element> = now
            .elements
            .iter()
            .map(|element| (element.id, element))
            .collect();
        for index in 0..before.elements.len() {
            let old = before.elements[index].clone();
            let Some(new) = after.get(&old.id) else {
                continue;
            };
            if old.states.contains(&ElementState::Masked) {
                continue;
            }
            let Some(call) = change(&before, index, new) else {
                continue;
            };
            if !self.go_on_typing(&call) {
                self.add(Some(before.clone()), call, StepBinding::Nobody);
            }
            before.elements[index].value.clone_from(&new.value);
            before.elements[index].states.clone_from(&new.states);
        }
    }

    /// Adds the text of a call to the last step, if both typed into the same field; returns whether
    /// it did.
    fn go_on_typing(&mut self, call: &ToolCall) -> bool {
        let types = |call: &ToolCall| call.tool == TypeTextCall::TOOL;
        let last = self.steps.last_mut().map(|step| &mut step.call);
        let is_same = |last: &&mut ToolCall| {
            types(last) && types(call) && last.arguments["on"] == call.arguments["on"]
        };
        let Some(last) = last.filter(is_same) else {
            return false;
        };
        last.arguments["text"] = call.arguments["text"].clone();
        true
    }
}

/// Returns the call that gives an element its present value, if that has changed.
fn change(before: &View, index: usize, new: &Element) -> Option<ToolCall> {
    let old = &before.elements[index];
    let role = old.role.as_str();
    if TOGGLES.contains(&role) {
        let is_on = |element: &Element| element.states.contains(&ElementState::Checked);
        let is_changed = is_on(old) != is_on(new) && (role != "radio" || is_on(new));
        return is_changed.then(|| ToolCall::new(ClickCall::TOOL, json!({ "on": old.id })));
    }
    if !FIELDS.contains(&role) || old.value == new.value {
        return None;
    }
    let value = new.value.clone().unwrap_or_default();
    if has_options(before, index) {
        let arguments = json!({"on": old.id, "option": value});
        return Some(ToolCall::new(SelectOptionCall::TOOL, arguments));
    }
    let mut arguments = json!({"on": old.id, "text": value});
    if old.value.as_ref().is_some_and(|value| !value.is_empty()) {
        arguments["replace"] = json!(true);
    }
    Some(ToolCall::new(TypeTextCall::TOOL, arguments))
}

fn has_options(view: &View, index: usize) -> bool {
    let depth = view.elements[index].depth;
    let inside = view.elements[index + 1..]
        .iter()
        .take_while(|element| element.depth > depth);
    inside.into_iter().any(|element| element.role == "option")
}
