//! The start of a request to the proxy: where it wants to go, and what to say there.

use gyrus_contract::Destination;
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::policy::Host;

/// Maximum size of a request's head, in bytes; longer ones are refused.
const HEAD_BYTES: usize = 16 * 1024;
/// Maximum length of a name in the domain name system.
const HOST_BYTES: usize = 253;

/// Header lines between a client and its proxy, which are not passed on.
const NOT_PASSED_ON: &[&str] = &[
    "connection",
    "proxy-connection",
    "proxy-authorization",
    "keep-alive",
    "upgrade",
    "te",
    "host",
];

#[derive(Debug, PartialEq, Eq)]
pub(super) enum ProxyRequest {
    /// A way for bytes.
    Tunnel,
    /// A request, with the bytes to send first.
    Request(Vec<u8>),
}

/// A request's start.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RequestHead {
    pub(super) to: Destination,
    pub(super) wanted: ProxyRequest,
    /// Bytes that arrived after the head.
    pub(super) rest: Vec<u8>,
}

/// Reads the start of a request. The error is for whoever sent it.
pub(super) async fn read(from: &mut (impl AsyncRead + Unpin)) -> Result<RequestHead, &'static str> {
    let mut head = Vec::new();
    loop {
        if let Some(end) = find(&head, b"\r\n\r\n") {
            let rest = head.split_off(end + 4);
            let mut parsed = parse(&head)?;
            parsed.rest = rest;
            return Ok(parsed);
        }
        if head.len() >= HEAD_BYTES {
            return Err("the request's head is too long");
        }
        let mut chunk = [0; 2048];
        match from.read(&mut chunk).await {
            Ok(count @ 1..) => head.extend_from_slice(&chunk[..count]),
            _ => return Err("the request's head is incomplete"),
        }
    }
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}

fn parse(head: &[u8]) -> Result<RequestHead, &'static str> {
    let text = std::str::from_utf8(head).map_err(|_| "the request is not text")?;
    let mut lines = text.trim_end_matches("\r\n").split("\r\n");
    let clean =
        |line: &str| !line.contains(|letter: char| letter.is_ascii_control() && letter != '\t');
    if !lines.clone().all(clean) {
        return Err("the request holds control characters");
    }
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(target), Some(version @ ("HTTP/1.0" | "HTTP/1.1")), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err("this proxy speaks HTTP/1 only");
    };
    if method == "CONNECT" {
        return Ok(RequestHead {
            to: authority(target, None)?,
            wanted: ProxyRequest::Tunnel,
            rest: Vec::new(),
        });
    }
    let Some(address) = strip_scheme(target) else {
        return Err("this is a proxy: ask for a whole address that starts with http://");
    };
    let end = address.find(['/', '?', '#']).unwrap_or(address.len());
    let (place, path) = address.split_at(end);
    let to = authority(place, Some(80))?;
    let slash = if path.starts_with('/') { "" } else { "/" };
    let mut request = format!("{method} {slash}{path} {version}\r\nHost: {place}\r\n");
    pass_on(lines, &to, &mut request)?;
    request.push_str("Connection: close\r\n\r\n");
    Ok(RequestHead {
        to,
        wanted: ProxyRequest::Request(request.into_bytes()),
        rest: Vec::new(),
    })
}

fn strip_scheme(target: &str) -> Option<&str> {
    let (scheme, address) = target.split_once("://")?;
    scheme.eq_ignore_ascii_case("http").then_some(address)
}

/// Copies the header lines for the server, and refuses those that two servers could interpret
/// differently.
fn pass_on<'a>(
    lines: impl Iterator<Item = &'a str>,
    to: &Destination,
    request: &mut String,
) -> Result<(), &'static str> {
    let (mut has_length, mut has_coding) = (0, 0);
    for line in lines {
        let Some((name, value)) = line.split_once(':') else {
            return Err("a line of the request's head has no colon");
        };
        let is_name =
            |letter: u8| letter.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&letter);
        if name.is_empty() || !name.bytes().all(is_name) {
            return Err("a line of the request's head has no proper name");
        }
        let name = name.to_ascii_lowercase();
        if name == "host" && authority(value.trim(), Some(80))? != *to {
            return Err("the request's host is not the one of its address");
        }
        has_length += usize::from(name == "content-length");
        has_coding += usize::from(name == "transfer-encoding");
        if !NOT_PASSED_ON.contains(&name.as_str()) {
            request.push_str(line);
            request.push_str("\r\n");
        }
    }
    if has_length + has_coding > 1 {
        return Err("the request says its length in several ways");
    }
    Ok(())
}

