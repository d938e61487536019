//! The pages beside the runs: agents, events, costs, rules, health and search.

use serde_json::{Value, json};

use super::{
    Answer, Server,
    agents::{ONE_LINE, wait, write_agent},
    chromium::Chromium,
    guard::cookie_of,
};
use crate::{browsing::has_browser, support::World};

/// A text that wants to be an element, a script, and the end of whatever it stands in.
const HOSTILE: &str = "\"'></code></td><img src=x onerror=\"document.title='taken'\">\u{202E}\
     <script>document.title='taken'</script>";

/// The number of elements that only a hostile text could have made.
const TAKEN: &str = "document.title.includes('taken') ? -1 : \
     document.querySelectorAll('main script, main img, main iframe, [onerror]').length";

/// Fills the fields of a form and sends it.
fn send(browser: &mut Chromium, form: &str, fields: &Value) {
    let fill = json!([form, fields]);
    browser.value(&format!(
        "(([form, fields]) => {{ form = document.querySelector(form); \
         for (const name in fields) form.elements[name].value = fields[name]; \
         form.requestSubmit(); }})({fill})"
    ));
}

/// Opens a page, and lets the browser in with the first one.
fn enter(server: &Server<'_>, browser: &mut Chromium, path: &str) {
    browser.open(&format!("http://{}{path}#{}", server.host, server.code));
    browser.is_live();
}

#[test]
fn an_agent_is_paused_told_and_resumed_and_its_events_arrive_live() {
    if !has_browser() {
        return;
    }
    let world = World::new(ONE_LINE);
    write_agent(
        &world,
        "scribe",
        "subscribe: [build.**]\nbudget: {runs: 7}\n",
    );
    let broken = world.path("home").join("agents/<img src=x onerror=y>.md");
    std::fs::write(broken, "---\nsubscibe: <b>x</b>\n---\n").unwrap();
    let server = Server::start(&world);
    wait(&server, "scribe", |agent| agent["stage"] == "active");
    let mut browser = Chromium::start(&world);
    enter(&server, &mut browser, "/agents");
    browser.shows("today 0 of 7 runs");
    browser.shows("there is no setting `subscibe`");
    send(&mut browser, "[action='/agents/scribe/pause']", &json!({}));
    browser.wait("document.querySelector('#head .state')?.textContent.includes('paused')");
    browser.is_live();
    send(&mut browser, ".steer", &json!({"text": HOSTILE}));
    browser.wait("document.querySelector('.mailbox li')");
    browser.shows("1 event waiting");
    browser.is_live();
    send(&mut browser, "[action='/agents/scribe/resume']", &json!({}));
    // The page shows the run by itself, and its end.
    browser.wait("document.querySelector('#runs .word.claimed')");
    browser.wait("document.querySelector('#head .state')?.textContent.includes('idle')");
    assert_eq!(browser.value(TAKEN), 0);

    // What is published elsewhere appears on a page that is open.
    browser.open(&format!("http://{}/events", server.host));
    browser.is_live();
    browser.value("window.opened = true");
    let payload = json!({HOSTILE: "x".repeat(10_000)});
    let event = json!({"topic": "build.main", "payload": payload, "correlation": HOSTILE});
    let published = server.post("/api/events", &event).is(202).json();
    let position = published["position"].as_u64().unwrap();
    browser.wait(&format!(
        "document.querySelector('#events a[href=\"/events/{position}\"]')"
    ));
    assert_eq!(browser.value("window.opened"), true);
    let row = format!("document.querySelector('a[href=\"/events/{position}\"]').closest('tr')");
    assert_eq!(
        browser.value(&format!("{row}.querySelector('.to').innerText.trim()")),
        "scribe"
    );
    assert_eq!(
        browser.value(&format!("{row}.querySelector('.trust').innerText")),
        "untrusted"
    );

    // The whole conversation: the event, its run, and what came of it.
    wait(&server, "scribe", |agent| agent["handled"] == 2);
    let link = format!("{row}.querySelector('a[href*=correlation]').href");
    let conversation = browser.value(&link).as_str().unwrap().to_owned();
    browser.open(&conversation);
    browser.wait("document.querySelectorAll('.lanes .arrow').length >= 3");
    browser.wait("document.querySelector('#events a[href^=\"/runs/\"]')");
    assert_eq!(browser.value(TAKEN), 0);

    // A test event, sent from the page.
    let test = json!({"topic": "build.test", "payload": "{\"a\": 1}", "correlation": "mine"});
    send(&mut browser, ".new form", &test);
    browser.shows("\"a\": 1");
    browser.wait("location.pathname.startsWith('/events/')");
    assert_eq!(browser.complaints, Vec::<String>::new());
}

