//! The provider's tool for a browser, `computerUse`: it declares functions by itself, whose calls
//! come as any others. Points are thousandths of the picture, 0 to 999; what a person has to
//! confirm stands in the argument `safety_decision`. Shapes: the provider's own TypeScript library,
//! version 2.32 of November 2026, and its reference agent of June 2026; where they differ from
//! older pages about the names of arguments, both are read.

use gyrus_contract::ScreenSize;
use serde_json::{Value, json};

use crate::screen::{Act, presses};

/// Functions without an equivalent among the screen's tools.
const EXCLUDED: [&str; 5] = ["mouse_down", "mouse_up", "key_down", "key_up", "go_forward"];

/// Returns the definition of the tool for a request.
pub(super) fn tool() -> Value {
    json!({"computerUse": {
        "environment": "ENVIRONMENT_BROWSER",
        "excludedPredefinedFunctions": EXCLUDED,
    }})
}

/// Translates a call into calls of the screen's tools, after the confirmation that it requires.
pub(super) fn acts(name: &str, input: &Value, shown: ScreenSize) -> Vec<Act> {
    let decision = &input["safety_decision"];
    let mut acts = match decision["decision"].as_str() {
        None | Some("regular" | "allowed") => Vec::new(),
        // An action that the provider forbids is not translated, even with a person's approval.
        Some("blocked") => return vec![Act::new("blocked", Value::Null)],
        Some(_) => vec![Act::confirm(&decision["explanation"])],
    };
    acts.extend(plain(name, input, shown));
    acts
}

fn plain(name: &str, input: &Value, shown: ScreenSize) -> Vec<Act> {
    let point = |x: [&str; 2], y: [&str; 2]| {
        let along = |names: [&str; 2], length: u32| {
            let given = names.iter().find_map(|name| input[*name].as_f64());
            given.map(|thousandths| thousandths * f64::from(length) / 1000.0)
        };
        json!([along(x, shown.width), along(y, shown.height)])
    };
    let at = || point(["x", "start_x"], ["y", "start_y"]);
    let click = |kind: Value| vec![Act::new("click", json!({"at": at(), "kind": kind}))];
    match name {
        "click" => click(Value::Null),
        "double_click" => click("double".into()),
        "triple_click" => click("triple".into()),
        "right_click" => click("right".into()),
        "middle_click" => click("middle".into()),
        "move" => vec![Act::new("hover", json!({"at": at()}))],
        "drag_and_drop" => {
            let to = point(["destination_x", "end_x"], ["destination_y", "end_y"]);
            vec![Act::new("drag", json!({"from": at(), "to": to}))]
        }
        "type" => {
            let submit = (input["press_enter"] == true).then_some(true);
            vec![Act::new(
                "type_text",
                json!({"text": input["text"], "submit": submit}),
            )]
        }
        "press_key" => presses(input["key"].as_str()),
        "hotkey" => match &input["keys"] {
            Value::String(chord) => presses(chord.split('+')),
            keys => presses(
                keys.as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(Value::as_str),
            ),
        },
        "scroll" => {
            let pages = input["magnitude"]
                .as_f64()
                .map(|thousandths| thousandths / 1000.0);
            vec![Act::new(
                "scroll",
                json!({"direction": input["direction"], "pages": pages, "at": at()}),
            )]
        }
        "navigate" => vec![Act::new("open_url", json!({"url": input["url"]}))],
        "go_back" => vec![Act::new("go_back", Value::Null)],
        "wait" => vec![Act::new("wait", Value::Null)],
        "take_screenshot" => vec![Act::new("take_screenshot", Value::Null)],
        _ => vec![Act::new(name, input.clone())],
    }
}
