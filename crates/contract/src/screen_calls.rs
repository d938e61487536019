//! The arguments of the tools that act on a screen, and the list of these tools for a loop that
//! looks at the screen before each of them.
//!
//! The tools themselves stand in the crate of the screen; both sides share these types.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{Arguments, ElementId, schema_of};

/// Maximum number of points on the path of a drag.
const MAX_POINTS: usize = 100;

/// Maximum number of pages of one scroll.
const MAX_PAGES: f64 = 20.0;

/// Maximum number of the pieces in which a text is read.
const MAX_PIECES: f64 = 10_000.0;

/// Maximum number of seconds of one wait, and for which a click holds its button.
const MAX_WAIT_SECONDS: f64 = 10.0;

/// Maximum number of fields that a click fills in first.
const MAX_FILLED: usize = 30;

/// A tool of the screen, as a loop describes it to its model.
#[derive(Debug)]
pub struct ScreenAction {
    /// The tool's name.
    pub name: &'static str,
    /// The syntax of the arguments, and the effect where the name does not tell it.
    pub usage: &'static str,
    pub effect: ScreenEffect,
    /// The schema of the arguments.
    pub schema: Value,
    /// Checks that arguments are those of the tool; the error is worded for the model.
    pub check: fn(&Value) -> Result<(), String>,
}

/// The effect of a tool of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScreenEffect {
    /// It changes something on the page, or elsewhere.
    Acts,
    /// It only changes which part of which page is looked at.
    Goes,
    /// It only looks, so that the absence of a change means nothing.
    Looks,
}

impl ScreenAction {
    /// Describes the tool of these arguments.
    pub fn of<A: Arguments>(effect: ScreenEffect, usage: &'static str) -> Self {
        Self {
            name: A::TOOL,
            usage,
            effect,
            schema: schema_of::<A>(),
            check: |arguments| A::parse(arguments).map(drop).map_err(|wrong| wrong.reason),
        }
    }
}