/// Reads a file outside of the folder.
const OUTSIDE: &str = r#"
[[reply]]
calls = [{ tool = "read", arguments = { path = "../person/notes" } }]
[[reply]]
calls = [{ tool = "finish", arguments = { reached = true, answer = "read" } }]
"#;

#[test]
fn a_grant_that_is_revoked_is_asked_about_again_and_the_gate_answers() {
    if !has_browser() {
        return;
    }
    let world = World::new(OUTSIDE);
    std::fs::write(world.path("person/notes"), "remember\n").unwrap();
    let server = Server::start(&world);
    let command = server.run("read it", &json!({}));
    server.wait(&command, |stage| stage["for_person"] == true);
    let open = server.get("/api/questions").is(200).json()[0].clone();
    let (run, question) = (
        open["run"].as_str().unwrap(),
        open["question"].as_str().unwrap(),
    );
    let always = json!({"approve": true, "reach": "always"});
    let answer = server.post(
        &format!("/api/runs/{run}/questions/{question}/answer"),
        &always,
    );
    assert!(answer.status < 300, "{answer:?}");
    server.wait_for_end(&command);
    server.wait_for_end(&server.run("again", &json!({})));

    let mut browser = Chromium::start(&world);
    enter(&server, &mut browser, "/rules");
    browser.shows("reading ");
    assert_eq!(
        server
            .get("/api/grants")
            .is(200)
            .json()
            .as_array()
            .unwrap()
            .len(),
        1
    );
    send(&mut browser, "#grants form", &json!({}));
    browser.shows("Nothing is always allowed.");
    assert_eq!(server.get("/api/grants").json(), json!([]));
    let command = server.run("anew", &json!({}));
    server.wait(&command, |stage| stage["for_person"] == true);
    server.delete("/api/grants/0123").is(404);

    let folder = world.work().display().to_string();
    let line = format!("rm -rf / # {}", HOSTILE.replace('\u{202E}', ""));
    let mut ask = json!({"command": line, "workdir": folder, "mode": "ask"});
    send(&mut browser, "form.gate", &ask);
    browser.wait("document.querySelector('.gate-answer b')");
    let decided = "document.querySelector('.gate-answer b').innerText";
    assert_eq!(browser.value(decided), "a person is asked");
    let kept = browser.value("document.querySelector('[name=command]').value");
    assert!(kept.as_str().unwrap().contains("rm -rf /"), "{kept}");
    assert_eq!(browser.value(TAKEN), 0);
    ask["command"] = json!("ls");
    send(&mut browser, "form.gate", &ask);
    browser.wait(&format!("{decided} === 'allowed without asking'"));
    ask["workdir"] = json!("/nowhere <b>at all");
    send(&mut browser, "form.gate", &ask);
    browser.shows("/nowhere <b>at all");
    assert_eq!(browser.complaints, Vec::<String>::new());

    let asked = json!({"command": "rm -rf /", "workdir": folder});
    let said = server.post("/api/gate", &asked).is(200).json();
    assert_eq!(
        (&said["decision"], &said["risk"]),
        (&json!("ask"), &json!("critical"))
    );
    for wrong in [
        json!({"command": "", "workdir": folder}),
        json!({"command": "ls", "workdir": "nowhere"}),
        json!({"command": "ls", "workdir": folder, "mode": "yolo"}),
        json!({"command": "a\u{0}b", "workdir": folder}),
    ] {
        server.post("/api/gate", &wrong).is(400);
    }
}

