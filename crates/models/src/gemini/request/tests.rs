//! Conversations, good and odd, as the provider takes them.

use std::sync::Arc;

use gyrus_contract::{
    BlobId, Message, Origin, Purpose, Repeat, SystemPart, Text, ToolCall, ToolResult, ToolSpec,
};

use super::*;
use crate::{ModelFacts, NoBlobs};

struct Pixel;

impl PictureSource for Pixel {
    fn load(&self, _id: &BlobId) -> Result<Vec<u8>, String> {
        Ok(b"pixel".to_vec())
    }
}

fn connection(blobs: Arc<dyn PictureSource>) -> ModelConnection {
    ModelConnection {
        base_url: "http://127.0.0.1".into(),
        key: None,
        pins: Vec::new(),
        provider: "p".into(),
        model: "m".into(),
        facts: ModelFacts {
            max_output_tokens: Some(50),
            ..ModelFacts::default()
        },
        blobs,
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

fn contents_of(messages: Vec<(Role, Vec<Part>)>) -> String {
    let body = body(&prompt(messages), &connection(Arc::new(Pixel))).unwrap();
    let contents = body["contents"].as_array().unwrap();
    let lines: Vec<_> = contents.iter().map(Value::to_string).collect();
    lines.join("\n")
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
    let contents = contents_of(vec![
        (Role::User, vec![text("look"), Part::Image(pixel())]),
        (Role::User, vec![text(" "), text("please")]),
        (
            Role::Assistant,
            vec![
                Part::Thinking(json!({"type": "thinking", "signature": "of another"})),
                Signature::part("s0".into(), SignaturePart::Thought("hm".into())),
                Signature::part("s1".into(), SignaturePart::Text { start: 2, end: 4 }),
                text("I do"),
                Signature::part("s2".into(), SignaturePart::Call),
                call("1", "screenshot", json!({})),
                call("2", "read it", json!("{\"path\": ")),
            ],
        ),
        (
            Role::User,
            vec![text("by the way"), result("2", "no JSON", vec![])],
        ),
        (Role::User, vec![result("1", "", vec![pixel()])]),
        (Role::Assistant, vec![]),
    ]);
    insta::assert_snapshot!(contents, @r#"
{"parts":[{"text":"look"},{"inlineData":{"data":"cGl4ZWw=","mimeType":"image/png"}},{"text":"please"}],"role":"user"}
{"parts":[{"text":"hm","thought":true,"thoughtSignature":"s0"},{"text":"I "},{"text":"do","thoughtSignature":"s1"},{"functionCall":{"args":{},"id":"1","name":"screenshot"},"thoughtSignature":"s2"},{"functionCall":{"args":{"invalid_arguments":"{\"path\": "},"id":"2","name":"read_it"}}],"role":"model"}
{"parts":[{"functionResponse":{"id":"1","name":"screenshot","parts":[{"inlineData":{"data":"cGl4ZWw=","mimeType":"image/png"}}],"response":{"output":""}}},{"functionResponse":{"id":"2","name":"read_it","response":{"error":"no JSON"}}},{"text":"by the way"}],"role":"user"}
"#);
}

#[test]
fn every_call_is_answered_and_signed() {
    let contents = contents_of(vec![
        (Role::User, vec![result("0", "old", vec![pixel()])]),
        (
            Role::Assistant,
            vec![
                Signature::part(
                    "of no text".into(),
                    SignaturePart::Text { start: 0, end: 0 },
                ),
                call("1", "a", json!({})),
                call("1", "b", json!({})),
            ],
        ),
        (Role::User, vec![text("go on"), result("1", "A", vec![])]),
        (
            Role::Assistant,
            vec![
                call("1", "a", json!({})),
                Signature::part("left over".into(), SignaturePart::Call),
            ],
        ),
    ]);
    insta::assert_snapshot!(contents, @r#"
{"parts":[{"text":"The result of an earlier call:\nold"},{"inlineData":{"data":"cGl4ZWw=","mimeType":"image/png"}}],"role":"user"}
{"parts":[{"text":"","thoughtSignature":"of no text"},{"functionCall":{"args":{},"id":"1","name":"a"},"thoughtSignature":"skip_thought_signature_validator"},{"functionCall":{"args":{},"id":"call_9d72ef06ac252440e3c0cec0","name":"b"}}],"role":"model"}
{"parts":[{"functionResponse":{"id":"1","name":"a","response":{"output":"A"}}},{"functionResponse":{"id":"call_9d72ef06ac252440e3c0cec0","name":"b","response":{"error":"There is no result: the call was not carried out, or its result is not kept."}}},{"text":"go on"}],"role":"user"}
{"parts":[{"functionCall":{"args":{},"id":"call_543855244a8c8af9b447b385","name":"a"},"thoughtSignature":"skip_thought_signature_validator"}],"role":"model"}
{"parts":[{"functionResponse":{"id":"call_543855244a8c8af9b447b385","name":"a","response":{"error":"There is no result: the call was not carried out, or its result is not kept."}}}],"role":"user"}
"#);
}

#[test]
fn everything_but_the_conversation_is_sent_too() {
    let part = |text: &str| SystemPart::cacheable(text);
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object", "additionalProperties": false,
    });
    let mut prompt = prompt(vec![(Role::User, vec![text("go")])]);
    prompt.system = vec![part("a"), part(" "), part("b")];
    prompt.tools = vec![Arc::new(ToolSpec {
        name: "read".into(),
        description: "reads".into(),
        parameters: schema.clone(),
        touches: Vec::new(),
        repeat: Repeat::Freely,
    })];
    prompt.output_schema = Some(schema);
    let body = body(&prompt, &connection(Arc::new(NoBlobs))).unwrap();
    insta::assert_snapshot!(format!("{body:#}"), @r#"
{
  "contents": [
    {
      "parts": [
        {
          "text": "go"
        }
      ],
      "role": "user"
    }
  ],
  "generationConfig": {
    "maxOutputTokens": 50,
    "responseJsonSchema": {
      "additionalProperties": false,
      "type": "object"
    },
    "responseMimeType": "application/json"
  },
  "systemInstruction": {
    "parts": [
      {
        "text": "a"
      },
      {
        "text": "b"
      }
    ]
  },
  "tools": [
    {
      "functionDeclarations": [
        {
          "description": "reads",
          "name": "read",
          "parametersJsonSchema": {
            "type": "object"
          }
        }
      ]
    }
  ]
}
"#);
}

#[test]
fn what_cannot_be_sent_is_refused() {
    let prompt = prompt(vec![(Role::User, vec![Part::Image(pixel())])]);
    let error = body(&prompt, &connection(Arc::new(NoBlobs))).unwrap_err();
    assert!(matches!(error, ModelError::Refused { .. }), "{error}");
}