/// Defines the tools of a screen: their descriptions, the types of the arguments, names, effects,
/// usages, examples, and checks of what the types do not express.
macro_rules! screen_actions {
    ($(
        $(#[$about:meta])*
        $call:ident $name:literal $effect:ident $usage:literal $example:literal
        $(check $check:expr;)?
        { $($(#[$meta:meta])* $argument:ident: $kind:ty,)* }
    )*) => {
        $(
            $(#[$about])*
            #[derive(Debug, Deserialize, JsonSchema)]
            #[serde(deny_unknown_fields)]
            pub struct $call {
                $($(#[$meta])* pub $argument: $kind,)*
            }

            impl Arguments for $call {
                const TOOL: &'static str = $name;
                const EXAMPLE: &'static str = $example;
                $(fn check(&self) -> Result<(), String> {
                    let check: fn(&Self) -> Result<(), String> = $check;
                    check(self)
                })?
            }
        )*

        /// Returns the tools of a screen, in the order of a prompt.
        pub fn screen_actions() -> Vec<ScreenAction> {
            vec![$(ScreenAction::of::<$call>(ScreenEffect::$effect, $usage)),*]
        }
    };
}

screen_actions! {
    /// Clicks an element, or a point of the picture.
    ClickCall "click" Acts
        "{on|at, kind?: double|triple|right|middle, with?: [shift|control|alt|meta], \
         seconds?: holds the button down, fill?: [[\"b3\", \"text\"]]: fills these fields in first, \
         so that a form is asked about once}"
        r#"{"on": "b17", "fill": [["b3", "Ada"], ["b4", "Express"]]}"#
        check |call| one_click(call);
    {
        on: Option<ElementId>,
        /// In place of `on`: [x, y] in pixels of the picture.
        at: Option<[f64; 2]>,
        /// Left out: one click of the left button.
        kind: Option<ClickKind>,
        #[serde(default)]
        #[schemars(length(max = 4))]
        with: Vec<HeldKey>,
        /// Seconds that the button stays down.
        #[schemars(extend("exclusiveMinimum" = 0, "maximum" = MAX_WAIT_SECONDS))]
        seconds: Option<f64>,
        /// Fields of pages with their texts or options, which are filled in before, so that a form
        /// with secrets, or of another site, is asked about once.
        #[serde(default)]
        #[schemars(with = "Vec<Vec<String>>")]
        fill: Vec<FieldText>,
    }

    /// Types text into a field, or where the keyboard is. Also sets date, time, range and colour
    /// fields (2026-01-31, 13:05, 7, #ff0000). `replace` clears the field first, `submit` presses
    /// Enter after.
    TypeTextCall "type_text" Acts
        "{text, on?|at?, replace?: clears the field first, submit?: presses Enter after it}"
        r#"{"on": "b3", "text": "tea", "replace": true, "submit": true}"#
        check |call| at_most_one_target(call.on, call.at);
    {
        text: String,
        /// The field, as b17; without it, where the keyboard is.
        on: Option<ElementId>,
        /// In place of `on`: [x, y] in pixels of the picture.
        at: Option<[f64; 2]>,
        #[serde(default)]
        replace: bool,
        #[serde(default)]
        submit: bool,
    }

    /// Presses a key: Enter, Escape, ArrowDown, Control+a.
    PressKeyCall "press_key" Acts
        "{key: \"Control+a\", on?}"
        r#"{"key": "Control+a", "on": "b3"}"# {
        /// The key, with the keys that are held before it.
        key: String,
        /// The element, as b17; without it, where the keyboard is.
        on: Option<ElementId>,
    }

    /// Selects words on the page or in an element; without words all of the element.
    SelectTextCall "select_text" Acts
        "{text?, on?}: words of the page, or of an element; without words all of it"
        r#"{"text": "the first words", "on": "b4"}"#
        check |call| words_or_element(call);
    {
        /// The words; without them all of the element.
        text: Option<String>,
        /// The element, as b17; without it, the page.
        on: Option<ElementId>,
    }

    /// Chooses an option of a native list by its words; where several have the same, by its value.
    SelectOptionCall "select_option" Acts "{on, option}" r#"{"on": "b5", "option": "Express"}"# {
        on: ElementId,
        option: String,
    }

    /// Turns the wheel over an element, or over the page.
    ScrollCall "scroll" Goes
        "{direction: up|down|left|right, pages?, on?}"
        r#"{"direction": "down", "pages": 1.5, "on": "b6"}"#
        check |call| amount("pages", call.pages, MAX_PAGES);
    {
        direction: ScrollDirection,
        #[schemars(extend("exclusiveMinimum" = 0, "maximum" = MAX_PAGES))]
        pages: Option<f64>,
        /// The element, as b17; without it, the page.
        on: Option<ElementId>,
    }

    /// Brings an element into view.
    ScrollToCall "scroll_to" Goes "{on}" r#"{"on": "b17"}"# { on: ElementId, }

    /// Moves the pointer there, as for menus that open by it.
    HoverCall "hover" Looks "{on|at}" r#"{"at": [320, 48]}"#
        check |call| one_target(call.on, call.at);
    {
        on: Option<ElementId>,
        /// In place of `on`: [x, y] in pixels of the picture.
        at: Option<[f64; 2]>,
    }

    /// Drags from one place to another, through the points `via` if there are any.
    DragCall "drag" Acts
        "{from, to, via?: [[x, y]]}: ids or [x, y]"
        r#"{"from": "b17", "to": [320, 48], "via": [[100, 60]]}"#
        check |call| within(call);
    {
        /// The start: an element, as b17, or [x, y] in pixels of the picture.
        from: DragEnd,
        to: DragEnd,
        /// Points [x, y] of the picture on the way.
        #[serde(default)]
        #[schemars(length(max = MAX_POINTS))]
        via: Vec<[f64; 2]>,
    }

    /// Gives a file of the workspace to a file field or upload button.
    UploadFileCall "upload_file" Acts "{on, path}" r#"{"on": "b8", "path": "report.pdf"}"# {
        /// The file field or upload button, as b17.
        on: ElementId,
        path: String,
    }

    /// Answers the browser's dialog; `text` is for a prompt.
    AnswerDialogCall "answer_dialog" Acts "{accept, text?}" r#"{"accept": true, "text": "Ada"}"# {
        accept: bool,
        text: Option<String>,
    }

    /// Lets a request go that is held because it would send something elsewhere, or not.
    AnswerRequestCall "answer_request" Acts
        "{request, accept}: lets a held request go, or not"
        r#"{"request": 1, "accept": false}"# {
        #[schemars(range(min = 1))]
        request: u32,
        /// Whether it is sent.
        accept: bool,
    }

    /// Asks the person to use the page themselves: to log in, to solve a captcha, to enter a code
    /// that only they get. Returns what they say when they give it back.
    HandOverCall "hand_over" Acts
        "{text}: lets the person use the page, for logins, captchas, codes that only they get"
        r#"{"text": "log in to the shop"}"# {
        /// The things that the person is to do there.
        text: String,
    }

    /// Starts an application of the desktop, by its name, what it is, or its program: Mousepad,
    /// calculator, xterm.
    OpenApplicationCall "open_application" Acts
        "{application, file?}: a name, what it is (calculator), or a program"
        r#"{"application": "text editor", "file": "notes.txt"}"#
    {
        application: String,
        /// The path of a file that it opens.
        file: Option<String>,
    }

    /// Reads the text on the desktop's clipboard; with `text`, puts that there instead.
    DesktopClipboardCall "desktop_clipboard" Acts
        "{text?}: puts the text on the clipboard; without it, reads what is there"
        r#"{"text": "for Control+v"}"# {
        /// The text to put there; without it, the clipboard is read.
        text: Option<String>,
    }

    /// Goes to an http or https address in the current tab.
    OpenUrlCall "open_url" Goes "{url}" r#"{"url": "https://shop.example/"}"# { url: String, }

    /// Goes back one page.
    GoBackCall "go_back" Goes "{}" "{}" {}

    /// Loads the page again, also after a crash.
    ReloadCall "reload" Goes "{}" "{}" {}

    /// Looks at another tab.
    SwitchTabCall "switch_tab" Goes "{tab}" r#"{"tab": 2}"# {
        #[schemars(range(min = 1))]
        tab: u32,
    }

    /// Closes a tab; without a number the current one.
    CloseTabCall "close_tab" Acts "{tab?}" r#"{"tab": 2}"# {
        #[schemars(range(min = 1))]
        tab: Option<u32>,
    }

    /// Finds elements by words in their name or value, also out of view.
    FindCall "find" Looks
        "{text}: searches the whole page, also what is not shown here"
        r#"{"text": "total"}"# { text: String, }

    /// The text of an element, or of the whole page with its frames, or of a PDF, in pieces.
    ExtractCall "extract" Looks
        "{on?, pages?: the number of the piece}: the readable text, of a PDF too; you see it once, \
         put what matters into your memo"
        r#"{"on": "b9", "pages": 2}"#
        check |call| amount("pages", call.pages, MAX_PIECES);
    {
        /// The element, as b17; without it, the whole page.
        on: Option<ElementId>,
        /// The number of the piece, the first without it.
        #[schemars(extend("exclusiveMinimum" = 0, "maximum" = MAX_PIECES))]
        pages: Option<f64>,
    }

    /// Waits so many seconds; without a number until the page changes by itself, at most 10
    /// seconds.
    WaitCall "wait" Looks
        "{seconds?}: so long, at most 10; without it until something changes"
        r#"{"seconds": 2}"#
        check |call| amount("seconds", call.seconds, MAX_WAIT_SECONDS);
    {
        #[schemars(extend("exclusiveMinimum" = 0, "maximum" = MAX_WAIT_SECONDS))]
        seconds: Option<f64>,
    }

    /// A picture of the page.
    TakeScreenshotCall "take_screenshot" Looks
        "{}: you see the picture next"
        "{}"
    {}
}

