//! The pages of a run, as a person meets them in a real Chromium.

use gyrus_contract::{BlobId, RunId};
use gyrus_journal::{NewEntry, Payload};
use gyrus_kernel::log_name;
use serde_json::{Value, json, value::to_raw_value};

use super::{Server, chromium::Chromium};
use crate::{browsing::has_browser, support::World};

/// Texts that want to be elements, attributes, addresses and directions.
const HOSTILE: &str = "<img src=x onerror=\\\"document.title='taken'\\\"> \\u202E </script><script>document.title='taken'</script> javascript:alert(1)";

/// The number of elements that only a text of a run could have made.
const TAKEN: &str = "document.title.includes('taken') ? -1 : document.querySelectorAll(\
     'main script, main iframe, main img:not([src^=\"/api/runs/\"]), [onerror], [href^=\"javascript\"]').length";

/// Writes two files, fails once, and finishes. Every text is hostile.
pub(super) fn script() -> String {
    format!(
        r#"
[[reply]]
text = "First a file. {HOSTILE}"
calls = [{{ tool = "write", arguments = {{ path = "a<b>'&.txt", content = "{HOSTILE}\n" }} }}]
[[reply]]
text = "Now one that is missing."
calls = [{{ tool = "read", arguments = {{ path = "missing {HOSTILE}" }} }}]
[[reply]]
text = "Then the ledger."
calls = [{{ tool = "shell", arguments = {{ command = "echo one >> ledger.txt" }} }}]
[[reply]]
text = "Done."
calls = [{{ tool = "finish", arguments = {{ reached = true, answer = "It is done. {HOSTILE}", evidence = [{{ what = "{HOSTILE}", at = "{HOSTILE}" }}] }} }}]
"#
    )
}

/// A browser that is let in.
pub(super) fn enter(world: &World, server: &Server<'_>) -> Chromium {
    let mut browser = Chromium::start(world);
    browser.open(&format!("http://{}/?#{}", server.host, server.code));
    browser.is_live();
    browser
}

/// A run that is over, by its id.
pub(super) fn finished(server: &Server<'_>, goal: &str) -> String {
    let accepted = server.run(goal, &json!({"approve": "auto"}));
    server.wait_for_end(&accepted);
    accepted["run"].as_str().unwrap().to_owned()
}

#[test]
fn every_page_of_a_run_shows_hostile_text_as_text() {
    if !has_browser() {
        return;
    }
    let world = World::new(&script());
    let server = Server::start(&world);
    let goal = "do it </title><script>document.title='taken'</script>";
    let run = finished(&server, goal);
    let mut browser = enter(&world, &server);
    let pages = [
        ("?zoom=cycles", "Now one that is missing."),
        ("?zoom=effects", "It is done."),
        ("?zoom=entries", "run.started"),
        ("?zoom=reading", "Then the ledger."),
        ("/changes", "a<b>'&.txt"),
        ("/outcome", "nobody else has checked it"),
        ("/cost", "By purpose and model"),
        ("/context", "Nothing was dropped."),
        ("/children", "It has started none."),
        ("/steps/5", "The exact prompt of entry"),
        ("/undo", "Take back 2 changes"),
        ("/fork", "Your yeses do not carry over"),
    ];
    for (path, words) in pages {
        browser.open(&format!("http://{}/runs/{run}{path}", server.host));
        browser.shows(words);
        browser.is_live();
        assert_eq!(browser.value(TAKEN), 0, "{path}");
        let text = browser.value("document.body.textContent").to_string();
        assert!(!text.contains('\u{202e}'), "{path}");
    }
    assert_eq!(browser.complaints, Vec::<String>::new());
}

