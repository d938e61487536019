//! The actions of a model on a screen: names, arguments, and their syntax in a reply.
//!
//! One table serves the prompt, the schema and the parser of replies. The tools themselves are
//! defined elsewhere; actions whose tool the run does not have are not offered.

use serde_json::{Value, json};

/// The type of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// An element's id.
    Element,
    /// Pixels of the frame: `[x, y]`.
    Point,
    /// An element's id or pixels of the frame.
    Place,
    /// A text.
    Text,
    /// Yes or no.
    Flag,
    /// A list of points on a path.
    Points,
    /// A number above 0, at most twenty.
    Amount,
    /// A number above 0, at most ten.
    Seconds,
    /// An integer, counted from 1.
    Number,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// Some of these words.
    SomeOf(&'static [&'static str]),
}

/// One argument.
#[derive(Debug, Clone, Copy)]
pub(super) struct Argument {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) is_required: bool,
}

const fn needs(name: &'static str, kind: Kind) -> Argument {
    Argument {
        name,
        kind,
        is_required: true,
    }
}

const fn takes(name: &'static str, kind: Kind) -> Argument {
    Argument {
        name,
        kind,
        is_required: false,
    }
}

/// An action.
#[derive(Debug)]
pub(super) struct Action {
    /// The name of the tool.
    pub(super) name: &'static str,
    /// The syntax, and the effect where the name does not tell it.
    pub(super) usage: &'static str,
    pub(super) arguments: &'static [Argument],
    /// Whether `on` or `at` is required.
    pub(super) is_pointed: bool,
    /// Whether it only looks, so that the absence of a change means nothing.
    pub(super) only_looks: bool,
}

const MODIFIERS: &[&str] = &["shift", "control", "alt", "meta"];
const ON: Argument = takes("on", Kind::Element);
const AT: Argument = takes("at", Kind::Point);

const fn action(name: &'static str, usage: &'static str, arguments: &'static [Argument]) -> Action {
    Action {
        name,
        usage,
        arguments,
        is_pointed: false,
        only_looks: false,
    }
}

const fn pointed(action: Action) -> Action {
    Action {
        is_pointed: true,
        ..action
    }
}

const fn looking(action: Action) -> Action {
    Action {
        only_looks: true,
        ..action
    }
}

pub(super) const OPEN_URL: &str = "open_url";
pub(super) const GO_BACK: &str = "go_back";
pub(super) const RELOAD: &str = "reload";
pub(super) const SCROLL: &str = "scroll";
pub(super) const WAIT: &str = "wait";
/// The argument that limits a wait.
pub(super) const SECONDS: &str = "seconds";
pub(super) const DRAG: &str = "drag";
pub(super) const TAKE_SCREENSHOT: &str = "take_screenshot";
pub(super) const EXTRACT: &str = "extract";
pub(super) const FIND: &str = "find";
pub(super) const FINISH: &str = "finish";

