//! A chat by Matrix, by a homeserver on loopback.

use std::fs;

use serde_json::json;

use super::{
    homeserver::{ADA, Fault, Homeserver, ROOM, TOKEN},
    is_all_said,
    phone::{Phone, QUESTION, answers_a_card, answers_a_question, has_a_goal_done},
};
use crate::{
    server::{Server, runs::ASKS},
    support::{THREE_STEPS, UNTIL_GO, World},
};

/// Somebody else.
const EVE: &str = "@eve:evil.example";

const AUTO: &str = "options = { approve = \"auto\" }";

fn configure(world: &World, home: &Homeserver, more: &str) {
    let folder = world.path("home");
    fs::create_dir_all(&folder).unwrap();
    let (work, address) = (world.work(), &home.address);
    let text = format!(
        "[chat.matrix]\ntoken = \"MATRIX_TOKEN\"\nworkdir = \"{}\"\nurl = \"{address}\"\n{more}\n",
        work.display()
    );
    fs::write(folder.join("config.toml"), text).unwrap();
}

fn start(world: &World) -> Server<'_> {
    Server::start_in(world, &[], &[("MATRIX_TOKEN", TOKEN)])
}

/// Makes a code, has the person invite the account, and sends the code.
fn pair(world: &World, home: &Homeserver) {
    let line = world.gyrus(&["chat", "pair", "matrix"]).exits(0).out;
    home.invite(ROOM, &[ADA]);
    home.waits("it comes in", |home| home.is_in(ROOM).then_some(()));
    home.says(line.trim());
    home.sees("You are paired");
}

fn paired(script: &str, more: &str) -> (World, Homeserver) {
    let (world, home) = (World::new(script), Homeserver::start());
    configure(&world, &home, more);
    let server = start(&world);
    pair(&world, &home);
    home.waits("all is said", |_| is_all_said(&world).then_some(()));
    drop(server);
    (world, home)
}

/// Number of messages of the bot with these words.
fn times(home: &Homeserver, words: &str) -> usize {
    let seen = home.seen();
    seen.iter().filter(|one| one.text.contains(words)).count()
}

#[test]
fn a_person_with_matrix() {
    let (world, home) = paired(THREE_STEPS, AUTO);
    let server = start(&world);
    has_a_goal_done(&home, &world);
    drop(server);
    let (world, home) = paired(ASKS, "");
    let server = start(&world);
    answers_a_card(&home, &world);
    drop(server);
    let (world, home) = paired(QUESTION, "");
    let _server = start(&world);
    answers_a_question(&home);
}

#[test]
fn nobody_but_who_is_paired_is_heard() {
    let (world, home) = (World::new(""), Homeserver::start());
    configure(&world, &home, "groups = [\"!team:home.example\"]");
    let _server = start(&world);
    // Before a code there is nothing to come in for.
    home.invite("!early:home.example", &[EVE]);
    home.waits_until_read();
    pair(&world, &home);
    assert!(!home.is_in("!early:home.example"));
    // A code that was used invites nobody.
    home.invite("!late:home.example", &[EVE]);
    home.invite("!team:home.example", &[ADA, EVE]);
    home.waits("it comes in", |home| {
        home.is_in("!team:home.example").then_some(())
    });
    home.writes("!team:home.example", EVE, "/status");
    home.writes("!team:home.example", ADA, "we talk of something else");
    home.writes("!team:home.example", ADA, "/status");
    home.sees("0 runs at work");
    home.waits_until_read();
    assert!(!home.is_in("!late:home.example"));
    assert_eq!(times(&home, "0 runs at work"), 1);
    let listed = world.gyrus(&["chat", "list", "--json"]).exits(0).out;
    assert_eq!(listed.lines().count(), 1, "{listed}");
    assert!(
        listed.contains("\"person\":\"@ada:home.example\""),
        "{listed}"
    );
    world.gyrus(&["chat", "remove", "matrix", "ada"]).exits(2);
    world.gyrus(&["chat", "remove", "matrix", ADA]).exits(0);
    home.says("/status");
    home.waits_until_read();
    assert_eq!(times(&home, "0 runs at work"), 1);
}

#[test]
fn a_stranger_and_a_forged_card_answer_nothing() {
    let (world, home) = paired(ASKS, "");
    let _server = start(&world);
    home.says("write it");
    let card = home.sees("Allow it once, or deny it?");
    // Somebody else comes into the room, and answers.
    home.enters(ROOM, EVE);
    home.answers(ROOM, EVE, &card.id, "1");
    home.sees("This is not yours to answer.");
    // A copy of the card that somebody else wrote, with buttons that allow the real one.
    let forged = json!({
        "msgtype": "m.text", "body": card.text,
        "dev.gyrus.buttons": [["Allow once", "allow:1:0"]],
    });
    let forged = home.event(ROOM, EVE, "m.room.message", forged);
    home.replies(&forged, "1");
    // Reactions and changes of messages are no answers.
    let reaction =
        json!({"m.relates_to": {"rel_type": "m.annotation", "event_id": card.id, "key": "1"}});
    home.event(ROOM, ADA, "m.reaction", reaction);
    let mine = home.says("/help");
    let edit = json!({
        "msgtype": "m.text", "body": "* 1", "m.new_content": {"msgtype": "m.text", "body": "1"},
        "m.relates_to": {"rel_type": "m.replace", "event_id": mine},
    });
    home.event(ROOM, ADA, "m.room.message", edit);
    home.waits_until_read();
    assert_eq!(world.file(".envrc"), "");
    home.presses(&card, "Deny");
    home.sees("\n— denied by @ada:home.example (matrix)");
}

