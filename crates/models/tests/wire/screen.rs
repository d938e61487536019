//! A provider's own tool for screens: offered where a person chose it, with its calls translated
//! into the screen's tools.

use std::sync::Arc;

use gyrus_contract::{BlobId, Image, Message, Origin, Part, Prompt, Reply, Role, ScreenSize, Text};
use gyrus_models::ModelFacts;
use serde_json::{Value, json};

use crate::{
    anthropic::Messages,
    dialect::Dialect,
    gemini::Gemini,
    prompts::{PIXEL, connection, plain_prompt, streamed},
    responses::Responses,
    server::Server,
};

fn prompt() -> Prompt {
    let picture = Image {
        blob: BlobId::of(PIXEL),
        media_type: "image/png".to_owned(),
        width: 1280,
        height: 800,
    };
    let text = Text::new("the screen", Origin::Person);
    Prompt {
        messages: vec![Arc::new(Message {
            role: Role::User,
            parts: vec![Part::Text(text), Part::Image(picture)],
        })],
        tools: Vec::new(),
        must_call: false,
        output_schema: Some(json!({"type": "object"})),
        screen: Some(ScreenSize {
            width: 1280,
            height: 800,
        }),
        ..plain_prompt()
    }
}

/// Returns the request, and the reply for a stream.
async fn asked(dialect: &dyn Dialect, stream: &str, screen_tool: Option<bool>) -> (Value, Reply) {
    let server = Server::start(vec![streamed(dialect, stream)]).await;
    let mut connection = connection(dialect, &server.url, None);
    connection.facts = ModelFacts {
        screen_tool,
        ..connection.facts
    };
    let model = dialect.model(connection);
    let reply = model.reply(&prompt(), &mut |_| {}).await.unwrap();
    (server.asked()[0].body.clone(), reply)
}

fn shown(reply: &Reply) -> String {
    let parts: Vec<_> = reply
        .parts
        .iter()
        .filter_map(|part| match part {
            Part::Text(text) => Some(format!("text {:?}", text.text)),
            Part::ToolCall(call) => Some(format!("{} {}", call.tool, call.arguments)),
            Part::Image(_) | Part::Thinking(_) | Part::ToolResult(_) => None,
        })
        .collect();
    parts.join("\n")
}

/// Returns a stream of Messages with these calls.
fn messages(calls: &[(&str, Value)]) -> String {
    let mut events = vec![json!({
        "type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 9}},
    })];
    for (index, (name, input)) in calls.iter().enumerate() {
        let block = json!({
            "type": "tool_use", "id": format!("t{index}"), "name": name, "input": {},
            "toolset_name": "computer",
        });
        events.extend([
            json!({"type": "content_block_start", "index": index, "content_block": block}),
            json!({"type": "content_block_delta", "index": index, "delta": {
                "type": "input_json_delta", "partial_json": input.to_string(),
            }}),
            json!({"type": "content_block_stop", "index": index}),
        ]);
    }
    events.push(json!({
        "type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 1},
    }));
    events.push(json!({"type": "message_stop"}));
    let line = |event: &Value| {
        let name = event["type"].as_str().unwrap();
        format!("event: {name}\ndata: {event}\n\n")
    };
    events.iter().map(line).collect()
}

/// Returns a stream of Responses with these items.
fn responses(items: &[Value]) -> String {
    let done = items.iter().enumerate().map(
        |(index, item)| json!({"type": "response.output_item.done", "output_index": index, "item": item}),
    );
    let usage = json!({"input_tokens": 9, "output_tokens": 1});
    let end = json!({"type": "response.completed", "response": {"model": "m", "usage": usage}});
    let line = |event: Value| {
        format!(
            "event: {}\ndata: {event}\n\n",
            event["type"].as_str().unwrap()
        )
    };
    done.chain([end]).map(line).collect()
}

/// Returns a stream of Gemini with these parts.
fn gemini(parts: &[Value]) -> String {
    let event = json!({
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 1},
        "modelVersion": "m",
    });
    format!("data: {event}\n\n")
}