#[test]
fn costs_are_added_up_as_runs_end() {
    let world = World::new(ONE_LINE);
    write_agent(&world, "scribe", "");
    let server = Server::start(&world);
    wait(&server, "scribe", |agent| agent["stage"] == "active");
    server.wait_for_end(&server.run("first", &json!({"approve": "auto"})));
    let costs = |by: &str| server.get(&format!("/api/costs?by={by}")).is(200).json();
    assert_eq!(costs("day")["total"]["runs"], 1);
    let told = json!({"text": "and be quick"});
    server.post("/api/agents/scribe/inbox", &told).is(202);
    wait(&server, "scribe", |agent| agent["handled"] == 1);
    let runs = server.get("/api/runs").is(200).json();
    let tokens = runs["runs"].as_array().unwrap().iter();
    let tokens: u64 = tokens.map(|run| run["tokens"].as_u64().unwrap()).sum();
    let total = costs("model")["total"].clone();
    assert_eq!(total["tokens"], tokens, "{total:#}");
    assert_eq!((&total["runs"], &total["claimed"]), (&json!(2), &json!(2)));
    assert_eq!(total["per_verified_microdollars"], Value::Null);
    let agents = costs("agent")["groups"].clone();
    let mut names: Vec<_> = agents
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["key"])
        .collect();
    names.sort_by_key(|name| name.to_string());
    assert_eq!(names, ["default", "scribe"]);
    assert_eq!(costs("purpose")["groups"][0]["calls"], 4);
    let page = ask(&server, &cookie_of(&server), "GET", "/costs", "")
        .is(200)
        .body;
    for what in [
        "By day",
        "By loop",
        "/costs.csv?by=agent&amp;days=30",
        "Dearest runs",
    ] {
        assert!(page.contains(what), "{what}\n{page}");
    }
    let csv = server.get("/costs.csv?by=agent").is(200);
    assert!(csv.head.contains("text/csv"), "{}", csv.head);
    assert_eq!(csv.body.lines().count(), 3, "{}", csv.body);
    server.get("/costs.csv?by=colour").is(400);
    server.get("/api/costs?days=x").is(400);
    server.get("/api/costs?days=0").is(400);
    server.get("/api/configuration?workdir=here").is(400);
}

/// Sends what a browser with this cookie would: a page to get, or a form.
fn ask(server: &Server<'_>, cookie: &str, method: &str, path: &str, form: &str) -> Answer {
    let head = format!(
        "cookie: {cookie}\r\norigin: http://{}\r\naccept: text/html,*/*\r\n\
         content-type: application/x-www-form-urlencoded\r\n",
        server.host
    );
    server.send(method, path, &head, form)
}

