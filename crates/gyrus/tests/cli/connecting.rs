//! Commands that connect: each connection is judged when it is made.

use std::{
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpListener},
    sync::Arc,
    thread,
};

use gyrus_kernel::{CallEnd, Entry, ToolResulted};
use parking_lot::Mutex;
use rustix::process::Signal;

use crate::support::World;

/// A server that is outside of every sandbox.
struct Server {
    at: SocketAddr,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Says hello at every path, but for `/to/ADDRESS`, which leads there.
    fn on(ip: &str) -> Self {
        let listener = TcpListener::bind((ip, 0)).unwrap();
        let at = listener.local_addr().unwrap();
        let heard: Arc<Mutex<Vec<String>>> = Arc::default();
        let known = heard.clone();
        thread::spawn(move || {
            for client in listener.incoming() {
                let mut client = client.unwrap();
                let mut lines = BufReader::new(&client).lines().map_while(Result::ok);
                let asked = lines.next().unwrap_or_default();
                // All of it: what is left unread would reset the connection.
                lines.take_while(|line| !line.is_empty()).for_each(drop);
                let path = asked.split(' ').nth(1).unwrap_or_default().to_owned();
                let answer = match path.strip_prefix("/to/") {
                    Some(place) => format!(
                        "HTTP/1.1 302 X\r\nLocation: http://{place}/\r\nContent-Length: 0\r\n\
                         Connection: close\r\n\r\n"
                    ),
                    None => {
                        "HTTP/1.1 200 X\r\nContent-Length: 6\r\nConnection: close\r\n\r\nhello\n"
                            .to_owned()
                    }
                };
                known.lock().push(path);
                let _ = client.write_all(answer.as_bytes());
            }
        });
        Self { at, heard }
    }

    fn heard(&self) -> Vec<String> {
        self.heard.lock().clone()
    }
}

/// Runs these command lines, one a step, and finishes.
fn script(lines: &[&str]) -> String {
    let steps = lines.iter().map(|line| {
        format!(
            "[[reply]]\ncalls = [{{ tool = \"shell\", arguments = {{ command = {line:?} }} }}]\n"
        )
    });
    let finish = "[[reply]]\ncalls = [{ tool = \"finish\", arguments = { reached = true, answer = \
                  \"done\" } }]\n";
    steps.collect::<String>() + finish
}

fn results(world: &World) -> Vec<ToolResulted> {
    let entries = world.entries().into_iter();
    let results = entries.filter_map(|entry| match entry {
        Entry::ToolResulted(result) => Some(result),
        _ => None,
    });
    results.collect()
}

/// Returns the output of a call, as the journal has it.
fn printed(world: &World, call: usize) -> String {
    let result = &results(world)[call];
    let store = world.store();
    let reader = store
        .reader(&gyrus_kernel::log_name(world.runs()[0]))
        .unwrap();
    let text = result
        .text
        .read(|id| reader.blob(id).map_err(gyrus_kernel::Stop::from));
    text.unwrap()
}

/// The sentences of the questions that were asked.
fn questions(world: &World) -> Vec<String> {
    let entries = world.entries().into_iter();
    let asked = entries.filter_map(|entry| match entry {
        Entry::ApprovalAsked(asked) => Some(asked.card.sentence),
        _ => None,
    });
    asked.collect()
}

fn asks(entry: &Entry) -> bool {
    matches!(entry, Entry::ApprovalAsked(_))
}

fn wants(to: SocketAddr) -> String {
    format!("A command that runs in the sandbox wants to connect to {to}")
}

