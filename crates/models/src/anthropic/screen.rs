//! The provider's tools for a computer: `computer_toolset_20260801`, without any beta header. Its
//! calls are `tool_use` blocks named after the action, with `toolset_name`; points are pixels of
//! the picture as it was sent. Shapes: the provider's own TypeScript library, version 1.12 of
//! November 2026.
//!
//! A picture that the provider would scale down first would have other pixels; those of a screen
//! are never so large.

use gyrus_contract::ScreenSize;
use serde_json::{Value, json};

use crate::screen::{Act, held, notches, presses};

/// Name of the set in calls.
pub(super) const TOOLSET: &str = "computer";

/// Actions without an equivalent among the screen's tools.
const WITHHELD: [&str; 5] = [
    "cursor_position",
    "hold_key",
    "left_mouse_down",
    "left_mouse_up",
    "zoom",
];

/// Returns the definition of the set for a request.
pub(super) fn tool() -> Value {
    let off = WITHHELD.map(|name| (name.to_owned(), json!({"enabled": false})));
    let configs: serde_json::Map<_, _> = off.into_iter().collect();
    json!({"type": "computer_toolset_20260801", "configs": configs})
}

/// Translates a call into the screen's tools.
pub(super) fn acts(name: &str, input: &Value, shown: ScreenSize) -> Vec<Act> {
    let at = &input["coordinate"];
    let words = |field: &str| input[field].as_str().unwrap_or_default().to_owned();
    let chord = words("text");
    let keys = || chord.split('+').filter(|key| !key.is_empty());
    let click = |kind: Value| {
        vec![Act::new(
            "click",
            json!({"at": at, "kind": kind, "with": held(keys())}),
        )]
    };
    match name {
        "left_click" => click(Value::Null),
        "right_click" => click("right".into()),
        "middle_click" => click("middle".into()),
        "double_click" => click("double".into()),
        "triple_click" => click("triple".into()),
        "mouse_move" => vec![Act::new("hover", json!({"at": at}))],
        "left_click_drag" => vec![Act::new(
            "drag",
            json!({"from": input["start_coordinate"], "to": at}),
        )],
        "type" => vec![Act::new("type_text", json!({"text": input["text"]}))],
        "key" => {
            let times = input["repeat"].as_u64().unwrap_or(1).clamp(1, 100);
            (0..times).flat_map(|_| presses(keys())).collect()
        }
        "scroll" => {
            let direction = words("scroll_direction");
            let length = if ["left", "right"].contains(&direction.as_str()) {
                shown.width
            } else {
                shown.height
            };
            let amount = input["scroll_amount"]
                .as_f64()
                .map(|amount| notches(amount, length));
            vec![Act::new(
                "scroll",
                json!({"direction": direction, "pages": amount, "at": at}),
            )]
        }
        "wait" => vec![Act::new("wait", Value::Null)],
        "screenshot" => vec![Act::new("take_screenshot", Value::Null)],
        _ => vec![Act::new(name, input.clone())],
    }
}