#[test]
fn a_run_is_forked_from_a_page_and_compared() {
    if !has_browser() {
        return;
    }
    let world = World::new(&script());
    let server = Server::start(&world);
    let run = finished(&server, "do it");
    // The live part goes another way.
    let other = "[[reply]]\ncalls = [{ tool = \"write\", arguments = { path = \"other.txt\", content = \"x\" } }]\n\
         [[reply]]\ncalls = [{ tool = \"finish\", arguments = { reached = true, answer = \"another way\" } }]\n";
    let skipped = "[[reply]]\ntext = \"unused\"\n".repeat(2);
    std::fs::write(world.path("script.toml"), format!("{skipped}{other}")).unwrap();
    let mut browser = enter(&world, &server);
    browser.open(&format!("http://{}/runs/{run}", server.host));
    browser.is_live();
    browser.press("f", 70, "f");
    browser.shows("Go another way from a step");
    browser.open(&format!("http://{}/runs/{run}/fork?at=2", server.host));
    browser.shows("Steps 1–2 from the journal, 0 tokens");
    browser.shows("Live from step 3");
    let folder = world.path("copy");
    let fill = json!([folder]);
    browser.value(&format!(
        "(([folder]) => {{ const form = document.querySelector('.fork-form'); form.into.value = folder; \
         form.text.value = 'be <b>kind</b>'; form.requestSubmit(); }})({fill})"
    ));
    browser.wait("location.pathname === '/compare'");
    browser.shows("2 steps shared by the fork.");
    browser.shows("B never did this");
    browser.shows("A never did this");
    browser.shows("another way");
    browser.is_live();
    assert_eq!(browser.value(TAKEN), 0);
    assert!(folder.join("other.txt").exists() && folder.join("a<b>'&.txt").exists());
    assert!(!folder.join("ledger.txt").exists(), "it is of step 3");
    // Replaying is a proof, for the fork as well.
    let runs = browser.value("new URLSearchParams(location.search).get('runs')");
    let forked = runs.as_str().unwrap().split(',').nth(1).unwrap().to_owned();
    browser.open(&format!("http://{}/runs/{forked}", server.host));
    browser.shows("be <b>kind</b>");
    browser.value("document.querySelector('form[action$=\"/replay\"] button').click()");
    browser.shows("every step came to the same end");
    browser.shows("0 differences");
    assert_eq!(browser.complaints, Vec::<String>::new());
    // Three stand side by side, and wrong runs get a reason.
    server
        .get(&format!("/compare?runs={run},{forked},{run}"))
        .is(200);
    server.get(&format!("/compare?runs={run}")).is(200);
    server.get("/compare?runs=1,2,3,4").is(400);
    server.get("/compare?runs=nothing,last").is(404);
}

#[test]
fn what_a_run_changed_is_taken_back_from_a_page() {
    if !has_browser() {
        return;
    }
    let world = World::new(&script());
    let server = Server::start(&world);
    let run = finished(&server, "do it");
    assert_eq!(world.file("ledger.txt"), "one\n");
    let said = server.post(&format!("/api/runs/{run}/undo"), &json!({"dry_run": true}));
    assert!(said.is(200).body.contains("nothing was changed"));
    let mut browser = enter(&world, &server);
    let address = format!("http://{}/runs/{run}/undo", server.host);
    browser.open(&format!("{address}?to=2"));
    browser.shows("Take back 1 change");
    browser.shows("+one");
    // Somebody else changes the file after the page was shown.
    std::fs::write(world.work().join("ledger.txt"), "mine\n").unwrap();
    browser.value("document.querySelector('.undo > form:last-child').requestSubmit()");
    browser.shows("is not what the page showed any more");
    assert_eq!(world.file("ledger.txt"), "mine\n");
    std::fs::write(world.work().join("ledger.txt"), "one\n").unwrap();
    browser.open(&address);
    browser.shows("Take back 2 changes");
    browser.value("document.querySelector('.undo > form:last-child').requestSubmit()");
    browser.shows("2 taken back, 0 left alone");
    assert!(!world.work().join("ledger.txt").exists());
    assert_eq!(browser.value(TAKEN), 0);
    assert_eq!(browser.complaints, Vec::<String>::new());
}

/// A page of the origin that has nothing but the element, as another program would write it.
fn alone(browser: &mut Chromium, run: &str) {
    let element = json!(format!(
        "<agent-cycle-fsm-widget run=\"{run}\"></agent-cycle-fsm-widget>"
    ));
    browser.value(&format!(
        "(() => {{ document.body.innerHTML = {element}; const script = document.createElement('script'); \
         script.type = 'module'; script.src = '/web/widget.js'; document.body.append(script); }})()"
    ));
    browser.wait(
        "document.querySelector('agent-cycle-fsm-widget').shadowRoot?.querySelector('.cycle')",
    );
}

