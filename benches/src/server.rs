//! A server under load: many commands of many agents, many who follow, and the server killed at
//! random meanwhile. Nothing may be lost or done twice.

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use gyrus_contract::RunId;
use gyrus_journal::Store;
use gyrus_kernel::{Ending, RunState, log_name};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::{Row, row, start::gyrus};

/// Commands, agents and followers, and the number of times that the server is killed.
const COMMANDS: usize = 10_000;
const AGENTS: usize = 100;
const FOLLOWERS: usize = 50;
const KILLS: usize = 50;

/// Threads that give commands.
const GIVERS: usize = 8;

/// Time for all of it.
const TIMEOUT: Duration = Duration::from_secs(3_600);

const TOKEN: &str = "a-secret-for-the-benchmark-0123456789";

/// Each run is one question: what is measured is the server.
const SCRIPT: &str = r#"
[[reply]]
text = "It is done."
"#;

/// The server, with the address at which it is reached at present.
struct Server {
    at: PathBuf,
    port: u16,
    child: Mutex<Option<Child>>,
    /// The most memory that one of them had, in kilobytes.
    memory: AtomicUsize,
}

impl Server {
    fn start(&self) -> anyhow::Result<()> {
        let mut child = Command::new(gyrus()?)
            .args(["serve", "--token", TOKEN, "--at-once", "4", "--port"])
            .arg(self.port.to_string())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.at.join("person"))
            .env("GYRUS_HOME", self.at.join("home"))
            .env(
                "GYRUS_MODEL",
                format!("script:{}", self.at.join("script.toml").display()),
            )
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut line = String::new();
        let stdout = child.stdout.as_mut();
        let stdout = stdout.ok_or_else(|| anyhow::anyhow!("the server says nothing"))?;
        BufReader::new(stdout).read_line(&mut line)?;
        anyhow::ensure!(line.starts_with("http://"), "the server did not start");
        *self.lock() = Some(child);
        Ok(())
    }

    fn kill(&self) -> anyhow::Result<()> {
        if let Some(mut child) = self.lock().take() {
            let status = fs::read_to_string(format!("/proc/{}/status", child.id()))?;
            let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let peak = peak.and_then(|peak| peak.trim().trim_end_matches(" kB").parse().ok());
            self.memory.fetch_max(peak.unwrap_or(0), Ordering::Relaxed);
            child.kill()?;
            child.wait()?;
        }
        Ok(())
    }

    fn lock(&self) -> parking_lot::MutexGuard<'_, Option<Child>> {
        self.child.lock()
    }

    /// Sends a request, and returns the body of the answer.
    fn send(&self, method: &str, path: &str, body: &str) -> anyhow::Result<Value> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: 127.0.0.1:{}\r\nauthorization: Bearer {TOKEN}\r\n\
             content-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
            self.port,
            body.len()
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (head, body) = answer
            .split_once("\r\n\r\n")
            .ok_or_else(|| anyhow::anyhow!("the answer was cut off"))?;
        anyhow::ensure!(head.contains(" 20"), "{head} {body}");
        Ok(serde_json::from_str(body)?)
    }

    /// As [`Self::send`], again and again while the server is being killed.
    fn insist(&self, method: &str, path: &str, body: &str) -> anyhow::Result<Value> {
        let since = Instant::now();
        loop {
            match self.send(method, path, body) {
                Ok(answer) => return Ok(answer),
                Err(error) if since.elapsed() > TIMEOUT => return Err(error),
                Err(_) => thread::sleep(Duration::from_millis(20)),
            }
        }
    }
}

/// The times at which a follower heard of entries, by run and number.
type Heard = HashMap<(RunId, u64), i64>;

/// Follows positions until it is over, whatever becomes of the server.
fn follow(server: &Server, over: &AtomicBool) -> Heard {
    let mut heard = Heard::new();
    while !over.load(Ordering::Relaxed) {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", server.port)) else {
            thread::sleep(Duration::from_millis(20));
            continue;
        };
        let _ = stream.set_read_timeout(Some(Duration::from_secs(1)));
        let _ = write!(
            stream,
            "GET /api/stream HTTP/1.1\r\nhost: 127.0.0.1:{}\r\nauthorization: Bearer {TOKEN}\r\n\r\n",
            server.port
        );
        let mut first = true;
        let mut lines = BufReader::new(stream);
        let mut line = String::new();
        loop {
            match lines.read_line(&mut line) {
                Ok(0) => break,
                Ok(_) => {}
                // Nothing happened for a second; what was read of the line stays.
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    if over.load(Ordering::Relaxed) {
                        break;
                    }
                    continue;
                }
                Err(_) => break,
            }
            if let Some(data) = line.strip_prefix("data: ") {
                let heads: Vec<Value> = serde_json::from_str(data).unwrap_or_default();
                let now = now_ms();
                for head in &heads {
                    let run = head["run"].as_str().and_then(|run| run.parse().ok());
                    if let (false, Some(run), Some(seq)) = (first, run, head["seq"].as_u64()) {
                        heard.entry((run, seq)).or_insert(now);
                    }
                }
                // The first list is what had happened before.
                first = false;
            }
            line.clear();
        }
    }
    heard
}

fn now_ms() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Gives commands, each with a key, so that one whose answer was lost is given again.
fn give(server: &Server, next: &AtomicUsize, work: &Path) -> anyhow::Result<Vec<RunId>> {
    let mut runs = Vec::new();
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= COMMANDS {
            return Ok(runs);
        }
        let body = json!({
            "goal": format!("command {number}"),
            "workdir": work,
            "key": format!("command-{number}"),
            "options": {"loop": "single-shot", "agent": format!("agent-{}", number % AGENTS)},
        });
        let accepted = server.insist("POST", "/api/runs", &body.to_string())?;
        let run = accepted["run"].as_str().unwrap_or_default().parse()?;
        runs.push(run);
    }
}

