use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use super::*;
use crate::cdp::Cdp;

/// Starts a server that sends these bytes, each to one connection, and then waits for its end; `{}`
/// in them is its own address.
async fn server(says: &[&[u8]]) -> DebuggingPort {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let at = format!("http://{}", listener.local_addr().unwrap());
    let says: Vec<Vec<u8>> = says.iter().map(|one| one.to_vec()).collect();
    tokio::spawn(async move {
        let mut open = Vec::new();
        for one in says {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut asked = Vec::new();
            while !asked.ends_with(b"\r\n\r\n") {
                asked.push(stream.read_u8().await.unwrap());
            }
            stream.write_all(&one).await.unwrap();
            open.push(stream);
        }
        std::future::pending::<()>().await;
    });
    at.parse().unwrap()
}

fn http(status: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n{body}").into_bytes()
}

/// Returns the answer of a browser that reports a foreign address.
fn version() -> Vec<u8> {
    let body = r#"{"webSocketDebuggerUrl": "ws://192.0.2.1:1/devtools/browser/x"}"#;
    http("200 OK", body)
}

/// Returns a server's answer to the handshake `asked`.
fn switched(asked: &str) -> String {
    let key = asked.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("sec-websocket-key")
            .then_some(value)
    });
    let accept = derive_accept_key(key.unwrap().as_bytes());
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {accept}\r\n\r\n"
    )
}

#[test]
fn only_addresses_of_this_machine_are_taken() {
    for given in [
        "http://127.0.0.1:9222",
        "http://127.0.0.2:9222/",
        "localhost:9222",
        "http://[::1]:9222",
        "ws://127.0.0.1:9222/devtools/browser/0d-1",
    ] {
        let at: DebuggingPort = given.parse().unwrap();
        assert_eq!(at.to_string(), given);
        let text = serde_json::to_string(&at).unwrap();
        assert_eq!(serde_json::from_str::<DebuggingPort>(&text).unwrap(), at);
    }
    for (given, why) in [
        ("http://192.0.2.1:9222", "not on this machine"),
        ("http://chrome.example:9222", "not on this machine"),
        ("http://127.0.0.1:9222@a.example:1", "not on this machine"),
        ("http://localhost.example:9222", "not on this machine"),
        ("http://127.0.0.1", "names no port"),
        ("http://127.0.0.1:99999", "names no port"),
        ("https://127.0.0.1:9222", "must begin with http:// or ws://"),
        ("http://127.0.0.1:9222/json", "nothing follows the port"),
        ("ws://127.0.0.1:9222/devtools/page/1", "/devtools/browser"),
        ("ws://127.0.0.1:1/devtools/browser\r\nX: y", "blanks"),
    ] {
        let error = given.parse::<DebuggingPort>().unwrap_err().to_string();
        assert!(error.contains(why), "{given}: {error}");
    }
}

#[tokio::test]
async fn who_is_no_browser_is_told_in_words() {
    let long = [
        b"HTTP/1.1 200 OK\r\n".as_slice(),
        &b"X: y\r\n".repeat(10_000),
    ]
    .concat();
    let endless = [b"HTTP/1.1 200 OK\r\n\r\n".as_slice(), &b"[".repeat(200_000)].concat();
    let page = http(
        "200 OK",
        r#"{"webSocketDebuggerUrl": "ws://h/devtools/page/1"}"#,
    );
    let strange = http(
        "200 OK",
        r#"{"webSocketDebuggerUrl": "ws://h/devtools/browser/\r\nX: y"}"#,
    );
    let refused = http("403 Forbidden", "no");
    let other = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n";
    for (says, why) in [
        (
            vec![http("500 Internal Server Error", "")],
            "`HTTP/1.1 500 Internal Server Error`",
        ),
        (
            vec![b"SSH-2.0-OpenSSH_9\r\n\r\n".to_vec()],
            "`SSH-2.0-OpenSSH_9`",
        ),
        (vec![long], "does not answer as web servers do"),
        (vec![endless], "does not say where its browser is"),
        (vec![page], "does not say where its browser is"),
        (vec![strange], "does not say where its browser is"),
        (vec![version(), refused], "`HTTP/1.1 403 Forbidden`"),
        (vec![version(), other.to_vec()], "it opens no WebSocket"),
    ] {
        let says: Vec<&[u8]> = says.iter().map(Vec::as_slice).collect();
        let at = server(&says).await;
        let error = connect(&at, LIMIT).await.unwrap_err().to_string();
        assert!(
            error.contains(why) && error.contains(&at.to_string()),
            "{why}: {error}"
        );
    }
}

