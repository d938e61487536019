//! Receiver of what an attack sends: a listener that answers everything and keeps all it hears.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use parking_lot::Mutex;

/// Request that a listener sends to itself.
const OWN: &[u8] = b"is that all?";

/// A listener on an address of this machine. It ends when it is dropped.
pub(crate) struct Listener {
    address: String,
    heard: Arc<Mutex<Vec<u8>>>,
    page: Arc<Mutex<String>>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// On this loopback address.
    pub(crate) fn on(ip: &str) -> Self {
        let listener = TcpListener::bind((ip, 0)).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let heard: Arc<Mutex<Vec<u8>>> = Arc::default();
        let over: Arc<AtomicBool> = Arc::default();
        let page: Arc<Mutex<String>> = Arc::default();
        let (keeps, ends, says) = (heard.clone(), over.clone(), page.clone());
        let thread = thread::spawn(move || {
            for stream in listener.incoming() {
                if ends.load(Ordering::SeqCst) {
                    return;
                }
                if let Ok(stream) = stream {
                    let page = says.lock().clone();
                    serve(stream, &page, &keeps);
                }
            }
        });
        Self {
            address,
            heard,
            page,
            over,
            thread: Some(thread),
        }
    }

    /// `IP:PORT`.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Whatever comes is answered with this page, or this whole answer, from now on.
    pub(crate) fn answers_with(&self, page: String) {
        *self.page.lock() = page;
    }

    /// Everything that arrived so far; a connection without a word counts too.
    pub(crate) fn heard(&self) -> String {
        // One connection is served after the other: once this one is, all before it were.
        if let Ok(mut last) = TcpStream::connect(&self.address) {
            let _ = last.write_all(OWN);
            let _ = last.read_to_end(&mut Vec::new());
        }
        String::from_utf8_lossy(&self.heard.lock()).into_owned()
    }
}

fn serve(mut stream: TcpStream, page: &str, heard: &Mutex<Vec<u8>>) {
    // Whoever connects speaks at once, or never.
    let _ = stream.set_read_timeout(Some(Duration::from_millis(300)));
    let mut bytes = [0; 8192];
    let count = stream.read(&mut bytes).unwrap_or(0);
    if bytes[..count] == *OWN {
        return;
    }
    let mut heard_so_far = heard.lock();
    heard_so_far.extend(b"[connected] ");
    heard_so_far.extend(&bytes[..count]);
    drop(heard_so_far);
    if page.starts_with("HTTP/") {
        let _ = stream.write_all(page.as_bytes());
        return;
    }
    let _ = write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: {}\r\nconnection: \
         close\r\n\r\n{page}",
        page.len()
    );
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(&self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
