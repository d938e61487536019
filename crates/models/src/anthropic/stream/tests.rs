//! Streams as a provider sends them, good and bad, without a network.

use gyrus_contract::ToolCall;
use serde_json::json;

use super::*;
use crate::reading::MAX_REPLY_BYTES;
use crate::stream::Stream;

/// Feeds the stream in pieces of `size` bytes and ends it.
fn read(stream: &[u8], size: usize) -> (Result<Reply, ModelError>, Vec<Delta>) {
    let mut deltas = Vec::new();
    let mut reader = Stream::new(AnthropicReader::default());
    let mut on_delta = |delta| deltas.push(delta);
    for bytes in stream.chunks(size) {
        match reader.push(bytes, &mut on_delta) {
            Ok(None) => {}
            Ok(Some(reply)) => return (Ok(reply), deltas),
            Err(error) => return (Err(error), deltas),
        }
    }
    let end = reader.end(&mut |delta| deltas.push(delta));
    (end, deltas)
}

fn events(events: &[Value]) -> String {
    let line = |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"]);
    events.iter().map(line).collect()
}

fn begin() -> Value {
    let usage = json!({
        "input_tokens": 10, "output_tokens": 1,
        "cache_read_input_tokens": 100, "cache_creation_input_tokens": 1000,
    });
    json!({"type": "message_start", "message": {"model": "m-1", "usage": usage}})
}

fn start(index: u64, block: Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn grow_by(index: u64, kind: &str, field: &str, more: &str) -> Value {
    let mut delta = json!({"type": kind});
    delta[field] = more.into();
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn text_delta(index: u64, more: &str) -> Value {
    grow_by(index, "text_delta", "text", more)
}

fn json_delta(index: u64, more: &str) -> Value {
    grow_by(index, "input_json_delta", "partial_json", more)
}

fn stop(index: u64) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

fn end(reason: &str) -> [Value; 2] {
    [
        json!({
            "type": "message_delta",
            "delta": {"stop_reason": reason, "stop_sequence": null},
            "usage": {"output_tokens": 7},
        }),
        json!({"type": "message_stop"}),
    ]
}

fn text_block() -> Value {
    json!({"type": "text", "text": ""})
}

fn tool_block(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "read", "input": {}})
}

/// Returns a message with one tool call, its arguments in these pieces.
fn one_call(pieces: &[&str], reason: &str) -> Vec<Value> {
    let mut list = vec![begin(), start(0, tool_block("t"))];
    list.extend(pieces.iter().map(|piece| json_delta(0, piece)));
    list.push(stop(0));
    list.extend(end(reason));
    list
}

/// Returns a stream with thinking, text and a call, as complete as a real one.
fn good_stream() -> String {
    let mut list = vec![
        begin(),
        json!({"type": "ping"}),
        start(
            0,
            json!({"type": "thinking", "thinking": "", "signature": "", "extra": [1]}),
        ),
        grow_by(0, "thinking_delta", "thinking", "hm, "),
        grow_by(0, "thinking_delta", "thinking", "grün"),
        grow_by(0, "signature_delta", "signature", "c2ln"),
        stop(0),
        start(1, json!({"type": "redacted_thinking", "data": "AAAA"})),
        stop(1),
        start(2, text_block()),
        text_delta(2, "I will "),
        json!({"type": "an event of tomorrow", "index": -1}),
        text_delta(2, "look 🦀"),
        stop(2),
        start(3, text_block()),
        stop(3),
        start(4, tool_block("toolu_1")),
        json_delta(4, ""),
        json_delta(4, "{\"path\": \"no"),
        json_delta(4, "tes.txt\"}"),
        stop(4),
    ];
    list.extend(end("tool_use"));
    events(&list)
}

#[test]
fn a_whole_reply_arrives_however_it_is_cut() {
    let stream = good_stream();
    let (reply, deltas) = read(stream.as_bytes(), stream.len());
    let expected = Reply {
        parts: vec![
            Part::Thinking(json!({
                "type": "thinking", "thinking": "hm, grün", "signature": "c2ln", "extra": [1],
            })),
            Part::Thinking(json!({"type": "redacted_thinking", "data": "AAAA"})),
            Part::Text(Text::new("I will look 🦀", Origin::Model)),
            Part::ToolCall(ToolCall {
                id: "toolu_1".into(),
                tool: "read".into(),
                arguments: json!({"path": "notes.txt"}),
                repairs: Vec::new(),
            }),
        ],
        stop: StopReason::ToolCalls,
        usage: Some(Usage {
            input_tokens: 1110,
            output_tokens: 7,
            cached_tokens: 100,
            cache_written_tokens: 1000,
        }),
        model: "m-1".into(),
    };
    assert_eq!(reply.as_ref(), Ok(&expected));
    let text = |text: &str| Delta::Text(text.into());
    let thinking = |text: &str| Delta::Thinking(text.into());
    assert_eq!(
        deltas,
        [
            thinking("hm, "),
            thinking("grün"),
            text("I will "),
            text("look 🦀"),
            Delta::Tool("read".into()),
        ]
    );
    assert_eq!(read(stream.as_bytes(), 1), (reply.clone(), deltas.clone()));
    assert_eq!(
        read(stream.replace('\n', "\r\n").as_bytes(), 3),
        (reply.clone(), deltas.clone())
    );
    assert_eq!(
        read((stream + "event: error\ndata: junk\n\n").as_bytes(), 7),
        (reply, deltas)
    );
}

