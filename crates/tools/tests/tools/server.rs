//! A web server on loopback that sends a test's response byte for byte.
#![expect(clippy::unwrap_used, reason = "only tests use it")]

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

pub(crate) struct Server {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
    stops: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts a server. `answer` gets the path and writes the whole response.
    pub(crate) fn start(answer: impl Fn(&str, &mut TcpStream) + Send + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (requests, stops) = (Arc::default(), Arc::new(AtomicBool::new(false)));
        let thread = thread::spawn({
            let (requests, stops) = (Arc::clone(&requests), Arc::clone(&stops));
            move || serve(&listener, &requests, &stops, answer)
        });
        Self {
            address,
            requests,
            stops,
            thread: Some(thread),
        }
    }

    /// Starts a server that sends the same to every client.
    pub(crate) fn sending(response: Vec<u8>) -> Self {
        // A reader that has enough hangs up.
        Self::start(move |_, stream| drop(stream.write_all(&response)))
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Returns the heads of all requests so far.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stops.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
            && !thread::panicking()
        {
            panic!("the server panicked");
        }
    }
}

fn serve(
    listener: &TcpListener,
    requests: &Mutex<Vec<String>>,
    stops: &AtomicBool,
    answer: impl Fn(&str, &mut TcpStream),
) {
    loop {
        let (mut stream, _) = listener.accept().unwrap();
        if stops.load(Ordering::SeqCst) {
            return;
        }
        let mut head = String::new();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        while !head.ends_with("\r\n\r\n") {
            if matches!(reader.read_line(&mut head), Ok(0) | Err(_)) {
                break;
            }
        }
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            let is_it = name.eq_ignore_ascii_case("content-length");
            is_it.then(|| value.trim().parse::<u64>().ok()).flatten()
        });
        // Unread data at the close of a connection can make the client lose the answer.
        drop(
            reader
                .take(length.unwrap_or(0))
                .read_to_end(&mut Vec::new()),
        );
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        requests.lock().unwrap().push(head);
        answer(&path, &mut stream);
    }
}

/// Returns a response of status 200.
pub(crate) fn ok(headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}
