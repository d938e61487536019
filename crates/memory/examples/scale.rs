//! Figures of a large memory: `cargo run --release -p gyrus-memory --example scale`

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "it measures, and tells what it measured"
)]

use std::{
    fs,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use gyrus_memory::{MAX_CONTEXT_TOKENS, Vault};

const NOTES: usize = 100_000;
const QUERIES: usize = 200;

/// Returns a word of a vocabulary of 50,000, in which few are common, as in texts.
fn word(random: &mut fastrand::Rng) -> String {
    let rank = (50_000_f64).powf(random.f64());
    format!("w{}", rank as u32)
}

fn note(random: &mut fastrand::Rng, number: usize) -> String {
    let mut text = format!("---\ntags: [{}]\n---\n# {}\n", word(random), word(random));
    for line in 0..random.usize(2..10) {
        if line == 4 {
            text += "## ";
        }
        for _ in 0..random.usize(4..16) {
            text += &word(random);
            text += " ";
        }
        text += "\n";
    }
    text + &format!("[[Note {}]]\n", number / 7)
}

fn memory_kb() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let peak = status
        .lines()
        .find(|line| line.starts_with("VmHWM"))
        .unwrap();
    peak.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn told(what: &str, mut times: Vec<Duration>) {
    times.sort();
    eprintln!(
        "{what}: median {:.1} ms, 95 % {:.1} ms",
        times[times.len() / 2].as_secs_f64() * 1e3,
        times[times.len() * 95 / 100].as_secs_f64() * 1e3
    );
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let notes = folder.path().join("notes");
    let mut random = fastrand::Rng::with_seed(1);
    for number in 0..NOTES {
        let below = notes.join(format!("{:03}", number % 500));
        if number < 500 {
            fs::create_dir_all(&below).unwrap();
        }
        let text = note(&mut random, number);
        fs::write(below.join(format!("Note {number}.md")), text).unwrap();
    }
    let vault = Vault::at(&notes, true, &folder.path().join("state"));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let now_ms = i64::try_from(now.as_millis()).unwrap();
    let since = Instant::now();
    vault.recall("w1", 10, now_ms).unwrap();
    eprintln!("built in {:.1} s", since.elapsed().as_secs_f64());
    eprintln!("peak of memory: {} MB", memory_kb() / 1024);
    vault.recall("w1", 10, now_ms).unwrap();
    let (mut whole, mut full) = (Vec::new(), Vec::new());
    for _ in 0..QUERIES {
        let query = format!(
            "{} {} {}",
            word(&mut random),
            word(&mut random),
            word(&mut random)
        );
        let since = Instant::now();
        vault.recall(&query, 10, now_ms).unwrap();
        whole.push(since.elapsed());
    }
    told("recall, with looking for changed notes", whole);
    let mut given = Vec::new();
    for _ in 0..20 {
        let goal = format!("{} {} w1 w2 w3", word(&mut random), word(&mut random));
        let since = Instant::now();
        let context = vault.context(&goal, now_ms).unwrap().unwrap_or_default();
        given.push(since.elapsed());
        let tokens = gyrus_text::tokens(&context.text);
        assert!(tokens <= MAX_CONTEXT_TOKENS);
        full.push(tokens);
    }
    told("context of a run", given);
    full.sort();
    eprintln!("  its tokens: median {}, most {}", full[10], full[19]);
    let looking = Vault::at(&notes, true, &folder.path().join("state"));
    let since = Instant::now();
    looking.context("w1 w2 w3", now_ms).unwrap();
    eprintln!(
        "the first one of a process: {:.0} ms",
        since.elapsed().as_secs_f64() * 1e3
    );
    let searching = vault.searcher().unwrap();
    let mut alone = Vec::new();
    for _ in 0..QUERIES {
        let query = format!(
            "{} {} {}",
            word(&mut random),
            word(&mut random),
            word(&mut random)
        );
        let since = Instant::now();
        searching.recall(&query, 10, now_ms).unwrap();
        alone.push(since.elapsed());
    }
    told("recall alone", alone);
    drop(searching);
    let mut edits = Vec::new();
    for number in 0..100 {
        let path = notes.join(format!("{:03}/Note {number}.md", number % 500));
        fs::write(path, format!("needle{number}")).unwrap();
        let since = Instant::now();
        let found = vault
            .recall(&format!("needle{number}"), 10, now_ms)
            .unwrap();
        edits.push(since.elapsed());
        assert_eq!(found.len(), 1);
    }
    told("an edit is found", edits);
    let size: u64 = walk(&folder.path().join("state"));
    eprintln!(
        "index: {} MB; peak of memory: {} MB",
        size >> 20,
        memory_kb() / 1024
    );
}

fn walk(folder: &std::path::Path) -> u64 {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let sizes = entries.map(|entry| {
        if entry.file_type().unwrap().is_dir() {
            walk(&entry.path())
        } else {
            entry.metadata().unwrap().len()
        }
    });
    sizes.sum()
}
