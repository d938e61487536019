//! Runs that programs start, follow, steer and answer.

use std::io::{BufRead, BufReader, Write};

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{Server, TOKEN, bearer};
use crate::support::{THREE_STEPS, UNTIL_GO, World};

/// Asks once.
pub(crate) const ASKS: &str = r#"
[[reply]]
text = "May I?"
calls = [{ tool = "write", arguments = { path = ".envrc", content = "hello\n" } }]
[[reply]]
calls = [{ tool = "finish", arguments = { reached = true, answer = "done" } }]
"#;

/// Asks once, and must be told what to do instead.
const TOLD: &str = r#"
[[reply]]
calls = [{ tool = "write", arguments = { path = ".envrc", content = "hello\n" } }]
[[reply]]
when = "use the other one"
calls = [{ tool = "finish", arguments = { reached = false, answer = "I may not" } }]
"#;

#[test]
fn a_run_is_started_followed_and_shown() {
    let world = World::new(THREE_STEPS);
    let server = Server::start(&world);
    let accepted = server.run("say hello", &json!({"approve": "auto", "max-steps": 9}));
    let run = accepted["run"].as_str().unwrap().to_owned();
    let ended = server.wait_for_end(&accepted);
    assert_eq!(ended["stage"]["code"], 0, "{ended:#}");
    assert_eq!(ended["stage"]["summary"], "claimed: It says hello.");
    assert_eq!(world.file("ledger.txt"), "hello\n");

    let shown = server.get(&format!("/api/runs/{run}")).is(200).json();
    assert_eq!(shown["state"], "over");
    assert_eq!(shown["outcome"], "claimed");
    assert_eq!(shown["answer"], "It says hello.");
    assert_eq!(shown["full_goal"], "say hello");
    assert_eq!(shown["limits"]["steps"], 9);
    let listed = server
        .get("/api/runs?outcome=claimed&text=HELLO")
        .is(200)
        .json();
    assert_eq!(listed["runs"][0]["run"], run.as_str());
    let none = server.get("/api/runs?state=running").is(200).json();
    assert_eq!(none["runs"], json!([]));

    // The stream begins where the follower says, and ends with the run.
    let events = server
        .get(&format!("/api/runs/{run}/events?after=2"))
        .is(200);
    let ids = events
        .body
        .lines()
        .filter_map(|line| line.strip_prefix("id: "));
    let ids: Vec<u64> = ids.map(|id| id.parse().unwrap()).collect();
    let last = shown["seq"].as_u64().unwrap();
    assert_eq!(ids, (3..=last).collect::<Vec<_>>());
    let head = format!("{}last-event-id: {}\r\n", bearer(TOKEN), last - 1);
    let events = server.send("GET", &format!("/api/runs/{run}/events"), &head, "");
    assert_eq!(events.body.matches("event: entry").count(), 1, "{events:?}");
    assert!(events.body.contains("\"kind\":\"run.ended\""));

    let first = server.get("/api/runs/last/entries?limit=2").is(200).json();
    assert_eq!(first["entries"][0]["kind"], "run.started");
    assert_eq!(
        (&first["entries"][1]["seq"], &first["more"]),
        (&json!(2), &json!(true))
    );
    let diff = server.get(&format!("/api/runs/{run}/diff")).is(200);
    assert!(diff.body.contains("+hello"), "{diff:?}");
    let replayed = server
        .post(&format!("/api/runs/{run}/replay"), &json!({}))
        .is(200)
        .json();
    assert!(
        replayed["said"].as_str().unwrap().contains("0 differences"),
        "{replayed}"
    );
    let undone = server
        .post(&format!("/api/runs/{run}/undo"), &json!({}))
        .is(200)
        .json();
    assert!(!undone["said"].as_str().unwrap().is_empty());
    assert_eq!(world.file("ledger.txt"), "");
    let metrics = server.get("/metrics").is(200).body;
    assert!(
        metrics.contains("gyrus_commands{stage=\"ended\"} 1\n"),
        "{metrics}"
    );
}

