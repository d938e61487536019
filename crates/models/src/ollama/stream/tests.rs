//! Streams as the server sends them, good and bad, without a network.

use gyrus_contract::ToolCall;
use serde_json::json;

use super::*;
use crate::reading::{MAX_ARGUMENT_BYTES, MAX_REPLY_BYTES};
use crate::stream::Stream;

/// Feeds the stream in pieces of `size` bytes and ends it.
fn read(stream: &str, size: usize) -> (Result<Reply, ModelError>, Vec<Delta>) {
    let mut deltas = Vec::new();
    let mut reader = Stream::new(OllamaReader::new("asked", None));
    for bytes in stream.as_bytes().chunks(size) {
        match reader.push(bytes, &mut |delta| deltas.push(delta)) {
            Ok(None) => {}
            Ok(Some(reply)) => return (Ok(reply), deltas),
            Err(error) => return (Err(error), deltas),
        }
    }
    let end = reader.end(&mut |delta| deltas.push(delta));
    (end, deltas)
}

fn lines(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn says(field: &str, value: impl Into<Value>) -> Value {
    let mut message = json!({"role": "assistant", "content": ""});
    message[field] = value.into();
    json!({"model": "m:1b", "created_at": "2026-08-21T00:00:00Z", "message": message, "done": false})
}

fn end(reason: &str) -> Value {
    json!({
        "model": "m:1b", "message": {"role": "assistant", "content": ""},
        "done": true, "done_reason": reason, "total_duration": 1, "load_duration": 1,
        "prompt_eval_count": 30, "prompt_eval_duration": 1, "eval_count": 7, "eval_duration": 1,
    })
}

fn function(name: &str, arguments: Value) -> Value {
    json!({"function": {"index": 0, "name": name, "arguments": arguments}})
}

fn good_stream() -> String {
    let mut first = function("read", json!({"path": "a"}));
    first["id"] = "call_1".into();
    lines(&[
        says("thinking", "hm, "),
        says("thinking", "grün"),
        says("content", "I will "),
        says("content", "look 🦀"),
        says("tool_calls", vec![first]),
        end("stop"),
    ])
}

#[test]
fn a_whole_reply_arrives_however_it_is_cut() {
    let stream = good_stream();
    let (reply, deltas) = read(&stream, stream.len());
    let expected = Reply {
        parts: vec![
            Part::Text(Text::new("I will look 🦀", Origin::Model)),
            Part::ToolCall(ToolCall {
                id: "call_1".into(),
                tool: "read".into(),
                arguments: json!({"path": "a"}),
                repairs: Vec::new(),
            }),
        ],
        stop: StopReason::ToolCalls,
        usage: Some(Usage {
            input_tokens: 30,
            output_tokens: 7,
            cached_tokens: 0,
            cache_written_tokens: 0,
        }),
        model: "m:1b".into(),
    };
    assert_eq!(reply.as_ref(), Ok(&expected));
    assert_eq!(
        deltas,
        [
            Delta::Thinking("hm, ".into()),
            Delta::Thinking("grün".into()),
            Delta::Text("I will ".into()),
            Delta::Text("look 🦀".into()),
            Delta::Tool("read".into()),
        ]
    );
    assert_eq!(read(&stream, 1), (reply.clone(), deltas.clone()));
    let blank = stream.replace('\n', "\r\n\r\n");
    assert_eq!(read(&blank, 3), (reply.clone(), deltas.clone()));
    assert_eq!(
        read(&(stream + "{\"error\": \"junk\"}\n"), 7),
        (reply, deltas)
    );
}

#[test]
fn calls_arrive_whatever_they_are() {
    let calls = vec![
        function("a", json!(null)),
        function("b", json!({"a": [1]})),
        function("c", json!("{\"a\": 1}")),
        function("d", json!("{\"a\": ")),
        json!({"id": "x", "function": {"name": "e"}}),
        json!({"id": "x", "function": {"name": "f"}}),
    ];
    let reply = read(&lines(&[says("tool_calls", calls), end("stop")]), 50)
        .0
        .unwrap();
    let arguments: Vec<_> = reply
        .tool_calls()
        .map(|call| call.arguments.to_string())
        .collect();
    let expected = [
        "{}",
        r#"{"a":[1]}"#,
        r#"{"a":1}"#,
        r#""{\"a\": ""#,
        "{}",
        "{}",
    ];
    assert_eq!(arguments, expected);
    let mut ids: Vec<_> = reply.tool_calls().map(|call| &call.id).collect();
    assert_eq!(ids[4], "x");
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 6, "every call has an id of its own: {ids:?}");
}

