//! Prompts and clients for the cases.

use std::sync::Arc;

use gyrus_contract::{
    BlobId, Delta, Image, Message, Model, ModelError, Origin, Part, Prompt, Purpose, Repeat, Reply,
    Role, SystemPart, Text, ToolCall, ToolResult, ToolSpec,
};
use gyrus_models::{ModelConnection, ModelFacts, PictureSource};
use serde_json::{Value, json};

use crate::{
    dialect::Dialect,
    server::{Answer, Ending, Server},
};

/// A key long enough to be a secret.
pub(crate) const KEY: &str = "sk-wire-0123456789-secret";

/// The bytes of a picture of one pixel.
pub(crate) const PIXEL: &[u8] = b"\x89PNG\r\n\x1a\n-one-pixel";

struct Pixel;

impl PictureSource for Pixel {
    fn load(&self, id: &BlobId) -> Result<Vec<u8>, String> {
        if *id == BlobId::of(PIXEL) {
            Ok(PIXEL.to_vec())
        } else {
            Err("there is one picture only".to_owned())
        }
    }
}

/// Returns the client of a dialect for a server at `url`.
pub(crate) fn client(dialect: &dyn Dialect, url: &str) -> Arc<dyn Model> {
    dialect.model(connection(dialect, url, Some(KEY)))
}

/// Returns the same client without a key.
pub(crate) fn keyless_client(dialect: &dyn Dialect, url: &str) -> Arc<dyn Model> {
    dialect.model(connection(dialect, url, None))
}

/// Returns the connection of a dialect's client to a server at `url`.
pub(crate) fn connection(dialect: &dyn Dialect, url: &str, key: Option<&str>) -> ModelConnection {
    ModelConnection {
        base_url: format!("{url}{}", dialect.base_path()),
        key: key.map(str::to_owned),
        pins: Vec::new(),
        provider: "wire".to_owned(),
        model: "m".to_owned(),
        facts: ModelFacts {
            window: Some(100_000),
            ..ModelFacts::default()
        },
        blobs: Arc::new(Pixel),
    }
}

/// Asks a server that gives one answer.
pub(crate) async fn ask(
    dialect: &dyn Dialect,
    answer: Answer,
) -> (Result<Reply, ModelError>, Vec<Delta>) {
    let server = Server::start(vec![answer]).await;
    let mut deltas = Vec::new();
    let reply = client(dialect, &server.url)
        .reply(&plain_prompt(), &mut |delta| deltas.push(delta))
        .await;
    (reply, deltas)
}

/// Returns a stream that ends well.
pub(crate) fn streamed(dialect: &dyn Dialect, stream: impl Into<Vec<u8>>) -> Answer {
    Answer::new(200, dialect.content_type(), stream)
}

/// Returns a stream in these pieces with this ending.
pub(crate) fn in_pieces(dialect: &dyn Dialect, pieces: Vec<Vec<u8>>, ending: Ending) -> Answer {
    Answer {
        pieces,
        ending,
        ..streamed(dialect, "")
    }
}

/// Returns a prompt of one question, without tools.
pub(crate) fn plain_prompt() -> Prompt {
    prompt(vec![Message::user(Text::new("hello", Origin::Person))])
}

fn prompt(messages: Vec<Message>) -> Prompt {
    Prompt {
        purpose: Purpose::Agent,
        ordinal: 0,
        system: Vec::new(),
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: Vec::new(),
        must_call: false,
        output_schema: None,
        screen: None,
        effort: None,
        plainer: Default::default(),
        max_output_tokens: 1000,
    }
}

fn text(text: &str) -> Part {
    Part::Text(Text::new(text, Origin::Person))
}

fn picture() -> Image {
    Image {
        blob: BlobId::of(PIXEL),
        media_type: "image/png".into(),
        width: 1,
        height: 1,
    }
}

fn call(id: &str, tool: &str, arguments: Value) -> Part {
    Part::ToolCall(ToolCall {
        id: id.into(),
        tool: tool.into(),
        arguments,
        repairs: Vec::new(),
    })
}

fn result(id: &str, text: &str, images: Vec<Image>, is_error: bool) -> Part {
    Part::ToolResult(ToolResult {
        call_id: id.into(),
        text: Text::new(
            text,
            Origin::Tool {
                name: "read".into(),
            },
        ),
        images,
        is_error,
    })
}

fn tool(name: &str) -> Arc<ToolSpec> {
    Arc::new(ToolSpec {
        name: name.into(),
        description: format!("It does {name}."),
        parameters: json!({
            "type": "object",
            "properties": {"path": {"type": "string"}},
            "required": ["path"],
            "additionalProperties": false,
        }),
        touches: Vec::new(),
        repeat: Repeat::Freely,
    })
}

/// Returns a conversation with everything that can be in one: pictures from the person and from a
/// tool, empty texts and messages, thinking of other providers, calls of tools that do not exist
/// with ids that no provider accepts and invalid arguments; then `reply` with a result for each of
/// its calls, the second one empty.
pub(crate) fn rich_prompt(reply: Reply) -> Prompt {
    let user = |parts| Message {
        role: Role::User,
        parts,
    };
    let assistant = |parts| Message {
        role: Role::Assistant,
        parts,
    };
    let calls: Vec<_> = reply.tool_calls().map(|call| call.id.clone()).collect();
    let mut prompt = prompt(vec![
        user(vec![text("look at this"), Part::Image(picture())]),
        assistant(vec![]),
        user(vec![text("  "), text("and then go on")]),
        assistant(vec![
            Part::Thinking(json!({"type": "of nobody", "signature": "x"})),
            text("I try something."),
            call(
                "functions.odd:0",
                "r\u{435}ad the notes",
                json!("{\"path\": "),
            ),
            call(&"long".repeat(30), "see", json!({"path": "screen"})),
        ]),
        user(vec![
            text("hurry"),
            result(&"long".repeat(30), "the screen", vec![picture()], false),
            result("functions.odd:0", "there is no such tool", vec![], true),
        ]),
        assistant(vec![Part::Thinking(json!({"type": "of nobody"}))]),
        user(vec![text("well?")]),
        assistant(reply.parts),
        user(vec![result(&calls[0], "milk", vec![picture()], false)]),
        user(vec![result(&calls[1], "", vec![], false), text("enough")]),
    ]);
    let part = |text: &str, cacheable| SystemPart {
        text: text.into(),
        cacheable,
        brief: None,
    };
    prompt.system = vec![part("Be good.", true), part(" ", true), part("Now.", false)];
    prompt.tools = vec![tool("read"), tool("list"), tool("see")];
    prompt.output_schema = Some(json!({
        "type": "object",
        "properties": {"answer": {"type": "string"}},
        "required": ["answer"],
        "additionalProperties": false,
    }));
    prompt
}