#[test]
fn arguments_are_delivered_whatever_they_are() {
    let check = |pieces: &[&str], reason: &str, expected: Value| {
        let stream = events(&one_call(pieces, reason));
        let reply = read(stream.as_bytes(), 50).0.unwrap();
        let calls: Vec<_> = reply
            .tool_calls()
            .map(|call| call.arguments.clone())
            .collect();
        assert_eq!(calls, [expected], "{pieces:?} {reason}");
    };
    check(&[], "tool_use", json!({}));
    check(&["", " "], "tool_use", json!({}));
    check(&["{\"a\"", ": [1]}"], "tool_use", json!({"a": [1]}));
    check(&["{\"a\": }"], "tool_use", json!("{\"a\": }"));
    check(&["{\"a\": 1"], "max_tokens", json!("{\"a\": 1"));
    check(&["{\"a\": 1}"], "max_tokens", json!({"a": 1}));
    // Cut before the first argument: not the same as a call without arguments.
    check(&[], "max_tokens", json!(""));
    check(&["[1]"], "tool_use", json!([1]));
    check(
        &["{\"a\": \"[[[[\\\"\"}"],
        "tool_use",
        json!({"a": "[[[[\""}),
    );
    let deep = format!("{}{}", "[".repeat(101), "]".repeat(101));
    check(&[&deep], "tool_use", json!(deep));

    let mut whole_at_once = one_call(&[], "tool_use");
    whole_at_once[1]["content_block"]["input"] = json!({"a": 1});
    let reply = read(events(&whole_at_once).as_bytes(), 50).0.unwrap();
    assert_eq!(
        reply.tool_calls().next().unwrap().arguments,
        json!({"a": 1})
    );
}

#[test]
fn stop_reasons_and_usage_are_understood() {
    let stop_of = |list: &[Value]| read(events(list).as_bytes(), 50).0.unwrap().stop;
    let plain = |reason: &str| {
        let [delta, stop] = end(reason);
        vec![begin(), delta, stop]
    };
    assert_eq!(stop_of(&plain("end_turn")), StopReason::EndOfTurn);
    assert_eq!(stop_of(&plain("stop_sequence")), StopReason::EndOfTurn);
    assert_eq!(stop_of(&plain("max_tokens")), StopReason::MaxTokens);
    assert_eq!(stop_of(&plain("tool_use")), StopReason::EndOfTurn);
    assert_eq!(stop_of(&one_call(&[], "end_turn")), StopReason::ToolCalls);

    let usage_of = |at_start: Value, at_end: Value| {
        let mut list = plain("end_turn");
        list[0]["message"]["usage"] = at_start;
        list[1]["usage"] = at_end;
        read(events(&list).as_bytes(), 50).0.unwrap().usage
    };
    let tokens = |input_tokens, output_tokens| {
        Some(Usage {
            input_tokens,
            output_tokens,
            cached_tokens: 0,
            cache_written_tokens: 0,
        })
    };
    let (input, output) = (json!({"input_tokens": 3}), json!({"output_tokens": 4}));
    assert_eq!(usage_of(input.clone(), output.clone()), tokens(3, 4));
    let both = json!({"input_tokens": 5, "output_tokens": 6});
    assert_eq!(usage_of(input.clone(), both.clone()), tokens(5, 6));
    assert_eq!(usage_of(both, Value::Null), None);
    assert_eq!(usage_of(Value::Null, output.clone()), None);
    assert_eq!(usage_of(json!({"input_tokens": -3}), output.clone()), None);
    assert_eq!(usage_of(json!({"input_tokens": u64::MAX}), output), None);
    assert_eq!(usage_of(input, json!({"output_tokens": 1.5})), None);
}

