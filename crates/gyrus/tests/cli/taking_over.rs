//! A person takes a run's browser over, by the page's own requests, and gives it back.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    process::{ChildStdout, Command, Stdio},
    sync::mpsc,
    thread,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use gyrus_kernel::Entry;
use serde_json::{Value, json};

use crate::{
    browsing::{Held, browsing, has_browser},
    http,
    support::{TIMEOUT, World, said},
};

/// Text that the person types, and nobody but the site may ever see.
pub(crate) const SECRET: &str = "correct-horse-battery";

/// Asks for a person, and finishes when the site knows who it is and the person has said so.
pub(crate) const ASKS: &str = r#"
[[reply]]
when = "Who are you"
text = '''{"note": "a login", "actions": [{"do": "hand_over", "text": "log in, please"}]}'''
[[reply]]
when = "Welcome Ada"
find = { word = '(I logged in)', token = 'token of this run is: ([0-9a-f ]+)' }
text = '''{"note": "{{word}}", "actions": [{"do": "finish", "token": "{{token}}", "reached": true, "answer": "Heard: {{word}}."}]}'''
"#;

/// Asks for approval to send the form, and is told otherwise meanwhile.
const INTERRUPTED: &str = r#"
[[reply]]
find = { who = '(\w+) textbox "Name"', send = '(\w+) button "Log in"' }
text = '''{"note": "fill in", "actions": [{"do": "type_text", "on": "{{who}}", "text": "Eve"}, {"do": "click", "on": "{{send}}"}]}'''
[[reply]]
when = "Welcome Ada"
find = { word = '(it is me, Ada)', token = 'token of this run is: ([0-9a-f ]+)' }
text = '''{"note": "{{word}}", "actions": [{"do": "finish", "token": "{{token}}", "reached": true, "answer": "Heard: {{word}}."}]}'''
"#;

/// Fields at known places of a page of 1280 by 800 pixels.
const LOGIN: &str = r#"<!doctype html><title>Who are you?</title><h1>Who are you?</h1>
<style>label, button { position: absolute; left: 100px; } input, button { width: 300px; height: 40px }</style>
<form method="post" action="/in">
<label style="top: 100px">Name <input name="who" style="position: absolute; left: 100px"></label>
<label style="top: 200px">Password <input name="word" type="password" style="position: absolute; left: 100px"></label>
<button style="top: 300px">Log in</button>
</form>"#;

pub(crate) const NAME: (f64, f64) = (350.0, 120.0);
pub(crate) const PASSWORD: (f64, f64) = (350.0, 220.0);
pub(crate) const SEND: (f64, f64) = (250.0, 320.0);

/// Lets in who knows the password.
pub(crate) fn site() -> String {
    let wanted = format!("who=Ada&word={SECRET}");
    http::serve(move |asked| {
        if asked.text() == wanted {
            "<!doctype html><title>Welcome</title><p role=status>Welcome Ada</p>".to_owned()
        } else {
            LOGIN.to_owned()
        }
    })
}

/// A run that has come to its question.
fn asking(world: &World, goal: &str, site: &str) -> Held {
    let arguments = [
        "run",
        goal,
        "--url",
        site,
        "--on-ask",
        "wait",
        "--require",
        "claimed",
    ];
    let run = Held::new(&mut browsing(world, &arguments));
    world.wait_for(|entry| matches!(entry, Entry::ApprovalAsked(_)));
    run
}

/// A person's browser, as far as the page goes.
pub(crate) struct Person {
    command: Held,
    out: BufReader<ChildStdout>,
    port: u16,
    token: String,
    key: String,
}

impl Person {
    fn takes(world: &World) -> Self {
        Self::at(browsing(world, &["take"]))
    }

