//! A person shows a task at the page of taking over, and it is done again without them.

use std::{
    process::{Command, Stdio},
    sync::Arc,
};

use gyrus_contract::{Grant, Principal};
use gyrus_kernel::grants;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::{
    browsing::{browsing, ended, has_browser},
    http,
    support::{World, said},
    taking_over::{Person, SECRET, is_nowhere},
};

/// Each thing has its place, so that a person's hand finds it.
const PAGE: &str = "<!doctype html><title>Notes</title>\
    <style>input, select, button, label { position: absolute; left: 300px; width: 200px; height: 30px }\
    label { left: 100px }</style>\
    <form method=post action=/note>\
    <label for=to style='top: 50px'>To</label><input id=to name=to style='top: 50px'>\
    <label for=kind style='top: 150px'>Kind</label>\
    <select id=kind name=kind style='top: 150px'><option>letter<option>parcel</select>\
    <label for=fast style='top: 250px'>By express</label>\
    <input type=checkbox id=fast name=fast value=yes style='top: 250px'>\
    <button style='top: 350px'>Send it</button></form>";

const TO: (f64, f64) = (400.0, 65.0);
const KIND: (f64, f64) = (400.0, 165.0);
const FAST: (f64, f64) = (400.0, 265.0);
const SEND: (f64, f64) = (400.0, 365.0);

const COMMAND: &str = "Send a parcel to Ada Lovelace by express.";

fn desk() -> (String, Arc<Mutex<Vec<String>>>) {
    let sent: Arc<Mutex<Vec<String>>> = Arc::default();
    let taken = sent.clone();
    let address = http::serve(move |asked| {
        if asked.method() == "POST" {
            taken.lock().push(asked.text());
            "<!doctype html><title>Sent</title><p role=status>It is sent.</p>".to_owned()
        } else {
            PAGE.to_owned()
        }
    });
    (address, sent)
}

fn teaches(world: &World, command: &str, address: &str) -> Command {
    let arguments = [
        "teach",
        command,
        "--url",
        address,
        "--check",
        "text:It is sent.",
    ];
    let mut command = browsing(world, &arguments);
    command.env_remove("GYRUS_MODEL");
    command
}

#[test]
fn what_is_shown_is_done_again() {
    if !has_browser() {
        return;
    }
    let (address, sent) = desk();
    let world = World::new("");
    let mut person = Person::at(teaches(&world, COMMAND, &address));
    person.opens();
    person.sees("Notes");
    person.clicks(TO);
    // Somebody else first, and a change of mind.
    person.types("Mary");
    person.does(&json!([{"do": "key", "key": "Control+a"}]));
    person.types("Ada Lovelace");
    person.clicks(KIND);
    person.does(&json!([{"do": "key", "key": "ArrowDown"}, {"do": "key", "key": "Enter"}]));
    person.clicks(FAST);
    person.clicks(SEND);
    person.sees("Sent");
    assert_eq!(person.leaves(""), Some(0));
    let shown = "to=Ada+Lovelace&kind=parcel&fast=yes";
    assert_eq!(*sent.lock(), [shown]);

    let listed = world.gyrus(&["procedures", "list", "--json"]).exits(0).out;
    let listed: Vec<Value> = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed[0]["source"]["kind"], "taught", "{listed:#?}");
    let name = listed[0]["name"].as_str().unwrap();
    let does = world
        .gyrus(&["procedures", "promote", name, "--yes"])
        .exits(0);
    assert!(does.out.contains("← binds you"), "{does:#?}");
    let person = Principal {
        surface: "command line".to_owned(),
        id: "tester".to_owned(),
    };
    let grant = Grant::Origin {
        origin: address.clone(),
    };
    let work = world.work().canonicalize().unwrap();
    grants::give(&world.store(), &work, &[grant], &person).unwrap();
    let again = "Send a letter to Grace Hopper by express.";
    let mut run = browsing(&world, &["run", "--approve", "auto", "--", again]);
    run.env_remove("GYRUS_MODEL").stdin(Stdio::null());
    ended(run.spawn().unwrap()).exits(0);
    let again = "to=Grace+Hopper&kind=letter&fast=yes";
    assert_eq!(*sent.lock(), [shown, again]);
}

#[test]
fn a_double_click_is_done_again_as_one() {
    if !has_browser() {
        return;
    }
    let twice = "<button type=button ondblclick='this.form.submit()'";
    let sent: Arc<Mutex<Vec<String>>> = Arc::default();
    let taken = sent.clone();
    let address = http::serve(move |asked| {
        if asked.method() == "POST" {
            taken.lock().push(asked.text());
            "<!doctype html><title>Sent</title><p role=status>It is sent.</p>".to_owned()
        } else {
            PAGE.replace("<button", twice)
        }
    });
    let world = World::new("");
    let mut person = Person::at(teaches(&world, "Send a letter to Ada Lovelace.", &address));
    person.opens();
    person.sees("Notes");
    person.clicks(TO);
    person.types("Ada Lovelace");
    person.clicks(SEND);
    person.clicks_again(SEND, 2);
    person.sees("Sent");
    assert_eq!(person.leaves(""), Some(0));
    assert_eq!(*sent.lock(), ["to=Ada+Lovelace&kind=letter"]);
    let does = world
        .gyrus(&["procedures", "promote", "send-letter", "--yes"])
        .exits(0);
    assert!(does.out.contains("← binds you"), "{does:#?}");

    let person = Principal {
        surface: "command line".to_owned(),
        id: "tester".to_owned(),
    };
    let grant = Grant::Origin { origin: address };
    let work = world.work().canonicalize().unwrap();
    grants::give(&world.store(), &work, &[grant], &person).unwrap();
    let again = "Send a letter to Grace Hopper.";
    let mut run = browsing(&world, &["run", "--approve", "auto", "--", again]);
    run.env_remove("GYRUS_MODEL").stdin(Stdio::null());
    ended(run.spawn().unwrap()).exits(0);
    assert_eq!(sent.lock()[1..], ["to=Grace+Hopper&kind=letter"]);
}

#[test]
fn a_secret_is_neither_kept_nor_learned() {
    if !has_browser() {
        return;
    }
    let page = PAGE.replace("id=to", "type=password id=to");
    let address = http::serve(move |_| page.clone());
    let world = World::new("");
    for moves_on in [false, true] {
        let mut person = Person::at(teaches(&world, COMMAND, &address));
        person.opens();
        person.sees("Notes");
        if moves_on {
            // Without the mouse.
            person.does(&json!([{"do": "key", "key": "Tab"}]));
        } else {
            person.clicks(TO);
        }
        person.types(SECRET);
        person.does(&json!([{"do": "key", "key": "Tab"}]));
        assert_eq!(person.leaves(""), Some(1));
    }
    let listed = world.gyrus(&["procedures", "list", "--json"]).exits(0).out;
    assert_eq!(listed.trim(), "[]");
    is_nowhere(&world.path("home"), SECRET.as_bytes());
}

#[test]
fn only_a_person_teaches_and_only_pages() {
    let world = World::new("");
    let refused = |arguments: &[&str], words: &str| {
        said(world.command(arguments).output().unwrap())
            .exits(2)
            .says(words);
    };
    refused(&["teach", " ", "--url", "http://127.0.0.1:9"], "empty");
    refused(
        &["teach", "a b", "--url", "file:///etc/passwd"],
        "invalid address",
    );
}
