//! Tests of requests.

use std::sync::Arc;

use gyrus_contract::Repeat;

use super::*;
use crate::openai::tests::{connection, prompt, rich_conversation};

#[test]
fn a_conversation_fits_the_protocol() {
    let body = body(&rich_conversation(), &connection()).unwrap();
    let items = body["input"].as_array().unwrap().iter();
    let lines: Vec<_> = items.map(Value::to_string).collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
{"content":[{"text":"look","type":"input_text"},{"detail":"auto","image_url":"data:image/png;base64,cGl4ZWw=","type":"input_image"},{"text":"please","type":"input_text"}],"role":"user","type":"message"}
{"encrypted_content":"x","id":"rs_1","summary":[],"type":"reasoning"}
{"content":[{"text":"I will","type":"output_text"}],"role":"assistant","type":"message"}
{"arguments":"{\"at\":\"a\"}","call_id":"1","name":"see","type":"function_call"}
{"arguments":"{\"invalid_arguments\":\"{\\\"path\\\": \"}","call_id":"2","name":"r_ad","type":"function_call"}
{"arguments":"{}","call_id":"3","name":"read","type":"function_call"}
{"call_id":"1","output":[{"text":"a screen","type":"input_text"},{"detail":"auto","image_url":"data:image/png;base64,cGl4ZWw=","type":"input_image"}],"type":"function_call_output"}
{"call_id":"2","output":"The call failed: no such tool","type":"function_call_output"}
{"call_id":"3","output":"The call failed: There is no result: the call was not carried out, or its result is not kept.","type":"function_call_output"}
{"content":[{"text":"by the way","type":"input_text"},{"text":"The result of an earlier call: late","type":"input_text"}],"role":"user","type":"message"}
{"arguments":"{}","call_id":"4","name":"read","type":"function_call"}
{"call_id":"4","output":"The call failed: There is no result: the call was not carried out, or its result is not kept.","type":"function_call_output"}
"#);
    insta::assert_snapshot!(body["instructions"], @r#""be good\n\nbe brief""#);
}

#[test]
fn everything_but_the_conversation_is_sent_too() {
    let mut prompt = prompt(Vec::new());
    prompt.max_output_tokens = 1;
    prompt.tools = vec![Arc::new(ToolSpec {
        name: "read".into(),
        description: "reads".into(),
        parameters: json!({"type": "object"}),
        touches: Vec::new(),
        repeat: Repeat::Freely,
    })];
    let closed = json!({"type": "object", "properties": {}, "additionalProperties": false});
    prompt.output_schema = Some(closed);
    let mut body = body(&prompt, &connection()).unwrap();
    let before = body.clone();
    include_reasoning(&mut body);
    insta::assert_snapshot!(body, @r#"{"include":["reasoning.encrypted_content"],"input":[],"max_output_tokens":16,"model":"m","store":false,"stream":true,"text":{"format":{"name":"reply","schema":{"additionalProperties":false,"properties":{},"type":"object"},"strict":true,"type":"json_schema"}},"tools":[{"description":"reads","name":"read","parameters":{"type":"object"},"strict":false,"type":"function"}]}"#);
    exclude_reasoning(&mut body);
    assert_eq!(body, before);
}