/// Parses `host:port`. One machine has one spelling afterwards: numbers of every form are the
/// address that resolvers take them for.
fn authority(text: &str, usual_port: Option<u16>) -> Result<Destination, &'static str> {
    const WRONG: &str = "the address has no proper host and port";
    // One of version 6 needs its brackets: without, its end could be the port.
    let bare = text.split(':').count() > 2 && !text.starts_with('[');
    let Host::Known { name: host, port } = Host::parse(text) else {
        return Err(WRONG);
    };
    let port = port.or(usual_port).filter(|port| *port > 0).ok_or(WRONG)?;
    if bare || host.len() > HOST_BYTES {
        return Err(WRONG);
    }
    Ok(Destination {
        host,
        port,
        name: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(head: &str, expected: Result<(&str, u16, Option<&str>), &str>) {
        let parsed = parse(head.as_bytes());
        let seen = parsed.as_ref().map(|head| {
            let request = match &head.wanted {
                ProxyRequest::Tunnel => None,
                ProxyRequest::Request(text) => Some(std::str::from_utf8(text).unwrap()),
            };
            (head.to.host.as_str(), head.to.port, request)
        });
        match (&seen, &expected) {
            (Err(error), Err(part)) => assert!(error.contains(part), "{error}"),
            _ => assert_eq!(seen.map_err(|error| *error), expected),
        }
    }

    #[test]
    fn reads_where_to() {
        let tunnel = |target: &str| format!("CONNECT {target} HTTP/1.1\r\nHost: other\r\n\r\n");
        check(&tunnel("Example.COM.:443"), Ok(("example.com", 443, None)));
        check(&tunnel("[::ffff:10.0.0.1]:22"), Ok(("10.0.0.1", 22, None)));
        check(&tunnel("[2001:DB8::1]:443"), Ok(("2001:db8::1", 443, None)));
        for spelling in ["127.1", "2130706433", "0x7f.1", "0177.0.0.1", "127.0.0.1."] {
            let line = tunnel(&format!("{spelling}:80"));
            check(&line, Ok(("127.0.0.1", 80, None)));
        }
        for wrong in [
            "example.com",
            "example.com:",
            "example.com:0",
            "example.com:65536",
            "example.com:+80",
            ":443",
            "user@example.com:443",
            "exa%6dple.com:443",
            "[::1:443",
            "[::1]x:443",
            "..:443",
            "example.com:443/",
            "a:b:443",
            "::1:443",
            "[fe80::1%25eth0]:443",
            "[fe80::1%eth0]:443",
            "example.com..:443",
            "a..b:443",
            "example.com:-1",
            "1.2.3.4.5:443",
            "1.2.3.256:443",
            "ex\u{e4}mple.com:443",
            "ｅxample.com:443",
        ] {
            check(&tunnel(wrong), Err("no proper host"));
        }
    }

    #[test]
    fn rewrites_plain_requests() {
        check(
            "GET http://example.com:8080/a?b HTTP/1.1\r\nHost: EXAMPLE.com:8080\r\nAccept: x\r\n\
             Proxy-Authorization: y\r\nConnection: keep-alive\r\n\r\n",
            Ok((
                "example.com",
                8080,
                Some(
                    "GET /a?b HTTP/1.1\r\nHost: example.com:8080\r\nAccept: x\r\nConnection: close\r\n\r\n",
                ),
            )),
        );
        check(
            "GET http://example.com?b HTTP/1.0\r\n\r\n",
            Ok((
                "example.com",
                80,
                Some("GET /?b HTTP/1.0\r\nHost: example.com\r\nConnection: close\r\n\r\n"),
            )),
        );
        for (request, part) in [
            ("GET / HTTP/1.1\r\nHost: example.com", "whole address"),
            ("GET https://example.com/ HTTP/1.1", "whole address"),
            ("GET http://example.com/ HTTP/2", "HTTP/1"),
            ("GET http://a@example.com/ HTTP/1.1", "no proper host"),
            ("GET http://good:80@evil/ HTTP/1.1", "no proper host"),
            ("GET http://good\\@evil/ HTTP/1.1", "no proper host"),
            (
                "GET http://good/ HTTP/1.1\r\nHost: good\r\nHost: evil",
                "not the one",
            ),
            ("GET http://good/ HTTP/1.1\r\nHost: good:81", "not the one"),
            (
                "POST http://a/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2",
                "several",
            ),
            (
                "GET http://example.com/ HTTP/1.1\r\nHost: other.com",
                "not the one",
            ),
            (
                "GET http://example.com/ HTTP/1.1\r\nHost : example.com",
                "no proper name",
            ),
            ("GET http://example.com/ HTTP/1.1\r\n folded", "no colon"),
            (
                "GET http://example.com/ HTTP/1.1\r\nA: b\nHost: c",
                "control",
            ),
            (
                "POST http://example.com/ HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked",
                "several",
            ),
        ] {
            check(&format!("{request}\r\n\r\n"), Err(part));
        }
    }
}
