//! The document `000`, *Agent Cognitive Cycle*: its machine in the API, on the bus and in its
//! element, also on a page of another origin.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
    thread,
};

use serde_json::{Value, json};

use super::{Server, TOKEN, bearer, chromium::Chromium};
use crate::{
    browsing::has_browser,
    changing::{GOAL, edit, propose, world},
    support::World,
};

/// A crate whose change of one file is proposed twice.
fn two_proposals() -> World {
    let change = [edit("src/lib.rs", "struct Point", "struct Vertex")];
    world(&[propose(&change, ""), propose(&change, "")])
}

/// Begins a run of a changeset, and waits until it asks.
fn begun(server: &Server<'_>) -> (Value, String) {
    let accepted = server.run(GOAL, &json!({"loop": "changeset", "approve": "auto"}));
    let run = accepted["run"].as_str().unwrap().to_owned();
    server.wait(&accepted, |stage| stage["state"] == "parked");
    (accepted, run)
}

fn cycle(server: &Server<'_>, run: &str) -> Value {
    server.get(&format!("/api/runs/{run}/cycle")).is(200).json()
}

/// The names of the events on the bus, with who published each.
fn on_bus(server: &Server<'_>) -> Vec<String> {
    let listed = server.get("/api/events?limit=100").is(200).json();
    let events = listed["events"].as_array().unwrap().iter();
    let named = events.filter(|event| event["topic"].as_str().unwrap().starts_with("user:"));
    named
        .map(|event| {
            format!(
                "{} {}",
                event["topic"].as_str().unwrap(),
                event["from"].as_str().unwrap()
            )
        })
        .collect()
}

#[test]
fn the_machine_is_shown_and_moved_by_events_of_the_bus() {
    let world = two_proposals();
    let server = Server::start(&world);
    let (accepted, run) = begun(&server);
    let now = cycle(&server, &run);
    assert_eq!(now["phase"], "AWAITING_CONTEXT_APPROVAL");
    let names: Vec<&Value> = now["phases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["name"])
        .collect();
    assert_eq!(
        json!(names),
        json!([
            "IDLE",
            "CURATING_CONTEXT",
            "AWAITING_CONTEXT_APPROVAL",
            "PLANNING_WITH_CONTEXT",
            "AWAITING_PROPOSAL_APPROVAL",
            "APPLYING_CHANGESET"
        ])
    );
    assert_eq!(
        now["next"],
        json!([
            {"event": "user:approve:context", "phase": "PLANNING_WITH_CONTEXT"},
            {"event": "user:reject:context", "phase": "CURATING_CONTEXT"},
            {"event": "abort", "phase": "IDLE"}
        ])
    );
    let items = now["questions"][0]["items"].as_array().unwrap();
    assert!(
        items
            .iter()
            .any(|item| item.as_str().unwrap().starts_with("src/lib.rs")),
        "{now}"
    );
    assert!(now["history"][0]["took_ms"].is_u64(), "{now}");

    let publish = |token: &str, topic: &str, payload: Value| {
        let body = json!({"topic": topic, "payload": payload}).to_string();
        let head = format!("{}content-type: application/json\r\n", bearer(token));
        server.send("POST", "/api/events", &head, &body)
    };
    // What is not asked now cannot be answered, and whoever may not approve cannot answer.
    publish(TOKEN, "user:approve:proposal", json!({"run": run})).is(409);
    publish(TOKEN, "user:approve:context", json!({"run": "nobody"})).is(404);
    publish(TOKEN, "user:approve:context", json!({"weather": 1})).is(400);
    let made = world
        .gyrus(&["serve", "token", "reader", "--scope", "read,act"])
        .exits(0)
        .out;
    publish(made.trim(), "user:approve:context", json!({"run": run})).is(403);

    // Only the file that is kept is read.
    let kept = items
        .iter()
        .find(|item| item.as_str().unwrap().starts_with("src/lib.rs"));
    publish(
        TOKEN,
        "user:approve:context",
        json!({"run": run, "words": kept}),
    )
    .is(202);
    let waits = |state: &str| {
        let is_there =
            || cycle(&server, &run)["phase"] == state && cycle(&server, &run)["state"] == "waiting";
        server.until(is_there);
    };
    waits("AWAITING_PROPOSAL_APPROVAL");
    publish(
        TOKEN,
        "user:reject:proposal",
        json!({"run": run, "words": "name it Corner"}),
    )
    .is(202);
    server.until(|| {
        on_bus(&server)
            .iter()
            .any(|one| one == "user:reject:proposal server")
    });
    waits("AWAITING_PROPOSAL_APPROVAL");
    let text = cycle(&server, &run)["history"].to_string();
    assert!(text.contains("name it Corner"), "{text}");
    publish(TOKEN, "user:approve:proposal", json!({"run": run})).is(202);
    server.wait_for_end(&accepted);
    assert!(world.file("src/lib.rs").contains("struct Vertex"));
    let end = cycle(&server, &run);
    assert_eq!(
        (&end["phase"], &end["questions"]),
        (&json!("IDLE"), &json!([]))
    );
    server.until(|| {
        on_bus(&server)
            .iter()
            .any(|one| one == "user:approve:proposal server")
    });
    for told in [
        "user:approve:context",
        "user:reject:proposal",
        "user:approve:proposal",
    ] {
        let times = on_bus(&server)
            .iter()
            .filter(|one| **one == format!("{told} server"))
            .count();
        assert_eq!(times, 1, "{told}");
    }
}

/// Serves one page, as another program would.
fn page_of_another_origin(page: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut line = String::new();
            let mut head = BufReader::new(stream.try_clone().unwrap());
            while head.read_line(&mut line).unwrap() > 2 {
                line.clear();
            }
            let length = page.len();
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{page}"
            );
        }
    });
    format!("http://{address}")
}

