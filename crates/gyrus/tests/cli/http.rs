//! As much of HTTP/1.1 as the servers and clients of these tests need.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    thread,
    time::Duration,
};

/// Time without a request after which a connection is dropped: browsers open connections that they
/// may never use.
const SILENCE: Duration = Duration::from_secs(30);

/// A request or an answer.
pub(crate) struct Message {
    /// Its first line.
    first: String,
    /// The lines after it.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Message {
    pub(crate) fn read(stream: &TcpStream) -> io::Result<Self> {
        let mut reader = BufReader::new(stream);
        let mut first = String::new();
        reader.read_line(&mut first)?;
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 || line == "\r\n" {
                break;
            }
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().map_err(io::Error::other)?;
            }
            head.push_str(&line);
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        Ok(Self { first, head, body })
    }

    /// `GET` or `POST`, of a request.
    pub(crate) fn method(&self) -> &str {
        self.first.split(' ').next().unwrap_or_default()
    }

    /// With its query, of a request.
    pub(crate) fn path(&self) -> &str {
        self.first.split(' ').nth(1).unwrap_or_default()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Answers, and says that nothing follows.
pub(crate) fn answer(
    mut stream: &TcpStream,
    status: u16,
    kind: &str,
    body: &str,
) -> io::Result<()> {
    write!(
        stream,
        "HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    )
}

/// Serves pages, each request in a thread of its own, until the test's process ends. Returns the
/// origin.
pub(crate) fn serve(page: impl Fn(&Message) -> String + Clone + Send + 'static) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let page = page.clone();
            thread::spawn(move || {
                let stream = stream?;
                stream.set_read_timeout(Some(SILENCE))?;
                let asked = Message::read(&stream)?;
                answer(&stream, 200, "text/html; charset=utf-8", &page(&asked))
            });
        }
    });
    origin
}
