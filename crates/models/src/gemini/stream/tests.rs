//! Streams as the provider sends them, good and bad, without a network.

use gyrus_contract::ToolCall;
use serde_json::json;

use super::*;
use crate::reading::{MAX_ARGUMENT_BYTES, MAX_REPLY_BYTES};
use crate::stream::Stream;

/// Feeds the stream in pieces of `size` bytes and ends it.
fn read(stream: &str, size: usize) -> (Result<Reply, ModelError>, Vec<Delta>) {
    let mut deltas = Vec::new();
    let mut reader = Stream::new(GeminiReader::new("asked", None));
    for bytes in stream.as_bytes().chunks(size) {
        if let Err(error) = reader.push(bytes, &mut |delta| deltas.push(delta)) {
            return (Err(error), deltas);
        }
    }
    let end = reader.end(&mut |delta| deltas.push(delta));
    (end, deltas)
}

fn events(events: &[Value]) -> String {
    let line = |event: &Value| format!("data: {event}\r\n\r\n");
    events.iter().map(line).collect()
}

fn parts(parts: Value) -> Value {
    json!({
        "candidates": [{"content": {"parts": parts, "role": "model"}, "index": 0}],
        "modelVersion": "m-1", "responseId": "r",
        "usageMetadata": {"promptTokenCount": 100, "candidatesTokenCount": 1},
    })
}

fn end(reason: &str) -> Value {
    json!({
        "candidates": [{"content": {"role": "model"}, "finishReason": reason, "index": 0}],
        "modelVersion": "m-1",
        "usageMetadata": {
            "promptTokenCount": 100, "cachedContentTokenCount": 60, "candidatesTokenCount": 20,
            "thoughtsTokenCount": 5, "totalTokenCount": 125,
        },
    })
}

fn call(id: &str, tool: &str, arguments: Value) -> Part {
    Part::ToolCall(ToolCall {
        id: id.into(),
        tool: tool.into(),
        arguments,
        repairs: Vec::new(),
    })
}

fn text(text: &str) -> Part {
    Part::Text(Text::new(text, Origin::Model))
}

/// Returns the parts of a reply in these events, ended well.
fn reply_to(list: &[Value]) -> Reply {
    let stream = events(list) + &events(&[end("STOP")]);
    read(&stream, 64).0.unwrap()
}

/// Returns thoughts, text and calls, with signatures in all possible places.
fn good_stream() -> String {
    events(&[
        parts(json!([{"text": "hm, ", "thought": true}])),
        parts(json!([{"text": "grün", "thought": true, "thoughtSignature": "c2lnMA=="}])),
        parts(json!([{"text": "I will "}])),
        json!({"usageMetadata": {"promptTokenCount": 1}}),
        parts(json!([{"text": "look 🦀", "thoughtSignature": "c2lnMQ=="}, {"text": "."}])),
        parts(json!([{"text": "", "thoughtSignature": "c2lnMg=="}])),
        parts(json!([
            {"functionCall": {"id": "c1", "name": "read", "args": {"path": "a"}},
             "thoughtSignature": "c2lnMw=="},
            {"functionCall": {"id": "c2", "name": "list"}},
        ])),
        end("STOP"),
    ])
}

#[test]
fn a_whole_reply_arrives_however_it_is_cut() {
    let stream = good_stream();
    let (reply, deltas) = read(&stream, stream.len());
    let signed = |signature: &str, on| Signature::part(signature.into(), on);
    let expected = Reply {
        parts: vec![
            signed("c2lnMA==", SignaturePart::Thought("grün".into())),
            signed("c2lnMQ==", SignaturePart::Text { start: 7, end: 16 }),
            signed("c2lnMg==", SignaturePart::Text { start: 17, end: 17 }),
            text("I will look 🦀."),
            signed("c2lnMw==", SignaturePart::Call),
            call("c1", "read", json!({"path": "a"})),
            call("c2", "list", json!({})),
        ],
        stop: StopReason::ToolCalls,
        usage: Some(Usage {
            input_tokens: 100,
            output_tokens: 25,
            cached_tokens: 60,
            cache_written_tokens: 0,
        }),
        model: "m-1".into(),
    };
    assert_eq!(reply.as_ref(), Ok(&expected));
    assert_eq!(
        deltas,
        [
            Delta::Thinking("hm, ".into()),
            Delta::Thinking("grün".into()),
            Delta::Text("I will ".into()),
            Delta::Text("look 🦀".into()),
            Delta::Text(".".into()),
            Delta::Tool("read".into()),
            Delta::Tool("list".into()),
        ]
    );
    assert_eq!(read(&stream, 1), (reply.clone(), deltas.clone()));
    let comments = stream.replace("\r\n\r\n", "\n\n: alive\n\n");
    assert_eq!(read(&comments, 3), (reply, deltas));
}

