//! Streams as servers send them, good and bad, without a network.

use gyrus_contract::Usage;
use serde_json::json;

use super::*;
use crate::stream::Stream;

const CANONICAL: &str = include_str!("../canonical.sse");

/// Feeds the stream in pieces of `size` bytes and ends it cleanly.
fn read(stream: &str, size: usize) -> (Result<Reply, ModelError>, Vec<Delta>) {
    let mut deltas = Vec::new();
    let mut reader = Stream::new(ResponsesReader::default());
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

fn events(events: &[Value]) -> String {
    let line = |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"]);
    events.iter().map(line).collect()
}

fn done(index: usize, item: &Value) -> Value {
    json!({"type": "response.output_item.done", "output_index": index, "item": item})
}

fn added(index: usize, item: &Value) -> Value {
    json!({"type": "response.output_item.added", "output_index": index, "item": item})
}

fn completed(output: &[Value]) -> Value {
    json!({"type": "response.completed", "response": {"model": "m", "output": output}})
}

fn incomplete(reason: &str, output: &[Value]) -> Value {
    json!({"type": "response.incomplete", "response": {
        "output": output, "incomplete_details": {"reason": reason},
    }})
}

fn said(text: &str) -> Value {
    json!({"type": "message", "content": [{"type": "output_text", "text": text}]})
}

fn called(id: &str, arguments: &str) -> Value {
    json!({"type": "function_call", "call_id": id, "name": "read", "arguments": arguments})
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
        (reply.model.as_str(), reply.stop),
        ("m-1-2026", StopReason::ToolCalls)
    );
    let reasoning = json!({
        "id": "rs_1", "type": "reasoning", "encrypted_content": "gAAAAABn-c2lnbmVk",
        "summary": [{"type": "summary_text", "text": "The notes come first."}],
    });
    assert_eq!(reply.parts[0], Part::Thinking(reasoning));
    assert_eq!(reply.text(), "I will look 🦀");
    let calls: Vec<_> = reply
        .tool_calls()
        .map(|call| (&*call.id, &*call.tool))
        .collect();
    assert_eq!(calls, [("call_1", "read"), ("call_2", "list")]);
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
    assert_eq!(read(CANONICAL, 1), (Ok(reply), deltas));
}

#[test]
fn items_count_when_they_are_done() {
    let read = |list: &[Value]| read(&events(list), 64).0;
    let text = |list: &[Value]| read(list).unwrap().text();
    let (a, b) = (said("a"), said("b"));
    // Only the closing event, only items, both, items out of order, items without an index.
    assert_eq!(text(&[completed(&[a.clone(), b.clone()])]), "a\nb");
    assert_eq!(text(&[done(0, &a), done(1, &b), completed(&[])]), "a\nb");
    assert_eq!(
        text(&[done(0, &a), completed(&[a.clone(), b.clone()])]),
        "a\nb"
    );
    assert_eq!(
        text(&[
            added(0, &a),
            added(1, &b),
            done(1, &b),
            done(0, &a),
            completed(&[])
        ]),
        "a\nb"
    );
    let bare = json!({"type": "response.output_item.done", "item": a});
    assert_eq!(text(&[bare.clone(), bare, completed(&[])]), "a\na");
    // Items that were not requested are skipped.
    let search = json!({"type": "web_search_call", "id": "ws_1"});
    assert_eq!(text(&[done(0, &search), done(1, &a), completed(&[])]), "a");

    let calls = |list: &[Value]| {
        let reply = read(list).unwrap();
        let calls = reply.tool_calls();
        calls
            .map(|call| (call.id.clone(), call.arguments.clone()))
            .collect::<Vec<_>>()
    };
    let twice = calls(&[
        done(0, &called("x", "")),
        done(1, &called("x", "[1]")),
        completed(&[]),
    ]);
    assert_eq!(twice[0], ("x".to_owned(), json!({})));
    assert_ne!(twice[1].0, "x");
    assert_eq!(twice[1].1, json!([1]));
    assert_eq!(
        calls(&[done(0, &called("x", "{\"a\"")), completed(&[])])[0].1,
        json!("{\"a\"")
    );

    let cut = read(&[
        added(0, &called("x", "")),
        incomplete("max_output_tokens", &[called("x", "{\"a")]),
    ]);
    let cut = cut.unwrap();
    assert_eq!(cut.stop, StopReason::MaxTokens);
    assert_eq!(cut.tool_calls().next().unwrap().arguments, json!("{\"a"));
    let cut = read(&[
        done(0, &a),
        added(1, &b),
        incomplete("max_output_tokens", &[]),
    ])
    .unwrap();
    assert_eq!(
        (cut.text().as_str(), cut.stop),
        ("a", StopReason::MaxTokens)
    );
}