#[test]
fn a_question_parks_the_run_and_its_answer_goes_on_with_it() {
    let world = World::new(ASKS);
    let server = Server::start(&world);
    let approver = token(&server, "phone", "approve");
    let actor = token(&server, "script", "act");
    let accepted = server.run("write", &json!({}));
    let parked = server.wait(&accepted, |stage| stage["state"] == "parked");
    assert_eq!(parked["stage"]["for_person"], true);
    let asked = server.get("/api/questions").is(200).json();
    let question = &asked[0];
    assert!(question["card"].to_string().contains(".envrc"), "{asked:#}");
    let (run, id) = (&question["run"], &question["question"]);
    let path = format!(
        "/api/runs/{}/questions/{}/answer",
        run.as_str().unwrap(),
        id.as_str().unwrap()
    );
    let yes = json!({"approve": true});
    server.post_as(&actor, &path, &yes).is(403);
    let said = server.post_as(&approver, &path, &json!({"approve": true, "words": "if"}));
    assert!(said.is(400).body.contains("a yes has no conditions"));
    server.post_as(&approver, &path, &yes).is(202);
    server
        .post_as(&approver, &path, &json!({"approve": false}))
        .is(409);
    let ended = server.wait_for_end(&accepted);
    assert_eq!(ended["stage"]["code"], 0, "{ended:#}");
    assert_eq!(world.file(".envrc"), "hello\n");
    let shown = world.gyrus(&["show", "last"]).exits(0);
    let shown = shown.out + &shown.err;
    assert!(shown.contains("approved by phone (token)"), "{shown}");
}

#[test]
fn a_no_in_words_reaches_the_model() {
    let world = World::new(TOLD);
    let server = Server::start(&world);
    let accepted = server.run("write", &json!({}));
    server.wait(&accepted, |stage| stage["state"] == "parked");
    let asked = server.get("/api/runs/last/questions").is(200).json();
    let id = asked[0]["question"].as_str().unwrap();
    let no = json!({"approve": false, "words": "use the other one"});
    server
        .post(&format!("/api/runs/last/questions/{id}/answer"), &no)
        .is(202);
    let ended = server.wait_for_end(&accepted);
    assert!(
        ended["stage"]["summary"]
            .as_str()
            .unwrap()
            .contains("I may not"),
        "{ended:#}"
    );
}

#[test]
fn a_fork_asks_again_and_goes_on_when_it_is_answered() {
    let world = World::new(ASKS);
    let server = Server::start(&world);
    let accepted = server.run("write", &json!({}));
    server.wait(&accepted, |stage| stage["state"] == "parked");
    let say_yes = |run: &str| {
        let asked = server
            .get(&format!("/api/runs/{run}/questions"))
            .is(200)
            .json();
        let id = asked[0]["question"].as_str()?.to_owned();
        let path = format!("/api/runs/{run}/questions/{id}/answer");
        Some(server.post(&path, &json!({"approve": true})).is(202))
    };
    let run = accepted["run"].as_str().unwrap().to_owned();
    say_yes(&run).unwrap();
    server.wait_for_end(&accepted);
    let fork = |body: &Value| server.post(&format!("/api/runs/{run}/fork"), body);
    fork(&json!({"at": 9, "in_place": true})).is(409);
    fork(&json!({"at": 0})).is(409);
    fork(&json!({"at": 0, "into": "/nowhere/at/all"})).is(409);
    fork(&json!({"at": 0, "into": "/a\u{0}b"})).is(400);
    fork(&json!({"at": 0, "in_place": true, "model": "no-such-model"})).is(409);
    assert_eq!(world.runs().len(), 1);
    let forked = fork(&json!({"at": 0, "into": world.path("copy")}))
        .is(202)
        .json();
    let forked = forked["run"].as_str().unwrap().to_owned();
    let shown = server.get(&format!("/api/runs/{forked}")).is(200).json();
    assert_eq!(shown["forked_from"], run.as_str());
    // The yes of the other run does not count for it; once it is answered, the queue goes on.
    let since = std::time::Instant::now();
    while say_yes(&forked).is_none() {
        assert!(since.elapsed() < crate::support::TIMEOUT);
    }
    let state = || server.get(&format!("/api/runs/{forked}")).is(200).json();
    while state()["state"] != "over" {
        assert!(since.elapsed() < crate::support::TIMEOUT, "{:#}", state());
    }
    assert_eq!(
        std::fs::read_to_string(world.path("copy/.envrc")).unwrap(),
        "hello\n"
    );
}

fn token(server: &Server<'_>, name: &str, scope: &str) -> String {
    let body = json!({"name": name, "scopes": [scope]});
    let made = server.post("/api/tokens", &body).is(201).json();
    made["token"].as_str().unwrap().to_owned()
}

