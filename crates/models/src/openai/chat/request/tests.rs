//! Tests of requests.

use std::sync::Arc;

use gyrus_contract::Repeat;

use super::*;
use crate::openai::tests::{connection, prompt, rich_conversation};

fn lines(body: &Value) -> String {
    let messages = body["messages"].as_array().unwrap().iter();
    messages
        .map(Value::to_string)
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn a_conversation_fits_the_protocol() {
    let body = body(&rich_conversation(), &connection(), "max_tokens").unwrap();
    insta::assert_snapshot!(lines(&body), @r#"
{"content":"be good\n\nbe brief","role":"system"}
{"content":[{"text":"look","type":"text"},{"image_url":{"url":"data:image/png;base64,cGl4ZWw="},"type":"image_url"},{"text":"please","type":"text"}],"role":"user"}
{"content":"I will","role":"assistant","tool_calls":[{"function":{"arguments":"{\"at\":\"a\"}","name":"see"},"id":"1","type":"function"},{"function":{"arguments":"{\"invalid_arguments\":\"{\\\"path\\\": \"}","name":"r_ad"},"id":"2","type":"function"},{"function":{"arguments":"{}","name":"read"},"id":"3","type":"function"}]}
{"content":"a screen","role":"tool","tool_call_id":"1"}
{"content":"The call failed: no such tool","role":"tool","tool_call_id":"2"}
{"content":"The call failed: There is no result: the call was not carried out, or its result is not kept.","role":"tool","tool_call_id":"3"}
{"content":[{"text":"The pictures that the call 1 returned:","type":"text"},{"image_url":{"url":"data:image/png;base64,cGl4ZWw="},"type":"image_url"},{"text":"by the way","type":"text"},{"text":"The result of an earlier call: late","type":"text"}],"role":"user"}
{"content":null,"role":"assistant","tool_calls":[{"function":{"arguments":"{}","name":"read"},"id":"4","type":"function"}]}
{"content":"The call failed: There is no result: the call was not carried out, or its result is not kept.","role":"tool","tool_call_id":"4"}
"#);
}

#[test]
fn everything_but_the_conversation_is_sent_too() {
    let mut prompt = prompt(Vec::new());
    prompt.tools = vec![Arc::new(ToolSpec {
        name: "read".into(),
        description: "reads".into(),
        parameters: json!({"type": "object"}),
        touches: Vec::new(),
        repeat: Repeat::Freely,
    })];
    prompt.output_schema = Some(json!({"type": "object"}));
    let mut connection = connection();
    connection.facts.max_output_tokens = Some(64);
    let body = body(&prompt, &connection, "max_completion_tokens").unwrap();
    insta::assert_snapshot!(body, @r#"{"max_completion_tokens":64,"messages":[],"model":"m","response_format":{"json_schema":{"name":"reply","schema":{"type":"object"},"strict":false},"type":"json_schema"},"stream":true,"stream_options":{"include_usage":true},"tools":[{"function":{"description":"reads","name":"read","parameters":{"type":"object"}},"type":"function"}]}"#);
}