#[test]
fn pages_answer_wrong_addresses_and_hold_hostile_texts() {
    let world = World::new(ONE_LINE);
    write_agent(&world, "scribe", "");
    let server = Server::start(&world);
    wait(&server, "scribe", |agent| agent["stage"] == "active");
    let cookie = cookie_of(&server);
    let ask = |method: &str, path: &str, body: &str| ask(&server, &cookie, method, path, body);
    for (path, status) in [
        ("/agents/nobody", 404),
        ("/agents/%2e%2e%2fqueue", 404),
        ("/events/99999", 404),
        ("/events/x", 400),
        ("/events?topic=a..b", 400),
        ("/events?before=99999999999", 200),
        ("/events?after=7", 200),
        ("/search?text=", 200),
        ("/search?text=%22%3E%3Cimg%20src%3Dx%3E", 200),
        ("/rules?workdir=%2Fnowhere", 200),
        ("/costs?days=0", 200),
        ("/health", 200),
        ("/nowhere", 404),
        ("/agents/scribe/pause", 405),
    ] {
        let answer = ask("GET", path, "").is(status);
        assert!(answer.body.contains("<h1"), "{path}");
        assert!(!answer.body.contains("<img"), "{path}");
    }
    let long = "9".repeat(10_000);
    for (path, body, status) in [
        ("/events", "topic=not+a+topic&payload=1", 400),
        ("/events", "topic=&payload=1", 400),
        ("/events", "topic=a.b&payload=&correlation=", 303),
        ("/events", &format!("topic=a.b&payload={long}x"), 303),
        (
            "/events",
            &format!("topic=a.b&payload=1&correlation={long}"),
            400,
        ),
        ("/agents/nobody/pause", "", 404),
        ("/agents/scribe/send", "text=+", 400),
        ("/agents/scribe/skip", "", 303),
        ("/agents/scribe/triggers/none/fire", "", 404),
        ("/rules/grants/none/revoke", "", 404),
    ] {
        let answer = ask("POST", path, body);
        assert_eq!(answer.status, status, "{path} {answer:#?}");
    }
    // What is dropped is in sight.
    write_agent(
        &world,
        "small",
        "mailbox: 1\ntriggers: {daily: {cron: '0 8 * * *'}}\n",
    );
    wait(&server, "small", |agent| agent["stage"] == "active");
    ask("POST", "/agents/small/pause", "").is(303);
    for text in ["one", "two", "three"] {
        ask("POST", "/agents/small/send", &format!("text={text}")).is(303);
    }
    wait(&server, "small", |agent| agent["dropped"] == 2);
    let events = ask("GET", "/events", "").is(200).body;
    assert!(
        events.contains("2 events</b> dropped") || events.contains("2 events dropped"),
        "{events}"
    );
    ask("POST", "/agents/small/skip", "").is(303);
    ask("POST", "/agents/small/resume", "").is(303);
    let fired = ask("POST", "/agents/small/triggers/daily/fire", "").is(303);
    assert!(
        fired.head.contains("location: /agents/small"),
        "{}",
        fired.head
    );
    wait(&server, "small", |agent| agent["handled"] == 1);
    let small = ask("GET", "/agents/small", "").is(200).body;
    assert!(small.contains("claimed: written"), "{small}");
    let runs = server.get("/api/runs?agent=small").is(200).json();
    assert_eq!(runs["runs"].as_array().unwrap().len(), 1, "{runs:#}");
    // Nothing is done for a page of somebody else, or by looking.
    let foreign = format!("cookie: {cookie}\r\norigin: http://127.0.0.1:1\r\n");
    server
        .send("POST", "/agents/scribe/pause", &foreign, "")
        .is(403);
    let found = ask("GET", "/search?text=a.b", "").is(200).body;
    assert!(found.contains("/events?topic=a.b"), "{found}");
    let back = server.get("/api/events?before=3&limit=1").is(200).json();
    assert_eq!(back["events"][0]["position"], 2, "{back:#}");
    assert_eq!(
        server.get("/api/events?before=1").json()["events"],
        json!([])
    );
    let status = server.get("/api/status").is(200).json();
    assert!(status["memory_bytes"].as_u64() > Some(0), "{status:#}");
    let set = server.get("/api/configuration").is(200).json();
    assert_eq!(set["mode"], "ask", "{set:#}");
    let files = server.get("/api/agent-files").is(200).json();
    assert_eq!(files[0]["agent"], "scribe", "{files:#}");
    let document = server.get("/openapi.json").is(200).json();
    for path in [
        "/api/costs",
        "/api/grants",
        "/api/gate",
        "/api/status",
        "/api/agent-files",
    ] {
        assert!(document["paths"][path].is_object(), "{path}");
    }
}

#[test]
fn runs_are_filtered_by_words_and_acted_on_together() {
    let world = World::new(OUTSIDE);
    std::fs::write(world.path("person/notes"), "remember\n").unwrap();
    let server = Server::start(&world);
    for goal in ["one apple", "two apples"] {
        let command = server.run(goal, &json!({}));
        server.wait(&command, |stage| stage["for_person"] == true);
    }
    let cookie = cookie_of(&server);
    let page = |path: &str| ask(&server, &cookie, "GET", path, "");
    let waiting = page("/?text=state:waiting+cost%3C0.5+two").is(200).body;
    assert!(waiting.contains("two apples") && !waiting.contains("one apple"));
    assert!(
        !waiting.contains("/runs/several"),
        "one run has a page of its own"
    );
    let none = page("/?text=cost%3E0.5+apple").is(200).body;
    assert!(none.contains("No run is like this."), "{none}");
    page("/?text=state:sleepy").is(400);
    page("/?text=cost%3Emuch").is(400);

    let all = page("/?text=apple").is(200).body;
    let form = all.split("value=\"stop\"").nth(1).unwrap();
    let ids = form
        .split("name=\"runs\" value=\"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    assert_eq!(ids.split(' ').count(), 2, "{all}");
    let act = |form: &str| ask(&server, &cookie, "POST", "/runs/several", form);
    let nowhere = "01a20b54-f885-7490-9a37-87e8b7c4242c";
    let ids = ids.replace(' ', "+");
    let done = act(&format!("action=stop&runs={ids}+{nowhere}"))
        .is(200)
        .body;
    assert!(done.contains("2 runs of 3 asked to stop"), "{done}");
    assert!(done.contains("there is no such run"), "{done}");
    for wrong in [
        "action=stop&runs=",
        "action=stop&runs=x",
        "action=burn&runs=x",
        "",
    ] {
        assert!(act(wrong).status >= 400, "{wrong}");
    }
}
