//! The scripted model from end to end: its client, a real socket, its server.

use gyrus_contract::{
    Message, Origin, Part, Purpose, Repeat, Role, StopReason, Text, ToolResult, ToolSpec, Usage,
};
use serde_json::json;

use super::*;
use crate::NoBlobs;

async fn play(script: &str) -> ScriptedModel {
    ScriptedModel::from_text("demo.toml", script, Arc::new(NoBlobs))
        .await
        .unwrap()
}

fn prompt(ordinal: u64, messages: &[Message]) -> Prompt {
    Prompt {
        purpose: Purpose::Agent,
        ordinal,
        system: Vec::new(),
        messages: messages.iter().cloned().map(Arc::new).collect(),
        tools: vec![Arc::new(ToolSpec {
            name: "read".into(),
            description: "reads".into(),
            parameters: json!({"type": "object"}),
            touches: Vec::new(),
            repeat: Repeat::Freely,
        })],
        must_call: false,
        output_schema: None,
        screen: None,
        effort: None,
        plainer: Default::default(),
        max_output_tokens: 100,
    }
}

fn goal() -> Message {
    Message::user(Text::new("summarise the notes", Origin::Person))
}

async fn ask(model: &ScriptedModel, ordinal: u64, messages: &[Message]) -> Result<Reply, String> {
    let reply = model.reply(&prompt(ordinal, messages), &mut |_| {}).await;
    reply.map_err(|error| error.to_string())
}

#[tokio::test]
async fn a_conversation_with_tools_goes_round() {
    let model = play(
        r#"
        [model]
        name = "actor"
        price = { input = 3_000_000, output = 15_000_000 }

        [[reply]]
        when = "^summarise"
        thinking = "The notes come first, as always with notes."
        text = "I will look at the notes first. 🦀"
        calls = [ { tool = "read", arguments = { path = "notes.txt" } }, { tool = "read" } ]
        usage = { input = 900, output = 40 }

        [[reply]]
        when = "milk"
        text = "Buy milk."
        usage = "none"
        "#,
    )
    .await;
    assert_eq!(model.name(), "script/actor");
    assert_eq!(model.price(), Some(Price::new(3_000_000, 15_000_000)));

    let mut heard = Vec::new();
    let first = model
        .reply(&prompt(0, &[goal()]), &mut |delta| heard.push(delta))
        .await
        .unwrap();
    assert_eq!(first.stop, StopReason::ToolCalls);
    assert_eq!(first.text(), "I will look at the notes first. 🦀");
    assert_eq!(first.model, "actor");
    let usage = Usage {
        input_tokens: 900,
        output_tokens: 40,
        cached_tokens: 0,
        cache_written_tokens: 0,
    };
    assert_eq!(first.usage, Some(usage));
    let calls: Vec<_> = first.tool_calls().cloned().collect();
    assert_eq!(calls[0].arguments, json!({"path": "notes.txt"}));
    assert_eq!(calls[1].arguments, json!({}));
    assert_eq!(
        heard
            .iter()
            .filter(|delta| **delta == Delta::Tool("read".into()))
            .count(),
        2
    );
    assert!(
        heard
            .iter()
            .filter(|delta| matches!(delta, Delta::Text(_)))
            .count()
            > 1
    );

    let result = |id: &str, text: &str| {
        Part::ToolResult(ToolResult {
            call_id: id.into(),
            text: Text::new(
                text,
                Origin::Tool {
                    name: "read".into(),
                },
            ),
            images: Vec::new(),
            is_error: false,
        })
    };
    let mut conversation = vec![
        goal(),
        Message {
            role: Role::Assistant,
            parts: first.parts,
        },
        Message {
            role: Role::User,
            parts: vec![result(&calls[0].id, "milk")],
        },
        Message {
            role: Role::User,
            parts: vec![result(&calls[1].id, "")],
        },
    ];
    let second = ask(&model, 1, &conversation).await.unwrap();
    assert_eq!(
        (second.text().as_str(), second.stop),
        ("Buy milk.", StopReason::EndOfTurn)
    );
    assert_eq!(second.usage, None);

    let error = ask(&model, 1, &conversation[..3]).await.unwrap_err();
    assert!(
        error.contains("has no result for the tool call `call_agent_0_1`"),
        "{error}"
    );

    if let Part::Thinking(block) = &mut conversation[1].parts[0] {
        block["thinking"] = "Something else.".into();
    }
    let error = ask(&model, 1, &conversation).await.unwrap_err();
    assert!(
        error.contains("message 1 has a thinking block that was changed"),
        "{error}"
    );
}