#[test]
fn a_named_port_of_this_machine_is_reached_and_no_other() {
    let (named, other) = (Server::on("127.0.0.1"), Server::on("127.0.0.1"));
    let own = TcpListener::bind("127.0.0.1:0").unwrap();
    let free = own.local_addr().unwrap().port();
    drop(own);
    let (port, hidden) = (named.at.port(), other.at.port());
    let line = format!(
        "curl -s http://127.0.0.1:{port}/direct; curl -s --noproxy '' http://localhost:{port}/proxy; \
         curl -s http://127.0.0.1:{hidden}/ || echo closed; \
         curl -s --noproxy '' http://127.0.0.1:{hidden}/; \
         python3 -c 'import http.server as h; h.HTTPServer((\"127.0.0.1\", {free}), \
         h.SimpleHTTPRequestHandler).serve_forever()' 2>/dev/null & \
         curl -s --retry 50 --retry-connrefused --retry-delay 0 -o /dev/null \
         -w 'own %{{http_code}}' http://127.0.0.1:{free}/"
    );
    let world = World::new(&script(&["sh probe.sh"]));
    std::fs::write(world.work().join("probe.sh"), line).unwrap();
    let goal = format!("look at http://127.0.0.1:{port}/");
    world.gyrus(&["run", &goal, "--on-ask", "deny"]).exits(0);
    let said = printed(&world, 0);
    assert!(said.starts_with("hello\nhello\nclosed\n"), "{said}");
    assert!(
        said.contains(&format!(
            "the sandbox refuses to connect to 127.0.0.1:{hidden}: this needs a person's yes"
        )),
        "{said}"
    );
    assert!(said.contains("own 200"), "{said}");
    assert!(
        said.contains(&format!(
            "[the sandbox refused connections to 127.0.0.1:{hidden} ("
        )),
        "{said}"
    );
    assert_eq!(named.heard(), ["/direct", "/proxy"]);
    assert_eq!(other.heard(), [""; 0]);
    world.replays();
}

#[test]
fn an_answer_lets_exactly_that_place_through_while_the_command_waits() {
    let (first, second) = (Server::on("127.0.0.2"), Server::on("127.0.0.2"));
    let (one, two) = (first.at, second.at);
    // The same place twice at once, and once more by a redirect from it to another.
    let line = format!(
        "curl -s http://{one}/a & curl -s http://{one}/b; wait; curl -sL http://{one}/to/{two}"
    );
    let world = World::new(&script(&[&line]));
    let running = world.start(&["run", "go", "--on-ask", "wait"]);
    world.wait_for(asks);
    assert_eq!(first.heard(), [""; 0], "it is held");
    let listed = world.gyrus(&["approvals"]).exits(0).out;
    assert!(listed.contains("1.2.0.2"), "{listed}");
    assert!(listed.contains("┃ command: curl -s"), "{listed}");
    world.gyrus(&["approve", "last"]).exits(0);
    let is_second = move |entry: &Entry| matches!(entry, Entry::ApprovalAsked(asked) if asked.card.sentence == wants(two));
    world.wait_for(is_second);
    let words = "not that one";
    world.gyrus(&["deny", "last", "--reason", words]).exits(0);
    running.end().exits(0);
    let said = printed(&world, 0);
    assert!(said.starts_with("hello\nhello\n"), "{said}");
    assert!(said.contains("says: not that one"), "{said}");
    assert_eq!(questions(&world), [wants(one), wants(two)]);
    let mut heard = first.heard();
    heard.sort();
    assert_eq!(heard, ["/a", "/b", &format!("/to/{two}")]);
    assert_eq!(second.heard(), [""; 0]);
    world.replays();
    assert_eq!(first.heard().len(), 3, "a replay connects nowhere");
}

#[test]
fn a_parked_question_is_asked_when_the_command_has_ended() {
    let server = Server::on("127.0.0.2");
    let line = format!("curl -s http://{}/", server.at);
    let world = World::new(&script(&[&line, &line, &line]));
    let said = world.gyrus(&["run", "go", "--on-ask", "park"]).exits(5);
    assert!(said.err.contains(&wants(server.at)), "{said:?}");
    let ended = results(&world);
    assert_eq!(ended[0].settled, CallEnd::Done);
    assert_eq!(ended[0].pending.len(), 1);
    // It goes on waiting, and nothing runs again.
    world.gyrus(&["resume", "last"]).exits(5);
    assert_eq!(results(&world).len(), 1);
    world.gyrus(&["approve", "last"]).exits(0);
    // The yes is for one more start of this command; the third start asks again.
    world.gyrus(&["resume", "last"]).exits(5);
    assert_eq!(server.heard(), ["/"]);
    assert_eq!(results(&world).len(), 3);
    assert!(printed(&world, 1).starts_with("hello\n"));
    assert_eq!(questions(&world).len(), 2);
    world.gyrus(&["deny", "last"]).exits(0);
    world.gyrus(&["resume", "last"]).exits(0);
    assert_eq!(server.heard(), ["/"]);
    world.replays();
}