    /// A person at the page whose address this command prints.
    pub(crate) fn at(mut command: Command) -> Self {
        let mut command = command.stderr(Stdio::inherit()).spawn().unwrap();
        let mut out = BufReader::new(command.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("http://127.0.0.1:").unwrap();
        let (port, token) = address.split_once("/#").unwrap();
        assert_eq!(token.len(), 32, "128 bits");
        Self {
            command: Held(Some(command)),
            out,
            port: port.parse().unwrap(),
            token: token.to_owned(),
            key: String::new(),
        }
    }

    /// Status and body of a request, with these headers besides.
    fn asks(&self, line: &str, headers: &str, body: &str) -> (u16, String) {
        let mut stream = self.sends(line, headers, body);
        let mut all = String::new();
        stream.read_to_string(&mut all).unwrap();
        let (head, body) = all.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        assert!(
            head.to_lowercase().contains("cache-control: no-store"),
            "{head}"
        );
        assert!(!head.to_lowercase().contains("access-control"), "{head}");
        (status, body.to_owned())
    }

    fn sends(&self, line: &str, headers: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        let length = body.len();
        // Of this version answers end with the connection.
        write!(
            stream,
            "{line} HTTP/1.0\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        stream
    }

    fn own(&self) -> String {
        let port = self.port;
        format!(
            "Host: 127.0.0.1:{port}\r\nOrigin: http://127.0.0.1:{port}\r\nX-Gyrus-Key: {}\r\n",
            self.key
        )
    }

    pub(crate) fn opens(&mut self) {
        let (status, key) = self.asks("POST /open", &self.own(), &self.token);
        assert_eq!(status, 200);
        self.key = key;
    }

    pub(crate) fn does(&self, what: &Value) {
        let (status, said) = self.asks("POST /did", &self.own(), &what.to_string());
        assert_eq!((status, said.as_str()), (200, ""), "{what}");
    }

    pub(crate) fn clicks(&self, at: (f64, f64)) {
        self.clicks_again(at, 1);
    }

    /// Clicks as the given one of several at this place.
    pub(crate) fn clicks_again(&self, (x, y): (f64, f64), count: u32) {
        let event = |kind: &str, buttons: u32| {
            json!({
                "do": "mouse", "kind": kind, "x": x / 1280.0, "y": y / 800.0, "button": "left",
                "buttons": buttons, "count": count, "held": 0,
            })
        };
        self.does(&json!([event("down", 1), event("up", 0)]));
    }

    pub(crate) fn types(&self, text: &str) {
        self.does(&json!([{"do": "text", "text": text}]));
    }

    /// Looks until the words about the page have these in them.
    fn sees_words(&self, wanted: &str) {
        self.sees_after(wanted, true);
    }

    /// Looks until a picture has come and the words about the page have these in them.
    pub(crate) fn sees(&self, wanted: &str) {
        self.sees_after(wanted, false);
    }

    fn sees_after(&self, wanted: &str, mut picture: bool) {
        let stream = self.sends("GET /live", &self.own(), "");
        let mut stream = BufReader::new(stream);
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            stream.read_line(&mut line).unwrap();
        }
        let mut words = String::new();
        while !(picture && words.contains(wanted)) {
            let mut head = [0; 5];
            if let Err(error) = stream.read_exact(&mut head) {
                panic!("{error}; wanted {wanted:?}, a picture: {picture}, words: {words}");
            }
            let length = u32::from_be_bytes(head[..4].try_into().unwrap());
            let mut bytes = vec![0; length as usize];
            stream.read_exact(&mut bytes).unwrap();
            match head[4] {
                0 => words = String::from_utf8(bytes).unwrap(),
                _ => {
                    picture |= [&[0xff, 0xd8, 0xff][..], b"\x89PNG"]
                        .iter()
                        .any(|kind| bytes.starts_with(kind))
                }
            }
        }
    }

    fn logs_in(&self) {
        self.clicks(NAME);
        self.does(&json!([{"do": "key", "key": "Control+a"}]));
        self.types("Ada");
        self.clicks(PASSWORD);
        self.types(SECRET);
        self.clicks(SEND);
        self.sees("Welcome");
    }

    fn gives_back(self, words: &str) {
        assert_eq!(self.leaves(words), Some(0));
    }

    /// Gives the browser back, and returns the exit code of the command.
    pub(crate) fn leaves(self, words: &str) -> Option<i32> {
        // The process may have ended before it has answered.
        let mut answer = self.sends("POST /back", &self.own(), words);
        let _ = answer.read_to_string(&mut String::new());
        self.ends()
    }

    /// Waits until the command ends, and returns its exit code.
    pub(crate) fn ends(mut self) -> Option<i32> {
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).unwrap();
        self.command.0.take().unwrap().wait().unwrap().code()
    }
}

/// Nothing below a folder holds these bytes.
pub(crate) fn is_nowhere(folder: &Path, bytes: &[u8]) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            is_nowhere(&path, bytes);
        } else if let Ok(content) = fs::read(&path) {
            let found = content.windows(bytes.len()).any(|part| part == bytes);
            assert!(
                !found,
                "{} is in {}",
                String::from_utf8_lossy(bytes),
                path.display()
            );
        }
    }
}

/// Returns the entries between the beginning and the end of the only take-over.
fn meanwhile(entries: &[Entry]) -> (&[Entry], &Entry) {
    let began = entries
        .iter()
        .position(|entry| matches!(entry, Entry::TakeoverStarted(_)));
    let ended = entries
        .iter()
        .position(|entry| matches!(entry, Entry::TakeoverEnded(_)));
    (
        &entries[began.unwrap() + 1..ended.unwrap()],
        &entries[ended.unwrap()],
    )
}

