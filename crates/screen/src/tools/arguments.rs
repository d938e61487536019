//! Names, descriptions and arguments of the tools.

use gyrus_contract::ElementId;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::input::{Chord, MODIFIERS, Target};

/// Maximum number of points along a drag.
const MOST_POINTS: usize = 100;

/// Maximum wait in seconds that a call can request.
pub(super) const MOST_SECONDS: f64 = 10.0;

/// The action of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    OpenUrl,
    GoBack,
    Reload,
    Click,
    Hover,
    TypeText,
    PressKey,
    SelectText,
    Scroll,
    ScrollTo,
    Drag,
    SelectOption,
    UploadFile,
    AnswerDialog,
    AnswerRequest,
    SwitchTab,
    CloseTab,
    Find,
    Extract,
    Wait,
    TakeScreenshot,
}

/// All tools. Models pay for each word.
pub(super) const TABLE: [(Action, &str, &str); 21] = [
    (
        Action::OpenUrl,
        "open_url",
        "Goes to an http or https address in the current tab.",
    ),
    (Action::GoBack, "go_back", "Goes back one page."),
    (
        Action::Reload,
        "reload",
        "Loads the page again, also after a crash.",
    ),
    (
        Action::Click,
        "click",
        "Clicks an element, or a point of the picture.",
    ),
    (
        Action::Hover,
        "hover",
        "Moves the pointer there, as for menus that open by it.",
    ),
    (
        Action::TypeText,
        "type_text",
        "Types text into a field, or where the keyboard is. Also sets date, time, range and colour \
         fields (2026-01-31, 13:05, 7, #ff0000). `replace` clears the field first, `submit` presses Enter after.",
    ),
    (
        Action::PressKey,
        "press_key",
        "Presses a key: Enter, Escape, ArrowDown, Control+a.",
    ),
    (
        Action::SelectText,
        "select_text",
        "Selects words on the page or in an element; without words all of the element.",
    ),
    (
        Action::Scroll,
        "scroll",
        "Turns the wheel over an element, or over the page.",
    ),
    (
        Action::ScrollTo,
        "scroll_to",
        "Brings an element into view.",
    ),
    (
        Action::Drag,
        "drag",
        "Drags from one place to another, through the points `via` if there are any.",
    ),
    (
        Action::SelectOption,
        "select_option",
        "Chooses an option of a native list by its words.",
    ),
    (
        Action::UploadFile,
        "upload_file",
        "Gives a file of the workspace to a file field or upload button.",
    ),
    (
        Action::AnswerDialog,
        "answer_dialog",
        "Answers the browser's dialog; `text` is for a prompt.",
    ),
    (
        Action::AnswerRequest,
        "answer_request",
        "Lets a request go that is held because it would send something elsewhere, or not.",
    ),
    (Action::SwitchTab, "switch_tab", "Looks at another tab."),
    (
        Action::CloseTab,
        "close_tab",
        "Closes a tab; without a number the current one.",
    ),
    (
        Action::Find,
        "find",
        "Finds elements by words in their name or value, also out of view.",
    ),
    (
        Action::Extract,
        "extract",
        "The text of an element, or of the whole page.",
    ),
    (
        Action::Wait,
        "wait",
        "Waits so many seconds; without a number until the page changes by itself, at most 10 seconds.",
    ),
    (
        Action::TakeScreenshot,
        "take_screenshot",
        "A picture of the page.",
    ),
];

/// Arguments of all tools.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Arguments {
    pub(crate) url: Option<String>,
    pub(crate) on: Option<ElementId>,
    pub(crate) at: Option<[f64; 2]>,
    pub(crate) kind: Option<String>,
    pub(crate) with: Vec<String>,
    pub(crate) text: Option<String>,
    pub(crate) replace: bool,
    pub(crate) submit: bool,
    pub(crate) key: Option<String>,
    pub(crate) direction: Option<String>,
    pub(crate) pages: Option<f64>,
    pub(crate) from: Option<Place>,
    pub(crate) to: Option<Place>,
    pub(crate) via: Vec<[f64; 2]>,
    pub(crate) seconds: Option<f64>,
    pub(crate) option: Option<String>,
    pub(crate) path: Option<String>,
    pub(crate) accept: Option<bool>,
    pub(crate) request: Option<u32>,
    pub(crate) tab: Option<u32>,
}

/// An element or a point.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(untagged)]
pub(crate) enum Place {
    Element(ElementId),
    Point([f64; 2]),
}

impl From<Place> for Target {
    fn from(place: Place) -> Self {
        match place {
            Place::Element(id) => Target::Element(id),
            Place::Point([x, y]) => Target::Point(x, y),
        }
    }
}

