//! Streams as servers send them, good and bad, without a network.

use gyrus_contract::Usage;
use serde_json::json;

use super::*;
use crate::stream::Stream;

const CANONICAL: &str = include_str!("../canonical.sse");

/// Feeds the stream in pieces of `size` bytes and ends it cleanly.
fn read(stream: &str, size: usize) -> (Result<Reply, ModelError>, Vec<Delta>) {
    let mut deltas = Vec::new();
    let mut reader = Stream::new(ChatReader::default());
    let mut on_delta = |delta| deltas.push(delta);
    for bytes in stream.as_bytes().chunks(size) {
        match reader.push(bytes, &mut on_delta) {
            Ok(None) => {}
            Ok(Some(reply)) => return (Ok(reply), deltas),
            Err(error) => return (Err(error), deltas),
        }
    }
    let end = reader.end(&mut |delta| deltas.push(delta));
    (end, deltas)
}

fn chunks(pieces: &[Value], reason: &str) -> String {
    let mut stream = String::new();
    for piece in pieces {
        let chunk = json!({"model": "m", "choices": [{"index": 0, "delta": piece}]});
        stream += &format!("data: {chunk}\n\n");
    }
    let end = json!({"choices": [{"delta": {}, "finish_reason": reason}]});
    stream + &format!("data: {end}\n\ndata: [DONE]\n\n")
}

fn calls_of(pieces: &[Value], reason: &str) -> Vec<(String, String, Value)> {
    let reply = read(&chunks(pieces, reason), 64).0.unwrap();
    let calls = reply.tool_calls();
    calls
        .map(|call| (call.id.clone(), call.tool.clone(), call.arguments.clone()))
        .collect()
}

fn piece(call: Value) -> Value {
    json!({"tool_calls": [call]})
}

#[test]
fn a_whole_reply_arrives() {
    let (reply, deltas) = read(CANONICAL, CANONICAL.len());
    let reply = reply.unwrap();
    let usage = Usage {
        input_tokens: 1110,
        output_tokens: 47,
        cached_tokens: 100,
        cache_written_tokens: 0,
    };
    assert_eq!(reply.usage, Some(usage));
    assert_eq!(
        (reply.model.as_str(), reply.text().as_str()),
        ("m-1-2026", "I will look 🦀")
    );
    assert_eq!(reply.stop, StopReason::ToolCalls);
    // The reasoning is shown and is not part of the reply.
    assert_eq!(reply.parts.len(), 3);
    assert_eq!(
        deltas,
        [
            Delta::Thinking("The notes ".into()),
            Delta::Thinking("come first.".into()),
            Delta::Text("I will ".into()),
            Delta::Text("look 🦀".into()),
            Delta::Tool("read".into()),
            Delta::Tool("list".into()),
        ]
    );
    assert_eq!(read(CANONICAL, 1), (Ok(reply.clone()), deltas));
    // A server that closes without `[DONE]`.
    let closed = CANONICAL.replace("data: [DONE]\n\n", "");
    assert_eq!(read(&closed, 7).0, Ok(reply));
}

#[test]
fn calls_are_told_apart_however_servers_mark_them() {
    let function = |name: &str, arguments: Value| json!({"name": name, "arguments": arguments});
    let call = |id: &str, tool: &str, arguments: Value| (id.into(), tool.into(), arguments);
    // Whole calls without an index, arguments as objects.
    let whole = [json!({"tool_calls": [
        {"id": "a", "function": function("read", json!({"path": "x"}))},
        {"id": "b", "function": function("list", json!({}))},
    ]})];
    let expected = [
        call("a", "read", json!({"path": "x"})),
        call("b", "list", json!({})),
    ];
    assert_eq!(calls_of(&whole, "stop"), expected);
    // Every call with index 0; arguments in pieces.
    let zeros = [
        piece(json!({"index": 0, "id": "a", "function": function("read", json!("{\"path\""))})),
        piece(json!({"index": 0, "function": {"arguments": ": \"x\"}"}})),
        piece(json!({"index": 0, "id": "b", "function": function("list", json!("{}"))})),
    ];
    assert_eq!(calls_of(&zeros, "tool_calls"), expected);
    // No index; one call in pieces, with id and name repeated in each.
    let repeated = [
        piece(json!({"id": "a", "function": function("read", json!("{\"path\""))})),
        piece(json!({"id": "a", "function": function("read", json!(": \"x\"}"))})),
    ];
    assert_eq!(calls_of(&repeated, "stop"), expected[..1]);
    // Interleaved by index.
    let interleaved = [
        piece(json!({"index": 0, "id": "a", "function": function("read", Value::Null)})),
        piece(json!({"index": 1, "id": "b", "function": function("list", json!("{"))})),
        piece(json!({"index": 0, "function": {"arguments": "{\"path\": \"x\"}"}})),
        piece(json!({"index": 1, "function": {"arguments": "}"}})),
    ];
    assert_eq!(calls_of(&interleaved, "tool_calls"), expected);
}

