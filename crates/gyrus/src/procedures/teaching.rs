//! A person shows a task in the browser: the steps of it, as of a run.
//!
//! The page is looked at before each press, and before keys that may leave a field. What was typed or
//! chosen meanwhile is what the fields hold then, so no key is recorded, and the value of a field
//! that holds a secret is never seen.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use gyrus_contract::{
    ActionVerdict, Arguments as _, Boxed, ClickCall, EffectId, Element, ElementId, ElementState,
    Gate, Judgement, Look, Mode, Observation, OpenUrlCall, Origin, PressKeyCall, ResolvedCall,
    Screen as _, SelectOptionCall, Text, Tool, ToolCall, TypeTextCall, View,
};
use gyrus_gate::PolicyGate;
use gyrus_kernel::redact::Redactor;
use gyrus_procedures::{LearnedPlace, NotLearned, RecordedRun, RecordedStep};
use gyrus_screen::{Browser, InputWatcher, PersonInput};
use serde_json::json;

use super::recording::{SECRET_MARK, commits};

/// Roles of elements that a press uses.
const USED: [&str; 13] = [
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

/// Roles of fields whose text or choice is what matters.
const FIELDS: [&str; 8] = [
    "textbox",
    "searchbox",
    "spinbutton",
    "combobox",
    "listbox",
    "slider",
    "date",
    "time",
];

/// Roles of what is on or off.
const TOGGLES: [&str; 3] = ["checkbox", "radio", "switch"];

/// Maximum distance between a press and its release that is still a click, as a fraction of the
/// picture.
const STILL: f64 = 0.02;

/// The parts that judge whether a press binds somebody.
pub(crate) struct TeachingParts {
    /// The browser that the person has.
    pub(crate) browser: Arc<Browser>,
    /// The tools of that browser.
    pub(crate) tools: Vec<Arc<dyn Tool>>,
    /// The gate.
    pub(crate) gate: PolicyGate,
    /// Takes known secrets out of what the page shows.
    pub(crate) redactor: Redactor,
}

/// Watches a person and keeps what they did.
pub(crate) struct Teaching {
    parts: TeachingParts,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    steps: Vec<RecordedStep>,
    view: Option<View>,
    /// The element that the last press used, if the press is a step, and the place.
    pressed: Option<(ElementId, (f64, f64))>,
    /// The reason why this cannot be done again.
    refused: Option<String>,
}

impl Teaching {
    /// Begins with the page as it is.
    pub(crate) async fn begin(parts: TeachingParts, start: &str) -> Self {
        let teaching = Self {
            parts,
            seen: Mutex::default(),
        };
        let opened = ToolCall::new(OpenUrlCall::TOOL, json!({ "url": start }));
        teaching.seen().add(None, opened, Binding::Nobody);
        let view = teaching.look().await;
        teaching.seen().view = view;
        teaching
    }

    /// Returns what the person did as a run with this command.
    ///
    /// # Errors
    /// It cannot be done again.
    pub(crate) fn recorded(
        &self,
        command: &str,
        place: LearnedPlace,
        checks: Vec<String>,
    ) -> Result<RecordedRun, NotLearned> {
        let mut seen = self.seen();
        let has_secret =
            |step: &RecordedStep| step.call.arguments.to_string().contains(SECRET_MARK);
        let names_one = self.parts.redactor.redact(command) != command;
        if names_one || seen.steps.iter().any(has_secret) {
            seen.refuse("a secret was typed, which is never kept");
        }
        if let Some(reason) = seen.refused.clone() {
            return Err(NotLearned::Unrepeatable { reason });
        }
        Ok(RecordedRun {
            command: command.to_owned(),
            place,
            steps: seen.steps.clone(),
            end: seen.view.clone(),
            checks,
            answer: "Done, as it was shown.".to_owned(),
        })
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn look(&self) -> Option<View> {
        let look = Look {
            frame: false,
            documents: 0,
        };
        let seen = self.parts.browser.look(look).await.ok()?;
        let mut view = serde_json::to_value(seen.view).ok()?;
        self.parts.redactor.redact_json(&mut view);
        serde_json::from_value(view).ok()
    }

    /// Looks, and keeps what has changed in the fields since the last look.
    async fn catch_up(&self) -> Option<View> {
        let now = self.look().await;
        let mut seen = self.seen();
        let Some(now) = now else {
            seen.refuse("the page could not be looked at");
            return None;
        };
        let is_secret = |element: &Element| {
            let has = |state| element.states.contains(&state);
            has(ElementState::Masked) && has(ElementState::Focused)
        };
        if now.elements.iter().any(is_secret) {
            seen.refuse("a secret was typed, which is never kept: log in first, with a --profile");
        }
        if let Some(before) = seen.view.clone() {
            seen.add_changes(before, &now);
        }
        seen.view = Some(now.clone());
        Some(now)
    }

    /// Whether a call binds somebody, as the gate would judge it for a run.
    async fn binding(&self, call: &ToolCall) -> Binding {
        let tool = self.parts.tools.iter();
        let mut tool = tool.filter(|tool| tool.spec().name == call.tool);
        let Some(tool) = tool.next() else {
            return Binding::Somebody;
        };
        // What cannot be told may bind.
        let Ok(Some(aim)) = tool.aim(call).await else {
            return Binding::Somebody;
        };
        let resolved = ResolvedCall {
            tool: call.tool.clone(),
            arguments: call.arguments.clone(),
            paths: BTreeMap::new(),
            command: None,
            aim: Some(aim),
        };
        let under = Judgement {
            agent: gyrus_contract::DEFAULT_AGENT,
            workspace: std::path::Path::new("/"),
            mode: Mode::Ask,
            exposed: true,
            throwaway: false,
            undoable: false,
            grants: &[],
            skills: &[],
            trusted: &[],
            link_was_seen: true,
        };
        let verdict = self.parts.gate.judge(&resolved, tool.spec(), &under);
        if commits(&verdict, resolved.aim.as_ref()) {
            Binding::Somebody
        } else {
            Binding::Nobody
        }
    }

    async fn pressed(&self, x: f64, y: f64) {
        let place = (x, y);
        self.seen().pressed = None;
        let Some(view) = self.catch_up().await else {
            return;
        };
        let (x, y) = (x * f64::from(view.width), y * f64::from(view.height));
        #[expect(clippy::cast_possible_truncation, reason = "a picture is small")]
        let Some(element) = used_at(&view, x as i32, y as i32).cloned() else {
            return;
        };
        if element.states.contains(&ElementState::Masked) {
            let why = "a secret was typed, which is never kept: log in first, with a --profile";
            self.seen().refuse(why);
        }
        // The value is read when the page is looked at again.
        let is_set = |roles: &[&str]| roles.contains(&element.role.as_str());
        if is_set(&FIELDS) || is_set(&TOGGLES) {
            return;
        }
        let call = ToolCall::new(ClickCall::TOOL, json!({ "on": element.id }));
        let binding = self.binding(&call).await;
        self.seen().pressed = Some((element.id, place));
        self.seen().add(Some(view), call, binding);
    }

    /// Makes the last press a double click. In a field several clicks only select.
    async fn pressed_again(&self, count: u32) {
        let Some((on, _)) = self.seen().pressed else {
            return;
        };
        if count > 2 {
            self.seen()
                .refuse("you clicked more than twice at one place");
            return;
        }
        let call = ToolCall::new(ClickCall::TOOL, json!({ "on": on, "kind": "double" }));
        let binding = self.binding(&call).await;
        let mut seen = self.seen();
        if let Some(last) = seen.steps.last_mut() {
            last.call = call;
            last.commits |= binding == Binding::Somebody;
        }
    }

    /// Takes a key. Enter and the space bar use what has the keyboard; the others only type, or move
    /// on to another field.
    async fn struck(&self, key: &str) {
        let uses = matches!(key, "Enter" | "Space" | " ");
        if !uses && key != "Tab" && key != "Shift+Tab" {
            return;
        }
        let Some(view) = self.catch_up().await else {
            return;
        };
        let focused = |element: &&Element| element.states.contains(&ElementState::Focused);
        let Some(element) = view.elements.iter().rev().find(focused).cloned() else {
            return;
        };
        let role = element.role.as_str();
        let is_pressed = matches!(role, "button" | "link" | "tab" | "menuitem");
        let submits = matches!(role, "textbox" | "searchbox" | "spinbutton")
            && !element.states.contains(&ElementState::Multiple);
        let call = match key {
            "Tab" | "Shift+Tab" => return,
            _ if is_pressed => ToolCall::new(ClickCall::TOOL, json!({ "on": element.id })),
            "Enter" if submits => ToolCall::new(
                PressKeyCall::TOOL,
                json!({"key": "Enter", "on": element.id}),
            ),
            _ => return,
        };
        let binding = self.binding(&call).await;
        self.seen().add(Some(view), call, binding);
    }
}

impl InputWatcher for Teaching {
    fn before(&self, input: PersonInput) -> Boxed<'_, ()> {
        Box::pin(async move {
            match input {
                PersonInput::Presses { x, y } => self.pressed(x, y).await,
                PersonInput::PressesAgain { count } => self.pressed_again(count).await,
                PersonInput::Releases { x, y } => self.seen().released(x, y),
                PersonInput::Strikes { key } => self.struck(&key).await,
                PersonInput::GoesTo { .. } => {
                    self.seen()
                        .refuse("you went to another address by typing it");
                }
                PersonInput::GoesBack => {
                    self.seen().refuse("you went back, or loaded a page again")
                }
                PersonInput::ChangesTab => self.seen().refuse("you used several tabs"),
                PersonInput::Answers { .. } => {
                    self.seen().refuse("you answered a question of the browser");
                }
                PersonInput::GivesBack => {
                    self.catch_up().await;
                }
            }
        })
    }
}

/// Whether a step binds somebody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Binding {
    Nobody,
    Somebody,
}

