//! Whoever may not, does not: from the network, from a page, from a run.

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::{Duration, Instant},
};

use serde_json::json;

use super::{Answer, Server, TOKEN, bearer};
use crate::support::World;

pub(crate) fn cookie_of(server: &Server<'_>) -> String {
    let body = json!({"code": server.code}).to_string();
    let answer = server
        .send(
            "POST",
            "/login",
            "content-type: application/json\r\n",
            &body,
        )
        .is(204);
    let lower = answer.head.to_lowercase();
    assert!(lower.contains("httponly; samesite=strict"), "{answer:?}");
    let cookie = answer.head.split("set-cookie: ").nth(1).unwrap();
    cookie.split(';').next().unwrap().to_owned()
}

#[test]
fn who_asks_decides() {
    let world = World::new("");
    let server = Server::start(&world);
    let read = server
        .post(
            "/api/tokens",
            &json!({"name": "reader", "scopes": ["read"]}),
        )
        .is(201)
        .json();
    let read = read["token"].as_str().unwrap();
    let list = |head: &str| server.send("GET", "/api/runs", head, "").status;
    assert_eq!(list(""), 401);
    assert_eq!(list(&bearer("wrong")), 401);
    assert_eq!(list(&bearer(&format!("{TOKEN}x"))), 401);
    assert_eq!(list(&format!("authorization: Basic {TOKEN}\r\n")), 401);
    assert_eq!(list(&bearer(read)), 200);
    let start = json!({"goal": "x", "workdir": world.work()});
    server.post_as(read, "/api/runs", &start).is(403);
    server.post_as(read, "/api/stop", &json!({})).is(403);
    server
        .post_as(read, "/api/command", &json!({"arguments": ["runs"]}))
        .is(403);
    // Nobody gives more than they have, and what is revoked is over.
    let approver = json!({"name": "approver", "scopes": ["approve"]});
    let approver = server.post("/api/tokens", &approver).is(201).json();
    let more = json!({"name": "more", "scopes": ["act"]});
    server
        .post_as(approver["token"].as_str().unwrap(), "/api/tokens", &more)
        .is(403);
    server.delete("/api/tokens/reader").is(204);
    assert_eq!(list(&bearer(read)), 401);
    // Only hashes are kept.
    let kept = std::process::Command::new("grep")
        .args(["-r", TOKEN])
        .arg(world.path("home"))
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&kept.stdout), "");
}

#[test]
fn a_browser_is_let_in_once_and_only_from_the_server_s_own_pages() {
    let world = World::new("");
    let server = Server::start(&world);
    let cookie = cookie_of(&server);
    let again = json!({"code": server.code}).to_string();
    let login = server.send(
        "POST",
        "/login",
        "content-type: application/json\r\n",
        &again,
    );
    login.is(403);
    let ask = |method: &str, head: &str, body: &str| -> Answer {
        let head = format!("cookie: other=1; {cookie}\r\ncontent-type: application/json\r\n{head}");
        server.send(method, "/api/runs", &head, body)
    };
    ask("GET", "", "").is(200);
    let body = json!({"goal": "x", "workdir": world.work()}).to_string();
    let own = format!("origin: http://{}\r\n", server.host);
    ask("POST", &own, &body).is(202);
    for strange in [
        "origin: http://evil.example\r\n",
        "origin: null\r\n",
        "origin: http://127.0.0.1:1\r\n",
        "sec-fetch-site: cross-site\r\n",
        "sec-fetch-site: same-site\r\n",
    ] {
        ask("POST", strange, &body).is(403);
    }
    // A form of another page can send no JSON.
    let head = format!("cookie: {cookie}\r\ncontent-type: text/plain\r\n");
    server.send("POST", "/api/runs", &head, &body).is(415);
    // A cookie does not count as a token, and a token not as a cookie.
    let (name, secret) = cookie.split_once('=').unwrap();
    assert_eq!(
        server.send("GET", "/api/runs", &bearer(secret), "").status,
        401
    );
    let head = format!("cookie: {name}={TOKEN}\r\n");
    assert_eq!(server.send("GET", "/api/runs", &head, "").status, 401);
}

#[test]
fn a_name_that_was_made_to_lead_here_leads_nowhere() {
    let world = World::new("");
    let server = Server::start(&world);
    let port = server.host.split_once(':').unwrap().1;
    let ask = |host: &str| {
        let token = bearer(TOKEN);
        let request = format!("GET /api/runs HTTP/1.1\r\n{host}{token}connection: close\r\n\r\n");
        server.raw(request.as_bytes()).status
    };
    assert_eq!(ask(&format!("host: localhost:{port}\r\n")), 200);
    for host in [
        format!("host: evil.example:{port}\r\n"),
        format!("host: 127.0.0.1.evil.example:{port}\r\n"),
        "host: 127.0.0.1\r\n".to_owned(),
        "host: \r\n".to_owned(),
        format!("host: evil.example\r\nhost: localhost:{port}\r\n"),
    ] {
        assert!(matches!(ask(&host), 400 | 403), "{host}");
    }
}

