//! A run's live page, from which a person takes its browser over.

use std::path::PathBuf;

use gyrus_kernel::Entry;
use serde_json::json;

use super::{Server, bearer, chromium::Chromium};
use crate::{
    browsing::has_browser,
    support::World,
    taking_over::{ASKS, NAME, PASSWORD, SECRET, SEND, is_nowhere, site},
};

/// The browser that runs use; the tests of the command line hide it from them.
pub(crate) fn browser() -> String {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .flat_map(|folder| {
            ["chromium", "chromium-browser", "google-chrome"].map(|name| folder.join(name))
        })
        .find(|program: &PathBuf| program.exists());
    found.unwrap().display().to_string()
}

/// The person clicks at a place of the run's page, of 1280 by 800 pixels, in the picture of it.
fn click(person: &mut Chromium, (x, y): (f64, f64)) {
    let shown = person.value(
        "(({left, top, width, height}) => [left, top, width, height])\
         (document.getElementById('page').getBoundingClientRect())",
    );
    let shown: Vec<f64> = serde_json::from_value(shown).unwrap();
    let (x, y) = (
        shown[0] + x / 1280.0 * shown[2],
        shown[1] + y / 800.0 * shown[3],
    );
    for kind in ["mousePressed", "mouseReleased"] {
        let event = json!({"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1});
        person.call("Input.dispatchMouseEvent", &event);
    }
}

#[test]
fn a_browser_is_taken_over_from_the_dashboard_and_given_back() {
    if !has_browser() {
        return;
    }
    let (world, site) = (World::new(ASKS), site());
    let server = Server::start_in(&world, &[], &[("GYRUS_BROWSER", &browser())]);
    let mut person = Chromium::start(&world);
    let address = |path: &str| format!("http://{}{path}", server.host);
    person.open(&address(&format!("/#{}", server.code)));
    person.is_live();
    let started = server.run(
        &format!("see who I am at {site}"),
        &json!({"url": site, "require": "claimed"}),
    );
    let run = started["run"].as_str().unwrap().to_owned();
    world.wait_for(|entry| matches!(entry, Entry::ApprovalAsked(_)));

    // Whoever may only read sees the page, and has no way to take it over.
    let reader = json!({"name": "reader", "scopes": ["read"]});
    let reader = server.post("/api/tokens", &reader).is(201).json();
    let reader = bearer(reader["token"].as_str().unwrap());
    let live = format!("/runs/{run}/live");
    let seen = server.send("GET", &live, &reader, "").is(200).body;
    assert!(!seen.contains("Take the browser over"), "{seen}");
    let takeover = format!("/api/runs/{run}/takeover");
    server.send("POST", &takeover, &reader, "").is(403);
    let picture = server.connect_and_read(&format!("/api/runs/{run}/screen"));
    assert!(picture.windows(4).any(|bytes| bytes == b"\x89PNG"));
    server.delete(&takeover).is(409);

    // The page shows the browser as it is, and hands it out.
    person.open(&address(&live));
    person.is_live();
    person.wait("document.getElementById('screen').naturalWidth === 1280");
    person.wait("!document.getElementById('screen').hidden");
    person.shows("Who are you?");
    let target = "document.querySelector('#holding form button')";
    person.value(&format!("{target}.click()"));
    person.wait("document.querySelector('#holding a.button')");
    let taken = person.value("document.querySelector('#holding a.button').href");
    let taken = taken.as_str().unwrap().to_owned();
    let token = taken.split_once("/#").unwrap().1.to_owned();
    assert!(taken.starts_with("http://127.0.0.1:"), "{taken}");
    world.wait_for(|entry| matches!(entry, Entry::TakeoverStarted(_)));

    // Everybody sees who has it, and nobody else sees its page.
    let seen = server.send("GET", &live, &reader, "").is(200).body;
    assert!(
        seen.contains("browser (dashboard) has the browser"),
        "{seen}"
    );
    assert!(!seen.contains(&token), "{seen}");
    let lease = server.send("GET", &takeover, &reader, "").is(200).json();
    assert_eq!(lease["by"]["id"], "browser", "{lease}");
    assert_eq!(lease["address"], json!(null), "{lease}");
    server.get(&format!("/api/runs/{run}/screen")).is(404);
    let again = server.post(&takeover, &json!({})).is(409);
    assert!(again.body.contains("has the browser already"), "{again:?}");

    person.open(&taken);
    person.wait("document.body.dataset.live === 'yes'");
    click(&mut person, NAME);
    person.call("Input.insertText", &json!({"text": "Ada"}));
    click(&mut person, PASSWORD);
    person.call("Input.insertText", &json!({"text": SECRET}));
    click(&mut person, SEND);
    person.wait("document.getElementById('address').value.endsWith('/in')");
    person.value(
        "document.getElementById('words').value = 'I logged in'; \
         document.getElementById('give').requestSubmit()",
    );
    person.wait("!document.getElementById('over').hidden");
    let ended = server.wait_for_end(&started);
    assert_eq!(ended["stage"]["code"], 0, "{ended:#}");
    person.open(&address(&format!("/runs/{run}")));
    person.shows("Heard: I logged in.");
    assert_eq!(server.get(&takeover).is(200).json(), json!(null));
    assert_eq!(person.complaints, Vec::<String>::new());
    for secret in [SECRET, &token] {
        is_nowhere(&world.path("home"), secret.as_bytes());
    }
}

#[test]
fn a_browser_is_given_back_at_the_dashboard_and_without_one_there_is_nothing_to_take() {
    if !has_browser() {
        return;
    }
    let (world, site) = (World::new(ASKS), site());
    let server = Server::start_in(&world, &[], &[("GYRUS_BROWSER", &browser())]);
    let started = server.run("see who I am", &json!({"url": site, "require": "claimed"}));
    let run = started["run"].as_str().unwrap().to_owned();
    let takeover = format!("/api/runs/{run}/takeover");
    let refused = server.post(&takeover, &json!({}));
    assert!([200, 404, 409].contains(&refused.status), "{refused:?}");
    world.wait_for(|entry| matches!(entry, Entry::ApprovalAsked(_)));
    if refused.status != 200 {
        server.post(&takeover, &json!({})).is(200);
    }
    world.wait_for(|entry| matches!(entry, Entry::TakeoverStarted(_)));
    server.delete(&takeover).is(204);
    world.wait_for(|entry| matches!(entry, Entry::TakeoverEnded(_)));
    server
        .post(&format!("/api/runs/{run}/stop"), &json!({}))
        .is(202);
    server.wait_for_end(&started);
    let gone = server.post(&takeover, &json!({})).is(409);
    assert!(gone.body.contains("is not at work"), "{gone:?}");
    server.get("/api/runs/0000/screen").is(404);
}

/// Opens the printed address of the server, which would let a person's browser in.
const INTRUDES: &str = r#"
[[reply]]
when = "Not let in: a command or a page of a run cannot use this"
find = { token = 'token of this run is: ([0-9a-f ]+)' }
text = '''{"note": "refused", "actions": [{"do": "finish", "token": "{{token}}", "reached": true, "answer": "It was refused."}]}'''
"#;

#[test]
fn a_page_in_the_browser_of_a_run_is_refused_whatever_code_it_has_read() {
    if !has_browser() {
        return;
    }
    let world = World::new(INTRUDES);
    let server = Server::start_in(&world, &[], &[("GYRUS_BROWSER", &browser())]);
    let url = format!("http://{}/?#{}", server.host, server.code);
    let started = server.run("see the runs", &json!({"url": url, "require": "claimed"}));
    let ended = server.wait_for_end(&started);
    let run = started["run"].as_str().unwrap();
    let shown = server.get(&format!("/runs/{run}")).is(200).body;
    assert_eq!(ended["stage"]["code"], 0, "{ended:#}\n{shown}");
    // The code still lets a person in: it was not used up.
    super::guard::cookie_of(&server);
}