#[test]
fn ids_are_unique_whatever_the_server_says() {
    let call = |id: Value| json!({"id": id, "function": {"name": "read", "arguments": "{}"}});
    let pieces = [
        json!({"tool_calls": [call(json!("a")), call(json!("a"))]}),
        piece(call(json!(""))),
        piece(call(Value::Null)),
    ];
    let ids: Vec<_> = calls_of(&pieces, "stop")
        .into_iter()
        .map(|(id, ..)| id)
        .collect();
    assert_eq!(ids.len(), 4, "{ids:?}");
    assert_eq!(ids[0], "a");
    let unique: std::collections::BTreeSet<_> = ids.iter().collect();
    assert_eq!(unique.len(), 4, "{ids:?}");
    assert!(ids.iter().all(|id| !id.is_empty()));
}

#[test]
fn arguments_are_delivered_whatever_they_are() {
    let check = |raw: &str, reason: &str, expected: Value| {
        let call = json!({"index": 0, "id": "a", "function": {"name": "t", "arguments": raw}});
        let calls = calls_of(&[piece(call)], reason);
        assert_eq!(
            calls,
            [("a".into(), "t".into(), expected)],
            "{raw} {reason}"
        );
    };
    check("", "stop", json!({}));
    check("{\"a\": }", "tool_calls", json!("{\"a\": }"));
    check("{\"a\": 1", "length", json!("{\"a\": 1"));
    check("", "length", json!(""));
    let deep = format!("{}{}", "[".repeat(101), "]".repeat(101));
    check(&deep, "stop", json!(deep));
}

#[test]
fn ends_and_usage_are_understood() {
    let stop_of =
        |pieces: &[Value], reason: &str| read(&chunks(pieces, reason), 64).0.map(|r| r.stop);
    let text = [
        json!({"content": "hi"}),
        json!({"content": null}),
        json!({"content": ""}),
    ];
    assert_eq!(stop_of(&text, "stop"), Ok(StopReason::EndOfTurn));
    assert_eq!(stop_of(&text, "tool_calls"), Ok(StopReason::EndOfTurn));
    assert_eq!(stop_of(&text, "length"), Ok(StopReason::MaxTokens));
    assert_eq!(stop_of(&[], "stop"), Ok(StopReason::EndOfTurn));
    let refused = |pieces: &[Value], reason: &str| stop_of(pieces, reason).unwrap_err().to_string();
    let refusal = [
        json!({"refusal": "I cannot "}),
        json!({"refusal": "do that"}),
    ];
    insta::assert_snapshot!(refused(&refusal, "stop"), @"the model declined: I cannot do that");
    insta::assert_snapshot!(refused(&text, "content_filter"), @"the model declined: the provider's content filter stopped the reply");
    insta::assert_snapshot!(refused(&text, "error"), @"the model's provider is overloaded: the provider failed in the middle of the reply");
    insta::assert_snapshot!(refused(&text, "whim"), @"the model's reply could not be read: the reply stopped for the reason `whim`");

    let parts = json!({"content": [{"type": "text", "text": "a"}, {"type": "thinking"}]});
    assert_eq!(read(&chunks(&[parts], "stop"), 9).0.unwrap().text(), "a");

    let usage_of = |usage: Value| {
        let stream = chunks(&text, "stop");
        let with = format!(
            "data: {}\n\ndata: [DONE]",
            json!({"choices": [], "usage": usage})
        );
        read(&stream.replace("data: [DONE]", &with), 64)
            .0
            .unwrap()
            .usage
    };
    let tokens = |input_tokens, output_tokens, cached_tokens| {
        Some(Usage {
            input_tokens,
            output_tokens,
            cached_tokens,
            cache_written_tokens: 0,
        })
    };
    let counts = |input: Value, cached: Value| {
        json!({"prompt_tokens": input, "completion_tokens": 2,
            "prompt_tokens_details": {"cached_tokens": cached}})
    };
    assert_eq!(usage_of(counts(json!(5), json!(3))), tokens(5, 2, 3));
    assert_eq!(usage_of(counts(json!(5), json!(-3))), tokens(5, 2, 0));
    assert_eq!(usage_of(counts(json!(5), json!(u64::MAX))), tokens(5, 2, 0));
    assert_eq!(usage_of(counts(json!(5), json!(9))), tokens(5, 2, 5));
    assert_eq!(usage_of(counts(json!(-5), json!(0))), None);
    assert_eq!(usage_of(counts(json!(u64::MAX), json!(0))), None);
    assert_eq!(usage_of(json!({"prompt_tokens": 5})), None);
    assert_eq!(usage_of(json!("many")), None);
}