#[test]
fn reasons_and_usage_are_understood() {
    let ended = |end: Value| read(&lines(&[says("content", "x"), end]), 50).0.unwrap();
    assert_eq!(ended(end("stop")).stop, StopReason::EndOfTurn);
    assert_eq!(ended(end("length")).stop, StopReason::MaxTokens);
    let empty = read(&lines(&[end("stop")]), 50).0.unwrap();
    assert_eq!((empty.parts.len(), empty.stop), (0, StopReason::EndOfTurn));

    let check = |name: &str, count: Value, is_known: bool| {
        let mut end = end("stop");
        end[name] = count.clone();
        let usage = ended(end).usage;
        assert_eq!(usage.is_some(), is_known, "{name} {count}: {usage:?}");
    };
    check("eval_count", json!(0), true);
    check("eval_count", json!(-1), false);
    check("eval_count", json!(1.5), false);
    check("prompt_eval_count", json!(null), false);
    check("prompt_eval_count", json!(u64::MAX), false);
}

#[test]
fn bad_streams_say_what_is_wrong() {
    let failed = |list: &[Value]| read(&lines(list), 50).0.unwrap_err().to_string();
    insta::assert_snapshot!(failed(&[]), @"the model's reply could not be read: the stream broke off before it began: the provider sent no more");
    insta::assert_snapshot!(failed(&[says("content", "x"), json!({"error": "an error was encountered while running the model: CUDA error"})]), @"the model's provider is overloaded: an error was encountered while running the model: CUDA error");
    insta::assert_snapshot!(failed(&[json!({"error": {"code": 1}})]), @"the model's reply could not be read: the server reports an error without words");
    insta::assert_snapshot!(failed(&[json!("text")]), @r#"the model's reply could not be read: the answer is not a reply but: "text""#);
    insta::assert_snapshot!(failed(&[says("content", 7)]), @r#"the model's reply could not be read: an event `line` is not what was expected: invalid type: integer `7`, expected a string at line 1 column 72: {"created_at":"2026-08-21T00:00:00Z","done":false,"message":{"content":7,"role":"assistant"},"model"…"#);
    insta::assert_snapshot!(failed(&[says("tool_calls", vec![json!({"function": {}})])]), @"the model's reply could not be read: a tool call has no name");
    insta::assert_snapshot!(failed(&[end("load")]), @"the model's reply could not be read: the server did not answer but only loaded the model");
    insta::assert_snapshot!(failed(&[end("whim")]), @"the model's reply could not be read: the reply stopped for the reason `whim`");
    // A server whose model died says that it is done, and not why.
    insta::assert_snapshot!(failed(&[says("thinking", "x"), json!({"done": true})]), @"the model's reply could not be read: the reply ended without a reason and without content");
    let deep = (0..101).fold(json!(1), |inner, _| json!([inner]));
    insta::assert_snapshot!(failed(&[says("tool_calls", vec![function("a", deep)])]), @"the model's reply could not be read: an event nests deeper than 100 brackets");
}

#[test]
fn endless_replies_are_cut_off() {
    let failed = |most: usize, line: Value| {
        let mut reply = OllamaReader::default();
        let event = StreamEvent {
            name: "line".to_owned(),
            data: line.to_string(),
        };
        let error = (0..=most).find_map(|_| reply.event(&event, &mut |_| {}).err());
        error.expect("once more is too much").to_string()
    };
    let megabyte = "x".repeat(1024 * 1024);
    let mut three_megabytes = says("content", megabyte.as_str());
    three_megabytes["message"]["thinking"] = megabyte.as_str().into();
    three_megabytes["message"]["tool_calls"] = vec![function("a", json!({"a": megabyte}))].into();
    let too_long = format!("the reply is longer than {MAX_REPLY_BYTES} bytes");
    // Five times are as much as there may be, if all of it is counted.
    let error = failed(5, three_megabytes);
    assert!(error.ends_with(&too_long), "{error}");
    let arguments = json!({"a": "x".repeat(MAX_ARGUMENT_BYTES)});
    let error = failed(0, says("tool_calls", vec![function("a", arguments)]));
    assert!(error.contains("tool arguments exceed"), "{error}");
    let error = failed(40, says("tool_calls", vec![function("a", json!({})); 100]));
    assert!(error.contains("more than 4096 parts"), "{error}");
}