#[test]
fn bad_streams_say_what_is_wrong() {
    let check = |list: &[Value], expected: &str| {
        let (reply, _) = read(events(list).as_bytes(), 50);
        let error = reply.unwrap_err();
        assert!(
            error.to_string().contains(expected),
            "{error}\nis not: {expected}"
        );
        error
    };
    let bad = |list: &[Value], expected: &str| {
        assert!(
            matches!(check(list, expected), ModelError::BadOutput { .. }),
            "{expected}"
        );
    };
    bad(&[], "before it began: the provider sent no more");
    bad(&[begin()], "before its end");
    bad(&[begin(), begin()], "a second message");
    bad(&[start(0, text_block())], "did not begin with a message");
    bad(&[text_delta(0, "x")], "did not begin with a message");
    bad(&[begin(), text_delta(0, "x")], "without having begun");
    bad(&[begin(), stop(u64::MAX)], "without having begun");
    bad(
        &[begin(), start(1, text_block())],
        "block 1 began where block 0 was due",
    );
    bad(
        &[begin(), start(0, text_block()), start(1, text_block())],
        "block 1 began",
    );
    bad(
        &[
            begin(),
            start(0, text_block()),
            stop(0),
            start(0, text_block()),
        ],
        "block 0 began where block 1 was due",
    );
    bad(
        &[begin(), start(0, text_block()), text_delta(1, "x")],
        "without having begun",
    );
    bad(
        &[begin(), start(0, text_block()), stop(0), stop(0)],
        "without having begun",
    );
    bad(
        &[begin(), start(0, text_block()), json_delta(0, "x")],
        "a piece of another type",
    );
    bad(
        &[begin(), end("end_turn")[1].clone()],
        "without content and without a stop reason",
    );
    bad(&[begin(), end("whim")[0].clone()], "for the reason `whim`");
    bad(
        &[begin(), start(0, json!({"type": "song"}))],
        "the type `song`",
    );
    bad(
        &[
            begin(),
            start(0, json!({"type": "tool_use", "id": "a", "name": ""})),
        ],
        "no name",
    );
    bad(
        &[json!({"type": "message_start"})],
        "missing field `message`",
    );
    bad(&[json!("text")], "is not what was expected");
    let deep = (0..101).fold(json!(1), |inner, _| json!([inner]));
    bad(&[json!({"type": "ping", "x": deep})], "nests deeper");

    let failed = |kind: &str| json!({"type": "error", "error": {"type": kind, "message": "no"}});
    let overloaded = check(
        &[begin(), failed("overloaded_error")],
        "no (overloaded_error)",
    );
    assert!(matches!(
        overloaded,
        ModelError::Overloaded { after_ms: None, .. }
    ));
    let limited = check(&[failed("rate_limit_error")], "limits the rate");
    assert!(matches!(limited, ModelError::RateLimited { .. }));
    let key = check(&[failed("authentication_error")], "refused the key");
    assert!(matches!(key, ModelError::Auth { .. }));
    bad(&[failed("new_error")], "no (new_error)");
    let refused = check(&[begin(), end("refusal")[0].clone()], "it gave no reason");
    assert!(matches!(refused, ModelError::Declined { .. }));
}

#[test]
fn endless_replies_are_cut_off() {
    let check = |block: Value, delta: Value, expected: &str| {
        let mut reader = Stream::new(AnthropicReader::default());
        let mut ignore = |_| {};
        reader
            .push(events(&[begin(), start(0, block)]).as_bytes(), &mut ignore)
            .unwrap();
        let piece = events(&[delta]);
        let error = (0..64)
            .find_map(|_| reader.push(piece.as_bytes(), &mut ignore).err())
            .expect("64 MB are too much");
        assert!(error.to_string().contains(expected), "{error}");
    };
    let megabyte = "x".repeat(1024 * 1024);
    check(
        text_block(),
        text_delta(0, &megabyte),
        "the reply is longer than 16777216 bytes",
    );
    check(
        tool_block("t"),
        json_delta(0, &megabyte),
        "tool arguments exceed 8388608 bytes",
    );

    let redacted = json!({"type": "redacted_thinking", "data": "x".repeat(MAX_REPLY_BYTES)});
    let stream = events(&[begin(), start(0, redacted)]);
    let error = read(stream.as_bytes(), stream.len()).0.unwrap_err();
    assert!(error.to_string().contains("the reply is longer"), "{error}");

    let blocks: Vec<_> = (0..=MAX_PARTS as u64)
        .flat_map(|index| [start(index, text_block()), stop(index)])
        .collect();
    let stream = events(&[begin()]) + &events(&blocks);
    let error = read(stream.as_bytes(), stream.len()).0.unwrap_err();
    assert!(
        error.to_string().contains("more than 4096 blocks"),
        "{error}"
    );
}
