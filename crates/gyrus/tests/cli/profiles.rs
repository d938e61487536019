//! Profiles of the browser: what a site remembers there is kept, however a run ends.

use std::process::Stdio;

use gyrus_kernel::Entry;

use crate::{
    browsing::{Held, browsing, has_browser},
    http,
    support::{World, said},
};

/// A page that knows again whom it has seen.
const REMEMBERS: &str = r#"<!doctype html><title>Door</title><p role=status></p>
<script>
document.querySelector("p").textContent = document.cookie.includes("login") ? "Welcome back" : "New here";
document.cookie = "login=ada; max-age=86400";
</script>"#;

/// Ends at once, or asks for a person first.
const LOOKS: &str = r#"
[[reply]]
find = { token = 'token of this run is: ([0-9a-f ]+)' }
text = '''{"note": "seen", "actions": [{"do": "finish", "token": "{{token}}", "reached": true, "answer": "Seen."}]}'''
"#;

const ASKS: &str = r#"
[[reply]]
text = '''{"note": "a person", "actions": [{"do": "hand_over", "text": "look at it"}]}'''
"#;

fn run(world: &World, site: &str) -> Held {
    let mut arguments = vec!["run", "look", "--url", site, "--profile", "door"];
    arguments.extend(["--on-ask", "wait", "--require", "claimed"]);
    Held::new(browsing(world, &arguments).stderr(Stdio::inherit()))
}

/// Whether the profile still knows the site.
fn is_known(world: &World, site: &str) -> bool {
    let look = browsing(world, &["look", site, "--profile", "door"]).output();
    let look = said(look.unwrap()).exits(0);
    assert!(
        look.out.contains("Welcome back") != look.out.contains("New here"),
        "{look:#?}"
    );
    look.out.contains("Welcome back")
}

fn forgets(world: &World) {
    world
        .gyrus(&["browser", "forget", "door", "--yes"])
        .exits(0);
}

#[test]
fn a_run_that_ends_keeps_its_login() {
    if !has_browser() {
        return;
    }
    let (world, site) = (World::new(LOOKS), http::serve(|_| REMEMBERS.to_owned()));
    run(&world, &site).ends().exits(0);
    assert!(is_known(&world, &site));
    forgets(&world);
}

#[test]
fn a_run_that_is_killed_or_stopped_keeps_its_login() {
    if !has_browser() {
        return;
    }
    for stop in [false, true] {
        let (world, site) = (World::new(ASKS), http::serve(|_| REMEMBERS.to_owned()));
        let run = run(&world, &site);
        world.wait_for(|entry| matches!(entry, Entry::ApprovalAsked(_)));
        if stop {
            world.gyrus(&["stop", "last"]).exits(0);
            run.ends();
        } else {
            // Killed as it is dropped.
            drop(run);
        }
        assert!(is_known(&world, &site), "stop: {stop}");
        forgets(&world);
    }
}
