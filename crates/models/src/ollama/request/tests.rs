//! Conversations, good and odd, as the server takes them.

use std::sync::Arc;

use gyrus_contract::{
    BlobId, Message, Origin, Purpose, Repeat, SystemPart, Text, ToolCall, ToolResult, ToolSpec,
};

use super::*;
use crate::ImageTokens;

struct Pixel;

impl PictureSource for Pixel {
    fn load(&self, _id: &BlobId) -> Result<Vec<u8>, String> {
        Ok(b"pixel".to_vec())
    }
}

fn connection(window: Option<u64>) -> ModelConnection {
    ModelConnection {
        base_url: "http://127.0.0.1".into(),
        key: None,
        pins: Vec::new(),
        provider: "p".into(),
        model: "m:1b".into(),
        facts: ModelFacts {
            window,
            image_tokens: Some(ImageTokens::Each(1_000)),
            ..ModelFacts::default()
        },
        blobs: Arc::new(Pixel),
    }
}

fn prompt(messages: Vec<(Role, Vec<Part>)>) -> Prompt {
    let message = |(role, parts)| Arc::new(Message { role, parts });
    Prompt {
        purpose: Purpose::Agent,
        ordinal: 0,
        system: Vec::new(),
        messages: messages.into_iter().map(message).collect(),
        tools: Vec::new(),
        must_call: false,
        output_schema: None,
        screen: None,
        effort: None,
        plainer: Default::default(),
        max_output_tokens: 100,
    }
}

fn text(text: &str) -> Part {
    Part::Text(Text::new(text, Origin::Person))
}

fn call(id: &str, tool: &str, arguments: Value) -> Part {
    Part::ToolCall(ToolCall {
        id: id.into(),
        tool: tool.into(),
        arguments,
        repairs: Vec::new(),
    })
}

fn pixel() -> Image {
    Image {
        blob: BlobId::of(b"pixel"),
        media_type: "image/png".into(),
        width: 1,
        height: 1,
    }
}

fn result(id: &str, text: &str, images: Vec<Image>) -> Part {
    Part::ToolResult(ToolResult {
        call_id: id.into(),
        text: Text::new(text, Origin::Kernel),
        images,
        is_error: text.starts_with("no"),
    })
}

#[test]
fn a_conversation_fits_the_protocol() {
    let mut prompt = prompt(vec![
        (
            Role::User,
            vec![
                result("0", "old", vec![]),
                text("look"),
                Part::Image(pixel()),
            ],
        ),
        (Role::User, vec![text(" "), text("please")]),
        (
            Role::Assistant,
            vec![
                Part::Thinking(json!({"type": "thinking"})),
                text("I do"),
                call("1", "screenshot", json!({})),
                call("2", "read it", json!("{\"path\": ")),
                call("3", "shoot", json!({})),
            ],
        ),
        (
            Role::User,
            vec![
                Part::Image(pixel()),
                text("by the way"),
                result("3", "two", vec![pixel(), pixel()]),
                result("2", "no JSON", vec![]),
                result("1", "", vec![pixel()]),
            ],
        ),
        (Role::Assistant, vec![call("1", "a", json!({"b": 1}))]),
    ]);
    let part = |text: &str| SystemPart::cacheable(text);
    prompt.system = vec![part("a"), part(" "), part("b")];
    let body = body(&prompt, &connection(None)).unwrap();
    let messages = body["messages"].as_array().unwrap();
    let lines: Vec<_> = messages.iter().map(Value::to_string).collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
{"content":"a\n\nb","role":"system"}
{"content":"The result of an earlier call:\nold\n\nlook\n\nplease","images":["cGl4ZWw="],"role":"user"}
{"content":"I do","role":"assistant","tool_calls":[{"function":{"arguments":{},"name":"screenshot"},"id":"1"},{"function":{"arguments":{"invalid_arguments":"{\"path\": "},"name":"read_it"},"id":"2"},{"function":{"arguments":{},"name":"shoot"},"id":"3"}]}
{"content":"","role":"tool","tool_call_id":"1","tool_name":"screenshot"}
{"content":"The call failed: no JSON","role":"tool","tool_call_id":"2","tool_name":"read_it"}
{"content":"two","role":"tool","tool_call_id":"3","tool_name":"shoot"}
{"content":"Picture 1 is from the call 1 of `screenshot`.\n\nPictures 2 to 3 are from the call 3 of `shoot`.\n\nby the way","images":["cGl4ZWw=","cGl4ZWw=","cGl4ZWw=","cGl4ZWw="],"role":"user"}
{"content":"","role":"assistant","tool_calls":[{"function":{"arguments":{"b":1},"name":"a"},"id":"call_78e7d8e9e9033a4328fdf35e"}]}
{"content":"The call failed: There is no result: the call was not carried out, or its result is not kept.","role":"tool","tool_call_id":"call_78e7d8e9e9033a4328fdf35e","tool_name":"a"}
"#);
}