#[test]
fn a_server_that_misbehaves_loses_and_doubles_nothing() {
    let (world, home) = paired(THREE_STEPS, AUTO);
    home.repeats();
    let server = start(&world);
    let slow = json!({"errcode": "M_LIMIT_EXCEEDED", "error": "slow", "retry_after_ms": 1_000});
    home.fails("send", Fault::Answer(429, slow));
    home.fails("send", Fault::BadGateway);
    // What was done though nobody heard of it stands there once.
    home.fails("send", Fault::DoneInSilence);
    home.fails("sync", Fault::BadGateway);
    home.fails("members", Fault::BadGateway);
    has_a_goal_done(&home, &world);
    assert_eq!(world.runs().len(), 1);
    assert_eq!(times(&home, "It says hello."), 1);
    assert_eq!(times(&home, "Nobody knows"), 0);
    drop(server);
}

#[test]
fn what_came_while_the_server_was_away_is_followed_in_order() {
    let (world, home) = paired(UNTIL_GO, AUTO);
    // More than one answer of the homeserver holds.
    for number in 0..7 {
        home.writes(ROOM, ADA, &format!("/memory word{number}"));
    }
    home.says("/status");
    home.limits_the_next_answer();
    let _server = start(&world);
    home.sees("0 runs at work");
    home.waits("all are answered", |home| {
        let answers = home
            .seen()
            .iter()
            .filter(|one| one.reply_to.is_some())
            .count();
        // One of them answered the code.
        (answers >= 9).then_some(())
    });
}

#[test]
fn an_encrypted_room_is_told_once_that_it_cannot_be_read() {
    let (world, home) = paired("", "");
    let _server = start(&world);
    // It is said, however busy the homeserver is.
    let slow = json!({"errcode": "M_LIMIT_EXCEEDED", "error": "slow", "retry_after_ms": 1_000});
    home.fails("send", Fault::Answer(429, slow));
    for _ in 0..3 {
        let content = json!({"algorithm": "m.megolm.v1.aes-sha2", "ciphertext": "x"});
        home.event(ROOM, ADA, "m.room.encrypted", content);
    }
    home.sees("This room is encrypted");
    home.says("/status");
    home.sees("0 runs at work");
    assert_eq!(times(&home, "This room is encrypted"), 1);
}

#[test]
fn files_go_both_ways() {
    let script = "[[reply]]\nwhen = \"remember the milk\"\ncalls = [{ tool = \"write\", arguments = { path = \"out.txt\", content = \"made\\n\" } }]\n\
                  [[reply]]\ncalls = [{ tool = \"finish\", arguments = { reached = true, answer = \"It is there.\" } }]\n";
    let (world, home) = paired(script, AUTO);
    let _server = start(&world);
    home.keep_file("note1", b"remember the milk\n");
    let note = json!({
        "msgtype": "m.file", "body": "do what it says", "filename": "note.txt",
        "url": "mxc://home.example/note1", "info": {"size": 18},
    });
    home.event(ROOM, ADA, "m.room.message", note);
    let result = home.sees("It is there.");
    home.presses(&result, "out.txt");
    home.waits("the file", |home| home.has_file(b"made\n").then_some(()));
    // An address that leads elsewhere fetches nothing.
    let odd = json!({"msgtype": "m.file", "body": "x.txt", "url": "mxc://../../etc/passwd"});
    home.event(ROOM, ADA, "m.room.message", odd);
    home.sees("1 file kept");
    home.says("work on it");
    home.sees("no usable address");
}

#[test]
fn a_homeserver_is_reached_by_tls_alone() {
    let world = World::new("");
    let folder = world.path("home");
    fs::create_dir_all(&folder).unwrap();
    let work = world.work();
    for (url, why) in [
        (
            "url = \"http://matrix.example.org\"\n",
            "begins with https://",
        ),
        (
            "url = \"https://matrix.example.org/_matrix\"\n",
            "the homeserver alone",
        ),
        ("", "`url` is missing"),
    ] {
        let text = format!(
            "[chat.matrix]\ntoken = \"MATRIX_TOKEN\"\nworkdir = \"{}\"\n{url}",
            work.display()
        );
        fs::write(folder.join("config.toml"), text).unwrap();
        let mut command = world.command(&["serve", "--port", "0"]);
        let mut running = crate::support::Running::of(command.env("MATRIX_TOKEN", TOKEN));
        running.hears(why);
        running.signal(rustix::process::Signal::TERM);
        running.end();
    }
}