#[test]
fn bad_streams_say_what_is_wrong() {
    let told = |stream: &str| read(stream, 50).0.unwrap_err().to_string();
    insta::assert_snapshot!(told(""), @"the model's reply could not be read: the stream broke off before it began: the provider sent no more");
    insta::assert_snapshot!(told("data: [DONE]\n\n"), @"the model's reply could not be read: the stream ended without a reply");
    insta::assert_snapshot!(told(&CANONICAL[..900]), @"the model's reply could not be read: the stream broke off before its end: the last event is not whole");
    insta::assert_snapshot!(told("data: {\"choices\": 1}\n\n"), @r#"the model's reply could not be read: an event `` is not what was expected: invalid type: integer `1`, expected a sequence at line 1 column 13: {"choices": 1}"#);
    insta::assert_snapshot!(told("data: <html>\n\n"), @"the model's reply could not be read: an event `` is not what was expected: expected value at line 1 column 1: <html>");
    let nameless = piece(json!({"index": 0, "id": "a", "function": {"arguments": "{}"}}));
    insta::assert_snapshot!(told(&chunks(&[nameless], "stop")), @"the model's reply could not be read: a tool call has no name");
    insta::assert_snapshot!(told("data: {\"error\": {\"message\": \"no more\", \"code\": \"server_error\"}}\n\n"), @"the model's provider is overloaded: no more (server_error)");
    insta::assert_snapshot!(told("data: {\"object\": \"error\", \"message\": \"slow down\", \"code\": 429}\n\n"), @"the model's provider limits the rate: slow down");
    let deep = (0..101).fold(json!(1), |inner, _| json!([inner]));
    insta::assert_snapshot!(told(&format!("data: {}\n\n", json!({"x": deep}))), @"the model's reply could not be read: an event nests deeper than 100 brackets");
}

#[test]
fn endless_replies_are_cut_off() {
    let check = |piece: &Value, expected: &str| {
        let mut reader = Stream::new(ChatReader::default());
        let chunk = format!("data: {}\n\n", json!({"choices": [{"delta": piece}]}));
        let error = (0..5000)
            .find_map(|_| reader.push(chunk.as_bytes(), &mut |_| {}).err())
            .unwrap();
        assert!(error.to_string().contains(expected), "{error}");
    };
    // One that repeats itself would be cut.
    let mut megabyte: String = (0..200_000).map(|number| format!("{number} ")).collect();
    megabyte.truncate(1024 * 1024);
    let reply = "the reply is longer than 16777216 bytes";
    check(&json!({"content": megabyte}), reply);
    check(&json!({"reasoning": megabyte}), reply);
    check(&json!({"refusal": megabyte}), reply);
    let arguments =
        |arguments: Value| piece(json!({"index": 0, "function": {"arguments": arguments}}));
    check(
        &arguments(json!(megabyte)),
        "tool arguments exceed 8388608 bytes",
    );
    check(
        &arguments(json!({"x": megabyte})),
        "tool arguments exceed 8388608 bytes",
    );
    let call = piece(json!({"function": {"name": "t"}}));
    check(&call, "more than 4096 calls");
}
