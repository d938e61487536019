//! Tests of `judge`, from a server on loopback.

use std::io::Write as _;

use gyrus_contract::{BuiltIn, ToolOutput};
use gyrus_tools::PostToJudge;
use serde_json::json;

use crate::{
    server::{Server, ok},
    site::World,
};

const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

fn judge(url: &str) -> ToolOutput {
    let arguments = json!({"url": url, "submission": {"goal": "g", "submission": "s"}});
    World::new().call(&BuiltIn::new(PostToJudge), arguments)
}

#[test]
fn only_a_whole_verdict_is_one() {
    let cases: [(&[u8], bool, &str); 8] = [
        (
            br#"{"accepted": true, "report": "fine"}"#,
            true,
            "accepted\nfine",
        ),
        (br#"{"accepted": true, "score": 7}"#, true, "accepted\n"),
        (
            br#"{"accepted": false, "report": "net 7"}"#,
            false,
            "rejected\nnet 7",
        ),
        (br#"{"accepted": "yes"}"#, false, "gave no verdict"),
        (br#"{"report": "fine"}"#, false, "gave no verdict"),
        (b"true", false, "gave no verdict"),
        (b"", false, "gave no verdict"),
        (b"\xff\xfe{", false, "gave no verdict"),
    ];
    for (body, accepted, words) in cases {
        let server = Server::sending(ok("Content-Type: application/json\r\n", body));
        let output = judge(&server.url("/"));
        assert_eq!(output.is_error, !accepted, "{}", output.text);
        assert!(output.text.contains(words), "{}", output.text);
        assert!(server.requests()[0].starts_with("POST / "));
    }
}

#[test]
fn pictures_of_a_report_are_shown_and_damaged_ones_named() {
    let body = json!({"accepted": false, "report": "r", "images": [PNG, "%%", "aGk="]});
    let server = Server::sending(ok("", body.to_string().as_bytes()));
    let output = judge(&server.url("/"));
    assert_eq!(output.images.len(), 1, "{}", output.text);
    assert_eq!(output.text.matches("is damaged").count(), 2);
}

#[test]
fn it_goes_where_it_was_let_go_and_nowhere_else() {
    let other = Server::sending(ok("", br#"{"accepted": true}"#));
    let to = other.url("/");
    let server = Server::start(move |_, stream| {
        let head = format!("HTTP/1.1 307 X\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n");
        drop(stream.write_all(head.as_bytes()));
    });
    let output = judge(&server.url("/"));
    assert!(
        output.is_error && output.text.contains("307"),
        "{}",
        output.text
    );
    assert!(other.requests().is_empty());
    for wrong in ["ftp://127.0.0.1/", "http://u:p@127.0.0.1/", "judge"] {
        assert!(judge(wrong).is_error, "{wrong}");
    }
}
