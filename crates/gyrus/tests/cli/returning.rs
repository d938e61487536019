//! A run that goes on finds the page at which it, or the run before it, was.

use std::{fs, process::Stdio};

use gyrus_kernel::Entry;

use crate::{
    browsing::{Held, browsing, has_browser},
    http,
    support::{World, said},
    terminal::Terminal,
};

/// Goes to the second page, asks for a person there, and finishes where it finds itself.
const WALKS: &str = r#"
[[reply]]
find = { next = '(\w+) link "Next"' }
text = '''{"note": "on", "actions": [{"do": "click", "on": "{{next}}"}]}'''
[[reply]]
when = "The second page"
text = '''{"note": "a person", "actions": [{"do": "hand_over", "text": "look at it"}]}'''
[[reply]]
when = "shows the same as before"
find = { token = 'token of this run is: ([0-9a-f ]+)', at = '(The second page)' }
text = '''{"note": "there", "actions": [{"do": "finish", "token": "{{token}}", "reached": true, "answer": "{{at}}"}]}'''
"#;

/// Goes to the second page and finishes; then finishes where it finds itself.
const FOLLOWS_UP: &str = r#"
[[reply]]
find = { next = '(\w+) link "Next"' }
text = '''{"note": "on", "actions": [{"do": "click", "on": "{{next}}"}]}'''
[[reply]]
find = { token = 'token of this run is: ([0-9a-f ]+)', at = '(The \w+ page)' }
text = '''{"note": "there", "actions": [{"do": "finish", "token": "{{token}}", "reached": true, "answer": "{{at}}"}]}'''
"#;

/// Finishes where it finds itself.
const LOOKS: &str = r#"
[[reply]]
find = { token = 'token of this run is: ([0-9a-f ]+)', at = '(The \w+ page)' }
text = '''{"note": "there", "actions": [{"do": "finish", "token": "{{token}}", "reached": true, "answer": "{{at}}"}]}'''
"#;

fn site() -> String {
    http::serve(|asked| {
        let (which, more) = match asked.path() {
            "/second" => ("second", ""),
            _ => ("first", "<a href=/second>Next</a>"),
        };
        format!("<!doctype html><title>{which}</title><h1>The {which} page</h1>{more}")
    })
}

/// The addresses that were opened.
fn opened(entries: &[Entry]) -> Vec<String> {
    let calls = entries.iter().filter_map(|entry| match entry {
        Entry::ToolCalled(called) if called.call.tool == "open_url" => Some(&called.call),
        _ => None,
    });
    let urls = calls.map(|call| call.arguments["url"].as_str().unwrap().to_owned());
    urls.collect()
}

#[test]
fn a_run_that_was_killed_or_forked_goes_on_at_its_page() {
    if !has_browser() {
        return;
    }
    let (world, site) = (World::new(WALKS), site());
    let mut arguments = vec!["run", "walk", "--url", &site, "--on-ask", "wait"];
    arguments.extend(["--require", "claimed"]);
    let run = Held::new(browsing(&world, &arguments).stderr(Stdio::inherit()));
    world.wait_for(|entry| matches!(entry, Entry::ApprovalAsked(_)));
    // Killed as it is dropped.
    drop(run);
    let second = format!("{site}/second");

    let fork = [
        "fork",
        "last",
        "--at",
        "1",
        "--workdir",
        "../forked",
        "--on-ask",
        "deny",
    ];
    let before = world.runs();
    said(browsing(&world, &fork).output().unwrap());
    let forked = world.runs().into_iter().find(|run| !before.contains(run));
    let name = gyrus_kernel::log_name(forked.unwrap());
    let reader = world.store().reader(&name).unwrap();
    let entries: Vec<Entry> = reader
        .entries(1)
        .unwrap()
        .map(|entry| gyrus_kernel::parse(&entry.unwrap()).unwrap())
        .collect();
    let opened = opened(&entries);
    assert!(opened.contains(&second), "{opened:?}");

    let original = before.last().unwrap().to_string();
    let resume = ["resume", &original, "--on-ask", "deny"];
    let ended = said(browsing(&world, &resume).output().unwrap()).exits(0);
    assert!(ended.out.contains("The second page"), "{ended:#?}");
    assert!(ended.err.contains(&second), "{ended:#?}");
    world.gyrus(&["replay", &original]).exits(0);
}

#[test]
fn a_follow_up_goes_on_at_the_page_of_the_run_before_it() {
    if !has_browser() {
        return;
    }
    let (world, site) = (World::new(FOLLOWS_UP), site());
    let run = |arguments: &[&str]| {
        let claimed = ["--require", "claimed", "--on-ask", "deny"];
        let all = [arguments, &claimed].concat();
        said(browsing(&world, &all).output().unwrap()).exits(0)
    };
    let first = run(&["run", "walk", "--url", &site]);
    assert!(first.out.contains("The second page"), "{first:#?}");
    fs::write(world.path("looks.toml"), LOOKS).unwrap();
    let looks = ["--model", "script:../looks.toml"];
    let second = run(&[&["run", "-c", "and now?"], &looks[..]].concat());
    assert!(second.out.contains("The second page"), "{second:#?}");
    let anew = run(&[&["run", "-c", "and now?", "--url", &site], &looks[..]].concat());
    assert!(anew.out.contains("The first page"), "{anew:#?}");
}

#[test]
fn the_next_line_of_a_conversation_goes_on_at_the_page() {
    if !has_browser() {
        return;
    }
    let (world, site) = (World::new(FOLLOWS_UP), site());
    fs::write(world.path("looks.toml"), LOOKS).unwrap();
    let arguments = ["--workdir", ".", "--url", &site, "--require", "claimed"];
    let environment = [("TERM", "xterm-256color"), ("GYRUS_BROWSER", "")];
    let Some(mut terminal) = Terminal::start_with(&world, &arguments, "", &environment) else {
        return;
    };
    terminal.shows("❯");
    terminal.types("walk\r");
    terminal.shows("reached, as the model claims");
    terminal.shows("The second page");
    terminal.shows("❯");
    terminal.types("/model script:../looks.toml\r");
    terminal.shows("the next run asks it");
    terminal.shows("❯");
    terminal.types("and now?\r");
    terminal.shows("reached, as the model claims");
    terminal.shows("The second page");
    terminal.shows("❯");
    terminal.types("/quit\r");
    assert_eq!(terminal.exit_code(), Some(0));
    assert_eq!(world.runs().len(), 2);
}
