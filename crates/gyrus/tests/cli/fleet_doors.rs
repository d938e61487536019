//! `gyrus serve --fleet`: several doors of one fleet, each with a home of its own.

use std::{
    fs,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};

use crate::{
    fleet::{Fleet, LONG, no_server},
    server::Server,
    support::TIMEOUT,
};

/// Asks a person, and finishes.
const ASKS: &str = r#"
[[reply]]
calls = [{ tool = "shell", arguments = { command = "echo line >> ledger.txt" } }]
[[reply]]
calls = [{ tool = "ask_person", arguments = { question = "Which one?" } }]
[[reply]]
calls = [{ tool = "finish", arguments = { reached = true, answer = "as you say" } }]
"#;

/// Finishes at once.
const NOTHING: &str = r#"
[[reply]]
calls = [{ tool = "finish", arguments = { reached = true, answer = "All is well." } }]
"#;

fn door<'f>(fleet: &'f Fleet, home: &str, more: &[(&str, &str)]) -> Server<'f> {
    // As a person would keep the token out of lists of processes.
    let file = fleet.world.path("fleet-address");
    fs::write(&file, format!("{}\n", fleet.address)).unwrap();
    let address = format!("@{}", file.display());
    let home = fleet.world.path(home).display().to_string();
    let variables = [&[("GYRUS_HOME", home.as_str())], more].concat();
    Server::start_in(&fleet.world, &["--fleet", &address], &variables)
}

#[track_caller]
fn eventually(server: &Server<'_>, path: &str, holds: impl Fn(&Value) -> bool) -> Value {
    let since = Instant::now();
    loop {
        let answer = server.get(path);
        if answer.status == 200 {
            let value = answer.json();
            if holds(&value) {
                return value;
            }
            assert!(since.elapsed() < TIMEOUT, "{value:#}");
        }
        assert!(since.elapsed() < TIMEOUT, "{answer:#?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_run_is_started_at_one_door_answered_at_another_and_seen_at_both() {
    let Some(fleet) = Fleet::start(ASKS) else {
        return no_server();
    };
    let _worker = fleet.worker("one", LONG);
    let (here, there) = (door(&fleet, "here", &[]), door(&fleet, "there", &[]));
    let shown = eventually(&here, "/api/fleet", |shown| {
        shown["workers"][0]["at_once"] == 4
    });
    assert!(!shown["address"].to_string().contains('@'), "{shown:#}");
    let command = here.run("go", &json!({"approve": "auto"}));
    let run = command["run"].as_str().unwrap().to_owned();
    let asked = eventually(&there, "/api/questions", |asked| asked[0]["run"] == *run);
    let question = asked[0]["question"].as_str().unwrap();
    let path = format!("/api/runs/{run}/questions/{question}/answer");
    let answer = json!({"approve": true, "words": "the second"});
    there.post(&path, &answer).is(202);
    for server in [&here, &there] {
        let path = format!("/api/runs/{run}");
        let over = eventually(server, &path, |shown| shown["state"] == "over");
        assert_eq!(over["steps"], 3, "{over:#}");
        let ended = "/api/events?topic=command.ended&limit=5";
        eventually(server, ended, |events| {
            events["events"][0]["payload"]["run"] == *run
        });
    }
    assert_eq!(fleet.world.file("ledger.txt"), "line\n");
    let page = here.get("/fleet").is(200);
    assert!(page.body.contains("longest wait"), "{page:#?}");
}

#[test]
fn a_stop_at_one_door_holds_for_the_fleet_until_it_is_lifted() {
    let Some(fleet) = Fleet::start(NOTHING) else {
        return no_server();
    };
    let (here, there) = (door(&fleet, "here", &[]), door(&fleet, "there", &[]));
    here.post("/api/stop", &json!({"reason": "smoke"})).is(200);
    eventually(&there, "/healthz", |health| health["stopped"] == true);
    let command = there.run("go", &json!({"approve": "auto"}));
    let _worker = fleet.worker("one", LONG);
    let shown = eventually(&there, "/api/fleet", |shown| {
        shown["workers"][0].is_object()
    });
    assert!(shown["stopped"].to_string().contains("smoke"), "{shown:#}");
    assert_eq!(shown["waiting"], 1, "{shown:#}");
    there.delete("/api/stop").is(200);
    there.wait_for_end(&command);
    eventually(&here, "/healthz", |health| health["stopped"] == false);
}

#[test]
fn an_agent_that_two_doors_have_does_the_work_of_an_instant_once() {
    let Some(fleet) = Fleet::start(NOTHING) else {
        return no_server();
    };
    let _worker = fleet.worker("one", LONG);
    for home in ["here", "there"] {
        let folder = fleet.world.path(home).join("agents");
        fs::create_dir_all(&folder).unwrap();
        let text = format!(
            "---\nworkdir: {}\noptions:\n  approve: auto\ntriggers:\n  tick:\n    cron: '* * * * *'\n---\nLook.\n",
            fleet.world.work().display()
        );
        fs::write(folder.join("scribe.md"), text).unwrap();
    }
    // The next minute of the doors' clocks comes in 4 s.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let now = i64::try_from(now.as_millis()).unwrap();
    let minute = now.div_euclid(60_000) * 60_000 + 120_000;
    let ahead = (minute - now - 4_000).to_string();
    let clock = [("GYRUS_CLOCK_AHEAD_MS", ahead.as_str())];
    let (here, there) = (door(&fleet, "here", &clock), door(&fleet, "there", &clock));
    for server in [&here, &there] {
        let agent = eventually(server, "/api/agents/scribe", |agent| agent["handled"] == 1);
        assert_eq!(agent["triggers"][0]["fired"], 1, "{agent:#}");
        let runs = server.get("/api/runs").is(200).json();
        assert_eq!(runs["runs"].as_array().unwrap().len(), 1, "{runs:#}");
    }
}
