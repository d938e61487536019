//! The client on a real socket, against servers that do as they please.

use gyrus_contract::{Message, Origin, Purpose, Text};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

use super::*;
use crate::NoBlobs;

fn prompt() -> Prompt {
    Prompt {
        purpose: Purpose::Agent,
        ordinal: 0,
        system: Vec::new(),
        messages: vec![Arc::new(Message::user(Text::new("hello", Origin::Person)))],
        tools: Vec::new(),
        output_schema: None,
        max_output_tokens: 10,
    }
}

fn model(base_url: &str) -> AnthropicModel {
    AnthropicModel::new(base_url, "the-key", "m", None, Arc::new(NoBlobs)).unwrap()
}

/// A server for one request. It gives back what it was asked and keeps the connection open.
async fn serve(response: String) -> (AnthropicModel, JoinHandle<(String, TcpStream)>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let model = model(&format!("http://{}/", listener.local_addr().unwrap()));
    let served = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"}") {
            assert_ne!(
                socket.read_buf(&mut request).await.unwrap(),
                0,
                "a whole request"
            );
        }
        socket.write_all(response.as_bytes()).await.unwrap();
        (String::from_utf8(request).unwrap(), socket)
    });
    (model, served)
}

fn response(status: &str, headers: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\n{headers}\r\n{body}",
        body.len()
    )
}

const BEGINNING: &str = "data: {\"type\":\"message_start\",\"message\":{\"model\":\"m\"}}\n\n\
    data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\"}}\n\n\
    data: {\"type\":\"content_block_delta\",\"index\":0,\
    \"delta\":{\"type\":\"text_delta\",\"text\":\"hi\"}}\n\n";

const END: &str = "data: {\"type\":\"content_block_stop\",\"index\":0}\n\n\
    data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n\
    data: {\"type\":\"message_stop\"}\n\n";

#[tokio::test]
async fn the_request_is_what_a_provider_expects() {
    let body = format!("{BEGINNING}{END}");
    let (model, served) = serve(response(
        "200 OK",
        "content-type: text/event-stream\r\n",
        &body,
    ))
    .await;
    let reply = model.reply(&prompt(), &mut |_| {}).await.unwrap();
    assert_eq!((reply.text(), reply.usage), ("hi".to_owned(), None));
    assert_eq!(model.name(), "anthropic/m");

    let (request, _) = served.await.unwrap();
    assert!(
        request.starts_with("POST /v1/messages HTTP/1.1\r\n"),
        "{request}"
    );
    for header in [
        "x-api-key: the-key",
        "anthropic-version: 2023-06-01",
        "content-type: application/json",
    ] {
        assert!(request.contains(&format!("\r\n{header}\r\n")), "{request}");
    }
    assert!(
        !request.contains("x-gyrus"),
        "a provider hears nothing of scripts: {request}"
    );
}

#[tokio::test]
async fn odd_answers_are_errors_with_a_reason() {
    let check = async |response: String, expected: &str| {
        let (model, served) = serve(response).await;
        let error = model.reply(&prompt(), &mut |_| {}).await.unwrap_err();
        assert!(
            error.to_string().contains(expected),
            "{error}\nis not: {expected}"
        );
        drop(served.await.unwrap());
    };
    check(
        response("302 Found", "location: http://127.0.0.1:9/\r\n", ""),
        "redirects to http://127.0.0.1:9/; it is not followed",
    )
    .await;
    check(
        response("200 OK", "content-type: text/html\r\n", "<h1>Log in</h1>"),
        "no event stream but: <h1>Log in</h1>",
    )
    .await;
    check(
        response("429 Slow Down", "retry-after: 3\r\n", "later"),
        "limits the rate: later (HTTP 429)",
    )
    .await;
    let stream = "content-type: text/event-stream\r\n";
    check(
        response("200 OK", stream, BEGINNING),
        "the stream broke off inside a block",
    )
    .await;
    check("HTTP/9 nonsense\r\n\r\n".to_owned(), "could not be reached").await;
}

#[tokio::test]
async fn a_connection_that_breaks_is_no_reply() {
    let promised = response("200 OK", "content-type: text/event-stream\r\n", BEGINNING).replacen(
        "content-length: ",
        "content-length: 9",
        1,
    );
    let (model, served) = serve(promised).await;
    let closing = tokio::spawn(async { drop(served.await.unwrap()) });
    let error = model.reply(&prompt(), &mut |_| {}).await.unwrap_err();
    assert!(matches!(error, ModelError::BadOutput { .. }), "{error}");
    closing.await.unwrap();
}

#[tokio::test]
async fn nobody_there_is_a_network_error() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let error = model(&format!("http://{address}"))
        .reply(&prompt(), &mut |_| {})
        .await;
    let error = error.unwrap_err();
    assert!(matches!(error, ModelError::Network { .. }), "{error}");
    assert!(error.to_string().contains("refused"), "{error}");
}

#[tokio::test]
async fn silence_ends() {
    let promised = response("200 OK", "content-type: text/event-stream\r\n", BEGINNING).replacen(
        "content-length: ",
        "content-length: 9",
        1,
    );
    let (model, served) = serve(promised).await;
    // From the first text on, nothing comes; time runs ahead when nothing else can happen.
    let error = model
        .reply(&prompt(), &mut |_| tokio::time::pause())
        .await
        .unwrap_err();
    assert_eq!(
        error,
        ModelError::Network {
            message: "the provider was silent for 10 minutes".into()
        }
    );
    drop(served.await.unwrap());
}

#[test]
fn wrong_settings_are_noticed_at_once() {
    let new = |url: &str, key: &str| {
        AnthropicModel::new(url, key, "m", None, Arc::new(NoBlobs))
            .map(|_| ())
            .unwrap_err()
    };
    assert!(matches!(
        new("api.example.com", "k"),
        ModelError::Network { .. }
    ));
    let error = new("https://api.example.com", "se\ncret");
    assert!(matches!(error, ModelError::Auth { .. }));
    assert!(!error.to_string().contains("cret"), "{error}");
}