impl Seen {
    fn refuse(&mut self, reason: &str) {
        self.refused.get_or_insert_with(|| reason.to_owned());
    }

    /// Refuses a drag. In a field it only selects, or sets what is read later.
    fn released(&mut self, x: f64, y: f64) {
        let is_away = |from: f64, to: f64| (from - to).abs() > STILL;
        if self
            .pressed
            .is_some_and(|(_, place)| is_away(place.0, x) || is_away(place.1, y))
        {
            self.refuse("you dragged something");
        }
    }

    fn add(&mut self, view: Option<View>, call: ToolCall, binding: Binding) {
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
            commits: binding == Binding::Somebody,
            waited_ms: 0,
        });
    }

    /// Adds the steps that made the fields of one document what they are now.
    fn add_changes(&mut self, mut before: View, now: &View) {
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
            if let Some(call) = change(&before, index, new) {
                self.add(Some(before.clone()), call, Binding::Nobody);
                before.elements[index].value.clone_from(&new.value);
                before.elements[index].states.clone_from(&new.states);
            }
        }
    }
}

/// Returns the call that changes an element to what it is now, if it was changed.
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

/// Whether an element is a list of options.
fn has_options(view: &View, index: usize) -> bool {
    let depth = view.elements[index].depth;
    let inside = view.elements[index + 1..]
        .iter()
        .take_while(|element| element.depth > depth);
    inside.into_iter().any(|element| element.role == "option")
}

/// Returns the element that a press at a point uses: the smallest there that can be used.
fn used_at(view: &View, x: i32, y: i32) -> Option<&Element> {
    let there = view.elements.iter().filter(|element| {
        let role = element.role.as_str();
        let is_used = USED.contains(&role)
            || FIELDS.contains(&role)
            || element.states.contains(&ElementState::Clickable);
        let is_there = element.bounds.is_some_and(|bounds| bounds.contains(x, y));
        is_used && is_there && !element.states.contains(&ElementState::OutOfView)
    });
    there.min_by_key(|element| {
        let area = element.bounds.map_or(0, |bounds| {
            i64::from(bounds.width) * i64::from(bounds.height)
        });
        (area, std::cmp::Reverse(element.depth))
    })
}
