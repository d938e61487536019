//! Tests of replies: each is whole or an error, however it arrives.

use std::collections::BTreeSet;

use gyrus_contract::{Delta, ModelError, Part, Reply, StopReason, Usage};
use serde_json::{Value, json};

use crate::{
    dialect::{Dialect, ERROR_WORDS, Script, ScriptedCall},
    dialects,
    prompts::{ask, client, in_pieces, plain_prompt, streamed},
    server::{Answer, Ending, Server},
};

/// Distance in bytes of the positions at which a stream is cut on the wire. The crate's own tests
/// cut the readers at every byte.
const CUT_EVERY: usize = 53;

async fn reply_to(dialect: &dyn Dialect, stream: &str) -> Reply {
    let (reply, _) = ask(dialect, streamed(dialect, stream)).await;
    reply.unwrap_or_else(|error| panic!("{}: {error}", dialect.name()))
}

async fn error_of(dialect: &dyn Dialect, answer: Answer) -> ModelError {
    let (reply, deltas) = ask(dialect, answer).await;
    let name = dialect.name();
    reply.expect_err(&format!("{name} took {deltas:?} for a reply"))
}

/// Returns the canonical stream up to the event with the second half of the first call's arguments.
fn inside_arguments(dialect: &dyn Dialect) -> &str {
    let stream = dialect.canonical();
    let half = stream.find("tes.txt").expect("the canonical arguments");
    let event = stream[..half]
        .rfind(dialect.event_end())
        .expect("an event before");
    &stream[..event + dialect.event_end().len()]
}

/// Returns the canonical reply, without ids that the client generated.
fn check_canonical(dialect: &dyn Dialect, reply: &Reply) {
    let name = dialect.name();
    assert_eq!(reply.text(), "I will look 🦀", "{name}");
    assert_eq!(reply.stop, StopReason::ToolCalls, "{name}");
    assert_eq!(reply.model, "m-1-2026", "{name}");
    let calls: Vec<_> = reply.tool_calls().collect();
    assert_eq!(calls.len(), 2, "{name}: {calls:?}");
    assert_eq!(calls[0].tool, "read", "{name}");
    assert_eq!(calls[0].arguments, json!({"path": "notes.txt"}), "{name}");
    assert_eq!(
        (calls[1].tool.as_str(), &calls[1].arguments),
        ("list", &json!({})),
        "{name}"
    );
    assert_ne!(calls[0].id, calls[1].id, "{name}");
    let usage = reply
        .usage
        .map(|usage| (usage.input_tokens, usage.cached_tokens, usage.output_tokens));
    assert_eq!(usage, Some((1110, dialect.cached_tokens(), 47)), "{name}");
}

fn joined(deltas: &[Delta]) -> (String, String, Vec<String>) {
    let mut heard = (String::new(), String::new(), Vec::new());
    for delta in deltas {
        match delta {
            Delta::Text(text) => heard.0 += text,
            Delta::Thinking(text) => heard.1 += text,
            Delta::Tool(tool) => heard.2.push(tool.clone()),
        }
    }
    heard
}

