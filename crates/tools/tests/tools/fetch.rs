//! Tests of `fetch`, from a server on loopback.
#![expect(clippy::unwrap_used, reason = "only tests use it")]

use std::{io::Write as _, net::TcpStream};

use gyrus_contract::{ActionVerdict, BuiltIn, ToolOutput};
use gyrus_tools::Fetch;
use serde_json::json;

use crate::{
    server::{Server, ok},
    site::World,
};

fn tool() -> BuiltIn<Fetch> {
    BuiltIn::new(Fetch::allowing(["127.0.0.1".to_owned()]))
}

fn fetch(url: &str) -> ToolOutput {
    World::new().call(&tool(), json!({"url": url}))
}

/// Returns the answer to this response, without the line of the address.
fn answer(headers: &str, body: &[u8]) -> String {
    let server = Server::sending(ok(headers, body));
    let output = fetch(&server.url("/"));
    assert!(!output.is_error, "{}", output.text);
    assert_eq!(output.verdict, ActionVerdict::NoEffect);
    let (url, rest) = output.text.split_once('\n').unwrap();
    assert_eq!(url, server.url("/"));
    rest.to_owned()
}

#[test]
fn a_page_becomes_text() {
    let page = br##"<!doctype html><html><head><title> A  page
        </title><style>p { color: red }</style><script>if (a < b) alert("</p>")</script></head>
        <body><h1>Head &amp; line</h1><p>Some <b>bold</b>
        words,<br>and a <a href="/next?a=1&amp;b=2#c"> link </a>.
        <ul><li>one<li>two<ol><li>first</li><li>second</ul></ul>
        <pre>  kept
    as is</pre><table><tr><th>a</th><th>b</th></tr><tr><td>1<td>2</table>
        <img src=x alt="A cat"><a href="javascript:alert(1)">run</a> <a href="#top">top</a>
        <noscript>enable scripts</noscript><template>not yet</template>
        <svg><text>drawn</text></svg><a href=other><img src=y></a>
        <a href="http://example.com/x"><h2>Story</h2></a>&nbsp;end</body></html>"##;
    let text = answer("Content-Type: text/html; charset=utf-8\r\n", page);
    // The port differs each time.
    let text = text.replace('\u{a0}', "~");
    let port = text
        .split("127.0.0.1:")
        .nth(1)
        .unwrap()
        .split('/')
        .next()
        .unwrap();
    insta::assert_snapshot!(text.replace(port, "PORT"), @"
    status 200 OK, text/html; charset=utf-8, 733 bytes

    Title: A page

    # Head & line

    Some bold words,
    and a [link](http://127.0.0.1:PORT/next?a=1&b=2#c) .

    - one
    - two
      1. first
      2. second

    ```
      kept
        as is
    ```

    a | b
    1 | 2

    [image: A cat]run top

    ## [Story](http://example.com/x)

    ~end
    ");
}

#[test]
fn other_kinds_of_content() {
    let json = "Content-Type: application/json\r\n";
    insta::assert_snapshot!(answer(json, br#"{"a": [1, 2]}"#), @r#"
    status 200 OK, application/json, 13 bytes

    {"a": [1, 2]}
    "#);
    let latin = answer(
        "Content-Type: text/plain; charset=iso-8859-1\r\n",
        b"caf\xe9",
    );
    assert!(
        latin.ends_with("\n\ncafé\n[converted from windows-1252]"),
        "{latin}"
    );
    let pdf = answer("Content-Type: application/pdf\r\n", b"%PDF-1.7 \0\x01");
    assert!(pdf.contains("application/pdf, 11 bytes") && pdf.contains("(not text, so not shown"));
    let unnamed = answer("", b"just words");
    assert!(
        unnamed.contains("no content type, 10 bytes\n\njust words"),
        "{unnamed}"
    );
    assert!(answer(json, b"").ends_with("(no content)"));
    let scripts = answer("Content-Type: text/html\r\n", b"<script>x</script>");
    assert!(
        scripts.contains("the page may be made by scripts"),
        "{scripts}"
    );
}

#[test]
fn pictures_are_kept() {
    let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x05\0\0\0\x03\x20\x08\x02\0\0\0rest";
    // The declared content type does not matter.
    let server = Server::sending(ok("Content-Type: text/plain\r\n", png));
    let world = World::new();
    let output = world.call(&tool(), json!({"url": server.url("/cat")}));
    assert!(
        output
            .text
            .ends_with("(PNG picture, 1280 × 800 pixels, 33 bytes; longest side 1280)")
    );
    let image = &output.images[0];
    assert_eq!((image.width, image.height), (1280, 800));
    assert_eq!(image.media_type, "image/png");
    assert_eq!(*world.kept.lock().unwrap(), [png.to_vec()]);
}

#[test]
fn errors_are_told_with_what_the_server_said() {
    let server = Server::sending(
        b"HTTP/1.1 404 Not Found\r\nContent-Length: 8\r\nConnection: close\r\n\r\nno page!"
            .to_vec(),
    );
    let output = fetch(&server.url("/x"));
    assert!(output.is_error);
    assert!(
        output
            .text
            .ends_with("status 404 Not Found, no content type, 8 bytes\n\nno page!")
    );
    let request = &server.requests()[0];
    assert!(request.starts_with("GET /x HTTP/1.1\r\n"), "{request}");
    let headers = request.to_lowercase();
    assert!(
        headers.contains("user-agent: gyrus/") && headers.contains("accept-encoding: gzip\r\n")
    );
    assert!(!headers.contains("referer") && !headers.contains("cookie"));

    for response in [
        &b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort"[..],
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ] {
        let server = Server::sending(response.to_vec());
        let output = fetch(&server.url("/"));
        assert!(
            output.is_error && output.text.contains("cannot be fetched"),
            "{}",
            output.text
        );
    }
    let endless = Server::start(|_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nX: ");
        while stream.write_all(&[b'x'; 65_536]).is_ok() {}
    });
    assert!(fetch(&endless.url("/")).is_error);
}

#[test]
fn redirects_are_followed_and_told() {
    let server = Server::start(|path, stream| {
        let to = match path {
            "/a" => "/b?x=1",
            "/b?x=1" => "c",
            "/c" => return stream.write_all(&ok("", b"here")).unwrap(),
            "/loop" => "/loop",
            "/file" => "file:///etc/passwd",
            "/user" => "http://user:secret@127.0.0.1/",
            "/bad" => "http://[",
            _ => "",
        };
        let head = "HTTP/1.1 302 Found\r\nConnection: close\r\nContent-Length: 0\r\n";
        write!(stream, "{head}Location: {to}\r\n\r\n").unwrap();
    });
    let output = fetch(&server.url("/a"));
    assert_eq!(
        output.text,
        format!(
            "{}\n[redirected from {}]\n[redirected from {}]\nstatus 200 OK, no content type, 4 \
             bytes\n\nhere",
            server.url("/c"),
            server.url("/a"),
            server.url("/b?x=1")
        )
    );
    let refused = |path: &str, words: &str| {
        let output = fetch(&server.url(path));
        assert!(
            output.is_error && output.text.contains(words),
            "{}",
            output.text
        );
    };
    refused("/loop", "/loop` is redirected more than 5 times");
    refused("/file", "must start with http:// or https://");
    refused("/user", "must not hold a user name or password");
    refused("/bad", "redirects to it");
    let loops = server.requests();
    assert_eq!(
        loops
            .iter()
            .filter(|head| head.starts_with("GET /loop "))
            .count(),
        6
    );
}

#[test]
fn a_redirect_opens_no_door() {
    // The same server by another name, which is not allowed.
    let inner = Server::sending(ok("", b"inner"));
    let location = format!("http://localhost:{}/inner", inner.port());
    let outer = Server::start({
        let location = location.clone();
        move |_, stream| {
            let head = "HTTP/1.1 301 Moved\r\nConnection: close\r\nContent-Length: 0\r\n";
            write!(stream, "{head}Location: {location}\r\n\r\n").unwrap();
        }
    });
    let allowing = BuiltIn::new(Fetch::allowing([
        "127.0.0.1".to_owned(),
        "LOCALHOST".to_owned(),
    ]));
    let output = World::new().call(&allowing, json!({"url": outer.url("/")}));
    let told = format!("leads to another host, which was not asked: {location}\n");
    assert!(output.text.contains(&told), "{}", output.text);
    assert!(inner.requests().is_empty(), "it was reached");

    let output = World::new().call(&allowing, json!({"url": location}));
    assert!(output.text.ends_with("inner"), "{}", output.text);
}

#[test]
fn only_public_hosts_are_reached() {
    let server = Server::sending(ok("", b"inner"));
    let port = server.port();
    let world = World::new();
    let fetch = BuiltIn::new(Fetch::new());
    for host in [
        "127.0.0.1",
        "localhost",
        "LOCALHOST.",
        "127.1",
        "0x7f.0.0.1",
        "2130706433",
        "017700000001",
        "127。0。0。1",
        "0",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[64:ff9b::7f00:1]",
        "10.0.0.1",
        "169.254.169.254",
        "100.100.100.200",
        "[fd00:ec2::254]",
        "[fe80::1]",
    ] {
        let url = format!("http://{host}:{port}/");
        let output = world.call(&fetch, json!({"url": url}));
        assert!(output.is_error, "{host}: {}", output.text);
        let words = ["is not reached", "cannot be looked up", "invalid address"];
        assert!(
            words.iter().any(|words| output.text.contains(words)),
            "{host}: {}",
            output.text
        );
    }
    for (url, words) in [
        ("file:///etc/passwd", "http:// or https://"),
        ("ftp://example.com/", "http:// or https://"),
        ("javascript:alert(1)", "http:// or https://"),
        ("example.com", "invalid address"),
        ("http://", "invalid address"),
        ("http://user@example.com/", "user name or password"),
        ("http://:pw@example.com/", "user name or password"),
        (
            &*format!("http://127.0.0.1:{port}@evil.example/"),
            "user name or password",
        ),
        (
            "http://example.com/?k=⟦secret:KEY⟧",
            "a secret must not stand in it",
        ),
        (
            &*format!("http://e.example/{}", "x".repeat(5000)),
            "too long",
        ),
    ] {
        let output = world.call(&fetch, json!({"url": url}));
        assert!(
            output.is_error && output.text.contains(words),
            "{url}: {}",
            output.text
        );
    }
    assert!(server.requests().is_empty(), "it was reached");
}

/// Answers one request over TLS.
fn serve_tls(key: &rcgen::CertifiedKey<rcgen::KeyPair>) -> (String, std::thread::JoinHandle<()>) {
    use rustls::{ServerConfig, ServerConnection, StreamOwned, crypto::ring, pki_types};
    let secret = pki_types::PrivatePkcs8KeyDer::from(key.signing_key.serialize_der());
    let config = ServerConfig::builder_with_provider(ring::default_provider().into())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![key.cert.der().clone()], secret.into())
        .unwrap();
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!(
        "https://localhost:{}/",
        listener.local_addr().unwrap().port()
    );
    let thread = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let connection = ServerConnection::new(config.into()).unwrap();
        let mut stream = StreamOwned::new(connection, stream);
        // A client that does not trust the certificate only closes the connection.
        let _ = std::io::Read::read(&mut stream, &mut [0; 4096]);
        let _ = stream.write_all(&ok("", b"over TLS"));
        stream.conn.send_close_notify();
        let _ = stream.flush();
    });
    (url, thread)
}

