//! Cards whose text a person may change, answered at the dashboard in a real Chromium.

use serde_json::json;

use super::{Server, chromium::Chromium};
use crate::{
    browsing::has_browser,
    changing::{edit, propose, shape, world},
    planning::{GOAL, planned, write},
};

/// Lets a browser in and opens the questions, once there is one.
fn at_the_question(server: &Server<'_>, person: &mut Chromium) {
    person.open(&format!("http://{}/#{}", server.host, server.code));
    person.is_live();
    person.open(&format!("http://{}/waiting", server.host));
    person.wait("document.querySelector('.question')");
    person.is_live();
}

#[test]
fn hunks_and_files_are_left_out_by_ticks() {
    if !has_browser() {
        return;
    }
    let mut both = edit(&shape(0), "crate::Point;", "crate::Vertex;");
    let second = json!({"old": "Point {", "new": "Vertex {"});
    both["edits"].as_array_mut().unwrap().push(second);
    let deleted =
        json!({"path": "notes/lunch.txt", "reason": "<b>nobody</b> reads it", "delete": true});
    let changes = [
        edit("src/lib.rs", "struct Point", "struct Vertex"),
        both,
        deleted,
    ];
    let world = world(&[propose(&changes, "")]);
    let server = Server::start(&world);
    let mut person = Chromium::start(&world);
    let options = json!({"loop": "changeset", "approve": "auto", "review": "proposal"});
    let started = server.run("rename it", &options);
    at_the_question(&server, &mut person);
    person.shows("<b>nobody</b> reads it");
    person.shows("+pub struct Vertex {");
    assert_eq!(
        person.value("[...document.querySelectorAll('.hunk input')].map((one) => one.checked)"),
        json!([true, true, true, true])
    );
    person.value(
        "(() => { const ticks = document.querySelectorAll('.hunk input'); ticks[2].click(); \
         ticks[3].click(); document.querySelector('.answers .primary').click(); })()",
    );
    let ended = server.wait_for_end(&started);
    assert_eq!(ended["stage"]["code"], 0, "{ended:#}");
    assert!(world.file("src/lib.rs").contains("pub struct Vertex {"));
    let half = world.file(&shape(0));
    assert!(
        half.contains("crate::Vertex;") && half.contains("first = Point {"),
        "{half}"
    );
    assert_eq!(world.file("notes/lunch.txt"), "soup on Mondays\n");
    assert_eq!(person.complaints, Vec::<String>::new());
    world.replays();
}

#[test]
fn a_plan_is_changed_before_it_is_approved_and_nothing_left_is_told() {
    if !has_browser() {
        return;
    }
    let world = planned(&[write("1", "a.txt", "as proposed\n", &[])]);
    let server = Server::start(&world);
    let mut person = Chromium::start(&world);
    let options = json!({"loop": "plan", "approve": "auto", "review": "plan"});
    let started = server.run(GOAL, &options);
    at_the_question(&server, &mut person);
    person.value(
        "(() => { const form = document.querySelector('.answers'); form.edited.value = ''; \
         form.querySelector('.primary').click(); })()",
    );
    person.shows("That was not done");
    person.open(&format!("http://{}/waiting", server.host));
    person.wait("document.querySelector('.question textarea')");
    person.value(
        "(() => { const form = document.querySelector('.answers'); \
         form.edited.value = form.edited.value.replace('as proposed', 'as a person wants it'); \
         form.querySelector('.primary').click(); })()",
    );
    let ended = server.wait_for_end(&started);
    assert_eq!(ended["stage"]["code"], 0, "{ended:#}");
    assert_eq!(world.file("a.txt"), "as a person wants it\n");
    assert_eq!(person.complaints, Vec::<String>::new());
}
