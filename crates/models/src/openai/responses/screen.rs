//! The provider's tool for a computer, `computer`: one `computer_call` holds a list of actions and
//! the safety checks that a person has to look at. Points are pixels of the picture as it was
//! sent, which is why it is sent with all its pixels. Shapes: the provider's own TypeScript
//! library, version 6.49 of November 2026; the one action of older models is read as a list of one.

use gyrus_contract::ScreenSize;
use serde_json::{Value, json};

use crate::screen::{Act, held, pages, presses};

/// Returns the definition of the tool for a request.
pub(super) fn tool() -> Value {
    json!({"type": "computer"})
}

/// Sets the detail of pictures to the one that keeps their size.
pub(super) fn keep_pixels(body: &mut Value) {
    let items = body["input"].as_array_mut().into_iter().flatten();
    let parts = items.flat_map(|item| item["content"].as_array_mut().into_iter().flatten());
    for part in parts.filter(|part| part["type"] == "input_image") {
        part["detail"] = "original".into();
    }
}

/// Translates a call into the screen's tools: first what a person must confirm, then the actions.
pub(super) fn acts(item: &Value, shown: ScreenSize) -> Vec<Act> {
    let checks = item["pending_safety_checks"]
        .as_array()
        .into_iter()
        .flatten();
    let checks = checks.map(|check| match &check["message"] {
        Value::String(_) => Act::confirm(&check["message"]),
        _ => Act::confirm(&check["code"]),
    });
    let mut acts: Vec<_> = checks.collect();
    match &item["actions"] {
        Value::Array(actions) => acts.extend(actions.iter().flat_map(|it| act(it, shown))),
        _ => acts.extend(act(&item["action"], shown)),
    }
    acts
}

fn act(action: &Value, shown: ScreenSize) -> Vec<Act> {
    let at = json!([action["x"], action["y"]]);
    let keys = || {
        action["keys"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
    };
    let kind = action["type"]
        .as_str()
        .unwrap_or("an action without a type");
    match kind {
        "click" => match action["button"].as_str() {
            Some("back") => vec![Act::new("go_back", Value::Null)],
            button => {
                let kind = match button {
                    None | Some("left") => Value::Null,
                    Some("wheel") => "middle".into(),
                    Some(other) => other.into(),
                };
                vec![Act::new(
                    "click",
                    json!({"at": at, "kind": kind, "with": held(keys())}),
                )]
            }
        },
        "double_click" => vec![Act::new(
            "click",
            json!({"at": at, "kind": "double", "with": held(keys())}),
        )],
        "move" => vec![Act::new("hover", json!({"at": at}))],
        "drag" => {
            let path = action["path"].as_array().map_or(&[][..], Vec::as_slice);
            let end = |point: Option<&Value>| point.map(|point| json!([point["x"], point["y"]]));
            vec![Act::new(
                "drag",
                json!({"from": end(path.first()), "to": end(path.last())}),
            )]
        }
        "type" => vec![Act::new("type_text", json!({"text": action["text"]}))],
        "keypress" => presses(keys()),
        "scroll" => {
            let along = |name: &str| action[name].as_f64().unwrap_or(0.0);
            let (across, down) = (along("scroll_x"), along("scroll_y"));
            let (direction, pages) = match across.abs() > down.abs() {
                true if across < 0.0 => ("left", pages(across, shown.width)),
                true => ("right", pages(across, shown.width)),
                false if down < 0.0 => ("up", pages(down, shown.height)),
                false => ("down", pages(down, shown.height)),
            };
            vec![Act::new(
                "scroll",
                json!({"direction": direction, "pages": pages, "at": at}),
            )]
        }
        "wait" => vec![Act::new("wait", Value::Null)],
        "screenshot" => vec![Act::new("take_screenshot", Value::Null)],
        other => vec![Act::new(other, action.clone())],
    }
}