impl Action {
    /// Whether the action only reads the page.
    pub(super) fn only_reads(self) -> bool {
        matches!(
            self,
            Action::Find | Action::Extract | Action::Wait | Action::TakeScreenshot
        )
    }

    /// Returns the purpose of a spot, in the words of `page/aim.js`.
    pub(super) fn purpose(self, arguments: &Arguments) -> &'static str {
        match self {
            Action::Click if arguments.kind.as_deref() == Some("right") => "menu",
            Action::Click => "click",
            Action::TypeText if arguments.submit => "submit",
            Action::TypeText => "type",
            Action::PressKey => "key",
            Action::Drag => "drag",
            Action::SelectOption => "set",
            // Measuring must not scroll it into view yet.
            Action::ScrollTo | Action::SelectText => "glance",
            _ => "look",
        }
    }

    /// Returns its arguments with their schemas, and the names of the required ones.
    fn parameters(self) -> (&'static [&'static str], &'static [&'static str]) {
        match self {
            Action::OpenUrl => (&["url"], &["url"]),
            Action::GoBack | Action::Reload | Action::TakeScreenshot => (&[], &[]),
            Action::Wait => (&["seconds"], &[]),
            Action::Click => (&["on", "at", "kind", "with"], &[]),
            Action::Hover => (&["on", "at"], &[]),
            Action::TypeText => (&["text", "on", "at", "replace", "submit"], &["text"]),
            Action::PressKey => (&["key", "on"], &["key"]),
            Action::Scroll => (&["on", "direction", "pages"], &["direction"]),
            Action::ScrollTo => (&["on"], &["on"]),
            Action::SelectText => (&["text", "on"], &[]),
            Action::Drag => (&["from", "to", "via"], &["from", "to"]),
            Action::SelectOption => (&["on", "option"], &["on", "option"]),
            Action::UploadFile => (&["on", "path"], &["on", "path"]),
            Action::AnswerDialog => (&["accept", "text"], &["accept"]),
            Action::AnswerRequest => (&["request", "accept"], &["request", "accept"]),
            Action::SwitchTab => (&["tab"], &["tab"]),
            Action::CloseTab => (&["tab"], &[]),
            Action::Find => (&["text"], &["text"]),
            Action::Extract => (&["on"], &[]),
        }
    }

    pub(super) fn schema(self) -> Value {
        let (names, required) = self.parameters();
        let properties: Map<String, Value> = names
            .iter()
            .map(|name| ((*name).to_owned(), property(name)))
            .collect();
        json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        })
    }
}

fn property(name: &str) -> Value {
    let id = json!({"type": "string", "pattern": "^[a-z]+[1-9][0-9]*$", "description": "Element, as b17"});
    let point = json!({
        "type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2,
        "description": "[x, y] in pixels of the picture",
    });
    match name {
        "on" => id,
        "at" => point,
        "from" | "to" => json!({"anyOf": [id, point]}),
        "via" => json!({"type": "array", "items": point, "maxItems": MOST_POINTS}),
        "seconds" => json!({"type": "number", "exclusiveMinimum": 0, "maximum": MOST_SECONDS}),
        "kind" => json!({"enum": ["double", "triple", "right", "middle"]}),
        "with" => json!({
            "type": "array", "items": {"enum": ["shift", "control", "alt", "meta"]}, "maxItems": 4,
        }),
        "replace" | "submit" | "accept" => json!({"type": "boolean"}),
        "direction" => json!({"enum": ["up", "down", "left", "right"]}),
        "pages" => json!({"type": "number", "exclusiveMinimum": 0, "maximum": 20}),
        "tab" | "request" => json!({"type": "integer", "minimum": 1}),
        _ => json!({"type": "string"}),
    }
}

