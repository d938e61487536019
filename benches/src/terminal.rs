//! Typing at the prompt while a model streams: the real program, a terminal of its own, and a server that
//! sends 200 tokens a second of Markdown.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
    os::fd::OwnedFd,
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::Context;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{Mode, OFlags},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};
use serde_json::{Value, json};

use crate::{Row, row, start::gyrus};

const COLUMNS: u16 = 80;
const ROWS: u16 = 24;

/// Tokens of the reply during which is typed.
const TOKENS: u32 = 2_000;

const TOKENS_A_SECOND: u32 = 200;

/// Lines of the conversation before, where there is one.
const LINES: usize = 10_000;

/// Pause between two keys.
const BETWEEN_KEYS: Duration = Duration::from_millis(170);

/// Letters that the reply does not have.
const KEYS: &[u8] = b"QXZJKV";

/// Keys after which the line is emptied, so that it stays one row.
const MOST_TYPED: usize = 50;

/// Timeout for whatever has to come onto the screen.
const TIMEOUT: Duration = Duration::from_secs(90);

/// Unit of processor time in `/proc`, which Linux shows to programs as hundredths on every machine.
const TICKS_A_SECOND: f64 = 100.0;

/// The first word of the reply.
const FIRST: &str = "Firstword";

const MARKDOWN: &str = "\n\n# Plan\n\n- one thing **bold** of `code`\n- another thing to do\n\n\
    | a | b |\n|---|---|\n| longer cell | 1 |\n\n\
    ```rust\nfn main() { let x = \"y\"; println!(\"{x}\"); }\n```\n\n\
    Some words of plain prose that go on for a while and wrap at the end of the row.";

/// Measures a new conversation, and one of 10,000 lines.
pub(crate) fn typing() -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (before, lines) in [("", 0), ("after 10,000 lines of conversation: ", LINES)] {
        let measured = measure(lines)?;
        let keys = format!(
            "median {:.1} ms, worst of {} {:.1} ms",
            milliseconds(measured.keys[measured.keys.len() / 2]),
            measured.keys.len(),
            milliseconds(measured.keys[measured.keys.len() - 1]),
        );
        let first = format!("{:.1} ms", milliseconds(measured.first));
        let share = format!("{:.1} %", measured.share * 100.0);
        rows.extend([
            row(
                format!("{before}from a token on the wire to the screen"),
                first,
                "≤ 30 ms",
            ),
            row(
                format!("{before}from a key to the screen, at 200 tokens a second"),
                keys,
                "≤ 20 ms",
            ),
            row(format!("{before}share of a core then"), share, "< 15 %"),
        ]);
    }
    Ok(rows)
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

struct Measured {
    first: Duration,
    /// In order of length.
    keys: Vec<Duration>,
    share: f64,
}

fn measure(lines: usize) -> anyhow::Result<Measured> {
    let (port, sent) = serve(lines)?;
    let folder = tempfile::tempdir()?;
    let mut terminal = Terminal::start(folder.path(), port)?;
    terminal.shows("a goal")?;
    if lines > 0 {
        terminal.types(b"go\r")?;
        terminal.shows(&format!("line {} of it", lines - 1))?;
        terminal.shows("a goal")?;
    }
    terminal.types(b"next\r")?;
    let shown = terminal.shows(FIRST)?;
    let first = shown.duration_since(sent.recv()?);
    let (since, busy) = (Instant::now(), terminal.busy()?);
    let (mut keys, mut typed) = (Vec::new(), String::new());
    while sent.try_recv().is_err() {
        let next = Instant::now() + BETWEEN_KEYS;
        while let Some(left) = next.checked_duration_since(Instant::now()) {
            terminal.read(left)?;
        }
        if typed.len() == MOST_TYPED {
            terminal.types(b"\x15")?;
            terminal.until(|screen| !screen.contains(&typed), "an empty line")?;
            typed.clear();
        }
        let key = KEYS[keys.len() % KEYS.len()];
        typed.push(key.into());
        let pressed = Instant::now();
        terminal.types(&[key])?;
        keys.push(terminal.shows(&typed)?.duration_since(pressed));
    }
    let share = (terminal.busy()? - busy) / since.elapsed().as_secs_f64();
    keys.sort_unstable();
    anyhow::ensure!(!keys.is_empty(), "the reply ended before a key was typed");
    Ok(Measured { first, keys, share })
}

/// gyrus at a terminal, and an emulator that shows what it writes. Dropping it ends gyrus.
struct Terminal {
    gyrus: Child,
    screen: File,
    emulator: vt100::Parser,
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.gyrus.kill();
        let _ = self.gyrus.wait();
    }
}