#[test]
fn a_person_logs_in_for_a_run_that_asks_for_it() {
    if !has_browser() {
        return;
    }
    let (world, site) = (World::new(ASKS), site());
    let goal = format!("see who I am at {site}");
    let run = asking(&world, &goal, &site);
    let mut person = Person::takes(&world);
    world.wait_for(|entry| matches!(entry, Entry::TakeoverStarted(_)));
    let token = person.token.clone();

    // Everybody gets the empty page; nobody gets further without the token, from elsewhere, or
    // under another name.
    let own = person.own();
    let status = |line: &str, headers: &str, body: &str| person.asks(line, headers, body).0;
    assert_eq!(status("GET /", &own, ""), 200);
    assert_eq!(status("GET /live", &own, ""), 403);
    assert_eq!(status("POST /did", &own, "[]"), 403);
    assert_eq!(status("POST /open", &own, &"0".repeat(32)), 403);
    let elsewhere = own.replace("Host: 127.0.0.1", "Host: evil.example");
    assert_eq!(status("GET /", &elsewhere, ""), 403);
    let from_elsewhere = own.replace("Origin: http://127.0.0.1", "Origin: http://evil.example");
    assert_eq!(status("POST /open", &from_elsewhere, &token), 403);
    let framed = format!("{own}Sec-Fetch-Site: cross-site\r\nSec-Fetch-Dest: iframe\r\n");
    assert_eq!(status("GET /", &framed, ""), 403);
    let followed = framed.replace("iframe", "document");
    assert_eq!(status("GET /", &followed, ""), 200);
    let without = format!("Host: 127.0.0.1:{}\r\n", person.port);
    assert_eq!(status("POST /open", &without, &token), 403);

    person.opens();
    assert_eq!(
        person.asks("POST /open", &person.own(), &token).0,
        403,
        "used up"
    );
    said(browsing(&world, &["take", "last"]).output().unwrap())
        .exits(1)
        .says("another person has taken it over already");
    person.sees("Who are you?");
    person.logs_in();
    let key = person.key.clone();
    person.gives_back("I logged in");

    let ended = run.ends().exits(0);
    assert!(ended.out.contains("Heard: I logged in."), "{ended:#?}");
    let entries = world.entries();
    let (between, end) = meanwhile(&entries);
    assert!(
        between
            .iter()
            .all(|entry| matches!(entry, Entry::ApprovalAnswered(_))),
        "{between:#?}"
    );
    let Entry::TakeoverEnded(end) = end else {
        unreachable!()
    };
    assert_eq!(end.words.as_deref(), Some("I logged in"));
    assert_eq!(end.by.id, "tester");
    for secret in [SECRET, &token, &key] {
        is_nowhere(&world.path("home"), secret.as_bytes());
    }
    is_nowhere(&world.path("home"), &[0xff, 0xd8, 0xff, 0xe0]);
    world.gyrus(&["replay", "last"]).exits(0);
    world.gyrus(&["show", "last"]).exits(0);
}

#[test]
fn the_page_says_why_the_run_asked() {
    if !has_browser() {
        return;
    }
    let (world, site) = (World::new(ASKS), site());
    let goal = format!("see who I am at {site}");
    let run = asking(&world, &goal, &site);
    let person = Person::takes(&world);
    let page = format!("http://127.0.0.1:{}/#{}", person.port, person.token);
    let look = said(browsing(&world, &["look", &page]).output().unwrap()).exits(0);
    assert!(look.out.contains("log in, please"), "{look:#?}");
    drop(person);
    world.gyrus(&["stop", "last"]).exits(0);
    run.ends();
}

/// A site that the browser itself must log in at, as Ada with the secret; each wrong login is told.
fn protected() -> (String, mpsc::Receiver<()>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let wanted = BASE64_STANDARD.encode(format!("Ada:{SECRET}"));
    let (refused, refusals) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, wanted) = (stream.unwrap(), wanted.clone());
            let refused = refused.clone();
            thread::spawn(move || {
                let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
                let head: Vec<_> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
                let is_let_in = head.iter().any(|line| line.contains(&wanted));
                let is_tried = head
                    .iter()
                    .any(|line| line.to_ascii_lowercase().starts_with("authorization:"));
                if is_tried && !is_let_in {
                    let _ = refused.send(());
                }
                let (status, body) = if is_let_in {
                    (
                        "200 OK",
                        "<!doctype html><title>In</title><p>Welcome Ada</p>",
                    )
                } else {
                    (
                        "401 Unauthorized",
                        "<!doctype html><title>Out</title><p>No entry</p>",
                    )
                };
                write!(
                    stream,
                    "HTTP/1.1 {status}\r\nWWW-Authenticate: Basic realm=\"Vault\"\r\nContent-Type: \
                     text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                    body.len()
                )
            });
        }
    });
    (origin, refusals)
}