#[test]
fn a_page_of_an_origin_that_was_named_shows_and_answers_with_a_token() {
    let world = two_proposals();
    let origin = page_of_another_origin("<!doctype html><title>wiki</title><p>".to_owned());
    let config = world.path("home").join("config.toml");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    fs::write(&config, format!("[serve]\norigins = [\"{origin}\"]\n")).unwrap();
    let server = Server::start(&world);
    let (accepted, run) = begun(&server);
    let made = |scope: &str| {
        let made = world
            .gyrus(&["serve", "token", scope, "--scope", scope])
            .exits(0)
            .out;
        made.trim().to_owned()
    };
    let (reads, approves) = (made("read"), made("approve"));
    let path = format!("/api/runs/{run}/cycle");
    let asked = |origin: &str, token: &str| {
        let head = format!(
            "origin: {origin}\r\nsec-fetch-site: cross-site\r\n{}",
            bearer(token)
        );
        server.send("GET", &path, &head, "")
    };
    let told = asked(&origin, &reads).is(200);
    assert!(
        told.head
            .to_lowercase()
            .contains(&format!("access-control-allow-origin: {origin}")),
        "{told:?}"
    );
    asked("http://evil.example", &reads).is(403);
    // No cookie counts, and nothing but the cycle and its answers is open.
    server
        .send(
            "GET",
            &path,
            &format!("origin: {origin}\r\ncookie: gyrus={TOKEN}\r\n"),
            "",
        )
        .is(401);
    let head = format!(
        "origin: {origin}\r\ncontent-type: application/json\r\n{}",
        bearer(TOKEN)
    );
    server.send("POST", "/api/runs", &head, "{}").is(403);
    let preflight = format!("origin: {origin}\r\naccess-control-request-method: POST\r\n");
    server.send("OPTIONS", &path, &preflight, "").is(204);
    if !has_browser() {
        return;
    }
    let mut browser = Chromium::start(&world);
    browser.open(&origin);
    let place = |token: &str| {
        format!(
            "import('http://{host}/web/widget.js').then(({{cycleApi}}) => {{ \
             const element = document.createElement('agent-cycle-fsm-widget'); \
             element.moduleApi = cycleApi({{server: 'http://{host}', run: '{run}', token: '{token}'}}); \
             document.body.replaceChildren(element); }})",
            host = server.host
        )
    };
    let root = "document.querySelector('agent-cycle-fsm-widget')?.shadowRoot";
    let shows = |state: &str| {
        format!("{root}?.querySelector('.ring [aria-current]')?.textContent === '{state}'")
    };
    browser.value(&place(&reads));
    browser.wait(&shows("AWAITING_CONTEXT_APPROVAL"));
    browser.wait(&format!(
        "{root}.querySelector('.next').textContent.includes('user:approve:context')"
    ));
    // Who may only read cannot answer.
    browser.value(&format!(
        "{root}.querySelector('button[value=approve]').click()"
    ));
    browser.wait(&format!("{root}.textContent.includes('not taken')"));
    browser.value(&place(&approves));
    browser.wait(&format!("{root}?.querySelector('input[type=checkbox]')"));
    // All but one of the items are dropped.
    browser.value(&format!(
        "{root}.querySelectorAll('input[type=checkbox]').forEach((box) => box.checked = box.value.startsWith('src/lib.rs'))"
    ));
    browser.value(&format!(
        "{root}.querySelector('button[value=approve]').click()"
    ));
    browser.wait(&shows("AWAITING_PROPOSAL_APPROVAL"));
    let history = cycle(&server, &run)["history"].to_string();
    assert!(
        history.contains("as the person changed them: 1 file"),
        "{history}"
    );
    browser.wait(&format!(
        "{root}.querySelector('.question pre')?.textContent.includes('Vertex')"
    ));
    browser.value(&format!(
        "{root}.querySelector('button[value=approve]').click()"
    ));
    server.wait_for_end(&accepted);
    assert!(world.file("src/lib.rs").contains("struct Vertex"));

    // An object of the page's own.
    browser.value(
        "(() => { const element = document.createElement('agent-cycle-fsm-widget'); \
         window.said = []; \
         element.moduleApi = { \
           state: async () => ({run: 'x', name: 'x', goal: 'water the plants', state: 'waiting', phase: 'b', \
             phases: [{name: 'a', words: ''}, {name: 'b', words: ''}], history: [], \
             questions: [{run: 'x', question: 'q', sentence: 'May it?', reasons: [], details: [], asks_words: false}]}), \
           subscribe: () => () => {}, \
           approve: async () => { window.said.push('approved'); return true; }, \
           reject: async (card, words) => { window.said.push(card.question + ': ' + words); return true; } }; \
         document.body.replaceChildren(element); })()",
    );
    browser.wait(&shows("b"));
    browser.wait(&format!("{root}.querySelector('button[value=reject]')"));
    browser.value(
        "document.querySelector('agent-cycle-fsm-widget').shadowRoot.querySelector('textarea').value = 'not today'",
    );
    browser.value(&format!(
        "{root}.querySelector('button[value=reject]').click()"
    ));
    browser.wait("window.said.join() === 'q: not today'");
}
