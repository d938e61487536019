//! Parsing a reply that calls a provider's own screen tool.
//!
//! The provider's client has translated the calls into the names of our actions. They are parsed as
//! an object of the same form as any reply, so that the same limits hold: at most five, points
//! inside of the picture, known names. Text beside them is the model's note, or an object with note
//! and memo; actions in both places are an error.

use gyrus_contract::{
    Arguments as _, Bounds, CONFIRM, Element, ElementState, ScrollCall, ToolCall, View,
};
use serde_json::{Map, Value, json};

use super::reply::{ReplyChoices, UsableReply, understood};
use crate::json::the_object;

/// Parses calls and accompanying text; the error tells the model the mistake.
pub(super) fn read(
    calls: &[&ToolCall],
    text: &str,
    offered: ReplyChoices<'_>,
    view: Option<&View>,
) -> Result<UsableReply, String> {
    let (confirms, acts): (Vec<&ToolCall>, Vec<&ToolCall>) =
        calls.iter().partition(|call| call.tool == CONFIRM);
    if let Ok(object) = the_object(text, "actions")
        && object["actions"]
            .as_array()
            .is_none_or(|listed| !listed.is_empty())
    {
        return Err(
            "it has both `actions` and calls of a tool; give the one that is meant".to_owned(),
        );
    }
    let mut object = the_object(text, "note")
        .or_else(|_| the_object(text, "memo"))
        .unwrap_or_else(|_| Map::from_iter([("note".to_owned(), json!(text))]));
    let actions = acts.iter().map(|call| action(call, view));
    object.insert("actions".to_owned(), actions.collect());
    let mut reply = understood(object, offered)?;
    reply.confirm = confirms
        .iter()
        .map(|call| {
            call.arguments["why"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        })
        .collect();
    Ok(reply)
}

/// Converts a call to an action. The target of a scroll is an element here and a point at some
/// providers.
fn action(call: &ToolCall, view: Option<&View>) -> Value {
    let Some(mut fields) = call.arguments.as_object().cloned() else {
        return json!({ "do": call.tool });
    };
    if call.tool == ScrollCall::TOOL
        && let Some(at) = fields.remove("at")
        && let Some(element) = view.and_then(|view| scrolls_at(view, &at))
    {
        fields.insert("on".to_owned(), element.id.to_string().into());
    }
    fields.insert("do".to_owned(), call.tool.clone().into());
    fields.into()
}

/// Returns the innermost scrolling element around a point.
fn scrolls_at<'a>(view: &'a View, at: &Value) -> Option<&'a Element> {
    let [x, y] = [0, 1].map(|axis| at[axis].as_f64());
    let (x, y) = (x? as i32, y? as i32);
    let is_there = |bounds: &Bounds| bounds.contains(x, y);
    let around = view.elements.iter().filter(|element| {
        element.states.contains(&ElementState::Scrolls)
            && element.bounds.as_ref().is_some_and(is_there)
    });
    around.max_by_key(|element| element.depth)
}

#[cfg(test)]
mod tests {
    use super::{
        super::{
            reply::{Deeds, offered_by},
            samples,
        },
        *,
    };

    fn told(calls: &[(&str, Value)], text: &str) -> String {
        let calls: Vec<_> = calls
            .iter()
            .map(|(tool, arguments)| ToolCall::new(*tool, arguments.clone()))
            .collect();
        let calls: Vec<_> = calls.iter().collect();
        let mut view = samples::shop();
        let list = view
            .elements
            .iter_mut()
            .find(|element| element.role == "list");
        let list = list.unwrap();
        list.states.insert(ElementState::Scrolls);
        list.bounds = Some(Bounds {
            x: 0,
            y: 300,
            width: 900,
            height: 400,
        });
        let actions = offered_by(["click", "type_text", "scroll"].into_iter());
        let offered = ReplyChoices {
            actions: &actions,
            frame: Some((1280, 800)),
        };
        match read(&calls, text, offered, Some(&view)) {
            Err(why) => format!("error: {why}"),
            Ok(reply) => {
                let Deeds::Calls(calls) = &reply.deeds else {
                    return "finish".to_owned();
                };
                let calls: Vec<_> = calls
                    .iter()
                    .map(|call| format!("{} {}", call.tool, call.arguments))
                    .collect();
                format!(
                    "{:?} {:?} {:?} {}",
                    reply.note,
                    reply.memo,
                    reply.confirm,
                    calls.join(" ")
                )
            }
        }
    }

    #[test]
    fn calls_are_read_as_actions_are() {
        let click = |x: i32, y: i32| ("click", json!({"at": [x, y]}));
        let cases = [
            told(&[click(5, 6)], "I press it."),
            told(&[click(5, 6), ("type_text", json!({"text": "a"}))], ""),
            told(
                &[click(5, 6)],
                r#"{"note": "n", "memo": [{"key": "k", "text": "t"}], "actions": []}"#,
            ),
            told(
                &[click(5, 6)],
                r#"{"note": "n", "actions": [{"do": "click", "on": "b1"}]}"#,
            ),
            told(&[click(1280, 6)], ""),
            told(&[click(-1, 6)], ""),
            told(&[("triple_click", json!({"at": [5, 6]}))], ""),
            told(&[("click", json!({"at": ["left", 6]}))], ""),
            told(&[("click", json!("what"))], ""),
            told(
                &[
                    click(1, 1),
                    click(2, 2),
                    click(3, 3),
                    click(4, 4),
                    click(5, 5),
                    click(6, 6),
                ],
                "",
            ),
            told(
                &[("scroll", json!({"at": [100, 400], "direction": "down"}))],
                "",
            ),
            told(
                &[("scroll", json!({"at": [1000, 400], "direction": "down"}))],
                "",
            ),
            told(&[(CONFIRM, json!({"why": "It may buy."})), click(5, 6)], ""),
            told(&[(CONFIRM, json!({"why": "It may buy."}))], ""),
        ];
        insta::assert_snapshot!(cases.join("\n"), @r#"
        "I press it." [] [] click {"at":[5,6]}
        "" [] [] click {"at":[5,6]} type_text {"text":"a"}
        "n" [("k", "t")] [] click {"at":[5,6]}
        error: it has both `actions` and calls of a tool; give the one that is meant
        error: action 1: `at` lies outside of the picture, which is 1280 by 800 pixels
        error: action 1: `at` lies outside of the picture, which is 1280 by 800 pixels
        error: action 1: there is no action `triple_click`; there are click, type_text, scroll, finish
        error: action 1: `at` must be [x, y] in pixels of the picture, or an id
        error: action 1: one of `on` and `at` is needed; the syntax is click{on|at, kind?: double|triple|right|middle, with?: [shift|control|alt|meta], seconds?: holds the button down, fill?: [["b3", "text"]]: fills these fields in first, so that a form is asked about once}
        error: `actions` has 6 actions; give one to 5
        "" [] [] scroll {"direction":"down","on":"b18"}
        "" [] [] scroll {"direction":"down"}
        "" [] ["It may buy."] click {"at":[5,6]}
        error: `actions` has 0 actions; give one to 5
        "#);
    }
}