#[test]
fn calls_arrive_whatever_they_are() {
    let arguments_of = |call: Value| {
        let reply = reply_to(&[parts(json!([{"functionCall": call}]))]);
        reply.tool_calls().next().unwrap().arguments.clone()
    };
    let check = |args: Value, expected: Value| {
        let arguments = arguments_of(json!({"name": "a", "args": args}));
        assert_eq!(arguments, expected);
    };
    check(json!(null), json!({}));
    check(json!({"a": [1, null]}), json!({"a": [1, null]}));
    check(json!("{\"a\": 1}"), json!({"a": 1}));
    check(json!("{\"a\": "), json!("{\"a\": "));
    check(json!([1]), json!([1]));

    let one = |id: &str| json!({"functionCall": {"id": id, "name": "a"}});
    let reply = reply_to(&[parts(json!([one("x"), one(""), one("x"), one("y")]))]);
    let mut ids: Vec<_> = reply.tool_calls().map(|call| call.id.as_str()).collect();
    assert_eq!((ids[0], ids[3]), ("x", "y"));
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 4, "every call has an id of its own: {ids:?}");
    assert_eq!(reply.stop, StopReason::ToolCalls);
}

#[test]
fn reasons_and_usage_are_understood() {
    let ended = |reason: &str| read(&events(&[parts(json!([{"text": "x"}])), end(reason)]), 50).0;
    assert_eq!(ended("STOP").unwrap().stop, StopReason::EndOfTurn);
    assert_eq!(ended("MAX_TOKENS").unwrap().stop, StopReason::MaxTokens);
    assert!(matches!(ended("SAFETY"), Err(ModelError::Declined { .. })));
    let empty = read(&events(&[end("STOP")]), 50).0.unwrap();
    assert_eq!((empty.parts.len(), empty.stop), (0, StopReason::EndOfTurn));

    let usage_of = |usage: Value| {
        let mut last = end("STOP");
        last["usageMetadata"] = usage;
        let usage = read(&events(&[parts(json!([])), last]), 50)
            .0
            .unwrap()
            .usage;
        usage.map(|usage| (usage.input_tokens, usage.output_tokens, usage.cached_tokens))
    };
    let check = |usage: Value, expected| assert_eq!(usage_of(usage.clone()), expected, "{usage}");
    check(
        json!({"promptTokenCount": 3, "candidatesTokenCount": 4}),
        Some((3, 4, 0)),
    );
    check(
        json!({"promptTokenCount": 3, "toolUsePromptTokenCount": 2, "candidatesTokenCount": 4,
               "cachedContentTokenCount": 9}),
        Some((5, 4, 5)),
    );
    // Only thoughts were written.
    check(
        json!({"promptTokenCount": 3, "thoughtsTokenCount": 7, "totalTokenCount": 10}),
        Some((3, 7, 0)),
    );
    check(json!({"promptTokenCount": 3}), None);
    check(json!({"promptTokenCount": 3, "totalTokenCount": 2}), None);
    check(
        json!({"promptTokenCount": 3, "candidatesTokenCount": -4}),
        None,
    );
    check(
        json!({"promptTokenCount": 3, "candidatesTokenCount": 4, "thoughtsTokenCount": 0.5}),
        None,
    );
    check(
        json!({"promptTokenCount": u64::MAX, "candidatesTokenCount": 4}),
        None,
    );
    check(json!([]), None);

    // Counts on the way are of what had been written by then.
    let mut last = end("STOP");
    last["usageMetadata"] = Value::Null;
    let reply = read(&events(&[parts(json!([{"text": "x"}])), last.clone()]), 50).0;
    assert_eq!(reply.unwrap().usage, None);
    let late = json!({"usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 2}});
    let reply = read(&events(&[last, late]), 50).0.unwrap();
    assert_eq!(
        (reply.usage.unwrap().output_tokens, reply.model),
        (2, "m-1".into())
    );
}

#[test]
fn bad_streams_say_what_is_wrong() {
    let failed = |list: &[Value]| read(&events(list), 50).0.unwrap_err().to_string();
    insta::assert_snapshot!(failed(&[]), @"the model's reply could not be read: the stream broke off before it began: the provider sent no more");
    insta::assert_snapshot!(failed(&[parts(json!([]))]), @"the model's reply could not be read: the stream broke off before its end: the provider sent no more");
    insta::assert_snapshot!(failed(&[json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}})]), @"the model declined: the prompt was blocked: PROHIBITED_CONTENT");
    insta::assert_snapshot!(failed(&[parts(json!([])), json!({"error": {"code": 503, "message": "busy", "status": "UNAVAILABLE"}})]), @"the model's provider is overloaded: busy (UNAVAILABLE)");
    insta::assert_snapshot!(failed(&[end("STOP"), json!({"error": {"code": "?"}})]), @"the model's reply could not be read: (no status)");
    insta::assert_snapshot!(failed(&[parts(json!([{"inlineData": {"data": ""}}]))]), @"the model's reply could not be read: a part is of the kind `inlineData`");
    insta::assert_snapshot!(failed(&[parts(json!([{"functionCall": {"args": {}}}]))]), @"the model's reply could not be read: a tool call has no name");
    insta::assert_snapshot!(failed(&[parts(json!([{"functionCall": {"name": "a", "willContinue": true}}]))]), @"the model's reply could not be read: a tool call came in pieces, which was not asked for");
    insta::assert_snapshot!(failed(&[json!("text")]), @r#"the model's reply could not be read: an event `reply` is not what was expected: invalid type: string "text", expected an object at line 1 column 6: "text""#);
    insta::assert_snapshot!(failed(&[json!({"candidates": [{"content": {"parts": "x"}}]})]), @r#"the model's reply could not be read: an event `reply` is not what was expected: invalid type: string "x", expected a sequence at line 1 column 38: {"candidates":[{"content":{"parts":"x"}}]}"#);
    insta::assert_snapshot!(failed(&[end("WHIM")]), @"the model's reply could not be read: the reply stopped for an odd reason (WHIM)");
    insta::assert_snapshot!(failed(&[end("MISSING_THOUGHT_SIGNATURE")]), @"the model refused: the conversation lacks a signature (MISSING_THOUGHT_SIGNATURE)");
    let mut malformed = end("MALFORMED_FUNCTION_CALL");
    malformed["candidates"][0]["finishMessage"] = "Malformed function call: print(\nread())".into();
    insta::assert_snapshot!(failed(&[malformed]), @"the model's reply could not be read: the model wrote a tool call that is none: Malformed function call: print( read()) (MALFORMED_FUNCTION_CALL)");
    let deep = (0..101).fold(json!(1), |inner, _| json!([inner]));
    insta::assert_snapshot!(failed(&[parts(deep)]), @"the model's reply could not be read: an event nests deeper than 100 brackets");
}

#[test]
fn endless_replies_are_cut_off() {
    let failed = |most: usize, event: Value| {
        let mut reply = GeminiReader::default();
        let event = stream::StreamEvent {
            name: String::new(),
            data: event.to_string(),
        };
        let error = (0..=most).find_map(|_| reply.event(&event, &mut |_| {}).err());
        error.expect("once more is too much").to_string()
    };
    let megabyte = "x".repeat(1024 * 1024);
    let four_megabytes = parts(json!([
        {"text": megabyte},
        {"text": megabyte, "thought": true},
        {"text": "", "thoughtSignature": megabyte},
        {"functionCall": {"name": "a", "args": {"a": megabyte}}},
    ]));
    let too_long = format!("the reply is longer than {MAX_REPLY_BYTES} bytes");
    // Four times are as much as there may be, if all of it is counted.
    let error = failed(4, four_megabytes);
    assert!(error.ends_with(&too_long), "{error}");
    let arguments = json!({"a": "x".repeat(MAX_ARGUMENT_BYTES)});
    let error = failed(
        0,
        parts(json!([{"functionCall": {"name": "a", "args": arguments}}])),
    );
    assert!(error.contains("tool arguments exceed"), "{error}");
    let many = vec![json!({"functionCall": {"name": "a"}}); 100];
    let error = failed(40, parts(many.into()));
    assert!(error.contains("more than 4096 parts"), "{error}");
}
