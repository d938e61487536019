//! The tasks can be read, name what exists, and the server does what they rely on.

#![expect(clippy::unwrap_used, reason = "these are tests")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use gyrus_lab::sites::{self, SiteServer};
use serde::Deserialize;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    task: Vec<Task>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Task {
    id: String,
    goal: String,
    start: String,
    checks: Vec<String>,
    answer: Option<String>,
    budget: Budget,
    does: Vec<BTreeMap<String, toml::Value>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Budget {
    steps: u32,
    seconds: u32,
}

/// Kinds of steps, each with the settings that it may have.
const STEPS: [(&str, &[&str]); 13] = [
    ("click", &["within", "nth"]),
    ("type", &["text", "within", "nth"]),
    ("select", &["option", "within", "nth"]),
    ("press", &[]),
    ("scroll", &["until", "within"]),
    ("drag", &["to"]),
    ("draw", &["points"]),
    ("upload", &["file"]),
    ("dialog", &["text"]),
    ("hover", &["within", "nth"]),
    ("wait", &["within"]),
    ("extract", &["within"]),
    ("answer", &[]),
];

fn suite() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("suite")
}

fn tasks() -> Vec<(String, Task)> {
    let mut tasks = Vec::new();
    for entry in fs::read_dir(suite()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|found| found == "toml") {
            let text = fs::read_to_string(&path).unwrap();
            let file: File =
                toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let name = path.file_stem().unwrap().to_str().unwrap();
            tasks.extend(file.task.into_iter().map(|task| (name.to_owned(), task)));
        }
    }
    tasks
}

#[test]
fn tasks_are_whole() {
    let tasks = tasks();
    let mut ids = BTreeSet::new();
    for (file, task) in &tasks {
        let id = &task.id;
        assert!(ids.insert(id), "{id} is there twice");
        let is_kebab =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        assert!(id.bytes().all(is_kebab), "{id}");
        assert!(task.start.starts_with(&format!("/{file}/")), "{id}");
        assert!(!task.goal.is_empty() && !task.does.is_empty(), "{id}");
        assert!(task.budget.steps as usize >= task.does.len(), "{id}");
        assert!(task.budget.seconds > 0, "{id}");
        assert!(!task.checks.is_empty(), "{id}");
        for check in &task.checks {
            let kind = check.split_once(':').map(|(kind, _)| kind);
            assert!(
                matches!(kind, Some("text" | "url" | "js" | "file")),
                "{id}: {check}"
            );
        }
        let said = task.does.iter().find_map(|step| step.get("answer"));
        assert_eq!(said.is_some(), task.answer.is_some(), "{id}");
        if let (Some(said), Some(answer)) = (said, &task.answer) {
            assert!(said.as_str().unwrap().contains(answer), "{id}");
        }
        task.does.iter().for_each(|step| check_step(id, step));
    }
    assert!(tasks.len() >= 45, "{}", tasks.len());
}

fn check_step(id: &str, step: &BTreeMap<String, toml::Value>) {
    let kinds: Vec<_> = STEPS
        .iter()
        .filter(|(kind, _)| step.contains_key(*kind))
        .collect();
    let [(kind, may)] = kinds[..] else {
        panic!("{id}: {step:?} is not one step");
    };
    let others = step.keys().filter(|key| key != kind);
    for key in others {
        assert!(may.contains(&key.as_str()), "{id}: {step:?}");
    }
    if let Some(file) = step.get("file") {
        let path = suite().join("files").join(file.as_str().unwrap());
        assert!(path.exists(), "{id}: {}", path.display());
    }
}

#[test]
fn every_site_has_two_tasks() {
    let tasks = tasks();
    // These are parts of others.
    let parts = ["pay", "phone", "collect", "home"];
    for (site, _) in sites::sites().filter(|(name, _)| !parts.contains(name)) {
        let count = tasks.iter().filter(|(file, _)| file == site).count();
        assert!(count >= 2, "{site} has {count}");
    }
    let known: BTreeSet<_> = sites::sites().map(|(name, _)| name).collect();
    for (file, task) in &tasks {
        assert!(known.contains(file.as_str()), "{}", task.id);
    }
}

/// One request over a connection of its own: status line, headers and body as they came.
async fn ask(address: &str, request: &str, body: &str) -> String {
    let host = address.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(host).await.unwrap();
    let length = body.len();
    let kind = "content-type: application/x-www-form-urlencoded";
    let text = format!(
        "{request} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{kind}\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn every_page_is_served_at_both_origins() {
    let site = SiteServer::start(None).await.unwrap();
    for address in [site.address(), site.other_address()] {
        for (name, _) in sites::sites() {
            let answer = ask(&address, &format!("GET /w/seed7-x/{name}/"), "").await;
            assert!(answer.starts_with("HTTP/1.1 200"), "{name}: {answer}");
            assert!(answer.contains(r#""seed":7"#), "{name}");
        }
        let missing = ask(&address, "GET /w/a/none/", "").await;
        assert!(missing.starts_with("HTTP/1.1 404"), "{missing}");
    }
    let page = ask(&site.address(), "GET /w/a/shop/", "").await;
    assert!(page.contains(&site.other_address()));
}

#[tokio::test]
async fn worlds_are_apart_and_the_ledger_knows() {
    let site = SiteServer::start(None).await.unwrap();
    let address = site.address();
    let put = ask(
        &address,
        "POST /w/a/shop/act/cart?next=cart",
        "sku=clay-vase&count=2",
    );
    let put = put.await;
    assert!(put.starts_with("HTTP/1.1 303"), "{put}");
    assert!(put.contains("location: /w/a/shop/cart"), "{put}");
    let elsewhere = "POST /w/a/shop/act/cart?next=//elsewhere.example/";
    let stays = ask(&address, elsewhere, "sku=clay-vase&count=2").await;
    assert!(stays.starts_with("HTTP/1.1 200"), "{stays}");
    let order = "name=Ada&street=12+Row&city=London&country=UK";
    let placed = ask(&address, "POST /w/a/shop/act/order", order).await;
    assert!(placed.starts_with("HTTP/1.1 200"), "{placed}");
    let empty = ask(&address, "POST /w/b/shop/act/order", order).await;
    assert!(empty.starts_with("HTTP/1.1 422"), "{empty}");
    let kinds: Vec<_> = site
        .ledger("a")
        .into_iter()
        .map(|event| event.kind)
        .collect();
    assert_eq!(kinds, ["cart", "cart", "order"]);
    assert!(site.ledger("b").is_empty());
    let seen = ask(&site.other_address(), "GET /w/a/ledger", "").await;
    assert!(seen.contains(r#""kind":"order""#), "{seen}");
    let large = "x".repeat(300 * 1024);
    let refused = ask(&address, "POST /w/a/collect/act/notes", &large).await;
    assert!(refused.starts_with("HTTP/1.1 413"), "{refused}");
}

#[tokio::test]
async fn moods_are_a_stated_pattern() {
    let site = SiteServer::start(None).await.unwrap();
    let mut codes = Vec::new();
    for _ in 0..4 {
        let answer = ask(&site.address(), "GET /w/a/flaky/?fails=1", "").await;
        codes.push(answer[9..12].to_owned());
    }
    assert_eq!(codes, ["503", "200", "503", "200"]);
}

#[tokio::test]
async fn a_dropped_server_stops() {
    let site = SiteServer::start(None).await.unwrap();
    let address = site.address();
    drop(site);
    let host = address.strip_prefix("http://").unwrap();
    while TcpStream::connect(host).await.is_ok() {
        tokio::task::yield_now().await;
    }
}
