use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    http::{StatusCode, header::CONTENT_TYPE},
    response::Response,
    routing::post,
};
use gyrus_contract::{BoxedFuture, Delta, Origin, Part, Prompt, StopReason, Text, Usage};
use tokio::net::TcpListener;

use super::*;
use crate::{CallReader, ChatModel, ModelConnection, ModelFacts};

/// Behaviour of the server: returns a response to a question.
type Answers = fn(&str, &Value) -> Response;

fn event_stream(events: &[Value]) -> Response {
    let mut body: String = events.iter().map(|it| format!("data: {it}\n\n")).collect();
    body.push_str("data: [DONE]\n\n");
    Response::builder()
        .header(CONTENT_TYPE, "text/event-stream")
        .body(Body::from(body))
        .unwrap()
}

/// Returns a reply with `text`; its prompt is counted as a quarter of its bytes.
fn says(text: &str, request: &str) -> Response {
    event_stream(&[
        json!({"choices": [{"index": 0, "delta": {"content": text}}]}),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}),
        json!({"choices": [], "usage": {
            "prompt_tokens": request.len() / 4, "completion_tokens": 5,
        }}),
    ])
}

fn calls(name: &str, arguments: &Value) -> Response {
    let call = json!({"index": 0, "id": "c1", "type": "function", "function": {
        "name": name, "arguments": arguments.to_string(),
    }});
    event_stream(&[
        json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}),
    ])
}

/// Window of the good model, in tokens.
const WINDOW: usize = 20_000;

fn good(text: &str, request: &Value) -> Response {
    let asks = |words: &str| text.contains(words);
    let has_picture = text.contains("data:image/png;base64,");
    if text.len() / 4 > WINDOW && !has_picture {
        let error = json!({"error": {
            "message": "This model's maximum context length is 20000 tokens.",
            "code": "context_length_exceeded",
        }});
        let response = Response::builder().status(StatusCode::BAD_REQUEST);
        return response.body(Body::from(error.to_string())).unwrap();
    }
    if asks("put seven pieces") {
        let name = request["tools"][0]["function"]["name"].as_str().unwrap();
        return calls(name, &json!({"fruit": "quince", "pieces": 7}));
    }
    match () {
        () if asks("poem") => says("{\"lines\": 4, \"mood\": \"calm\"}", text),
        () if asks("Which number") && has_picture => says("It is 4719.", text),
        () if asks("five discs") && has_picture => {
            let points: Vec<_> = pictures::TARGETS
                .iter()
                .map(|(name, at)| {
                    let (x, y) = (f64::from(at.0) / 1.28, f64::from(at.1) / 0.8);
                    format!("\"{name}\": {{\"x\": {x:.0}, \"y\": {y:.0}}}")
                })
                .collect();
            says(&format!("```json\n{{{}}}\n```", points.join(",")), text)
        }
        () if asks("elements on a screen") => says("13", text),
        () if asks("Remember this word") => says("heliotrope-48213", text),
        () => says("yes", text),
    }
}

fn bad(text: &str, _request: &Value) -> Response {
    says("I am a teapot, 418.", text)
}

const CALL: &str = r#"{"name": "put_into_basket", "arguments": {"fruit": "quince", "pieces": 7}}"#;

/// Writes calls as text in a fence.
fn fenced(text: &str, request: &Value) -> Response {
    match request.get("tools") {
        Some(_) => says(&format!("Sure:\n```json\n{CALL}\n```"), text),
        None => says("yes", text),
    }
}

/// Answers like a small model, and keeps to a schema.
fn obedient(text: &str, request: &Value) -> Response {
    let schema = request["response_format"]["json_schema"]["schema"].to_string();
    match () {
        () if schema.contains("put_into_basket") => says(CALL, text),
        () if schema.contains("mood") => says("{\"lines\": 4, \"mood\": \"calm\"}", text),
        () => fenced(text, request),
    }
}

/// Loses the tools of a request, without a word.
fn dropping(_text: &str, request: &Value) -> Response {
    let told = request["messages"].to_string();
    if told.contains("Schema of its arguments") {
        says(CALL, &told)
    } else {
        says("I have no tools.", &told)
    }
}

