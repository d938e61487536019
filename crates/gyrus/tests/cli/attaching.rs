//! Runs in a browser that a person has started and goes on using.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    process::{Child, Command, Stdio},
    sync::Arc,
    thread,
};

use gyrus_kernel::Entry;
use parking_lot::Mutex;
use rustix::process::Signal;
use serde_json::Value;

use crate::{
    browsing::{browsing, ended, has_browser},
    http::{self, Message},
    support::World,
    terminal::Terminal,
};

/// Fills in and sends; what comes opens in another tab.
const ORDERS: &str = r#"
[[reply]]
find = { who = '(\w+) textbox "Your name"' }
text = '''{"note": "fill in", "actions": [{"do": "type_text", "on": "{{who}}", "text": "Ada"}]}'''
[[reply]]
find = { order = '(\w+) button "Place order"' }
text = '''{"note": "order", "actions": [{"do": "click", "on": "{{order}}"}]}'''
"#;

const FINISHES: &str = r#"
[[reply]]
when = "Ordered for Ada"
find = { token = 'token of this run is: ([0-9a-f ]+)' }
text = '''{"note": "done", "actions": [{"do": "finish", "token": "{{token}}", "reached": true, "answer": "It is ordered."}]}'''
"#;

/// After it was interrupted: another tab, and nothing of before.
const GIVES_UP: &str = r#"
[[reply]]
find = { token = 'token of this run is: ([0-9a-f ]+)' }
text = '''{"note": "enough", "actions": [{"do": "finish", "token": "{{token}}", "reached": false, "answer": "Not ordered."}]}'''
"#;

const SHOP: &str = r#"<!doctype html><title>Mug shop</title><h1>Mug shop</h1>
<form method="post" action="/order" target="_blank">
<label>Your name <input name="who"></label><button>Place order</button></form>"#;

/// A page that the person has open. It must be told nowhere.
const MINE: &str = "<!doctype html><title>My zebra bank</title><p>My zebra account";

/// Serves both, and writes down what was ordered.
struct Site {
    address: String,
    orders: Arc<Mutex<Vec<String>>>,
}

impl Site {
    fn open() -> Self {
        let orders: Arc<Mutex<Vec<String>>> = Arc::default();
        let written = orders.clone();
        let address = http::serve(move |asked| {
            let page = match asked.path() {
                "/zebra" => MINE,
                "/order" => {
                    written.lock().push(asked.text());
                    "<!doctype html><title>Thanks</title><p role=status>Ordered for Ada</p>"
                }
                _ => SHOP,
            };
            page.to_owned()
        });
        Self { address, orders }
    }

    fn orders(&self) -> Vec<String> {
        self.orders.lock().clone()
    }
}

/// A browser of a person's. Dropping it ends it.
struct Theirs {
    process: Child,
    /// Its debugging port.
    port: String,
}

impl Drop for Theirs {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Theirs {
    /// With one tab at `address`.
    fn start(world: &World, address: &str) -> Self {
        let mut command = Command::new("chromium");
        command.args([
            "--headless=new",
            "--remote-debugging-port=0",
            "--no-first-run",
        ]);
        let folder = world.path("theirs");
        command.arg(format!("--user-data-dir={}", folder.display()));
        if rustix::process::geteuid().is_root() {
            command.arg("--no-sandbox");
        }
        command.arg(address).stdout(Stdio::null());
        let mut process = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let port = lines.find_map(|line| {
            let line = line.unwrap();
            let (_, rest) = line.split_once("listening on ws://127.0.0.1:")?;
            Some(rest.split_once('/')?.0.to_owned())
        });
        // It must not stop because nobody reads what it complains about.
        thread::spawn(move || lines.for_each(drop));
        Self {
            process,
            port: port.unwrap(),
        }
    }

    fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The addresses of its pages.
    fn pages(&self) -> Vec<String> {
        let mut stream = TcpStream::connect(format!("127.0.0.1:{}", self.port)).unwrap();
        let host = &self.port;
        write!(
            stream,
            "GET /json HTTP/1.1\r\nHost: localhost:{host}\r\n\r\n"
        )
        .unwrap();
        let body = Message::read(&stream).unwrap().body;
        let targets: Vec<Value> = serde_json::from_slice(&body).unwrap();
        let pages = targets.iter().filter(|target| target["type"] == "page");
        let addresses = pages.map(|page| page["url"].as_str().unwrap().to_owned());
        // The browser's own surface is a page to it.
        addresses
            .filter(|one| !one.starts_with("chrome://"))
            .collect()
    }
}

/// Everything that is told of a run.
fn told(world: &World) -> String {
    let page = world.gyrus(&["show", "last", "--html"]).exits(0);
    format!("{:?}{}", world.entries(), page.out)
}

#[test]
fn a_run_works_in_tabs_of_its_own_and_closes_them() {
    if !has_browser() {
        return;
    }
    let world = World::new(&format!("{ORDERS}{FINISHES}"));
    let site = Site::open();
    let mine = format!("{}/zebra", site.address);
    let theirs = Theirs::start(&world, &mine);
    let goal = format!("order a mug for Ada at {}", site.address);
    let run = browsing(
        &world,
        &[
            "run",
            &goal,
            "--url",
            &site.address,
            "--attach",
            &theirs.address(),
            "--attach-anyway",
            "--on-ask",
            "wait",
        ],
    )
    .spawn()
    .unwrap();
    world.wait_for(|entry| matches!(entry, Entry::ApprovalAsked(_)));
    assert_eq!(theirs.pages().len(), 2, "{:?}", theirs.pages());
    world.gyrus(&["approve", "last"]).exits(0);
    let said = ended(run)
        .exits(0)
        .says("everything that you are logged in to");
    assert!(said.out.contains("It is ordered."), "{said:#?}");
    assert_eq!(site.orders(), ["who=Ada"]);
    assert_eq!(theirs.pages(), [mine]);
    let told = told(&world);
    assert!(told.contains("Mug shop") && !told.contains("zebra"));
}

#[test]
fn an_interrupted_run_leaves_nothing_open_and_attaches_again() {
    if !has_browser() {
        return;
    }
    let world = World::new(&format!("{ORDERS}{GIVES_UP}"));
    let site = Site::open();
    let mine = format!("{}/zebra", site.address);
    let theirs = Theirs::start(&world, &mine);
    let goal = format!("order a mug for Ada at {}", site.address);
    let address = theirs.address();
    let attach = ["--attach", &address, "--attach-anyway"];
    let arguments = ["run", &goal, "--url", &site.address, "--on-ask", "wait"];
    let run = world.start(&[&arguments[..], &attach].concat());
    world.wait_for(|entry| matches!(entry, Entry::ApprovalAsked(_)));
    run.signal(Signal::INT);
    run.end().exits(130);
    assert_eq!(theirs.pages(), [mine.as_str()]);
    let resumed = world.gyrus(&["resume", "last", "--on-ask", "deny"]);
    let resumed = resumed.says("attaching to the browser at");
    assert!(
        world
            .entries()
            .iter()
            .any(|entry| matches!(entry, Entry::RunResumed(_))),
        "{resumed:#?}"
    );
    assert_eq!(theirs.pages(), [mine]);
    assert_eq!(site.orders(), Vec::<String>::new());
    assert!(!told(&world).contains("zebra"));
}

#[test]
fn without_a_yes_nothing_is_attached_to() {
    let world = World::new(ORDERS);
    let attach = ["run", "go", "--attach", "http://127.0.0.1:1"];
    world
        .gyrus(&attach)
        .exits(2)
        .says("everything that you are logged in to")
        .says("--attach-anyway");
    world
        .gyrus(&["run", "go", "--attach", "http://192.0.2.1:9222"])
        .exits(2)
        .says("is not on this machine");
    world
        .gyrus(&[&attach[..], &["--profile", "work"]].concat())
        .exits(2)
        .says("--profile");
    if let Some(mut terminal) = Terminal::start(&world, &attach, "y\n") {
        terminal.shows("attach to it? [y/N]");
        terminal.types("n\n");
        terminal.shows("was not attached to");
        assert_eq!(terminal.exit_code(), Some(2));
    }
    assert_eq!(world.runs(), []);
}

#[test]
fn where_no_browser_listens_it_says_how_to_start_one() {
    let world = World::new(ORDERS);
    let attach = ["--attach", "http://127.0.0.1:1", "--attach-anyway"];
    let said = world.gyrus(&[&["run", "go"][..], &attach].concat());
    said.exits(2).says("--remote-debugging-port=1");
}