#[test]
fn a_person_logs_in_where_the_site_asks_the_browser_for_it() {
    if !has_browser() {
        return;
    }
    let asks = ASKS
        .replace("Who are you", "wants a user name")
        .replace("(I logged in)", "(Welcome) Ada");
    let world = World::new(&asks);
    let (site, refusals) = protected();
    let mut arguments = vec!["run", "see who I am", "--url", &site, "--on-ask", "wait"];
    arguments.extend(["--require", "claimed", "--profile", "vault"]);
    let run = Held::new(&mut browsing(&world, &arguments));
    world.wait_for(|entry| matches!(entry, Entry::ApprovalAsked(_)));
    let mut person = Person::takes(&world);
    person.opens();
    let logs_in = |person: &Person, password: &str| {
        person
            .does(&json!([{"do": "dialog", "accept": true, "text": "Ada", "password": password}]));
    };
    person.sees_words("wants a user name");
    logs_in(&person, "wrong");
    // The question before the answer is still shown for a moment; this is the next one.
    refusals.recv_timeout(TIMEOUT).unwrap();
    person.sees_words("wants a user name");
    logs_in(&person, SECRET);
    person.sees("\"title\":\"In\"");
    person.gives_back("");
    let ended = run.ends().exits(0);
    assert!(ended.out.contains("Heard: Welcome."), "{ended:#?}");
    is_nowhere(&world.path("home/journal"), SECRET.as_bytes());
    // The profile keeps it.
    let look = ["look", &site, "--profile", "vault"];
    let look = said(browsing(&world, &look).output().unwrap()).exits(0);
    assert!(look.out.contains("Welcome Ada"), "{look:#?}");
    world
        .gyrus(&["browser", "forget", "vault", "--yes"])
        .exits(0);
}

#[test]
fn without_a_person_the_run_is_told_that_a_site_wants_a_login() {
    if !has_browser() {
        return;
    }
    let script = r#"
[[reply]]
when = "wants a user name and a password"
text = '''{"note": "nobody", "actions": [{"do": "answer_dialog", "accept": true, "text": "Ada:guess"}]}'''
[[reply]]
text = '''{"note": "without", "actions": [{"do": "answer_dialog", "accept": false}]}'''
[[reply]]
when = "No entry"
find = { token = 'token of this run is: ([0-9a-f ]+)' }
text = '''{"note": "no", "actions": [{"do": "finish", "token": "{{token}}", "reached": false, "answer": "It needs a login."}]}'''
"#;
    let (world, (site, _refusals)) = (World::new(script), protected());
    let arguments = ["run", "look", "--url", &site, "--on-ask", "deny"];
    let ended = said(browsing(&world, &arguments).output().unwrap());
    ended.says("It needs a login.");
}

#[test]
fn what_was_decided_before_a_person_had_the_page_is_not_done() {
    if !has_browser() {
        return;
    }
    let (world, site) = (World::new(INTERRUPTED), site());
    let goal = format!("log in as Eve at {site}");
    let run = asking(&world, &goal, &site);
    let mut person = Person::takes(&world);
    person.opens();
    person.logs_in();
    person.gives_back("it is me, Ada");
    world.gyrus(&["approve", "last"]).exits(0);
    let ended = run.ends().exits(0);
    assert!(ended.out.contains("Heard: it is me, Ada."), "{ended:#?}");
    is_nowhere(&world.path("home"), SECRET.as_bytes());
}

#[test]
fn ending_the_command_gives_the_browser_back_and_an_interrupt_takes_it() {
    if !has_browser() {
        return;
    }
    let (world, site) = (World::new(ASKS), site());
    let goal = format!("see who I am at {site}");
    let run = asking(&world, &goal, &site);
    drop(Person::takes(&world));
    world.wait_for(|entry| matches!(entry, Entry::TakeoverEnded(_)));
    // It counts as an answer: the run asks no more.
    world.wait_for(|entry| matches!(entry, Entry::ApprovalAnswered(_)));
    world.gyrus(&["stop", "last"]).exits(0);
    run.ends();
    world
        .gyrus(&["take", "last"])
        .exits(2)
        .says("is not at work");
}

#[test]
fn where_nobody_is_asked_nobody_takes_over() {
    if !has_browser() {
        return;
    }
    let nobody = r#"
[[reply]]
text = '''{"note": "a login", "actions": [{"do": "hand_over", "text": "log in, please"}]}'''
[[reply]]
when = "asks nobody"
find = { token = 'token of this run is: ([0-9a-f ]+)' }
text = '''{"note": "alone", "actions": [{"do": "finish", "token": "{{token}}", "reached": false, "answer": "It needs a login."}]}'''
"#;
    let (world, site) = (World::new(nobody), site());
    let arguments = ["run", "look", "--url", &site, "--approve", "never"];
    let ended = said(browsing(&world, &arguments).output().unwrap());
    ended.says("It needs a login.");
}
