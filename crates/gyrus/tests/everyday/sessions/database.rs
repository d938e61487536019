//! A person's own server on loopback: a small database that also builds, which takes as long as it is told.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU16, Ordering},
    },
    thread,
};

use parking_lot::Mutex;

/// The next port to try. The system picks none of these by itself.
static NEXT: AtomicU16 = AtomicU16::new(0);

/// Returns a listener at a port that the system does not pick by itself.
pub(super) fn listener() -> TcpListener {
    // Another process that tries sessions at the same time begins elsewhere.
    let first = 20_000 + u16::try_from(std::process::id() % 11_000).unwrap();
    loop {
        let port = first + NEXT.fetch_add(1, Ordering::Relaxed);
        if let Ok(listener) = TcpListener::bind(("127.0.0.1", port)) {
            return listener;
        }
    }
}

/// A server. Dropping it ends it.
pub(super) struct Database {
    pub(super) port: u16,
    rows: Arc<Mutex<BTreeMap<String, String>>>,
    over: Arc<AtomicBool>,
}

impl Database {
    /// Starts an empty one, which sets the clock ahead by a file.
    pub(super) fn start(clock: &Path) -> Self {
        let listener = listener();
        let port = listener.local_addr().unwrap().port();
        let rows = Arc::<Mutex<BTreeMap<_, _>>>::default();
        let over = Arc::<AtomicBool>::default();
        let database = Self {
            port,
            rows: Arc::clone(&rows),
            over: Arc::clone(&over),
        };
        let clock = clock.to_owned();
        thread::spawn(move || {
            for client in listener.incoming() {
                if over.load(Ordering::Acquire) {
                    return;
                }
                let (rows, clock) = (Arc::clone(&rows), clock.clone());
                // A client that goes away ends its own connection only.
                thread::spawn(move || client.and_then(|client| serve(&client, &rows, &clock)));
            }
        });
        database
    }

    pub(super) fn clear(&self) {
        self.rows.lock().clear();
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

fn serve(
    mut client: &TcpStream,
    rows: &Mutex<BTreeMap<String, String>>,
    clock: &Path,
) -> std::io::Result<()> {
    for line in BufReader::new(client).lines() {
        let line = line?;
        let words: Vec<&str> = line.split(' ').collect();
        let answer = match words[..] {
            ["SET", name, value] => {
                rows.lock().insert(name.to_owned(), value.to_owned());
                "OK".to_owned()
            }
            ["GET", name] => rows.lock().get(name).cloned().unwrap_or("none".to_owned()),
            ["DUMP"] => {
                let rows = rows.lock();
                let all = rows.iter().map(|(name, value)| format!("{name} {value}\n"));
                all.collect::<String>() + "end"
            }
            ["BUILD", until] => {
                // Whoever looks sees the old time or the new one.
                let new = clock.with_extension("new");
                fs::write(&new, until)?;
                fs::rename(new, clock)?;
                "built".to_owned()
            }
            _ => format!("ERROR: {line:?} is not understood"),
        };
        client.write_all(format!("{answer}\n").as_bytes())?;
    }
    Ok(())
}