#[tokio::test]
async fn a_port_at_which_nobody_listens_is_told() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let at: DebuggingPort = format!("http://{}", listener.local_addr().unwrap())
        .parse()
        .unwrap();
    drop(listener);
    let error = connect(&at, LIMIT).await.unwrap_err();
    assert!(matches!(error, AttachError::Nobody { .. }), "{error}");
    assert!(
        error.to_string().contains("--remote-debugging-port"),
        "{error}"
    );
}

#[tokio::test]
async fn a_port_that_is_silent_is_given_up() {
    let at = server(&[b""]).await;
    let error = connect(&at, Duration::from_millis(50)).await.unwrap_err();
    assert!(matches!(error, AttachError::Silent { .. }), "{error}");
}

/// Returns a frame of a server.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    match payload.len() {
        short @ 0..=125 => frame.push(u8::try_from(short).unwrap()),
        middle @ 126..=65_535 => {
            frame.push(126);
            frame.extend(u16::try_from(middle).unwrap().to_be_bytes());
        }
        long => {
            frame.push(127);
            frame.extend((long as u64).to_be_bytes());
        }
    }
    frame.extend(payload);
    frame
}

/// Returns a connection, and its other side after the handshake.
async fn connected() -> (ToSocket, FromSocket, TcpStream) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let at = format!("ws://{}/devtools/browser/x", listener.local_addr().unwrap());
    let at: DebuggingPort = at.parse().unwrap();
    let accepts = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut asked = Vec::new();
        while !asked.ends_with(b"\r\n\r\n") {
            asked.push(stream.read_u8().await.unwrap());
        }
        let asked = String::from_utf8(asked).unwrap();
        assert!(
            asked.starts_with("GET /devtools/browser/x HTTP/1.1\r\n"),
            "{asked}"
        );
        assert!(!asked.contains("Origin"), "{asked}");
        stream.write_all(switched(&asked).as_bytes()).await.unwrap();
        stream
    };
    let (ours, theirs) = tokio::join!(connect(&at, LIMIT), accepts);
    let (to, from) = ours.unwrap();
    (to, from, theirs)
}

/// Returns a client's message, unmasked: the first byte and the payload.
async fn sent(from: &mut TcpStream) -> (u8, Vec<u8>) {
    let first = from.read_u8().await.unwrap();
    let second = from.read_u8().await.unwrap();
    assert_eq!(second & 0x80, 0x80, "clients mask");
    let length = match second & 0x7f {
        126 => u64::from(from.read_u16().await.unwrap()),
        127 => from.read_u64().await.unwrap(),
        short => u64::from(short),
    };
    let mut key = [0; 4];
    from.read_exact(&mut key).await.unwrap();
    let mut payload = vec![0; usize::try_from(length).unwrap()];
    from.read_exact(&mut payload).await.unwrap();
    let masks = key.iter().cycle();
    (
        first,
        payload
            .iter()
            .zip(masks)
            .map(|(byte, key)| byte ^ key)
            .collect(),
    )
}

#[tokio::test]
async fn messages_of_every_length_go_both_ways() {
    let (mut to, mut from, mut browser) = connected().await;
    for length in [0, 1, 125, 126, 65_535, 65_536, 1 << 20] {
        let message = vec![b'x'; length];
        let (done, got) = tokio::join!(to.send(message.clone()), sent(&mut browser));
        done.unwrap();
        assert!(got == (0x81, message.clone()), "{length}");
        let mut heard = Vec::new();
        let bytes = frame(0x81, &message);
        let (heard_it, said) = tokio::join!(from.hear(&mut heard), browser.write_all(&bytes));
        said.unwrap();
        assert!(heard_it.unwrap() && heard == message, "{length}");
    }
}