/// The roots come from the environment, which a test cannot change: it runs itself again.
#[test]
fn certificates_are_checked() {
    let localhost = vec!["localhost".to_owned()];
    let key = rcgen::generate_simple_self_signed(localhost.clone()).unwrap();
    let tool = BuiltIn::new(Fetch::allowing(localhost));
    const ROOT: &str = "SSL_CERT_FILE";
    const INNER: &str = "FETCH_TEST_INNER";
    if std::env::var_os(INNER).is_some() {
        std::fs::write(std::env::var_os(ROOT).unwrap(), key.cert.pem()).unwrap();
    }
    let (url, thread) = serve_tls(&key);
    let output = World::new().call(&tool, json!({"url": url}));
    thread.join().unwrap();
    if std::env::var_os(INNER).is_some() {
        assert!(output.text.ends_with("\n\nover TLS"), "{}", output.text);
        return;
    }
    assert!(
        output.is_error && output.text.contains("certificate"),
        "{}",
        output.text
    );
    let root = tempfile::NamedTempFile::new().unwrap();
    let inner = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "fetch::certificates_are_checked"])
        .env(ROOT, root.path())
        .env(INNER, "1")
        .output()
        .unwrap();
    assert!(
        inner.status.success(),
        "{}",
        String::from_utf8_lossy(&inner.stdout)
    );
    assert!(String::from_utf8_lossy(&inner.stdout).contains("1 passed"));
}

