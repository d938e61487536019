//! Servers over streamable HTTP, in JSON and as events.

use std::sync::Arc;

use axum::{
    Router,
    body::Body,
    extract::State as Shared,
    http::{HeaderMap, Response, StatusCode},
    routing::post,
};
use gyrus_mcp::{ServerState, Servers};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::world::{TIMEOUT, World, named, ready};

/// A server's behaviour, and the requests that it received.
#[derive(Clone)]
struct Web {
    how: &'static str,
    seen: Arc<Mutex<Vec<(HeaderMap, Value)>>>,
}

/// Serves, and returns the address.
async fn serve(how: &'static str) -> (String, Web) {
    let web = Web {
        how,
        seen: Arc::default(),
    };
    let app = Router::new()
        .route("/mcp", post(answer))
        .with_state(web.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });
    (address, web)
}

async fn answer(Shared(web): Shared<Web>, headers: HeaderMap, body: String) -> Response<Body> {
    let message: Value = serde_json::from_str(&body).unwrap();
    web.seen.lock().push((headers, message.clone()));
    let respond = |status: u16, kind: &str, body: Body| {
        Response::builder()
            .status(status)
            .header("content-type", kind)
            .body(body)
            .unwrap()
    };
    let method = message["method"].as_str().unwrap_or_default();
    if web.how == "elsewhere" {
        return Response::builder()
            .status(StatusCode::TEMPORARY_REDIRECT)
            .header("location", "http://127.0.0.1:9/mcp")
            .body(Body::empty())
            .unwrap();
    }
    if web.how == "closed" {
        return respond(401, "text/plain", Body::from("who are you?"));
    }
    if message.get("id").is_none() {
        return respond(202, "text/plain", Body::empty());
    }
    let result = match method {
        "initialize" => json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "web", "version": "1"},
        }),
        "tools/list" => json!({"tools": [
            {"name": "echo", "description": "d", "inputSchema": {"type": "object"}},
            {"name": "huge", "description": "d", "inputSchema": {"type": "object"}},
        ]}),
        _ if message["params"]["name"] == "huge" => {
            json!({"content": [{"type": "text", "text": "x".repeat(10 << 20)}]})
        }
        _ => json!({"content": [{"type": "text", "text": "from the web"}]}),
    };
    let reply = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    match web.how {
        "events" => {
            let event = format!("event: message\ndata: {reply}\n\n");
            respond(200, "text/event-stream", Body::from(event))
        }
        _ => respond(200, "application/json", Body::from(reply.to_string())),
    }
}

#[tokio::test]
async fn json_and_events_with_headers_of_the_persons() {
    for how in ["json", "events"] {
        let (address, web) = serve(how).await;
        let world = World::new();
        let setup = world.at(&address, &[("authorization", "Bearer hunter2")]);
        let (_servers, tools) = ready(setup).await;
        let output = world.call(named(&tools, "srv__echo"), json!({})).await;
        assert_eq!(output.text, "from the web", "{how}");
        let seen = web.seen.lock();
        assert!(seen.len() >= 4, "{how}: {seen:?}");
        for (headers, message) in seen.iter() {
            assert_eq!(headers["authorization"], "Bearer hunter2", "{message}");
        }
    }
}

#[tokio::test]
async fn an_answer_is_bounded() {
    for how in ["json", "events"] {
        let (address, _web) = serve(how).await;
        let world = World::new();
        let (_servers, tools) = ready(world.at(&address, &[])).await;
        let output = world.call(named(&tools, "srv__huge"), json!({})).await;
        assert!(output.is_error, "{how}: {}", output.text.len());
        assert!(output.text.len() < 2_000, "{how}: {}", output.text);
    }
}

#[tokio::test]
async fn what_is_not_there_is_said() {
    let world = World::new();
    let (closed, _) = serve("closed").await;
    let (elsewhere, web) = serve("elsewhere").await;
    for (url, words) in [
        (closed.as_str(), "401"),
        (elsewhere.as_str(), "307"),
        ("http://127.0.0.1:9/mcp", "error"),
        ("ftp://x/y", "begins neither"),
        ("nothing", "invalid address"),
    ] {
        let mut servers = Servers::start(vec![world.at(url, &[("x-key", "hunter2")])]);
        let state = servers.states(TIMEOUT).await["srv"].clone();
        let ServerState::Missing(why) = state else {
            panic!("{url}: {state:?}");
        };
        assert!(why.contains(words), "{url}: {why}");
        assert!(!why.contains("hunter2"), "{why}");
    }
    assert_eq!(web.seen.lock().len(), 1, "no redirect is followed");
}