impl Terminal {
    fn start(folder: &Path, port: u16) -> anyhow::Result<Self> {
        let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&screen)?;
        unlockpt(&screen)?;
        let name = ptsname(&screen, Vec::new())?;
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let line: OwnedFd = rustix::fs::open(name, flags, Mode::empty())?;
        let size = Winsize {
            ws_row: ROWS,
            ws_col: COLUMNS,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&line, size)?;
        for part in ["work", "person"] {
            std::fs::create_dir(folder.join(part))?;
        }
        // It replaces itself by gyrus, since it does not lead a group of processes.
        let gyrus = Command::new("setsid")
            .arg("--ctty")
            .arg(gyrus()?)
            .args(["--workdir", ".", "--model"])
            .arg(format!("http://127.0.0.1:{port}/v1#m"))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", folder.join("person"))
            .env("GYRUS_HOME", folder.join("home"))
            .env("GYRUS_BROWSER", "/nowhere/browser")
            .env("GYRUS_LANGUAGE_SERVERS", "none")
            .env("TERM", "xterm-256color")
            .env("USER", "tester")
            .current_dir(folder.join("work"))
            .stdin(Stdio::from(line.try_clone()?))
            .stdout(Stdio::from(line.try_clone()?))
            .stderr(Stdio::from(line))
            .spawn()
            .context("setsid cannot be started")?;
        Ok(Self {
            gyrus,
            screen: File::from(screen),
            emulator: vt100::Parser::new(ROWS.try_into()?, COLUMNS.try_into()?, 0),
        })
    }

    fn types(&mut self, keys: &[u8]) -> io::Result<()> {
        self.screen.write_all(keys)
    }

    /// Reads what comes within this time, once.
    fn read(&mut self, within: Duration) -> anyhow::Result<()> {
        let within = Timespec::try_from(within)?;
        if poll(
            &mut [PollFd::new(&self.screen, PollFlags::IN)],
            Some(&within),
        )? > 0
        {
            let mut bytes = [0; 65_536];
            let read = self.screen.read(&mut bytes).context("gyrus has ended")?;
            self.emulator.process(&bytes[..read]);
        }
        Ok(())
    }

    /// Reads until the words stand on the screen, and returns when they did.
    fn shows(&mut self, words: &str) -> anyhow::Result<Instant> {
        self.until(|screen| screen.contains(words), words)
    }

    fn until(&mut self, is: impl Fn(&str) -> bool, what: &str) -> anyhow::Result<Instant> {
        let since = Instant::now();
        loop {
            let screen = self.emulator.screen().contents();
            if is(&screen) {
                return Ok(Instant::now());
            }
            anyhow::ensure!(
                since.elapsed() < TIMEOUT,
                "`{what}` is never shown, only:\n{screen}"
            );
            self.read(TIMEOUT)?;
        }
    }

    /// Returns the processor time in seconds that gyrus has taken.
    fn busy(&self) -> anyhow::Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/stat", self.gyrus.id()))?;
        let (_, fields) = status.rsplit_once(')').context("no fields")?;
        let fields = fields.split_whitespace().skip(11).take(2);
        let ticks = fields.map(str::parse::<u64>).sum::<Result<u64, _>>()?;
        Ok(ticks as f64 / TICKS_A_SECOND)
    }
}

/// Starts a server that answers the first request with so many lines at once, where there are any, and
/// others slowly; of these it tells when it sent the first token and when the last.
fn serve(lines: usize) -> anyhow::Result<(u16, mpsc::Receiver<Instant>)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    let (sender, sent) = mpsc::channel();
    let left = Arc::new(AtomicUsize::new(lines));
    // It ends with the benchmarks.
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let (sender, left) = (sender.clone(), Arc::clone(&left));
            thread::spawn(move || answer(&client, &left, &sender));
        }
    });
    Ok((port, sent))
}

fn answer(
    mut client: &TcpStream,
    left: &AtomicUsize,
    sent: &mpsc::Sender<Instant>,
) -> io::Result<()> {
    client.set_nodelay(true)?;
    let mut request = BufReader::new(client);
    let (mut line, mut length) = (String::new(), 0);
    request.read_line(&mut line)?;
    let asks = line.starts_with("POST");
    while !line.trim().is_empty() {
        line.clear();
        request.read_line(&mut line)?;
        let header = line.to_ascii_lowercase();
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or_default();
        }
    }
    io::copy(&mut request.take(length), &mut io::sink())?;
    if !asks {
        let models = json!({ "object": "list", "data": [{ "id": "m", "object": "model" }] });
        return write!(client, "{}{models}", head("application/json"));
    }
    client.write_all(head("text/event-stream").as_bytes())?;
    match left.swap(0, Ordering::SeqCst) {
        0 => stream(&mut client, sent)?,
        lines => {
            for number in 0..lines {
                let end = if number % 9 == 0 { "\n\n" } else { "\n" };
                event(
                    &mut client,
                    &json!({ "content": format!("line {number} of it{end}") }),
                    None,
                )?;
            }
        }
    }
    event(&mut client, &json!({}), Some("stop"))?;
    client.write_all(b"data: [DONE]\n\n")
}

fn head(kind: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n")
}

fn event(client: &mut impl Write, delta: &Value, end: Option<&str>) -> io::Result<()> {
    let choice = json!({ "index": 0, "delta": delta, "finish_reason": end });
    let mut chunk =
        json!({ "id": "c", "object": "chat.completion.chunk", "model": "m", "choices": [choice] });
    if end.is_some() {
        chunk["usage"] = json!({ "prompt_tokens": 100, "completion_tokens": 10 });
    }
    client.write_all(format!("data: {chunk}\n\n").as_bytes())
}

/// Sends a reply token by token, each with the white space before it, as models do.
fn stream(client: &mut impl Write, sent: &mpsc::Sender<Instant>) -> io::Result<()> {
    let mut tokens = vec![FIRST];
    let mut rest = MARKDOWN;
    while !rest.is_empty() {
        let word = rest.len() - rest.trim_start().len();
        let end = rest[word..].find(char::is_whitespace);
        let (token, after) = rest.split_at(end.map_or(rest.len(), |end| word + end));
        tokens.push(token);
        rest = after;
    }
    let since = Instant::now();
    for (number, token) in (0..TOKENS).zip(tokens[..1].iter().chain(tokens[1..].iter().cycle())) {
        let due = since + Duration::from_secs(1) * number / TOKENS_A_SECOND;
        thread::sleep(due.saturating_duration_since(Instant::now()));
        if number == 0 {
            // Nobody listens any more where the benchmark has failed.
            let _ = sent.send(Instant::now());
        }
        event(client, &json!({ "content": token }), None)?;
    }
    let _ = sent.send(Instant::now());
    Ok(())
}