#[test]
fn answers_are_bounded() {
    let server = Server::sending(ok("", "ü".repeat(100).as_bytes()));
    let arguments = json!({"url": server.url("/"), "max_bytes": 11});
    let output = World::new().call(&tool(), arguments);
    let cut = "\n\nüüüüü\n[cut after 10 bytes of text, there is more; `max_bytes` may be up to \
               200000]";
    assert!(output.text.ends_with(cut), "{}", output.text);

    let endless = Server::start(|_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n");
        while stream.write_all(&[b'x'; 65_536]).is_ok() {}
    });
    let output = fetch(&endless.url("/"));
    assert!(
        output
            .text
            .contains("more than 5242880 bytes; only the first were read")
    );
    assert!(!output.is_error && output.text.len() < 51_000);
}

#[test]
fn packed_answers_are_unpacked_within_bounds() {
    let gzip = |bytes: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let packed = "Content-Type: text/plain\r\nContent-Encoding: gzip\r\n";
    assert!(answer(packed, &gzip(b"small")).ends_with("\n\nsmall"));
    // A thousand times as much.
    let bomb = gzip(&vec![b'x'; 30 * 1024 * 1024]);
    let text = answer(packed, &bomb);
    assert!(text.len() < 51_000 && text.contains("[cut after 50000 bytes"));
    let half = gzip("half of it is there ".repeat(5000).as_bytes());
    let text = answer(packed, &half[..half.len() / 2]);
    assert!(
        text.contains("half of it") && text.contains("[cut after"),
        "{text}"
    );
    assert!(answer(packed, b"no gzip").contains("packed with gzip and is damaged"));
    let other = "Content-Type: text/plain\r\nContent-Encoding: br\r\n";
    assert!(answer(other, b"x").contains("(not shown: it was sent packed as `br`)"));
}