#[tokio::test]
async fn faults_happen_once_and_then_the_reply_comes() {
    let check = async |fault: &str, expected: Result<(), &str>| {
        let script = format!("[[reply]]\ntext = \"a longer text, grün\"\nrepeat = 2\n{fault}");
        let model = play(&script).await;
        for ordinal in [0, 1] {
            match (ask(&model, ordinal, &[goal()]).await, expected) {
                (Ok(reply), Ok(())) => assert_eq!(reply.text(), "a longer text, grün"),
                (Err(error), Err(expected)) => assert!(error.contains(expected), "{error}"),
                (first, _) => panic!("{fault}: {first:?}"),
            }
            let retry = ask(&model, ordinal, &[goal()]).await.unwrap();
            assert_eq!(retry.text(), "a longer text, grün", "{fault}");
        }
    };
    check(
        "fault = \"overloaded\"",
        Err("overloaded: the script says so (HTTP 529)"),
    )
    .await;
    check("fault = \"rate-limited\"", Err("limits the rate")).await;
    check("fault = \"cut\"", Err("the stream broke off")).await;
    check(
        "fault = \"error-event\"",
        Err("overloaded: the script says so (overloaded_error)"),
    )
    .await;
    check("fault = \"garbage\"", Err("is not what was expected")).await;
    check("fault = \"slow-bytes\"", Ok(())).await;
    check(
        "raw = \"data: 1\"",
        Err("the stream broke off before it began"),
    )
    .await;
}

#[tokio::test]
async fn a_rate_limit_says_how_long_to_wait() {
    let model = play("[[reply]]\ntext = \"a\"\nfault = \"rate-limited\"").await;
    let error = model
        .reply(&prompt(0, &[goal()]), &mut |_| {})
        .await
        .unwrap_err();
    assert_eq!(error.retry_after_ms(), Some(20));
}

#[tokio::test]
async fn raw_bytes_alone_are_played_every_time() {
    let model = play("[[reply]]\nraw = \"event: x\\ndata: oops\\n\\n\"").await;
    for _ in 0..2 {
        let error = ask(&model, 0, &[goal()]).await.unwrap_err();
        assert!(error.contains("could not be read"), "{error}");
    }
}

#[tokio::test]
async fn a_wrong_script_is_noticed() {
    let model = play("[[reply]]\ntext = \"a\"\n\n[[reply]]\nwhen = \"^done$\"\ntext = \"b\"").await;
    let error = model
        .reply(&prompt(1, &[goal()]), &mut |_| {})
        .await
        .unwrap_err();
    assert!(matches!(error, ModelError::Refused { .. }));
    insta::assert_snapshot!(error, @"the model refused: demo.toml, line 4: reply 2 for purpose agent expects a last message that matches `^done$`, but it is: summarise the notes (HTTP 400)");
    let error = model
        .reply(&prompt(2, &[goal()]), &mut |_| {})
        .await
        .unwrap_err();
    assert!(matches!(error, ModelError::Refused { .. }));
    insta::assert_snapshot!(error, @"the model refused: demo.toml: the script has no reply 3 for purpose agent; it has 2 (HTTP 404)");
    let summarise = Prompt {
        purpose: Purpose::Summarise,
        ..prompt(0, &[goal()])
    };
    let error = model.reply(&summarise, &mut |_| {}).await.unwrap_err();
    insta::assert_snapshot!(error, @"the model refused: demo.toml: the script has no reply 1 for purpose summarise; it has 0 (HTTP 404)");
}

#[tokio::test]
async fn the_place_is_found_by_a_new_process_too() {
    let script = "[[reply]]\ntext = \"a\"\n[[reply]]\ntext = \"b\"";
    let first = play(script).await;
    assert_eq!(ask(&first, 0, &[goal()]).await.unwrap().text(), "a");
    drop(first);
    assert_eq!(
        ask(&play(script).await, 1, &[goal()]).await.unwrap().text(),
        "b"
    );
}

#[tokio::test]
async fn the_server_wants_its_token_and_ends_with_the_model() {
    let script = CheckedScript::parse("demo.toml", "[[reply]]\ntext = \"a\"").unwrap();
    let server = ScriptServer::start(script).await.unwrap();
    let url = server.base_url();
    let client = |key: &str| {
        MessagesClient::new(ModelConnection {
            base_url: url.clone(),
            key: Some(key.to_owned()),
            pins: Vec::new(),
            provider: "script".into(),
            model: "m".into(),
            facts: ModelFacts::default(),
            blobs: Arc::new(NoBlobs),
        })
        .unwrap()
    };
    let stranger = client("guess");
    let error = stranger
        .reply(&prompt(0, &[goal()]), &mut |_| {})
        .await
        .unwrap_err();
    assert!(matches!(error, ModelError::Auth { .. }), "{error}");

    let known = client(server.token());
    let error = known
        .reply(&prompt(0, &[goal()]), &mut |_| {})
        .await
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("needs the headers x-gyrus-purpose"),
        "{error}"
    );

    drop(server);
    let address = url.trim_start_matches("http://");
    while tokio::net::TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_script_is_read_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("demo.toml");
    let start = async || ScriptedModel::start(&file, Arc::new(NoBlobs)).await;
    assert!(matches!(start().await, Err(ScriptError::Read { path, .. }) if path == file));
    std::fs::write(&file, "[[reply]]\nspeech = \"a\"\n").unwrap();
    let Err(error) = start().await else {
        panic!("`speech` is not a key")
    };
    let expected = format!("{}, line 2: unknown key `speech`", file.display());
    assert!(error.to_string().starts_with(&expected), "{error}");
    std::fs::write(&file, "[[reply]]\ntext = \"a\"\n").unwrap();
    assert_eq!(
        ask(&start().await.unwrap(), 0, &[goal()])
            .await
            .unwrap()
            .text(),
        "a"
    );
}
