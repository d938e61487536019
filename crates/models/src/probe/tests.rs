use std::sync::Arc;

use axum::{
    Router,
    body::Body,
    http::{StatusCode, header::CONTENT_TYPE},
    response::Response,
    routing::post,
};
use tokio::net::TcpListener;

use super::*;
use crate::{ChatModel, Connection, Facts};

/// Behaviour of the server: returns a response to a question, or none.
type Answers = fn(&str, &Value) -> Option<Response>;

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

fn good(text: &str, request: &Value) -> Option<Response> {
    let asks = |words: &str| text.contains(words);
    let has_picture = text.contains("data:image/png;base64,");
    if text.len() / 4 > WINDOW && !has_picture {
        let error = json!({"error": {
            "message": "This model's maximum context length is 20000 tokens.",
            "code": "context_length_exceeded",
        }});
        let response = Response::builder().status(StatusCode::BAD_REQUEST);
        return Some(response.body(Body::from(error.to_string())).unwrap());
    }
    if asks("put seven pieces") {
        let name = request["tools"][0]["function"]["name"].as_str().unwrap();
        return Some(calls(name, &json!({"fruit": "quince", "pieces": 7})));
    }
    Some(match () {
        () if asks("poem") => says("{\"lines\": [\"blue\"], \"mood\": \"calm\"}", text),
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
    })
}

fn bad(text: &str, _request: &Value) -> Option<Response> {
    Some(says("I am a teapot, 418.", text))
}

fn silent(_text: &str, _request: &Value) -> Option<Response> {
    None
}

async fn model(answers: Answers) -> ChatModel {
    let answer = move |body: String| async move {
        let request = serde_json::from_str(&body).unwrap();
        match answers(&body, &request) {
            Some(response) => response,
            None => std::future::pending().await,
        }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
    let router = Router::new()
        .route("/v1/chat/completions", post(answer))
        .layer(axum::extract::DefaultBodyLimit::disable());
    tokio::spawn(async move { axum::serve(listener, router).await });
    ChatModel::new(Connection {
        base_url,
        key: None,
        pins: Vec::new(),
        provider: "local".into(),
        model: "m".into(),
        facts: Facts::default(),
        blobs: Arc::new(ProbePictures::new()),
    })
    .unwrap()
}

async fn report(answers: Answers, effort: Effort) -> (Measured, String) {
    let model = model(answers).await;
    let mut lines = Vec::new();
    let mut progress = |probe: &str, words: &str| lines.push(format!("{probe}: {words}"));
    let measured = check(&model, effort, &mut progress).await;
    (measured, lines.join("\n"))
}

fn with_context(most_tokens: u64, most_requests: u32) -> Effort {
    Effort {
        context: Some(ContextProbe {
            most_tokens,
            most_requests,
        }),
        ..Effort::default()
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
    let read: Measured = serde_json::from_value(json).unwrap();
    assert_eq!(read.clicks, measured.clicks);

    let facts = Facts {
        window: Some(64_000),
        tools: Some(false),
        ..Facts::default()
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
    let facts = apply(&measured, Facts::default());
    assert_eq!(
        (facts.tools, facts.images, facts.schema),
        (Some(false), Some(false), Some(false))
    );
    assert_eq!(measured.requests, 5 + 3);
}

#[tokio::test]
async fn a_silent_model_is_asked_once() {
    let effort = Effort {
        limit: Duration::from_millis(50),
        ..with_context(10_000, 3)
    };
    let (measured, lines) = report(silent, effort).await;
    assert_eq!(lines, "answers: no: it did not answer within 0.05 seconds");
    assert_eq!(measured.requests, 1);
    let facts = Facts {
        images: Some(true),
        ..Facts::default()
    };
    assert_eq!(apply(&measured, facts.clone()), facts);
}