#[test]
fn commands_wait_their_turn_are_one_by_key_and_can_be_taken_back() {
    let world = World::new(UNTIL_GO);
    let server = Server::start_with(&world, &["--at-once", "1"]);
    let workdir = world.work();
    let auto = json!({"approve": "auto"});
    let first = server.run("first", &auto);
    server.wait(&first, |stage| stage["state"] == "running");
    let ask = |goal: &str, more: Value| {
        let mut body =
            json!({"goal": goal, "workdir": workdir, "options": {"loop": "single-shot"}});
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        server.post("/api/runs", &body).is(202).json()
    };
    let low = ask("low", json!({"priority": -5}));
    let high = ask("high", json!({"priority": 5, "key": "once"}));
    let again = ask("another", json!({"key": "once"}));
    assert_eq!(again["id"], high["id"]);
    let later = ask("later", json!({"delay_ms": 3_600_000}));
    let taken = format!("/api/commands/{}", low["id"].as_str().unwrap());
    server.delete(&taken).is(204);
    server.delete(&taken).is(204);
    let begun = format!("/api/commands/{}", first["id"].as_str().unwrap());
    server.delete(&begun).is(409);
    let open = server.get("/api/commands?open=true").is(200).json();
    assert_eq!(open.as_array().unwrap().len(), 3, "{open:#}");
    std::fs::write(workdir.join("go"), "").unwrap();
    server.wait_for_end(&first);
    let ended = server.wait_for_end(&high);
    let run = ended["run"].as_str().unwrap();
    let journal = world.path(&format!("home/journal/runs/{run}/000001.jsonl"));
    let journal = std::fs::read_to_string(journal).unwrap();
    assert!(journal.contains("\"priority\":5"), "{journal}");
    let later = server.wait(&later, |_| true);
    assert_eq!(later["stage"]["state"], "queued");
    let cancelled = server.wait_for_end(&low);
    assert_eq!(cancelled["stage"]["state"], "cancelled");
    let log = std::fs::read_to_string(world.path("home/logs/serve.log")).unwrap();
    assert!(log.contains("Z open this address"), "{log}");
}

