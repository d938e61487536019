//! The port of this machine to which the person's browser brings the answer.

use std::time::Duration;

use reqwest::Url;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::timeout,
};

use crate::definition::clean;

/// Maximum bytes of a request's head.
const MAX_HEAD: usize = 16 * 1024;

/// Maximum time for a request to arrive.
const HEAD_LIMIT: Duration = Duration::from_secs(5);

/// Path of the answer.
const PATH: &str = "/callback";

pub(super) struct Callbacks {
    listener: TcpListener,
    address: String,
}

pub(super) struct AuthorizationAnswer {
    pub(super) code: String,
    pub(super) issuer: Option<String>,
}

enum CallbackRequest {
    /// The answer, or the reason why the login was refused.
    Answered(Result<AuthorizationAnswer, String>),
    /// Any other request, such as one of a page that guesses the port.
    Strange,
}

impl Callbacks {
    pub(super) async fn listen() -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("no port of this machine is free: {error}");
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        Ok(Self {
            listener,
            address: format!("http://127.0.0.1:{port}{PATH}"),
        })
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Waits for the answer to the question of this `state`. Everything else is turned away.
    ///
    /// # Errors
    /// A message about the refusal.
    pub(super) async fn answer(&self, state: &str) -> Result<AuthorizationAnswer, String> {
        loop {
            let Ok((mut stream, _)) = self.listener.accept().await else {
                continue;
            };
            let Ok(Some(target)) = timeout(HEAD_LIMIT, target(&mut stream)).await else {
                continue;
            };
            let (status, words, answered) = match read(&target, state) {
                CallbackRequest::Answered(Ok(answer)) => {
                    let words = "gyrus has the answer. You can close this page.";
                    ("200 OK", words, Some(Ok(answer)))
                }
                CallbackRequest::Answered(Err(why)) => {
                    let words = "It was refused. You can close this page.";
                    ("200 OK", words, Some(Err(why)))
                }
                CallbackRequest::Strange => ("400 Bad Request", "This is not the answer.", None),
            };
            let reply = format!(
                "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\
                 Connection: close\r\n\r\n{words}",
                words.len()
            );
            let _ = timeout(HEAD_LIMIT, stream.write_all(reply.as_bytes())).await;
            if let Some(answered) = answered {
                return answered;
            }
        }
    }
}

/// Returns the target of a request: the second word of its first line.
async fn target(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if head.len() > MAX_HEAD || stream.read_buf(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    let head = String::from_utf8(head).ok()?;
    let mut words = head.lines().next()?.split(' ');
    (words.next()? == "GET").then(|| words.next().map(str::to_owned))?
}

fn read(target: &str, state: &str) -> CallbackRequest {
    let Ok(url) = Url::parse("http://127.0.0.1").and_then(|base| base.join(target)) else {
        return CallbackRequest::Strange;
    };
    let all = |wanted: &str| -> Vec<String> {
        let pairs = url.query_pairs().filter(|(name, _)| name == wanted);
        pairs.map(|(_, value)| value.into_owned()).collect()
    };
    if url.path() != PATH || all("state") != [state] {
        return CallbackRequest::Strange;
    }
    let mut codes = all("code");
    match (codes.pop(), codes.is_empty()) {
        (Some(code), true) => CallbackRequest::Answered(Ok(AuthorizationAnswer {
            code,
            issuer: all("iss").pop(),
        })),
        (Some(_), false) => CallbackRequest::Strange,
        (None, _) => {
            let said = [all("error"), all("error_description")].concat();
            let said = clean(&said.join(": ")).replace('\n', " ");
            let said = gyrus_text::shorten(&said, 300).into_owned();
            CallbackRequest::Answered(Err(format!("it was refused: {said}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_answer_to_this_question_counts() {
        let read = |target: &str| match read(target, "s1") {
            CallbackRequest::Answered(Ok(answer)) => format!("{} {:?}", answer.code, answer.issuer),
            CallbackRequest::Answered(Err(why)) => why,
            CallbackRequest::Strange => "strange".to_owned(),
        };
        for (target, expected) in [
            ("/callback?code=c&state=s1", "c None"),
            (
                "/callback?state=s1&code=c%20d&iss=https://a",
                "c d Some(\"https://a\")",
            ),
            ("/callback?code=c&state=s2", "strange"),
            ("/callback?code=c", "strange"),
            ("/callback?code=c&state=s1&state=s1", "strange"),
            ("/callback?code=c&code=d&state=s1", "strange"),
            ("/other?code=c&state=s1", "strange"),
            ("http://evil/callback?code=c&state=s1", "c None"),
            ("//", "strange"),
            (
                "/callback?error=access_denied&error_description=no%1b[2J&state=s1",
                "it was refused: access_denied: no[2J",
            ),
            ("/callback?error=access_denied", "strange"),
        ] {
            assert_eq!(read(target), expected, "{target}");
        }
    }
}