impl Arguments {
    /// Parses and checks the arguments of a call.
    pub(super) fn parse(action: Action, given: &Value) -> Result<Self, String> {
        let (names, required) = action.parameters();
        let wrong = |why: String| {
            format!(
                "{why}; the arguments are {} (needed: {})",
                names.join(", "),
                required.join(", ")
            )
        };
        let parsed = match given {
            Value::String(text) => serde_json::from_str::<Value>(text).unwrap_or_default(),
            other => other.clone(),
        };
        let given = parsed
            .as_object()
            .ok_or_else(|| wrong("the arguments are not an object".to_owned()))?;
        if let Some(unknown) = given.keys().find(|key| !names.contains(&key.as_str())) {
            return Err(wrong(format!("there is no argument `{unknown}`")));
        }
        if let Some(missing) = required.iter().find(|name| !given.contains_key(**name)) {
            return Err(wrong(format!("`{missing}` is missing")));
        }
        // A null is an argument that is not there.
        let given: Map<String, Value> = given
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        let arguments: Self = serde_json::from_value(Value::Object(given))
            .map_err(|error| wrong(error.to_string()))?;
        let finite = |[x, y]: [f64; 2]| (0.0..1e5).contains(&x) && (0.0..1e5).contains(&y);
        let places = [arguments.from, arguments.to];
        let points = places
            .into_iter()
            .flatten()
            .filter_map(|place| match place {
                Place::Point(point) => Some(point),
                Place::Element(_) => None,
            });
        let points = points.chain(arguments.via.iter().copied());
        if !points.chain(arguments.at).all(finite) {
            return Err(wrong("the point lies outside the picture".to_owned()));
        }
        if matches!(action, Action::Click | Action::Hover)
            && arguments.on.is_some() == arguments.at.is_some()
        {
            return Err(wrong("one of `on` and `at` is needed".to_owned()));
        }
        if arguments.via.len() > MOST_POINTS {
            return Err(wrong(format!("`via` has more than {MOST_POINTS} points")));
        }
        let is_short = |seconds: f64| seconds > 0.0 && seconds <= MOST_SECONDS;
        if !arguments.seconds.is_none_or(is_short) {
            return Err(wrong(format!(
                "`seconds` is more than 0 and at most {MOST_SECONDS}"
            )));
        }
        if action == Action::SelectText && arguments.on.is_none() && arguments.text.is_none() {
            return Err(wrong("one of `text` and `on` is needed".to_owned()));
        }
        if let Some(unknown) = arguments.with.iter().find(|key| modifier(key).is_none()) {
            return Err(wrong(format!("`{unknown}` is not a key to be held")));
        }
        Ok(arguments)
    }

    /// Returns the target of the call, if it has one.
    pub(super) fn target(&self, action: Action) -> Option<Target> {
        let pointed = self.on.map(Target::Element);
        let pointed = pointed.or(self.at.map(|[x, y]| Target::Point(x, y)));
        match action {
            Action::Drag => self.from.map(Target::from),
            Action::TypeText | Action::PressKey => pointed.or(Some(Target::Keyboard)),
            _ => pointed,
        }
    }

    /// Returns the key in its canonical form.
    pub(super) fn key(&self) -> Result<String, String> {
        match &self.key {
            Some(key) => Ok(Chord::parse(key)?.name()),
            None => Ok(String::new()),
        }
    }

    /// Returns the bits of the modifiers.
    pub(super) fn held(&self) -> u32 {
        self.with
            .iter()
            .filter_map(|key| modifier(key))
            .fold(0, |held, bit| held | bit)
    }
}

fn modifier(key: &str) -> Option<u32> {
    let known = MODIFIERS
        .iter()
        .find(|(name, ..)| name.eq_ignore_ascii_case(key));
    known.map(|(.., bit)| *bit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_those_of_their_tool() {
        let check = |action, given: Value| Arguments::parse(action, &given).map(|_| ());
        assert_eq!(check(Action::Click, json!({"on": "b17"})), Ok(()));
        assert_eq!(
            check(Action::Click, json!({"at": [1, 2.5], "kind": null})),
            Ok(())
        );
        assert_eq!(
            check(Action::Drag, json!({"from": "b1", "to": [3, 4]})),
            Ok(())
        );
        for (action, wrong) in [
            (Action::Click, json!({})),
            (Action::Click, json!({"on": "b17", "at": [1, 2]})),
            (Action::Click, json!({"at": [-1, 2]})),
            (Action::Click, json!({"at": ["1", 2]})),
            (Action::Click, json!({"at": [1]})),
            (Action::Click, json!({"on": "17"})),
            (Action::Click, json!({"on": "b17", "with": ["hyper"]})),
            (Action::Click, json!({"on": "b17", "text": "x"})),
            (
                Action::Drag,
                json!({"from": "b1", "to": "b2", "via": [[1, -2]]}),
            ),
            (Action::Wait, json!({"seconds": 11})),
            (Action::SelectText, json!({})),
            (Action::OpenUrl, json!({})),
            (Action::SwitchTab, json!({"tab": -1})),
            (Action::GoBack, json!([])),
        ] {
            assert!(check(action, wrong.clone()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_tool_has_a_schema_of_its_arguments() {
        for (action, name, description) in TABLE {
            let schema = action.schema();
            for required in schema["required"].as_array().unwrap() {
                assert!(
                    schema["properties"]
                        .get(required.as_str().unwrap())
                        .is_some(),
                    "{name}"
                );
            }
            assert!(description.len() < 240, "{name}");
        }
    }
}