#[test]
fn everything_but_the_conversation_is_sent_too() {
    let mut prompt = prompt(vec![(Role::User, vec![text("go")])]);
    prompt.tools = vec![Arc::new(ToolSpec {
        name: "read".into(),
        description: "reads".into(),
        parameters: json!({"type": "object"}),
        touches: Vec::new(),
        repeat: Repeat::Freely,
    })];
    prompt.output_schema = Some(json!({"type": "object"}));
    let body = body(&prompt, &connection(None)).unwrap();
    insta::assert_snapshot!(format!("{body:#}"), @r#"
{
  "format": {
    "type": "object"
  },
  "keep_alive": "30m",
  "messages": [
    {
      "content": "go",
      "role": "user"
    }
  ],
  "model": "m:1b",
  "options": {
    "num_ctx": 8192,
    "num_predict": 100
  },
  "shift": false,
  "stream": true,
  "tools": [
    {
      "function": {
        "description": "reads",
        "name": "read",
        "parameters": {
          "type": "object"
        }
      },
      "type": "function"
    }
  ],
  "truncate": false
}
"#);
}

#[test]
fn the_window_is_large_enough_or_the_prompt_is_not_sent() {
    let window = |bytes: usize, images: usize, output: u64, window: Option<u64>| {
        let mut parts = vec![text(&"x".repeat(bytes))];
        parts.extend(vec![Part::Image(pixel()); images]);
        let mut prompt = prompt(vec![(Role::User, parts)]);
        prompt.max_output_tokens = output;
        let body = body(&prompt, &connection(window));
        body.map(|body| body["options"]["num_ctx"].as_u64().unwrap())
            .map_err(|error| error.to_string())
    };
    assert_eq!(window(1, 0, 100, None), Ok(8_192));
    assert_eq!(window(16_000, 0, 100, None), Ok(8_192));
    assert_eq!(window(16_200, 0, 100, None), Ok(16_384));
    assert_eq!(window(16_000, 1, 100, None), Ok(16_384));
    assert_eq!(window(1, 0, 8_192, None), Ok(16_384));
    assert_eq!(window(1, 0, u64::MAX, None), Ok(MOST_TOKENS));
    assert_eq!(window(1, 0, 8_192, Some(4_096)), Ok(4_096));
    assert_eq!(window(12_200, 0, 100, Some(4_096)), Ok(4_096));
    insta::assert_snapshot!(window(12_300, 0, 100, Some(4_096)).unwrap_err(), @"the prompt is too long for the model: it has about 4110 tokens and the window 4096; the server would cut it without a word, so it was not sent");
    insta::assert_snapshot!(window(10_000, 1, 100, Some(4_096)).unwrap_err(), @"the prompt is too long for the model: it has about 4344 tokens and the window 4096; the server would cut it without a word, so it was not sent");
}