#[test]
fn the_cycle_of_a_run_is_shown_anywhere_and_answers_its_questions() {
    if !has_browser() {
        return;
    }
    let world = World::new(super::runs::ASKS);
    let server = Server::start(&world);
    let accepted = server.run("write <b>it</b>", &json!({}));
    server.wait(&accepted, |stage| stage["state"] == "parked");
    let run = accepted["run"].as_str().unwrap().to_owned();
    let cycle = server.get(&format!("/api/runs/{run}/cycle")).is(200).json();
    assert_eq!(
        (&cycle["phase"], &cycle["state"]),
        (&json!("ask"), &json!("waiting"))
    );
    let names: Vec<&Value> = cycle["phases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["name"])
        .collect();
    assert_eq!(
        json!(names),
        json!(["idle", "perceive", "think", "ask", "act", "reflect"])
    );
    assert_eq!(
        cycle["history"].as_array().unwrap().last().unwrap()["phase"],
        "ask"
    );
    // Without scripts it is a list, with the card below it.
    let page = server.get(&format!("/runs/{run}")).is(200).body;
    assert!(
        page.contains("<li aria-current=\"true\" title=\"waits for a person\">ask</li>"),
        "{page}"
    );
    let mut browser = enter(&world, &server);
    // A page of this origin that loads none of the dashboard.
    browser.open(&format!("http://{}/api/status", server.host));
    alone(&mut browser, &run);
    let root = "document.querySelector('agent-cycle-fsm-widget').shadowRoot";
    browser.wait(&format!(
        "{root}.querySelector('.ring [aria-current]').textContent === 'ask'"
    ));
    let position = format!("getComputedStyle({root}.querySelector('.ring li')).position");
    assert_eq!(browser.value(&position), "absolute", "its own style counts");
    assert_eq!(
        browser.value(&format!("{root}.querySelector('.goal-gist').textContent")),
        "write <b>it</b>"
    );
    browser.wait(&format!("{root}.querySelector('button[value=approve]')"));
    browser.value(&format!(
        "{root}.querySelector('button[value=approve]').click()"
    ));
    browser.wait(&format!(
        "{root}.querySelector('.now').textContent.includes('The run is over.')"
    ));
    browser.wait(&format!("!{root}.querySelector('button')"));
    server.wait_for_end(&accepted);
    assert_eq!(world.file(".envrc"), "hello\n");
    // The page of the run uses the same element.
    browser.open(&format!("http://{}/runs/{run}", server.host));
    browser.is_live();
    browser.wait(&format!(
        "{root}.querySelector('.ring [aria-current]').textContent === 'idle'"
    ));
    assert_eq!(browser.complaints, Vec::<String>::new());
}

#[test]
fn keys_lead_through_a_run() {
    if !has_browser() {
        return;
    }
    let world = World::new(&script());
    let server = Server::start(&world);
    let run = finished(&server, "do it");
    let mut browser = enter(&world, &server);
    browser.open(&format!("http://{}/runs/{run}", server.host));
    browser.is_live();
    let focused = "document.activeElement";
    browser.press("]", 221, "]");
    browser.wait(&format!(
        "{focused}.matches('.step > summary') && {focused}.textContent.includes('First a file')"
    ));
    browser.press("]", 221, "]");
    browser.wait(&format!(
        "{focused}.textContent.includes('Now one that is missing')"
    ));
    // What is folded is passed over.
    browser.press("j", 74, "j");
    browser.wait(&format!(
        "{focused}.textContent.includes('Then the ledger')"
    ));
    browser.press("j", 74, "j");
    browser.wait(&format!("{focused}.matches('.item')"));
    for _ in 0..3 {
        browser.press("[", 219, "[");
    }
    browser.wait(&format!("{focused}.textContent.includes('First a file')"));
    browser.press("e", 69, "e");
    browser.wait(&format!(
        "{focused}.matches('.bad') && {focused}.textContent.includes('missing')"
    ));
    browser.press("o", 79, "o");
    browser.wait("!document.querySelector('.step:not([open])')");
    browser.press("?", 191, "?");
    browser.wait("document.querySelector('dialog.keys-list[open]')");
    browser.shows("the next error");
    browser.press("Escape", 27, "");
    browser.wait("!document.querySelector('dialog')");
    browser.press("c", 67, "c");
    browser.shows("Two or three runs, with commas between them");
    assert_eq!(browser.complaints, Vec::<String>::new());
}

#[test]
fn every_zoom_and_the_cycle_follow_a_run_at_work() {
    if !has_browser() {
        return;
    }
    let world = World::new(crate::support::UNTIL_GO);
    let server = Server::start(&world);
    let mut browser = enter(&world, &server);
    for zoom in ["cycles", "effects", "entries", "reading"] {
        let _ = std::fs::remove_file(world.work().join("go"));
        let _ = std::fs::remove_file(world.work().join("ledger.txt"));
        let accepted = server.run("wait", &json!({"approve": "auto"}));
        let run = accepted["run"].as_str().unwrap();
        world.wait_for_file("ledger.txt", "begun");
        browser.open(&format!("http://{}/runs/{run}?zoom={zoom}", server.host));
        let element = "document.querySelector('agent-cycle-fsm-widget')";
        let part = format!("{element}.shadowRoot?.querySelector('.now b')?.textContent");
        browser.wait(&format!("{part} === 'act'"));
        browser.is_live();
        browser.value("window.isSame = true");
        std::fs::write(world.work().join("go"), "").unwrap();
        browser.wait(&format!(
            "{element}.shadowRoot.querySelector('.now').textContent.includes('The run is over.')"
        ));
        browser.wait("document.querySelector('#rows').textContent.includes('finish')");
        browser.wait("document.querySelector('.heading .word.claimed')");
        let ids = "[...document.querySelectorAll('#rows > *')].map((row) => row.id)";
        // In one question: the last rows may come between two.
        let twice = format!("(ids => ids.filter((id, at) => ids.indexOf(id) < at))({ids})");
        assert_eq!(
            browser.value(&twice),
            json!([]),
            "no row is there twice: {zoom}"
        );
        assert_eq!(
            browser.value("window.isSame"),
            true,
            "{zoom}: it was not loaded again"
        );
        server.wait_for_end(&accepted);
    }
    assert_eq!(browser.complaints, Vec::<String>::new());
}

/// Writes a copy of a run in whose first call another file is named.
fn forged(world: &World, run: &str) -> RunId {
    let store = world.store();
    let reader = store.reader(&log_name(run.parse().unwrap())).unwrap();
    let copy = RunId::new();
    let writer = store.create(&log_name(copy)).unwrap();
    for entry in reader.entries(1).unwrap() {
        let entry = entry.unwrap();
        let Payload::Json(payload) = &entry.payload else {
            panic!("nothing is erased")
        };
        let mut payload: Value = serde_json::from_str(payload.get()).unwrap();
        for text in payload.to_string().split('"') {
            if let Ok(blob) = text.parse::<BlobId>() {
                writer.put_blob(&reader.blob(&blob).unwrap()).unwrap();
            }
        }
        if entry.kind == "run.started" {
            payload["run"] = json!(copy);
        } else if entry.kind == "tool.call" && payload["call"]["tool"] == "write" {
            payload["call"]["arguments"]["path"] = json!("<b>another</b>.txt");
        }
        let entry = NewEntry {
            kind: &entry.kind,
            version: entry.version,
            payload: to_raw_value(&payload).unwrap(),
        };
        writer.append(&[entry]).unwrap();
    }
    writer.barrier_blocking().unwrap();
    copy
}

#[test]
fn a_replay_that_takes_another_way_shows_both_sides() {
    if !has_browser() {
        return;
    }
    let world = World::new(&script());
    world.run(&[]).exits(0);
    let copy = forged(&world, &world.runs()[0].to_string());
    let server = Server::start(&world);
    let replayed = server.post(&format!("/api/runs/{copy}/replay"), &json!({}));
    let error = replayed.is(409).json()["error"].to_string();
    assert!(
        error.contains("recorded was") && error.contains("but now it does"),
        "{error}"
    );
    let mut browser = enter(&world, &server);
    browser.open(&format!("http://{}/runs/{copy}", server.host));
    browser.is_live();
    browser.value("document.querySelector('form[action$=\"/replay\"] button').click()");
    browser.shows("Not identical");
    browser.shows("recorded was");
    browser.shows("<b>another</b>.txt");
    assert_eq!(browser.value(TAKEN), 0);
    assert_eq!(browser.complaints, Vec::<String>::new());
}