#[tokio::test]
async fn fragments_are_joined_and_pings_between_them_answered() {
    let (_to, mut from, mut browser) = connected().await;
    let says = [
        frame(0x01, b"on"),
        frame(0x89, b"are you there"),
        frame(0x00, b""),
        frame(0x8a, b"unasked"),
        frame(0x80, b"e"),
        frame(0x81, b"two"),
        frame(0x88, b"\x03\xe9"),
    ];
    browser.write_all(&says.concat()).await.unwrap();
    for wanted in ["one", "two"] {
        let mut heard = Vec::new();
        assert!(from.hear(&mut heard).await.unwrap());
        assert_eq!(String::from_utf8(heard).unwrap(), wanted);
    }
    assert!(!from.hear(&mut Vec::new()).await.unwrap(), "it was closed");
    assert_eq!(sent(&mut browser).await, (0x8a, b"are you there".to_vec()));
}

#[tokio::test]
async fn what_no_browser_sends_ends_the_connection_in_words() {
    let huge = [&[0x81, 127][..], &(200_u64 << 20).to_be_bytes(), b"{"].concat();
    let pieces = frame(0x01, &vec![b'x'; 1 << 20]);
    let more = frame(0x00, &vec![b'x'; 1 << 20]).repeat(64);
    for (says, why) in [
        (huge, "more than 67108864 bytes"),
        ([pieces, more].concat(), "more than 67108864 bytes"),
        (frame(0x80, b"x"), "nothing to continue"),
        (
            [frame(0x01, b"x"), frame(0x81, b"y")].concat(),
            "waiting for more fragments",
        ),
        (frame(0x82, b"x"), "not text"),
        (frame(0x81, b"\xff"), "UTF-8"),
        (frame(0x89, &[b'x'; 126]), "Control frame too big"),
        (frame(0xc1, b"x"), "Reserved bits"),
        (vec![0x81, 0x81, 0, 0, 0, 0, b'x'], "masked frame"),
    ] {
        let (_to, mut from, mut browser) = connected().await;
        let saying = async {
            // The client may close the connection before everything is sent.
            let _ = browser.write_all(&says).await;
            let _ = browser.shutdown().await;
        };
        let hearing = async {
            let mut heard = Vec::new();
            let error = from.hear(&mut heard).await.unwrap_err();
            drop((from, _to));
            assert!(heard.is_empty());
            error.to_string()
        };
        let (error, ()) = tokio::join!(hearing, saying);
        assert!(error.contains(why), "{why}: {error}");
    }
}

#[tokio::test]
async fn half_a_message_is_none() {
    for says in [vec![0x81, 5, b'x'], frame(0x01, b"x")] {
        let (_to, mut from, mut browser) = connected().await;
        browser.write_all(&says).await.unwrap();
        drop(browser);
        let mut heard = Vec::new();
        assert!(!from.hear(&mut heard).await.unwrap() && heard.is_empty());
    }
}

#[tokio::test]
async fn the_protocol_runs_over_it() {
    let (to, from, mut browser) = connected().await;
    let (cdp, _reading) = Cdp::start(to, from, |_| Box::new(|_| ()));
    let answers = async {
        let (_, asked) = sent(&mut browser).await;
        let asked: Value = serde_json::from_slice(&asked).unwrap();
        let answer = json!({"id": asked["id"], "result": {"x": 1}}).to_string();
        browser
            .write_all(&frame(0x81, answer.as_bytes()))
            .await
            .unwrap();
        drop(browser);
    };
    let (answer, ()) = tokio::join!(cdp.call::<Value>("", "A.a", json!({})), answers);
    assert_eq!(answer.unwrap(), json!({"x": 1}));
    let gone = cdp.call::<Value>("", "A.a", json!({})).await.unwrap_err();
    assert!(gone.to_string().contains("the browser has gone"), "{gone}");
}