#[tokio::test]
async fn a_reply_arrives_however_it_is_delivered() {
    for dialect in dialects() {
        let stream = dialect.canonical();
        let mut ways = vec![
            ("whole", vec![stream.as_bytes().to_vec()]),
            (
                "byte by byte",
                stream.bytes().map(|byte| vec![byte]).collect(),
            ),
            ("CRLF", vec![stream.replace('\n', "\r\n").into_bytes()]),
        ];
        if let Some(line) = dialect.keep_alive() {
            let end = dialect.event_end();
            let alive = stream.replace(end, &format!("{end}{line}"));
            ways.push(("kept alive", vec![format!("{line}{alive}").into_bytes()]));
            ways.push(("CR", vec![stream.replace('\n', "\r").into_bytes()]));
        }
        for (way, pieces) in ways {
            let (reply, deltas) = ask(dialect, in_pieces(dialect, pieces, Ending::Clean)).await;
            let reply = reply.unwrap_or_else(|error| panic!("{} {way}: {error}", dialect.name()));
            check_canonical(dialect, &reply);
            let heard = joined(&deltas);
            assert_eq!(heard.0, "I will look 🦀", "{} {way}", dialect.name());
            assert_eq!(heard.1, "The notes come first.", "{} {way}", dialect.name());
            assert_eq!(heard.2, ["read", "list"], "{} {way}", dialect.name());
        }
    }
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_no_reply() {
    for dialect in dialects() {
        let stream = dialect.canonical().as_bytes();
        let lengths = (0..stream.len() - 1).step_by(CUT_EVERY);
        for length in lengths.chain([stream.len() - 1]) {
            let beginning = &stream[..length];
            let place = format!("{} cut at {length}", dialect.name());
            let broken = in_pieces(dialect, vec![beginning.to_vec()], Ending::Abort);
            match ask(dialect, broken).await.0 {
                Ok(reply) if dialect.may_end(&String::from_utf8_lossy(beginning)) => {
                    assert_eq!(reply.tool_calls().count(), 2, "{place}");
                }
                Ok(reply) => panic!("{place}: {reply:?}"),
                Err(error) => assert!(error.is_transient(), "{place}: {error}"),
            }
        }
    }
}

#[tokio::test]
async fn errors_inside_a_stream_are_errors() {
    for dialect in dialects() {
        let (event, end) = (dialect.error_event(), dialect.event_end());
        let beginning = inside_arguments(dialect);
        let rest = &dialect.canonical()[beginning.len()..];
        let streams = [
            event.clone(),
            format!("{event}{}", dialect.canonical()),
            format!("{beginning}{event}{rest}"),
        ];
        for stream in streams {
            let error = error_of(dialect, streamed(dialect, stream)).await;
            assert!(error.is_transient(), "{}: {error}", dialect.name());
            assert!(
                error.to_string().contains(ERROR_WORDS),
                "{}: {error}",
                dialect.name()
            );
        }
        let junk = format!("{beginning}data: {{\"type\": nonsense{end}{rest}");
        let error = error_of(dialect, streamed(dialect, junk)).await;
        assert!(
            matches!(error, ModelError::BadOutput { .. }),
            "{}: {error}",
            dialect.name()
        );
    }
}

#[tokio::test]
async fn silence_ends() {
    for dialect in dialects() {
        let silence = |minutes: u32| ModelError::Network {
            message: format!("the provider was silent for {minutes} minutes"),
        };
        // Before it answers, which a provider on this machine may take longer to do: time runs
        // ahead once the request is there.
        let server = Server::silent().await;
        let model = client(dialect, &server.url);
        let reply = model.reply(&plain_prompt(), &mut |_| {}).await;
        assert_eq!(reply, Err(silence(10)), "{}", dialect.name());
        tokio::time::resume();
        // In the middle: from the first delta on.
        let beginning = inside_arguments(dialect).as_bytes().to_vec();
        let server =
            Server::start(vec![in_pieces(dialect, vec![beginning], Ending::Silence)]).await;
        let model = client(dialect, &server.url);
        let mut is_paused = false;
        let mut pause = |_| {
            if !std::mem::replace(&mut is_paused, true) {
                tokio::time::pause();
            }
        };
        let reply = model.reply(&plain_prompt(), &mut pause).await;
        assert_eq!(reply, Err(silence(2)), "{}", dialect.name());
        tokio::time::resume();
    }
}

#[tokio::test]
async fn signs_of_life_alone_are_no_reply() {
    for dialect in dialects() {
        let Some(line) = dialect.keep_alive() else {
            continue;
        };
        let beginning = inside_arguments(dialect).as_bytes().to_vec();
        let answer = in_pieces(dialect, vec![beginning], Ending::Drip(line));
        let error = error_of(dialect, answer).await;
        let expected = "the reply did not end within 120 minutes";
        assert!(
            error.to_string().contains(expected),
            "{}: {error}",
            dialect.name()
        );
        tokio::time::resume();
    }
}

#[tokio::test]
async fn what_the_model_gets_wrong_reaches_the_loop_as_it_is() {
    let call = |id, tool, arguments| ScriptedCall {
        id,
        tool,
        arguments,
    };
    for dialect in dialects() {
        let name = dialect.name();
        let homoglyph = "r\u{435}ad\u{200b}";
        let calls = [
            call("x1", homoglyph, "{}"),
            call("x2", "no_such_tool", "{\"a\":1e3}"),
        ];
        let script = Script {
            calls: &calls,
            ..Script::default()
        };
        let reply = reply_to(dialect, &dialect.stream(&script)).await;
        let tools: Vec<_> = reply.tool_calls().map(|call| call.tool.as_str()).collect();
        assert_eq!(tools, [homoglyph, "no_such_tool"], "{name}");
        assert_eq!(
            (reply.stop, reply.parts.len()),
            (StopReason::ToolCalls, 2),
            "{name}"
        );

        if dialect.arguments_are_text() {
            for raw in ["{\"path\": ", "[1", "no JSON", "\u{1F980}"] {
                let calls = [call("x1", "read", raw)];
                let script = Script {
                    calls: &calls,
                    ..Script::default()
                };
                let reply = reply_to(dialect, &dialect.stream(&script)).await;
                let arguments: Vec<_> = reply.tool_calls().map(|call| &call.arguments).collect();
                assert_eq!(arguments, [&Value::String(raw.into())], "{name}");
            }
        }

        let calls = [call("same", "read", "{}"), call("same", "list", "{}")];
        let script = Script {
            calls: &calls,
            ..Script::default()
        };
        let reply = reply_to(dialect, &dialect.stream(&script)).await;
        let ids: BTreeSet<_> = reply.tool_calls().map(|call| &call.id).collect();
        assert_eq!(ids.len(), 2, "{name}: {reply:?}");
    }
}

#[tokio::test]
async fn empty_and_long_replies_are_replies() {
    for dialect in dialects() {
        let name = dialect.name();
        let reply = reply_to(dialect, &dialect.stream(&Script::default())).await;
        assert_eq!(
            (reply.stop, reply.parts),
            (StopReason::EndOfTurn, Vec::<Part>::new()),
            "{name}"
        );

        // One that repeats itself would be cut.
        let mut piece: String = (0..20_000).map(|number| format!("{number} ")).collect();
        piece.truncate(64 * 1024);
        let pieces = vec![piece.as_str(); 160];
        let script = Script {
            text: &pieces,
            ..Script::default()
        };
        let reply = reply_to(dialect, &dialect.stream(&script)).await;
        assert_eq!(reply.text().len(), 10 * 1024 * 1024, "{name}");

        let pieces = vec![piece.as_str(); 260];
        let script = Script {
            text: &pieces,
            ..Script::default()
        };
        let error = error_of(dialect, streamed(dialect, dialect.stream(&script))).await;
        assert!(error.to_string().contains("longer than"), "{name}: {error}");
    }
}

#[tokio::test]
async fn usage_is_believed_only_where_it_can_be() {
    for dialect in dialects() {
        let usage_of = async |input_tokens: Value, output_tokens: Value| {
            let script = Script {
                text: &["hi"],
                input_tokens,
                output_tokens,
                ..Script::default()
            };
            reply_to(dialect, &dialect.stream(&script)).await.usage
        };
        let expected = Usage {
            input_tokens: 3,
            output_tokens: 4,
            ..Usage::default()
        };
        let name = dialect.name();
        assert_eq!(usage_of(json!(3), json!(4)).await, Some(expected), "{name}");
        assert_eq!(usage_of(Value::Null, Value::Null).await, None, "{name}");
        assert_eq!(usage_of(json!(-3), json!(4)).await, None, "{name}");
        assert_eq!(usage_of(json!(u64::MAX), json!(4)).await, None, "{name}");
        assert_eq!(usage_of(json!(3), json!(1e300)).await, None, "{name}");
        assert_eq!(usage_of(json!(3), json!("many")).await, None, "{name}");
    }
}