/// The kind of a click, beside one of the left button.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClickKind {
    Double,
    Triple,
    Right,
    Middle,
}

/// A key that is held during a click.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HeldKey {
    Shift,
    Control,
    Alt,
    Meta,
}

/// A field, and a text for it or the option of a list.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct FieldText(pub ElementId, pub String);

/// The direction of a scroll.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ScrollDirection {
    Up,
    Down,
    Left,
    Right,
}

/// One end of a drag: an element or a point of the picture.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum DragEnd {
    Element(ElementId),
    Point([f64; 2]),
}

fn one_target(on: Option<ElementId>, at: Option<[f64; 2]>) -> Result<(), String> {
    match (on, at) {
        (Some(_), Some(_)) => {
            Err("it has both `on` and `at`; give the one that is meant".to_owned())
        }
        (None, None) => Err("one of `on` and `at` is needed".to_owned()),
        (None, Some(point)) => inside(&[point]),
        (Some(_), None) => Ok(()),
    }
}

fn one_click(call: &ClickCall) -> Result<(), String> {
    let is_plain = call.kind.is_none() && call.with.is_empty();
    let fields: std::collections::BTreeSet<_> = call.fill.iter().map(|one| one.0).collect();
    if !is_plain && (call.seconds.is_some() || !call.fill.is_empty()) {
        return Err("`seconds` and `fill` belong to a plain click".to_owned());
    }
    amount("seconds", call.seconds, MAX_WAIT_SECONDS)?;
    if fields.len() < call.fill.len() || call.fill.len() > MAX_FILLED {
        return Err(format!(
            "`fill` has at most {MAX_FILLED} fields, and each of them once"
        ));
    }
    if !call.fill.is_empty() && call.on.is_none_or(|on| fields.contains(&on)) {
        return Err("`fill` needs `on`: the button to press after it".to_owned());
    }
    one_target(call.on, call.at)
}