#[test]
fn bad_streams_say_what_is_wrong() {
    let told = |list: &[Value]| read(&events(list), 50).0.unwrap_err().to_string();
    let a = said("a");
    insta::assert_snapshot!(told(&[]), @"the model's reply could not be read: the stream broke off before it began: the provider sent no more");
    insta::assert_snapshot!(told(&[added(0, &a)]), @"the model's reply could not be read: the stream broke off before its end: the provider sent no more");
    insta::assert_snapshot!(told(&[added(0, &called("x", "")), completed(&[])]), @"the model's reply could not be read: the reply ended inside item 0");
    insta::assert_snapshot!(told(&[added(0, &a), added(0, &a)]), @"the model's reply could not be read: item 0 began twice");
    insta::assert_snapshot!(told(&[done(0, &a), done(0, &a)]), @"the model's reply could not be read: item 0 ended twice");
    insta::assert_snapshot!(told(&[json!({"type": "response.completed"})]), @r#"the model's reply could not be read: an event `"response.completed"` is not what was expected: missing field `response`: {"type":"response.completed"}"#);
    insta::assert_snapshot!(told(&[done(0, &json!({"type": "function_call"})), completed(&[])]), @"the model's reply could not be read: a tool call has no name");
    insta::assert_snapshot!(told(&[incomplete("whim", &[])]), @"the model's reply could not be read: the reply is incomplete for the reason `whim`");
    insta::assert_snapshot!(told(&[incomplete("content_filter", &[])]), @"the model declined: the provider's content filter stopped the reply");
    let refusal =
        json!({"type": "message", "content": [{"type": "refusal", "refusal": "I cannot"}]});
    insta::assert_snapshot!(told(&[done(0, &refusal), completed(&[])]), @"the model declined: I cannot");
    let failed = json!({"type": "response.failed", "response": {"error": {"code": "rate_limit_exceeded", "message": "later"}}});
    insta::assert_snapshot!(told(&[failed]), @"the model's provider limits the rate: later (rate_limit_exceeded)");
    insta::assert_snapshot!(told(&[json!({"type": "error", "code": "server_error", "message": "no"})]), @"the model's provider is overloaded: no (server_error)");
    insta::assert_snapshot!(told(&[json!({"type": "error", "error": {"type": "invalid_request_error", "message": "no"}})]), @"the model refused: no (invalid_request_error)");
}

#[test]
fn endless_replies_are_cut_off() {
    let check = |event: &dyn Fn(usize) -> Value, expected: &str| {
        let mut reader = Stream::new(ResponsesReader::default());
        let error = (0..5000)
            .find_map(|n| {
                reader
                    .push(events(&[event(n)]).as_bytes(), &mut |_| {})
                    .err()
            })
            .unwrap();
        assert!(error.to_string().contains(expected), "{error}");
    };
    let megabyte = "x".repeat(1024 * 1024);
    let reply = "the reply is longer than 16777216 bytes";
    check(
        &|_| json!({"type": "response.output_text.delta", "delta": megabyte}),
        reply,
    );
    check(&|n| done(n, &said(&megabyte)), reply);
    check(&|n| done(n, &said("")), "more than 4096 items");
    check(&|n| added(n, &said("")), "more than 4096 items");
    let long = called("x", &"x".repeat(MAX_ARGUMENT_BYTES + 1));
    check(
        &|n| {
            if n == 0 {
                done(0, &long)
            } else {
                completed(&[])
            }
        },
        "tool arguments exceed",
    );
}