/// Calls tools only where the schema allows nothing else.
fn bound(text: &str, request: &Value) -> Response {
    let schema = request["response_format"]["json_schema"]["schema"].to_string();
    if schema.contains("put_into_basket") {
        says(CALL, text)
    } else {
        says("I would rather talk.", text)
    }
}

async fn model(answers: Answers) -> CallReader {
    let answer = move |body: String| async move {
        let request = serde_json::from_str(&body).unwrap();
        answers(&body, &request)
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
    let router = Router::new()
        .route("/v1/chat/completions", post(answer))
        .layer(axum::extract::DefaultBodyLimit::disable());
    tokio::spawn(async move { axum::serve(listener, router).await });
    reached_at(base_url)
}

fn reached_at(base_url: String) -> CallReader {
    let model = ChatModel::new(ModelConnection {
        base_url,
        key: None,
        pins: Vec::new(),
        provider: "local".into(),
        model: "m".into(),
        facts: ModelFacts::default(),
        blobs: Arc::new(ProbePictures::new()),
    });
    CallReader::native(Arc::new(model.unwrap()))
}

async fn report(answers: Answers, effort: Effort) -> (Measurements, String) {
    report_on(&model(answers).await, effort).await
}

async fn report_on(model: &dyn Model, effort: Effort) -> (Measurements, String) {
    let mut lines = Vec::new();
    let mut progress = |step: ProbeStep<'_>| match step {
        ProbeStep::Begins(_) => {}
        ProbeStep::Ends(probe, words) => lines.push(format!("{probe}: {words}")),
    };
    let measured = check(model, effort, &mut progress).await;
    (measured, lines.join("\n"))
}

fn with_context(most_tokens: u64, most_requests: u32) -> Effort {
    Effort {
        context: Some(ContextProbe {
            most_tokens,
            most_requests,
        }),
    }
}