fn at_most_one_target(on: Option<ElementId>, at: Option<[f64; 2]>) -> Result<(), String> {
    match (on, at) {
        (None, None) => Ok(()),
        (on, at) => one_target(on, at),
    }
}

fn words_or_element(call: &SelectTextCall) -> Result<(), String> {
    match (&call.text, call.on) {
        (None, None) => Err("one of `text` and `on` is needed".to_owned()),
        _ => Ok(()),
    }
}

fn within(call: &DragCall) -> Result<(), String> {
    if call.via.len() > MAX_POINTS {
        return Err(format!("`via` has more than {MAX_POINTS} points"));
    }
    for end in [call.from, call.to] {
        if let DragEnd::Point(point) = end {
            inside(&[point])?;
        }
    }
    inside(&call.via)
}

fn inside(points: &[[f64; 2]]) -> Result<(), String> {
    if points.iter().flatten().all(|at| (0.0..1e5).contains(at)) {
        Ok(())
    } else {
        Err("a point lies outside of the picture".to_owned())
    }
}

fn amount(name: &str, given: Option<f64>, most: f64) -> Result<(), String> {
    if given.is_none_or(|given| given > 0.0 && given <= most) {
        Ok(())
    } else {
        Err(format!(
            "`{name}` must be a number above 0 and at most {most}"
        ))
    }
}

impl JsonSchema for ElementId {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ElementId".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": "^[a-z]+[1-9][0-9]*$", "description": "Element, as b17"})
    }
}

/// The target of a typed text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TypedInto {
    Element(ElementId),
    /// Into the element at this point of the picture.
    Point(f64, f64),
    /// Into the element with the keyboard focus.
    Focused,
}

impl TypedInto {
    /// Returns the target of a call of a screen tool, from its arguments `on` and `at`.
    pub fn of(arguments: &Map<String, Value>) -> Self {
        let element = arguments.get("on").and_then(Value::as_str);
        if let Some(id) = element.and_then(|id| id.parse().ok()) {
            return Self::Element(id);
        }
        let at = arguments.get("at").and_then(Value::as_array);
        match at.map(Vec::as_slice) {
            Some([x, y]) => match (x.as_f64(), y.as_f64()) {
                (Some(x), Some(y)) => Self::Point(x, y),
                _ => Self::Focused,
            },
            _ => Self::Focused,
        }
    }
}