#[tokio::test]
async fn it_is_offered_where_a_person_chose_it() {
    let nothing = [
        (
            &Messages as &dyn Dialect,
            messages(&[("screenshot", json!({}))]),
        ),
        (&Responses, responses(&[])),
        (&Gemini, gemini(&[json!({"text": "x"})])),
    ];
    let mut tools = Vec::new();
    for (dialect, stream) in &nothing {
        for left_out in [None, Some(false)] {
            let (body, _) = asked(*dialect, stream, left_out).await;
            assert_eq!(body["tools"], Value::Null, "{}", dialect.name());
            assert!(
                body.to_string().contains("\"object\""),
                "{}",
                dialect.name()
            );
            dialect.check(&body).unwrap();
        }
        let (body, _) = asked(*dialect, stream, Some(true)).await;
        let name = dialect.name();
        assert!(!body.to_string().contains("schema"), "{name}: {body}");
        assert!(
            body.to_string().contains("Your own tool for screens"),
            "{name}"
        );
        let mut rest = body.clone();
        tools.push(
            rest.as_object_mut()
                .unwrap()
                .remove("tools")
                .unwrap()
                .to_string(),
        );
        if name == "responses" {
            assert!(
                body.to_string().contains("\"detail\":\"original\""),
                "{body}"
            );
        }
        dialect.check(&rest).unwrap();
    }
    insta::assert_snapshot!(tools.join("\n"), @r#"
    [{"configs":{"cursor_position":{"enabled":false},"hold_key":{"enabled":false},"left_mouse_down":{"enabled":false},"left_mouse_up":{"enabled":false},"zoom":{"enabled":false}},"type":"computer_toolset_20260801"}]
    [{"type":"computer"}]
    [{"computerUse":{"environment":"ENVIRONMENT_BROWSER","excludedPredefinedFunctions":["mouse_down","mouse_up","key_down","key_up","go_forward"]}}]
    "#);
}

#[tokio::test]
async fn messages_calls_become_ours() {
    let at = json!([640, 400]);
    let calls = [
        ("left_click", json!({"coordinate": at})),
        (
            "left_click",
            json!({"coordinate": [5000, -3], "text": "ctrl+shift"}),
        ),
        ("double_click", json!({"coordinate": at})),
        ("right_click", json!({})),
        ("mouse_move", json!({"coordinate": at})),
        (
            "left_click_drag",
            json!({"start_coordinate": [1, 2], "coordinate": at}),
        ),
        ("type", json!({"text": "a\nb"})),
        ("key", json!({"text": "ctrl+Page_Down"})),
        ("key", json!({"text": "Down", "repeat": 2})),
        (
            "scroll",
            json!({"coordinate": at, "scroll_direction": "down", "scroll_amount": 4}),
        ),
        ("wait", json!({"duration": 2})),
        ("screenshot", json!({})),
        ("triple_click", json!({"coordinate": at})),
        ("fly", json!({"to": "the moon"})),
    ];
    let (_, reply) = asked(&Messages, &messages(&calls), Some(true)).await;
    insta::assert_snapshot!(shown(&reply), @r#"
    click {"at":[640,400]}
    click {"at":[5000,-3],"with":["control","shift"]}
    click {"at":[640,400],"kind":"double"}
    click {"kind":"right"}
    hover {"at":[640,400]}
    drag {"from":[1,2],"to":[640,400]}
    type_text {"text":"a\nb"}
    press_key {"key":"Control+PageDown"}
    press_key {"key":"Down"}
    press_key {"key":"Down"}
    scroll {"at":[640,400],"direction":"down","pages":0.5}
    wait {}
    take_screenshot {}
    click {"at":[640,400],"kind":"triple"}
    fly {"to":"the moon"}
    "#);
    // The tool was not offered: the calls stay as they are.
    let (_, reply) = asked(&Messages, &messages(&calls[..1]), None).await;
    insta::assert_snapshot!(shown(&reply), @r#"left_click {"coordinate":[640,400]}"#);
}

#[tokio::test]
async fn responses_calls_become_ours_behind_what_must_be_confirmed() {
    let call = |fields: Value| {
        let mut item = json!({
            "type": "computer_call", "id": "i", "call_id": "c1", "status": "completed",
            "pending_safety_checks": [],
        });
        item.as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        item
    };
    let items = [
        call(json!({
            "actions": [
                {"type": "click", "button": "left", "x": 640, "y": 400, "keys": ["CTRL"]},
                {"type": "click", "button": "wheel", "x": 1, "y": 2},
                {"type": "click", "button": "back", "x": 1, "y": 2},
                {"type": "double_click", "x": 1, "y": 2, "keys": null},
                {"type": "move", "x": 1, "y": 2},
                {"type": "drag", "path": [{"x": 1, "y": 2}, {"x": 3, "y": 4}, {"x": 5, "y": 6}]},
                {"type": "drag", "path": []},
                {"type": "type", "text": "hello"},
                {"type": "keypress", "keys": ["CTRL", "A"]},
                {"type": "scroll", "x": 1, "y": 2, "scroll_x": 0, "scroll_y": -400},
                {"type": "wait"},
                {"type": "screenshot"},
                {"type": "fly"},
                "nonsense",
            ],
            "pending_safety_checks": [
                {"id": "s1", "code": "malicious_instructions", "message": "The page gives orders."},
                {"id": "s2", "code": "sensitive_domain", "message": null},
            ],
        })),
        // The form of older models; two calls in one reply.
        call(json!({"action": {"type": "click", "button": "left", "x": 3, "y": 4}})),
        call(json!({})),
    ];
    let (_, reply) = asked(&Responses, &responses(&items), Some(true)).await;
    insta::assert_snapshot!(shown(&reply), @r#"
    confirm {"why":"The page gives orders."}
    confirm {"why":"sensitive_domain"}
    click {"at":[640,400],"with":["control"]}
    click {"at":[1,2],"kind":"middle"}
    go_back {}
    click {"at":[1,2],"kind":"double"}
    hover {"at":[1,2]}
    drag {"from":[1,2],"to":[5,6]}
    drag {}
    type_text {"text":"hello"}
    press_key {"key":"Control+a"}
    scroll {"at":[1,2],"direction":"up","pages":0.5}
    wait {}
    take_screenshot {}
    fly {"type":"fly"}
    an action without a type {}
    click {"at":[3,4]}
    an action without a type {}
    "#);
}

#[tokio::test]
async fn gemini_calls_become_ours_in_pixels() {
    let call = |name: &str, args: Value| json!({"functionCall": {"name": name, "args": args}});
    let decision =
        |decision: &str| json!({"decision": decision, "explanation": "It accepts terms."});
    let parts = [
        json!({"text": "I press it."}),
        call("click", json!({"x": 500, "y": 500, "intent": "press"})),
        call("click", json!({"x": 999, "y": 1200})),
        call("click", json!({"y": 1})),
        call(
            "right_click",
            json!({"x": 0, "y": 0, "safety_decision": decision("require_confirmation")}),
        ),
        call(
            "click",
            json!({"x": 0, "y": 0, "safety_decision": decision("blocked")}),
        ),
        call("type", json!({"text": "a", "press_enter": true})),
        call("hotkey", json!({"keys": ["control", "a"]})),
        call("hotkey", json!({"keys": "control+c"})),
        call("press_key", json!({"key": "Enter"})),
        call(
            "scroll",
            json!({"x": 500, "y": 500, "direction": "down", "magnitude": 800}),
        ),
        call(
            "drag_and_drop",
            json!({"x": 0, "y": 0, "destination_x": 500, "destination_y": 250}),
        ),
        call(
            "drag_and_drop",
            json!({"start_x": 0, "start_y": 0, "end_x": 500, "end_y": 250}),
        ),
        call("navigate", json!({"url": "https://example.org/"})),
        call("go_back", json!({})),
        call("wait", json!({"seconds": 3})),
        call("take_screenshot", json!({})),
        call("go_forward", json!({})),
    ];
    let (_, reply) = asked(&Gemini, &gemini(&parts), Some(true)).await;
    insta::assert_snapshot!(shown(&reply), @r#"
    text "I press it."
    click {"at":[640.0,400.0]}
    click {"at":[1278.72,960.0]}
    click {"at":[null,0.8]}
    confirm {"why":"It accepts terms."}
    click {"at":[0.0,0.0],"kind":"right"}
    blocked {}
    type_text {"submit":true,"text":"a"}
    press_key {"key":"Control+a"}
    press_key {"key":"Control+c"}
    press_key {"key":"Enter"}
    scroll {"at":[640.0,400.0],"direction":"down","pages":0.8}
    drag {"from":[0.0,0.0],"to":[640.0,200.0]}
    drag {"from":[0.0,0.0],"to":[640.0,200.0]}
    open_url {"url":"https://example.org/"}
    go_back {}
    wait {}
    take_screenshot {}
    go_forward {}
    "#);
}