#[test]
fn malformed_and_endless_requests_take_nothing_from_others() {
    let world = World::new("");
    let server = Server::start(&world);
    let host = &server.host;
    let token = bearer(TOKEN);
    // Two lengths, a length and chunks, a path out of the server, a head without end.
    for request in [
        format!(
            "GET /healthz HTTP/1.1\r\nhost: {host}\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab"
        ),
        format!(
            "POST /api/runs HTTP/1.1\r\nhost: {host}\r\n{token}content-length: 4\r\ntransfer-encoding: x\r\nconnection: close\r\n\r\nabcd"
        ),
        format!(
            "GET /../../etc/passwd HTTP/1.1\r\nhost: {host}\r\n{token}connection: close\r\n\r\n"
        ),
        format!(
            "GET /api/runs/..%2f..%2fetc HTTP/1.1\r\nhost: {host}\r\n{token}connection: close\r\n\r\n"
        ),
        format!(
            "GET /healthz HTTP/1.1\r\nhost: {host}\r\nx: {}\r\n\r\n",
            "a".repeat(100_000)
        ),
        "\0\u{1}\u{2}\r\n\r\n".to_owned(),
    ] {
        let status = server.raw(request.as_bytes()).status;
        assert!(
            (400..500).contains(&status) || status == 0,
            "{status}: {request:.80}"
        );
    }
    // One request in the body of another is never answered as one of its own.
    let smuggled = format!(
        "POST /login HTTP/1.1\r\nhost: {host}\r\ncontent-length: 6\r\ntransfer-encoding: chunked\r\n\
         connection: close\r\n\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\nhost: {host}\r\n\r\n"
    );
    let answer = server.raw(smuggled.as_bytes());
    assert!(!answer.body.contains("version"), "{answer:?}");
    // A hundred megabytes are refused before they are read.
    let huge = format!(
        "POST /api/runs HTTP/1.1\r\nhost: {host}\r\n{token}content-type: application/json\r\n\
         content-length: 104857600\r\nconnection: close\r\n\r\n{{"
    );
    assert_eq!(server.raw(huge.as_bytes()).status, 413);
    // Hundreds of heads that never end, beside one that does.
    let slow: Vec<TcpStream> = (0..300)
        .map(|_| {
            let mut stream = server.connect();
            let _ = stream.write_all(b"GET /healthz HTTP/1.1\r\nho");
            stream
        })
        .collect();
    let since = Instant::now();
    server.get("/healthz").is(200);
    assert!(since.elapsed() < Duration::from_secs(5));
    drop(slow);
}

#[test]
fn streams_are_limited_and_let_go() {
    let world = World::new("");
    let server = Server::start(&world);
    let request = format!(
        "GET /api/stream HTTP/1.1\r\nhost: {}\r\n{}\r\n",
        server.host,
        bearer(TOKEN)
    );
    let mut streams = Vec::new();
    let refused = (0..300).find_map(|_| {
        let mut stream = server.connect();
        stream.write_all(request.as_bytes()).unwrap();
        let mut first = [0; 12];
        stream.read_exact(&mut first).unwrap();
        let refused = first != *b"HTTP/1.1 200";
        streams.push(stream);
        refused.then_some(streams.len())
    });
    assert_eq!(refused, Some(257));
    drop(streams);
    let since = Instant::now();
    while server.get("/metrics").body.contains("gyrus_streams 2") {
        assert!(
            since.elapsed() < Duration::from_secs(20),
            "streams are not let go"
        );
    }
}

#[test]
fn a_command_of_a_run_cannot_use_what_it_has_read() {
    let world = World::new("");
    let server = Server::start(&world);
    let (host, port) = server.host.split_once(':').unwrap();
    // In bash, so that nothing else is needed: it prints the first line of the answer.
    let ask = format!(
        "exec 3<>/dev/tcp/{host}/{port}; printf 'GET /api/runs HTTP/1.1\\r\\nhost: {host}:{port}\\r\\n\
         authorization: Bearer {TOKEN}\\r\\nconnection: close\\r\\n\\r\\n' >&3; head -1 <&3"
    );
    // This one does not wait for the answer: when the request is read, its process is gone.
    let body = json!({"goal": "x", "workdir": world.work()}).to_string();
    let post = format!(
        "exec 4<>/dev/tcp/{host}/{port}; printf 'POST /api/runs HTTP/1.1\\r\\nhost: {host}:{port}\\r\\n\
         authorization: Bearer {TOKEN}\\r\\ncontent-type: application/json\\r\\ncontent-length: {}\\r\\n\\r\\n{body}' >&4",
        body.len()
    );
    let outside = std::process::Command::new("bash")
        .args(["-c", &ask])
        .output()
        .unwrap();
    assert!(
        String::from_utf8_lossy(&outside.stdout).contains(" 200 "),
        "{outside:?}"
    );
    let script = format!(
        "[[reply]]\ncalls = [{{ tool = \"shell\", arguments = {{ command = {} }} }}]\n\
         [[reply]]\ncalls = [{{ tool = \"finish\", arguments = {{ reached = true, answer = \"done\" }} }}]\n",
        json!(format!(
            "bash -c {} > said.txt 2>&1; bash -c {}",
            quoted(&ask),
            quoted(&post)
        ))
    );
    std::fs::write(world.path("script.toml"), script).unwrap();
    for more in [&[][..], &["--sandbox", "off"][..]] {
        let _ = std::fs::remove_file(world.work().join("said.txt"));
        let arguments = [&["--on-ask", "wait"], more].concat();
        let mut run = world.start(&world.run_arguments(&arguments));
        // Even a person's yes to the command opens no way to the server.
        run.hears("answer from elsewhere");
        world.gyrus(&["approve", "last"]).exits(0);
        run.end().exits(0);
        assert_eq!(server.get("/api/commands").json(), json!([]), "{more:?}");
        let said = world.file("said.txt");
        assert!(
            !said.is_empty() && !said.contains(" 200 "),
            "{more:?}: {said}"
        );
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