#[test]
fn a_yes_for_the_session_is_for_this_port() {
    let (server, other) = (Server::on("127.0.0.2"), Server::on("127.0.0.2"));
    let first = format!("curl -s http://{}/", server.at);
    let second = format!(
        "curl -s http://{}/x; curl -s http://{}/",
        server.at, other.at
    );
    let world = World::new(&script(&[&first, &second]));
    world.gyrus(&["run", "go", "--on-ask", "park"]).exits(5);
    world.gyrus(&["approve", "last", "--session"]).exits(0);
    world.gyrus(&["resume", "last"]).exits(5);
    assert_eq!(questions(&world), [wants(server.at), wants(other.at)]);
    assert_eq!(server.heard(), ["/x"]);
    assert_eq!(other.heard(), [""; 0]);
}

#[test]
fn a_rule_denies_what_the_goal_names_and_allows_what_it_does_not() {
    let (denied, allowed) = (Server::on("127.0.0.2"), Server::on("127.0.0.4"));
    let line = format!(
        "curl -s http://{}/; curl -s http://{}/",
        denied.at, allowed.at
    );
    let world = World::new(&script(&[&line]));
    std::fs::create_dir(world.path("home")).unwrap();
    let rules = format!(
        "[[rule]]\ndecide = \"deny\"\nwhy = \"that one is private\"\nhost = \"127.0.0.2\"\n\
         [[rule]]\ndecide = \"allow\"\nwhy = \"that one is ours\"\nhost = \"{}\"\n",
        allowed.at
    );
    std::fs::write(world.path("home/policy.toml"), rules).unwrap();
    let goal = format!("look at http://{}/", denied.at);
    world.gyrus(&["run", &goal]).exits(0);
    let said = printed(&world, 0);
    assert!(said.contains("that one is private"), "{said}");
    assert!(said.contains("hello\n"), "{said}");
    assert_eq!(denied.heard(), [""; 0]);
    assert_eq!(allowed.heard(), ["/"]);
    assert_eq!(questions(&world), [""; 0]);
}

#[test]
fn what_was_asked_is_void_when_gyrus_was_killed() {
    let server = Server::on("127.0.0.2");
    let line = format!("curl -s http://{}/", server.at);
    let world = World::new(&script(&[&line]));
    let running = world.start(&["run", "go", "--on-ask", "wait"]);
    world.wait_for(asks);
    running.signal(Signal::KILL);
    running.end();
    world.gyrus(&["approve", "last"]).exits(0);
    world.gyrus(&["resume", "last"]).exits(0);
    assert_eq!(results(&world)[0].settled, CallEnd::Interrupted);
    assert_eq!(server.heard(), [""; 0]);
    world.gyrus(&["approvals"]).exits(0);
    let refused = |entry: &Entry| entry.kind() == "approval.refused";
    assert!(world.entries().iter().any(refused));
    world.replays();
}

#[test]
fn a_command_that_ends_first_leaves_its_question_open() {
    let server = Server::on("127.0.0.2");
    let line = format!("curl -s -m 1 http://{}/; echo ended", server.at);
    let world = World::new(&script(&[&line, &line]));
    let running = world.start(&["run", "go", "--on-ask", "wait"]);
    world.wait_for(|entry| matches!(entry, Entry::ToolResulted(_)));
    world.gyrus(&["approve", "last"]).exits(0);
    running.end().exits(0);
    assert!(printed(&world, 1).starts_with("hello\nended"));
    assert_eq!(questions(&world), [wants(server.at)]);
    assert_eq!(server.heard(), ["/"]);
    world.replays();
}
