//! A conversation with everything that can be in one.

use std::sync::Arc;

use gyrus_contract::{
    BlobId, Image, Message, Origin, Part, Prompt, Purpose, Role, SystemPart, Text, ToolCall,
    ToolResult,
};
use serde_json::{Value, json};

use crate::{ModelConnection, ModelFacts, PictureSource};

struct Pixel;

impl PictureSource for Pixel {
    fn load(&self, _id: &BlobId) -> Result<Vec<u8>, String> {
        Ok(b"pixel".to_vec())
    }
}

pub(super) fn connection() -> ModelConnection {
    ModelConnection {
        base_url: "http://host/v1".into(),
        key: None,
        pins: Vec::new(),
        provider: "p".into(),
        model: "m".into(),
        facts: ModelFacts::default(),
        blobs: Arc::new(Pixel),
    }
}

pub(super) fn prompt(messages: Vec<(Role, Vec<Part>)>) -> Prompt {
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

fn picture() -> Image {
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
        is_error: id == "2",
    })
}

/// Returns a conversation with a result too many, one too few, foreign and unfinished thinking, and
/// arguments that are not an object.
pub(super) fn rich_conversation() -> Prompt {
    let own = json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "x", "summary": []});
    let empty = json!({"type": "reasoning", "id": "rs_2", "encrypted_content": null});
    let foreign = json!({"type": "thinking", "thinking": "hm", "signature": "s"});
    let part = |text: &str| SystemPart::cacheable(text);
    let mut prompt = prompt(vec![
        (Role::User, vec![text("look"), Part::Image(picture())]),
        (Role::User, vec![text(" ")]),
        (Role::Assistant, vec![Part::Thinking(own.clone())]),
        (Role::User, vec![text("please")]),
        (
            Role::Assistant,
            vec![
                Part::Thinking(foreign),
                Part::Thinking(own),
                Part::Thinking(empty),
                text("I will"),
                call("1", "see", json!({"at": "a"})),
                call("2", "r\u{435}ad", json!("{\"path\": ")),
                call("3", "read", json!({})),
            ],
        ),
        (
            Role::User,
            vec![text("by the way"), result("2", "no such tool", vec![])],
        ),
        (
            Role::User,
            vec![
                result("1", "a screen", vec![picture()]),
                result("9", "late", vec![]),
            ],
        ),
        (Role::Assistant, vec![call("4", "read", json!({}))]),
    ]);
    prompt.system = vec![part("be good"), part(" "), part("be brief")];
    prompt
}