/// All actions, in the order of the prompt.
pub(super) const ACTIONS: [Action; 23] = [
    pointed(action(
        "click",
        "{on|at, kind?: double|triple|right|middle, with?: [shift|control|alt|meta]}",
        &[
            ON,
            AT,
            takes(
                "kind",
                Kind::OneOf(&["double", "triple", "right", "middle"]),
            ),
            takes("with", Kind::SomeOf(MODIFIERS)),
        ],
    )),
    action(
        "type_text",
        "{text, on?|at?, replace?: clears the field first, submit?: presses Enter after it}",
        &[
            needs("text", Kind::Text),
            ON,
            AT,
            takes("replace", Kind::Flag),
            takes("submit", Kind::Flag),
        ],
    ),
    action(
        "press_key",
        "{key: \"Control+a\", on?}",
        &[needs("key", Kind::Text), ON],
    ),
    action(
        "select_text",
        "{text?, on?}: words of the page, or of an element; without words all of it",
        &[takes("text", Kind::Text), ON],
    ),
    action(
        "select_option",
        "{on, option}",
        &[needs("on", Kind::Element), needs("option", Kind::Text)],
    ),
    action(
        SCROLL,
        "{direction: up|down|left|right, pages?, on?}",
        &[
            needs("direction", Kind::OneOf(&["up", "down", "left", "right"])),
            takes("pages", Kind::Amount),
            ON,
        ],
    ),
    action("scroll_to", "{on}", &[needs("on", Kind::Element)]),
    pointed(looking(action("hover", "{on|at}", &[ON, AT]))),
    action(
        DRAG,
        "{from, to, via?: [[x, y]]}: ids or [x, y]",
        &[
            needs("from", Kind::Place),
            needs("to", Kind::Place),
            takes("via", Kind::Points),
        ],
    ),
    action(
        "upload_file",
        "{on, path}",
        &[needs("on", Kind::Element), needs("path", Kind::Text)],
    ),
    action(
        "answer_dialog",
        "{accept, text?}",
        &[needs("accept", Kind::Flag), takes("text", Kind::Text)],
    ),
    action(
        "answer_request",
        "{request, accept}: lets a held request go, or not",
        &[needs("request", Kind::Number), needs("accept", Kind::Flag)],
    ),
    action(
        "hand_over",
        "{reason}: lets the person use the page, for logins, captchas, codes that only they get",
        &[needs("reason", Kind::Text)],
    ),
    action(OPEN_URL, "{url}", &[needs("url", Kind::Text)]),
    action(GO_BACK, "{}", &[]),
    action(RELOAD, "{}", &[]),
    action("switch_tab", "{tab}", &[needs("tab", Kind::Number)]),
    action("close_tab", "{tab?}", &[takes("tab", Kind::Number)]),
    looking(action(
        FIND,
        "{text}: searches the whole page, also what is not shown here",
        &[needs("text", Kind::Text)],
    )),
    looking(action(
        EXTRACT,
        "{on?}: the readable text; you see it once, put what matters into your memo",
        &[ON],
    )),
    looking(action(
        WAIT,
        "{seconds?}: so long, at most 10; without it until something changes",
        &[takes(SECONDS, Kind::Seconds)],
    )),
    looking(action(TAKE_SCREENSHOT, "{}: you see the picture next", &[])),
    action(
        FINISH,
        "{token, reached, answer}: ends the work; alone, and only after you have seen the outcome",
        &[
            takes("token", Kind::Text),
            needs("reached", Kind::Flag),
            needs("answer", Kind::Text),
        ],
    ),
];

/// Returns the action of this name.
pub(super) fn named(name: &str) -> Option<&'static Action> {
    ACTIONS.iter().find(|action| action.name == name)
}

/// Returns the schema of a reply with these actions. Every action has the same schema: a choice
/// between twenty would be more than providers accept.
pub(super) fn schema(actions: &[&Action]) -> Value {
    let names: Vec<_> = actions.iter().map(|action| action.name).collect();
    let mut properties = serde_json::Map::new();
    properties.insert("do".to_owned(), json!({"type": "string", "enum": names}));
    for argument in actions.iter().flat_map(|action| action.arguments) {
        properties
            .entry(argument.name)
            .or_insert_with(|| type_of(argument.kind));
    }
    let closed = |properties: Value, required: Value| {
        json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        })
    };
    let change = closed(
        json!({"key": {"type": "string"}, "text": {"type": "string"}}),
        json!(["key", "text"]),
    );
    closed(
        json!({
            "note": {"type": "string"},
            "memo": {"type": "array", "items": change},
            "actions": {"type": "array", "items": closed(properties.into(), json!(["do"]))},
            "expects": {"type": "string"},
        }),
        json!(["note", "memo", "actions", "expects"]),
    )
}

fn type_of(kind: Kind) -> Value {
    let point = || json!({"type": "array", "items": {"type": "number"}});
    match kind {
        Kind::Element | Kind::Text => json!({"type": "string"}),
        Kind::Point => point(),
        Kind::Points => json!({"type": "array", "items": point()}),
        Kind::Place => json!({"anyOf": [{"type": "string"}, point()]}),
        Kind::Flag => json!({"type": "boolean"}),
        Kind::Amount | Kind::Seconds => json!({"type": "number"}),
        Kind::Number => json!({"type": "integer"}),
        Kind::OneOf(words) => json!({"type": "string", "enum": words}),
        Kind::SomeOf(words) => json!({"type": "array", "items": {"type": "string", "enum": words}}),
    }
}