/// Loads a server, kills it meanwhile, and counts.
pub(crate) fn loaded() -> anyhow::Result<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    let at = folder.path().to_owned();
    let work = at.join("work");
    for name in ["person", "work", "home"] {
        fs::create_dir(at.join(name))?;
    }
    fs::write(at.join("script.toml"), SCRIPT)?;
    let agents: String = (0..AGENTS)
        .map(|agent| format!("[agent.agent-{agent}]\nmode = \"ask\"\n"))
        .collect();
    fs::write(at.join("home/policy.toml"), agents)?;
    let port = std::net::TcpListener::bind("127.0.0.1:0")?
        .local_addr()?
        .port();
    let server = Arc::new(Server {
        at: at.clone(),
        port,
        child: Mutex::default(),
        memory: AtomicUsize::default(),
    });
    server.start()?;
    let over = Arc::new(AtomicBool::new(false));
    let next = Arc::new(AtomicUsize::new(0));
    let since = Instant::now();
    let followers: Vec<_> = (0..FOLLOWERS)
        .map(|_| {
            let (server, over) = (Arc::clone(&server), Arc::clone(&over));
            thread::spawn(move || follow(&server, &over))
        })
        .collect();
    let givers: Vec<_> = (0..GIVERS)
        .map(|_| {
            let (server, next, work) = (Arc::clone(&server), Arc::clone(&next), work.clone());
            thread::spawn(move || give(&server, &next, &work))
        })
        .collect();
    let mut kills = 0;
    let open = |server: &Server| -> anyhow::Result<usize> {
        let open = server.insist("GET", "/api/commands?open=true&limit=1", "")?;
        Ok(open.as_array().map_or(0, Vec::len))
    };
    loop {
        thread::sleep(Duration::from_millis(500 + pause_ms(kills)));
        if kills < KILLS {
            server.kill()?;
            server.start()?;
            kills += 1;
        }
        let given = next.load(Ordering::Relaxed) >= COMMANDS;
        if kills == KILLS && given && open(&server)? == 0 {
            break;
        }
        anyhow::ensure!(since.elapsed() < TIMEOUT, "it takes too long");
    }
    let took = since.elapsed();
    over.store(true, Ordering::Relaxed);
    server.kill()?;
    let mut accepted: Vec<RunId> = Vec::new();
    for giver in givers {
        accepted.extend(
            giver
                .join()
                .map_err(|_| anyhow::anyhow!("a giver panicked"))??,
        );
    }
    let heard: Vec<Heard> = followers
        .into_iter()
        .filter_map(|follower| follower.join().ok())
        .collect();
    let store = Store::open(&at.join("home/journal"))?;
    let (done, runs) = count(&store, &accepted)?;
    let mut late = lateness(&store, &heard)?;
    late.sort_unstable();
    let at_percent = |percent: usize| late[(late.len() - 1) * percent / 100];
    Ok(vec![
        row(
            format!(
                "{COMMANDS} commands of {AGENTS} agents, {FOLLOWERS} followers, the server killed \
                 {KILLS} times: runs that reached their goal, and runs in all"
            ),
            format!("{done} and {runs}, in {} s", took.as_secs()),
            "10,000 and 10,000",
        ),
        row(
            "… from appending an entry to hearing of it",
            format!(
                "median {} ms, 99 % within {} ms, of {}",
                at_percent(50),
                at_percent(99),
                late.len()
            ),
            "99 % within 250 ms",
        ),
        row(
            "… the most memory of the server",
            format!("{} MB", server.memory.load(Ordering::Relaxed) / 1024),
            "< 150 MB",
        ),
    ])
}

/// A pause that differs from kill to kill.
fn pause_ms(kill: usize) -> u64 {
    (kill as u64 * 7_919) % 4_000
}

/// Returns the number of accepted runs that reached their goal, and of all runs.
fn count(store: &Store, accepted: &[RunId]) -> anyhow::Result<(usize, usize)> {
    let mut done = 0;
    let mut seen = BTreeMap::new();
    for run in accepted {
        anyhow::ensure!(
            seen.insert(*run, ()).is_none(),
            "two commands have run {run}"
        );
        let state = RunState::of(store, *run)?;
        done += usize::from(matches!(state, RunState::Over(Ending::Reached { .. })));
    }
    Ok((done, gyrus_kernel::runs(store)?.len()))
}

/// Returns the milliseconds from appending to hearing, of what was heard.
fn lateness(store: &Store, heard: &[Heard]) -> anyhow::Result<Vec<i64>> {
    let mut appended: HashMap<RunId, Vec<i64>> = HashMap::new();
    let mut late = Vec::new();
    for ((run, seq), at_ms) in heard.iter().flatten() {
        if !appended.contains_key(run) {
            let entries = store.reader(&log_name(*run))?.entries(1)?;
            let times: Result<Vec<i64>, _> = entries.map(|entry| entry.map(|e| e.at_ms)).collect();
            appended.insert(*run, times?);
        }
        let index = usize::try_from(*seq)?.saturating_sub(1);
        if let Some(appended_ms) = appended.get(run).and_then(|times| times.get(index)) {
            late.push((at_ms - appended_ms).max(0));
        }
    }
    anyhow::ensure!(!late.is_empty(), "nobody heard anything");
    Ok(late)
}