#[test]
fn whoever_follows_positions_is_told_of_every_run() {
    let world = World::new(UNTIL_GO);
    let server = Server::start(&world);
    let mut stream = server.connect();
    let request = format!(
        "GET /api/stream HTTP/1.1\r\nhost: {}\r\n{}\r\n",
        server.host,
        bearer(TOKEN)
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    // A run that another process drives is a run like any other.
    let driven = world.start(&world.run_arguments(&[]));
    let mut heads = lines.by_ref().filter_map(|line| {
        let data = line.strip_prefix("data: ")?.to_owned();
        let heads: Vec<Value> = serde_json::from_str(&data).unwrap();
        heads.into_iter().next()
    });
    let running = heads.find(|head| head["state"] == "running").unwrap();
    std::fs::write(world.work().join("go"), "").unwrap();
    let over = heads.find(|head| head["state"] == "over").unwrap();
    assert_eq!(running["run"], over["run"]);
    driven.end().exits(0);
    let seq = server.get("/api/runs/last").is(200).json()["seq"].clone();
    assert_eq!(over["seq"], seq);
}

#[test]
fn a_run_is_steered_paused_and_gone_on_with() {
    let world = World::new(UNTIL_GO);
    let server = Server::start(&world);
    let accepted = server.run("wait", &json!({"approve": "auto"}));
    world.wait_for_file("ledger.txt", "begun");
    server
        .post("/api/runs/last/steer", &json!({"text": "and say thanks"}))
        .is(202);
    server
        .post("/api/runs/last/steer", &json!({"text": "  "}))
        .is(400);
    server.post("/api/runs/last/pause", &json!({})).is(202);
    std::fs::write(world.work().join("go"), "").unwrap();
    let ended = server.wait_for_end(&accepted);
    assert_eq!(
        server.get("/api/runs/last").json()["state"],
        "parked",
        "{ended:#}"
    );
    let again = server
        .post("/api/runs/last/resume", &json!({}))
        .is(202)
        .json();
    let ended = server.wait_for_end(&again);
    assert_eq!(ended["stage"]["code"], 0, "{ended:#}");
    assert_eq!(world.file("ledger.txt"), "begun\ndone\n");
    server.post("/api/runs/last/resume", &json!({})).is(409);
    server.post("/api/runs/last/stop", &json!({})).is(409);
    let shown = world.gyrus(&["show", "last"]).exits(0).out;
    assert!(shown.contains("and say thanks"), "{shown}");
}

#[test]
fn wrong_requests_get_a_reason_and_change_nothing() {
    let world = World::new("");
    let server = Server::start(&world);
    let workdir = world.work();
    for (body, words) in [
        (
            json!({"goal": " ", "workdir": workdir}),
            "the goal is empty",
        ),
        (json!({"goal": "x", "workdir": "work"}), "not absolute"),
        (
            json!({"goal": "x", "workdir": "/"}),
            "the whole file system",
        ),
        (json!({"goal": "x", "workdir": "/nowhere"}), "/nowhere"),
        (
            json!({"goal": "x", "workdir": workdir, "options": {"lop": "react"}}),
            "did you mean `loop`",
        ),
        (
            json!({"goal": "x", "workdir": workdir, "options": {"loop": "rect"}}),
            "there is no loop `rect`",
        ),
        (
            json!({"goal": "x", "workdir": workdir, "options": {"max-steps": "many"}}),
            "--max-steps",
        ),
        (
            json!({"goal": "x", "workdir": workdir, "options": {"ephemeral": true}}),
            "no option `ephemeral`",
        ),
        (
            json!({"goal": "x", "workdir": workdir, "gaol": 1}),
            "unknown field `gaol`",
        ),
        (
            json!({"goal": "x", "workdir": workdir, "delay_ms": u64::MAX}),
            "at most a year",
        ),
        (json!({"goal": "x"}), "missing field `workdir`"),
    ] {
        let answer = server.post("/api/runs", &body).is(400);
        assert!(answer.body.contains(words), "{words}: {answer:?}");
    }
    for path in [
        "/api/runs?state=lost",
        "/api/runs?limit=0",
        "/api/runs?limit=-1",
        "/api/runs?before=x",
        "/api/runs?nothing=1",
        "/api/runs/%ff",
    ] {
        server.get(path).is(400);
    }
    for path in [
        "/api/runs/abc",
        "/api/runs/last",
        "/api/runs/0000000000",
        "/api/commands/x",
        "/api/x",
        "/x",
    ] {
        server.get(path).is(404);
    }
    server.send("PUT", "/api/runs", &bearer(TOKEN), "").is(405);
    server
        .send("POST", "/api/runs", &bearer(TOKEN), "{}")
        .is(415);
    assert_eq!(server.get("/api/commands").json(), json!([]));
}

#[test]
fn the_command_line_drives_a_server() {
    let world = World::new(THREE_STEPS);
    let server = Server::start(&world);
    let address = format!("http://{}", server.host);
    let far = |arguments: &[&str], token: &str| {
        let mut command = world.command(&[&["--connect", &*address], arguments].concat());
        crate::support::said(command.env("GYRUS_TOKEN", token).output().unwrap())
    };
    let work = world.work();
    let work = work.to_str().unwrap();
    let run = far(
        &["run", "say hello", "--workdir", work, "--approve", "auto"],
        TOKEN,
    );
    let run = run.exits(0);
    assert_eq!(run.out, "It says hello.\n");
    assert!(run.err.contains("reached, as the model claims"), "{run:?}");
    let listed = far(&["runs", "list", "--json"], TOKEN).exits(0);
    assert!(listed.out.contains("say hello"));
    far(&["runs", "lst"], TOKEN)
        .exits(2)
        .says("unrecognized subcommand");
    far(&["serve"], TOKEN)
        .exits(2)
        .says("cannot be carried out by a server");
    far(&["runs", "list"], "nonsense")
        .exits(1)
        .says("no token that counts");
    // On this machine the socket lets the same user in without a token.
    let socket = world.path("home/serve/socket");
    let socket = socket.to_str().unwrap();
    let equals = format!("--connect={socket}");
    for arguments in [
        ["--connect", socket, "runs", "list"],
        ["runs", "list", "--connect", socket],
        ["runs", &equals, "list", "--all"],
    ] {
        let near = world.gyrus(&arguments).exits(0);
        assert!(near.out.contains("say hello"), "{arguments:?}");
    }
    let alone = world.gyrus(&["runs", "list", "--connect"]).exits(2);
    alone.says("needs the address of a server");
    server.signal(Signal::INT);
    assert_eq!(server.end(), Some(0));
    far(&["runs", "list"], TOKEN).exits(1).says("gyrus serve");
}