/// Returns the argument of a [`TypeTextCall`](crate::TypeTextCall) with the text to type.
pub fn typed_text(arguments: &mut Map<String, Value>) -> Option<&mut String> {
    match arguments.get_mut("text") {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}

/// Returns the fields that a [`ClickCall`](crate::ClickCall) fills in, with their texts.
pub fn fields_filled(
    arguments: &mut Map<String, Value>,
) -> impl Iterator<Item = (ElementId, &mut String)> {
    let fields = arguments.get_mut("fill").and_then(Value::as_array_mut);
    let fields = fields.into_iter().flatten();
    fields.filter_map(|field| match field.as_array_mut()?.as_mut_slice() {
        [Value::String(on), Value::String(text)] => Some((on.parse().ok()?, text)),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_are_those_of_their_tool() {
        let actions = screen_actions();
        for (tool, given, expected) in [
            ("click", json!({"on": "b17"}), ""),
            (
                "click",
                json!({"at": [1, 2.5], "kind": null, "with": ["alt"]}),
                "",
            ),
            ("click", json!("{\"on\": \"b17\"}"), ""),
            ("click", json!({}), "one of `on` and `at` is needed"),
            ("click", json!({"on": "b17", "at": [1, 2]}), "both"),
            ("click", json!({"at": [-1, 2]}), "outside"),
            ("click", json!({"at": ["1", 2]}), "invalid type"),
            ("click", json!({"at": [1]}), "invalid length"),
            ("click", json!({"on": "17"}), "an element"),
            ("click", json!({"on": "b1", "seconds": 11}), "at most 10"),
            (
                "click",
                json!({"on": "b1", "seconds": 9, "kind": "right"}),
                "plain",
            ),
            (
                "click",
                json!({"on": "b1", "fill": [["b2", ""], ["b2", "x"]]}),
                "once",
            ),
            (
                "click",
                json!({"at": [1, 2], "fill": [["b2", "x"]]}),
                "needs `on`",
            ),
            (
                "click",
                json!({"on": "b17", "with": ["hyper"]}),
                "unknown variant",
            ),
            (
                "click",
                json!({"on": "b17", "knid": "right"}),
                "unknown argument `knid`, expected one of `on`, `at`, `kind`, `with`, `seconds`, `fill`",
            ),
            (
                "click",
                json!({"on": "b17", "button": "right"}),
                "unknown argument `button`",
            ),
            (
                "type_text",
                json!({"text": null}),
                "missing argument `text`",
            ),
            ("drag", json!({"from": "b1", "to": [3, 4]}), ""),
            (
                "drag",
                json!({"from": "b1", "to": "b2", "via": [[1, -2]]}),
                "outside",
            ),
            ("wait", json!({"seconds": 11}), "at most 10"),
            (
                "scroll",
                json!({"direction": "down", "pages": 0}),
                "above 0",
            ),
            ("select_text", json!({}), "one of `text` and `on` is needed"),
            ("open_url", json!({}), "missing argument `url`"),
            ("switch_tab", json!({"tab": -1}), "invalid value"),
            ("go_back", json!({"pages": 2}), "unknown argument `pages`"),
        ] {
            let action = actions.iter().find(|action| action.name == tool);
            match (action.unwrap().check)(&given) {
                Ok(()) => assert_eq!(expected, "", "{given}"),
                Err(why) => assert!(
                    !expected.is_empty() && why.contains(expected),
                    "{given}: {why}"
                ),
            }
        }
    }

    #[test]
    fn usages_name_every_argument() {
        for action in screen_actions() {
            for name in action.schema["properties"].as_object().unwrap().keys() {
                assert!(
                    action.usage.contains(name.as_str()),
                    "{} {name}",
                    action.name
                );
            }
        }
    }
}
