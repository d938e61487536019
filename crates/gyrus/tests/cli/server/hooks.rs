//! Hooks of a server: addresses and commands that are told of events.

use std::{
    collections::BTreeMap,
    fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    time::Instant,
};

use gyrus_runtime::triggers::HookSecret;
use serde_json::{Value, json};

use super::{Server, agents::ONE_LINE, runs::ASKS};
use crate::support::{TIMEOUT, World};

const SECRET: &str = "the-secret-of-these-hooks";

/// A delivery: its head with names in lower case, and its body.
type Delivery = (BTreeMap<String, String>, String);

fn configure(world: &World, text: &str) {
    let home = world.path("home");
    fs::create_dir_all(&home).unwrap();
    fs::write(home.join("config.toml"), text).unwrap();
}

/// Takes one delivery, and answers it with this status; none leaves it without an answer.
fn take(listener: &TcpListener, status: Option<u16>) -> Delivery {
    let (mut stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let delivery = read(&mut stream);
    if let Some(status) = status {
        let answer =
            format!("HTTP/1.1 {status} x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        stream.write_all(answer.as_bytes()).unwrap();
    }
    delivery
}

fn read(stream: &mut TcpStream) -> Delivery {
    let mut bytes = Vec::new();
    loop {
        let mut buffer = [0; 4096];
        let count = stream.read(&mut buffer).unwrap();
        bytes.extend(&buffer[..count]);
        let text = String::from_utf8(bytes.clone()).unwrap();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            assert!(count > 0, "{text}");
            continue;
        };
        let fields = head
            .lines()
            .skip(1)
            .filter_map(|line| line.split_once(": "));
        let fields: BTreeMap<String, String> = fields
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        if body.len() == fields["content-length"].parse::<usize>().unwrap() {
            return (fields, body.to_owned());
        }
    }
}

fn id(delivery: &Delivery) -> &str {
    &delivery.0["webhook-id"]
}

#[test]
fn an_address_is_told_of_an_end_once_it_listens_and_by_signature() {
    let world = World::new(ONE_LINE);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    configure(
        &world,
        &format!(
            "[hooks.desk]\nevents = [\"command.*\"]\nurl = \"http://{address}/told\"\n\
             secret = \"DESK_HOOK\"\n"
        ),
    );
    let variables = [("DESK_HOOK", SECRET)];
    let server = Server::start_in(&world, &[], &variables);
    let command = server.run("Leave a line.", &json!({"approve": "auto"}));
    let first = take(&listener, Some(503));
    let again = take(&listener, Some(200));
    assert_eq!(first.1, again.1);
    assert_eq!(id(&first), id(&again));
    let told: Value = serde_json::from_str(&again.1).unwrap();
    assert_eq!(told["topic"], "command.ended");
    assert_eq!(told["correlation"], command["id"]);
    assert_eq!(told["payload"]["run"], command["run"]);
    assert_eq!(told["payload"]["summary"], "claimed: written");
    let (head, body) = &again;
    let secret = HookSecret::new(SECRET).unwrap();
    let signed = secret.sign(id(&again), &head["webhook-timestamp"], body.as_bytes());
    assert_eq!(head["webhook-signature"], signed);

    // Killed before the second is taken; the next server tells it, and the first not again.
    server.run("Leave another line.", &json!({"approve": "auto"}));
    let second = take(&listener, None);
    drop(server);
    let server = Server::start_in(&world, &[], &variables);
    let again = take(&listener, Some(204));
    assert_eq!(id(&second), id(&again));
    assert_ne!(id(&first), id(&again));
    // One that refuses for good is not asked again.
    server.run("Leave a third line.", &json!({"approve": "auto"}));
    let third = take(&listener, Some(410));
    server.run("Leave a fourth line.", &json!({"approve": "auto"}));
    let fourth = take(&listener, Some(200));
    assert_ne!(id(&third), id(&fourth));
}

#[test]
fn a_command_is_told_of_a_question() {
    let world = World::new(ASKS);
    let told = world.path("told.jsonl");
    let line = format!("cat >> {}", told.display());
    configure(
        &world,
        &format!("[hooks.bell]\nevents = [\"question.asked\"]\ncommand = \"{line}\"\n"),
    );
    let server = Server::start(&world);
    let command = server.run("Leave a line.", &json!({}));
    let since = Instant::now();
    let text = loop {
        let text = fs::read_to_string(&told).unwrap_or_default();
        if text.ends_with('\n') {
            break text;
        }
        assert!(since.elapsed() < TIMEOUT);
        std::thread::sleep(std::time::Duration::from_millis(10));
    };
    let event: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(event["payload"]["run"], command["run"]);
    let questions = server.get("/api/questions").is(200).json();
    assert_eq!(event["payload"]["question"], questions[0]["question"]);
}

#[test]
fn mistakes_in_a_hook_are_told_before_the_server_starts() {
    let world = World::new(ONE_LINE);
    for (section, wanted) in [
        ("events = [\"a.b\"]", "give either `url` or `command`"),
        ("events = []\ncommand = \"x\"", "`events` names no topics"),
        ("events = [\"a b\"]\ncommand = \"x\"", "a b"),
        ("events = [\"a\"]\nurl = \"ftp://x\"", "it begins with http"),
        (
            "events = [\"a\"]\nurl = \"http://x\"\nsecret = \"NO_SUCH\"",
            "gyrus agents secret NO_SUCH",
        ),
        ("evnts = [\"a\"]", "did you mean `events`?"),
    ] {
        configure(&world, &format!("[hooks.desk]\n{section}\n"));
        let failed = world.gyrus(&["serve", "--port", "0"]).exits(2);
        assert!(failed.err.contains(wanted), "{section}: {failed:#?}");
    }
}