#[tokio::test]
async fn a_good_model_shows_what_it_can() {
    let (measured, lines) = report(good, with_context(100_000, 8)).await;
    let context = measured.context.unwrap();
    let window = WINDOW as u64;
    assert!(
        context.holds <= window && context.holds > window * 7 / 10,
        "{context:?}"
    );
    assert!(context.too_long.unwrap() > window * 8 / 10, "{context:?}");
    let lines = lines.replace(&context.holds.to_string(), "HELD");
    let lines = lines.replace(&context.too_long.unwrap().to_string(), "TOO_LONG");
    insta::assert_snapshot!(lines, @r##"
answers: yes
tool calls: yes
replies by a schema: yes
pictures: yes
pointing: in thousandths of width and height, off by 1 pixels, at most 1
choosing an element: yes
context: HELD tokens are held, TOO_LONG are not
"##);
    assert!(measured.requests <= 6 + 8);
    assert_eq!(measured.version, MEASURED_VERSION);
    assert!(measured.latency.is_some());
    let tokens = measured.tokens.unwrap();
    assert!(tokens.counted > 0 && tokens.bytes > 500, "{tokens:?}");

    // The results are stored as JSON, and a later version with more fields can be read.
    let mut json = serde_json::to_value(&measured).unwrap();
    json["version"] = json!(7);
    json["beauty"] = json!({"finding": "works"});
    let read: Measurements = serde_json::from_value(json).unwrap();
    assert_eq!(read.clicks, measured.clicks);

    let facts = ModelFacts {
        window: Some(64_000),
        tools: Some(false),
        ..ModelFacts::default()
    };
    let facts = apply(&measured, facts);
    assert_eq!(
        (facts.tools, facts.images, facts.schema),
        (Some(true), Some(true), Some(true))
    );
    assert_eq!(facts.window, Some(context.holds));
}

#[tokio::test]
async fn a_window_that_is_large_enough_takes_one_request() {
    let (measured, _) = report(good, with_context(16_000, 8)).await;
    assert_eq!(measured.context.unwrap().too_long, None);
    assert_eq!(measured.requests, 7);
}

#[tokio::test]
async fn a_bad_model_is_found_out() {
    let (measured, lines) = report(bad, with_context(10_000, 3)).await;
    insta::assert_snapshot!(lines, @r##"
answers: yes
tool calls: no: it wrote `I am a teapot, 418.`
replies by a schema: no: it wrote `I am a teapot, 418.`
pictures: no: it read `I am a teapot, 418.` in place of 4719
pointing: not known: it was shown no screen, since it sees no pictures
choosing an element: no: it chose `I am a teapot, 418.` in place of 13
context: not known: no prompt was both taken and remembered to its beginning, not even one of 1476 tokens
"##);
    let facts = apply(&measured, ModelFacts::default());
    assert_eq!(
        (facts.tools, facts.images, facts.schema),
        (Some(false), Some(false), Some(false))
    );
    assert_eq!(measured.requests, 5 + 2 + 3);
}

#[tokio::test]
async fn a_model_that_cannot_be_reached_is_asked_once() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    let (measured, lines) = report_on(&reached_at(base_url), Effort::default()).await;
    assert!(lines.starts_with("answers: no: "), "{lines}");
    assert_eq!(measured.requests, 1);
    let facts = ModelFacts {
        images: Some(true),
        ..ModelFacts::default()
    };
    assert_eq!(apply(&measured, facts.clone()), facts);
}

#[tokio::test]
async fn the_first_form_in_which_a_call_comes_is_kept() {
    let check = async |answers, expected, native, requests| {
        let (measured, lines) = report(answers, Effort::default()).await;
        assert_eq!(measured.calls, Some(expected), "{lines}");
        assert_eq!(apply(&measured, ModelFacts::default()).tools, Some(native));
        assert_eq!(measured.requests, requests, "{lines}");
        let calls = lines.lines().find(|line| line.starts_with("tool calls: "));
        calls.unwrap().to_owned()
    };
    let said = check(fenced, CallStyle::Native, true, 5).await;
    assert_eq!(said, "tool calls: yes");
    let said = check(obedient, CallStyle::Bound, false, 6).await;
    assert_eq!(said, "tool calls: yes");
    let said = check(dropping, CallStyle::Prompted, false, 6).await;
    insta::assert_snapshot!(said, @"tool calls: yes, described in the prompt (on its wire: no: its server seems to leave tools out, since a prompt has 17 tokens without and 22 with one; it wrote `I have no tools.`)");
    let said = check(bound, CallStyle::Bound, false, 7).await;
    insta::assert_snapshot!(said, @"tool calls: yes, described in the prompt, with replies bound to a schema (on its wire: no: it wrote `I would rather talk.`)");

    // Results of an earlier version have no form.
    let (measured, _) = report(bound, Effort::default()).await;
    let mut json = serde_json::to_value(&measured).unwrap();
    for field in ["calls", "window", "tokens_per_second"] {
        json.as_object_mut().unwrap().remove(field).unwrap();
    }
    let read: Measurements = serde_json::from_value(json).unwrap();
    assert_eq!(read.call_style(), Some(CallStyle::Prompted));
}

/// A model that needs a minute and a half for every reply.
struct Slow;

impl Model for Slow {
    fn name(&self) -> &str {
        "local/slow"
    }

    fn price(&self) -> Option<gyrus_contract::Price> {
        None
    }

    fn window(&self) -> Option<u64> {
        Some(8_192)
    }

    fn reply<'a>(
        &'a self,
        _prompt: &'a Prompt,
        _deltas: &'a mut (dyn FnMut(Delta) + Send),
    ) -> BoxedFuture<'a, Result<Reply, gyrus_contract::ModelError>> {
        Box::pin(async {
            tokio::time::sleep(Duration::from_secs(90)).await;
            Ok(Reply {
                parts: vec![Part::Text(Text::new("yes", Origin::Model))],
                stop: StopReason::EndOfTurn,
                usage: Some(Usage {
                    input_tokens: 50,
                    output_tokens: 45,
                    cached_tokens: 0,
                    cache_written_tokens: 0,
                }),
                model: "slow".into(),
            })
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_model_is_slow_and_not_absent() {
    let (measured, lines) = report_on(&Slow, Effort::default()).await;
    assert!(lines.starts_with("answers: yes\n"), "{lines}");
    assert!(lines.contains("window: 8192 tokens"), "{lines}");
    assert_eq!(measured.window, Some(8_192));
    assert!(measured.is_slow());
    insta::assert_snapshot!(measured.speed().unwrap(), @"slow: 0.5 tokens a second, 90000 ms to the first word, 90000 ms in all, in the median");
}