#[test]
fn hostile_pages_take_no_longer() {
    let links = format!(
        "<base href='http://e.example/{}/'>{}",
        "b".repeat(1900),
        "<a href=x>y".repeat(100_000)
    );
    for page in [
        "<div>".repeat(200_000),
        "<ul><li>".repeat(100_000),
        "<a href=x>".repeat(50_000),
        format!("<a href=x>{}", "word ".repeat(200_000)),
        "<".repeat(300_000),
        format!("<p {}>end", "a=b ".repeat(100_000)),
        format!("<title>{}", "x".repeat(1_000_000)),
        format!("text<script>{}", "<script>".repeat(100_000)),
        "</pre></ul></a></table>".repeat(50_000),
        "&amp".repeat(100_000),
        links,
    ] {
        let text = answer("Content-Type: text/html\r\n", page.as_bytes());
        assert!(text.len() < 60_000, "{}", text.len());
    }
}

#[test]
fn a_silent_server_is_not_waited_for() {
    // The system accepts the connection, but no one answers.
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let output = World::new().call_in_no_time(&tool(), json!({"url": url}));
    assert!(
        output.is_error && output.text.contains("within 30 seconds"),
        "{}",
        output.text
    );
    // Now no one listens on the port.
    drop(listener);
    let output = fetch(&url);
    assert!(
        output.is_error && output.text.contains("Connection refused"),
        "{}",
        output.text
    );
    assert!(TcpStream::connect(url.trim_start_matches("http://").trim_end_matches('/')).is_err());
}
