//! Triggers of agents, in a server.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::PermissionsExt as _,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use gyrus_runtime::triggers::HookSecret;
use serde_json::{Value, json};

use super::{
    Answer, Server,
    agents::{ONE_LINE, goals, wait, write_agent},
};
use crate::support::World;

pub(crate) const SECRET: &str = "the-secret-of-these-webhooks";

/// Finishes at once, and says that there was nothing to do.
const NOTHING: &str = r#"
[[reply]]
calls = [{ tool = "finish", arguments = { reached = true, answer = "Nothing to do.\nAll is well." } }]
"#;

const HOOK: &str = "triggers:\n  build:\n    webhook: BUILD_HOOK\n";

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}

fn serve(world: &World) -> Server<'_> {
    Server::start_in(world, &[], &[("BUILD_HOOK", SECRET)])
}

/// The request of a delivery that was signed some seconds ago.
fn delivery(secret: &str, id: &str, ago: i64, body: &str) -> String {
    let timestamp = (now_ms() / 1000 - ago).to_string();
    let secret = HookSecret::new(secret).unwrap();
    let signature = secret.sign(id, &timestamp, body.as_bytes());
    let head = format!(
        "webhook-id: {id}\r\nwebhook-timestamp: {timestamp}\r\nwebhook-signature: {signature}\r\n"
    );
    let length = body.len();
    // By whatever name the sender knows.
    format!(
        "POST /hooks/scribe/build HTTP/1.1\r\nhost: hooks.example\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n{head}\r\n{body}"
    )
}

pub(crate) fn deliver(server: &Server<'_>, secret: &str, id: &str, ago: i64, body: &str) -> Answer {
    server.raw(delivery(secret, id, ago, body).as_bytes())
}

fn inbox(server: &Server<'_>) -> Vec<Value> {
    let path = "/api/events?topic=agent.scribe.inbox&limit=100";
    let events = server.get(path).is(200).json();
    events["events"].as_array().unwrap().clone()
}

fn trigger(agent: &Value) -> &Value {
    &agent["triggers"][0]
}

#[test]
fn a_webhook_takes_what_is_signed_once() {
    let world = World::new(ONE_LINE);
    let when = "    when: [{path: /state, equals: failed}]\n";
    write_agent(&world, "scribe", &format!("{HOOK}{when}"));
    let server = serve(&world);
    let failed = r#"{"state": "failed"}"#;
    deliver(&server, SECRET, "d1", 0, failed).is(202);
    deliver(&server, SECRET, "d1", 0, failed).is(200);
    let unsigned = delivery(SECRET, "d2", 0, failed).replace("webhook-signature", "x-other");
    server.raw(unsigned.as_bytes()).is(401);
    deliver(&server, "another-secret-of-length", "d3", 0, failed).is(401);
    let forged = delivery(SECRET, "d4", 0, failed).replace("failed", "Failed");
    server.raw(forged.as_bytes()).is(401);
    deliver(&server, SECRET, "d5", 310, failed).is(401);
    deliver(&server, SECRET, "d6", -310, failed).is(401);
    deliver(&server, SECRET, "d7", 0, "state=failed").is(400);
    for size in [300 << 10, 1 << 20, 5 << 20] {
        let long = json!({"state": "failed", "long": "x".repeat(size)}).to_string();
        deliver(&server, SECRET, "d8", 0, &long).is(413);
    }
    let passed = deliver(&server, SECRET, "d9", 0, r#"{"state": "passed"}"#).is(200);
    assert_eq!(
        passed.json(),
        json!({"fired": false, "why": "a condition does not hold"})
    );
    let nobody = delivery(SECRET, "d10", 0, failed).replace("/build", "/other");
    server.raw(nobody.as_bytes()).is(404);

    let agent = wait(&server, "scribe", |agent| {
        trigger(agent)["last_result"].is_string()
    });
    assert_eq!(trigger(&agent)["fired"], 1);
    assert_eq!(trigger(&agent)["held"], json!({"condition": 1}));
    assert_eq!(trigger(&agent)["last_result"], "claimed: written");
    let events = inbox(&server);
    assert_eq!(events.len(), 1);
    // A payload from outside is data, and exposes the run.
    assert_eq!(events[0]["origin"]["from"], "event");
    assert_eq!(events[0]["payload"], json!({"state": "failed"}));
    server.kill();
    let server = serve(&world);
    deliver(&server, SECRET, "d1", 0, failed).is(200);
    deliver(&server, SECRET, "d11", 0, failed).is(202);
    wait(&server, "scribe", |agent| agent["handled"] == 2);
    assert_eq!(world.file("ledger.txt"), "line\nline\n");
    // Without a secret every delivery is refused, and that is told.
    drop(server);
    let server = Server::start(&world);
    deliver(&server, SECRET, "d12", 0, failed).is(503);
    let agent = wait(&server, "scribe", |agent| agent["stage"] == "active");
    assert_eq!(
        trigger(&agent)["problem"],
        "this webhook has no secret on this server"
    );
    // A stored one does as well.
    let missing = "the secret BUILD_HOOK of a webhook cannot be used here: it is not set";
    world.gyrus(&["agents", "check"]).exits(0).says(missing);
    let stored = world
        .gyrus(&["agents", "secret", "BUILD_HOOK"])
        .exits(0)
        .out;
    drop(server);
    let server = Server::start(&world);
    deliver(&server, stored.trim(), "d12", 0, failed).is(202);
}

#[test]
fn a_budget_of_the_day_holds_triggers_back() {
    let world = World::new(ONE_LINE);
    write_agent(&world, "scribe", &format!("{HOOK}budget: {{runs: 1}}\n"));
    let server = serve(&world);
    deliver(&server, SECRET, "d1", 0, "{}").is(202);
    wait(&server, "scribe", |agent| agent["handled"] == 1);
    for _ in 0..2 {
        deliver(&server, SECRET, "d2", 0, "{}").is(429);
    }
    let agent = wait(&server, "scribe", |agent| trigger(agent)["fired"] == 1);
    assert_eq!(trigger(&agent)["held"], json!({"budget": 2}));
    // It is told once a day.
    let told = "/api/events?topic=agent.scribe.trigger.limited";
    let told = server.get(told).is(200).json();
    assert_eq!(told["events"].as_array().unwrap().len(), 1);
    assert_eq!(goals(&server).len(), 1);
}

#[test]
fn a_server_that_is_killed_while_deliveries_come_fires_each_once() {
    let world = World::new(NOTHING);
    write_agent(&world, "scribe", &format!("{HOOK}    pause-after: 100\n"));
    let mut ids = Vec::new();
    for (round, delay) in [0, 3, 8, 20, 60].into_iter().enumerate() {
        let server = serve(&world);
        let sent: Vec<String> = (0..3).map(|number| format!("r{round}-{number}")).collect();
        std::thread::scope(|scope| {
            for id in &sent {
                let server = &server;
                scope.spawn(move || deliver(server, SECRET, id, 0, "{}"));
            }
            std::thread::sleep(Duration::from_millis(delay));
            server.signal(rustix::process::Signal::KILL);
        });
        server.kill();
        ids.extend(sent);
    }
    let server = serve(&world);
    // Who got no answer delivers again.
    for id in &ids {
        let status = deliver(&server, SECRET, id, 0, "{}").status;
        assert!(matches!(status, 200 | 202), "{status}");
    }
    let agent = wait(&server, "scribe", |agent| agent["handled"] == ids.len());
    assert_eq!(trigger(&agent)["fired"], ids.len());
    assert_eq!(inbox(&server).len(), ids.len());
    assert_eq!(goals(&server).len(), ids.len());
}

#[test]
fn a_schedule_fires_once_however_often_the_server_is_killed() {
    let world = World::new(NOTHING);
    let settings =
        "triggers:\n  tick:\n    cron: '* * * * *'\n    missed: once\n    pause-after: 100\n";
    write_agent(&world, "scribe", settings);
    let mut ahead = 0;
    let start =
        |ahead: i64| Server::start_in(&world, &[], &[("GYRUS_CLOCK_AHEAD_MS", &ahead.to_string())]);
    let mut instants = Vec::new();
    for offset in [-4, 3, 25] {
        // The next minute of the server's clock comes 2.5 s from now.
        let now = now_ms();
        let minute = (now + ahead).div_euclid(60_000) * 60_000 + 120_000;
        ahead = minute - now - 2_500;
        let server = start(ahead);
        wait(&server, "scribe", |agent| {
            trigger(agent)["next_ms"].as_i64() >= Some(minute)
        });
        let left = now + 2_500 + offset - now_ms();
        std::thread::sleep(Duration::from_millis(left.try_into().unwrap_or(0)));
        server.kill();
        let server = start(ahead);
        wait(&server, "scribe", |agent| {
            trigger(agent)["next_ms"].as_i64() >= Some(minute + 60_000)
        });
        instants.push(minute);
        server.kill();
    }
    let server = start(ahead + 3 * 3_600_000);
    // Before each round but the first, and now, instants were missed, of which the last one counts.
    let count = 2 * instants.len();
    wait(&server, "scribe", |agent| {
        agent["handled"].as_u64() >= u64::try_from(count).ok()
    });
    let payloads = inbox(&server)
        .into_iter()
        .map(|mut event| event["payload"].take());
    let payloads: Vec<Value> = payloads.collect();
    let at = |payload: &Value| payload["at"].as_str().unwrap().to_owned();
    let all: BTreeSet<String> = payloads.iter().map(at).collect();
    assert_eq!((payloads.len(), all.len()), (count, count), "{payloads:#?}");
    for instant in instants {
        let instant = gyrus_text::utc(instant).replace(".000", "");
        assert!(all.contains(&instant), "{instant}: {payloads:#?}");
    }
}

#[test]
fn files_that_change_wake_an_agent_but_not_those_of_its_own_run() {
    let world = World::new(ONE_LINE);
    fs::write(world.work().join(".gitignore"), "*.tmp\n").unwrap();
    let settings = "triggers:\n  drop:\n    files: .\n    settle: 100ms\n";
    write_agent(&world, "scribe", settings);
    let server = Server::start(&world);
    wait(&server, "scribe", |agent| {
        agent["stage"] == "active" && trigger(agent)["problem"].is_null()
    });
    fs::write(world.work().join("a.tmp"), "1").unwrap();
    fs::write(world.work().join("a.txt"), "1").unwrap();
    let own = |count: u64| {
        move |agent: &Value| trigger(agent)["held"]["own_run"] == count && agent["handled"] == count
    };
    // The run adds to a file of the folder.
    wait(&server, "scribe", own(1));
    fs::write(world.work().join("b.txt"), "1").unwrap();
    let agent = wait(&server, "scribe", own(2));
    assert_eq!(trigger(&agent)["fired"], 2);
    let names: Vec<Value> = inbox(&server)
        .iter()
        .map(|event| event["payload"]["changed"].clone())
        .collect();
    assert_eq!(names, [json!(["a.txt"]), json!(["b.txt"])]);
    assert_eq!(world.file("ledger.txt"), "line\nline\n");
}

#[test]
fn a_text_that_is_copied_wakes_an_agent() {
    let world = World::new(NOTHING);
    let settings = "triggers:
  links:
    clipboard: true
    when: [{path: /text, matches: '^https://'}]
";
    write_agent(&world, "scribe", settings);
    let check = world.gyrus(&["agents", "check"]).exits(0);
    check.says("the clipboard cannot be read here: there is no desktop");
    // A helper that prints what a file says.
    let (helper, clipboard) = (world.path("xclip"), world.path("clipboard"));
    let script = format!("#!/bin/sh\nexec cat {}\n", clipboard.display());
    fs::write(&helper, script).unwrap();
    fs::set_permissions(&helper, fs::Permissions::from_mode(0o755)).unwrap();
    let copy = |text: &str| {
        fs::write(world.path("new"), text).unwrap();
        fs::rename(world.path("new"), &clipboard).unwrap();
    };
    copy("https://old");
    let path = format!(
        "{}:{}",
        world.path("").display(),
        std::env::var("PATH").unwrap()
    );
    let server = Server::start_in(&world, &[], &[("PATH", &path), ("DISPLAY", ":99")]);
    wait(&server, "scribe", |agent| {
        trigger(agent)["kind"] == "clipboard" && trigger(agent)["problem"].is_null()
    });
    copy("https://new");
    let agent = wait(&server, "scribe", |agent| agent["handled"] == 1);
    assert_eq!(trigger(&agent)["fired"], 1);
    copy("a password");
    wait(&server, "scribe", |agent| {
        trigger(agent)["held"]["condition"] == 1
    });
    let events = inbox(&server);
    assert_eq!(events.len(), 1, "{events:#?}");
    assert_eq!(events[0]["payload"]["text"], "https://new");
    assert_eq!(events[0]["origin"]["from"], "event");
}

#[test]
fn wakes_without_use_pause_a_trigger_until_a_person_resumes_it() {
    let world = World::new(NOTHING);
    let settings =
        "triggers:\n  yearly:\n    cron: '@yearly'\n    zone: Europe/Berlin\n    pause-after: 2\n";
    write_agent(&world, "scribe", settings);
    let server = Server::start(&world);
    for count in 1..=2 {
        wait(&server, "scribe", |agent| {
            trigger(agent)["next_ms"].is_i64()
        });
        world
            .gyrus(&["agents", "fire", "scribe", "yearly"])
            .exits(0);
        wait(&server, "scribe", |agent| {
            trigger(agent)["useless"] == count
        });
    }
    // Each run was told how to say so.
    assert!(
        goals(&server)[0]
            .as_str()
            .unwrap()
            .contains("Nothing to do")
    );
    let listed = world.gyrus(&["agents"]).exits(0).out;
    assert!(
        listed.contains("paused: 2 wakes in a row were of no use"),
        "{listed}"
    );
    let told = "/api/events?topic=agent.scribe.trigger.paused";
    let told = server.get(told).is(200).json();
    assert_eq!(told["events"].as_array().unwrap().len(), 1);
    world.gyrus(&["agents", "resume", "scribe"]).exits(0);
    let agent = wait(&server, "scribe", |agent| {
        trigger(agent)["paused"].is_null()
    });
    assert_eq!(trigger(&agent)["useless"], 0);
    world
        .gyrus(&["agents", "fire", "scribe", "monthly"])
        .exits(2)
        .says("the agent `scribe` has no trigger `monthly`");
    // Without a server the log tells.
    server.kill();
    let listed = world.gyrus(&["agents"]).exits(0).out;
    assert!(listed.contains("trigger yearly: 2 wakes today"), "{listed}");
}

#[test]
fn every_mistake_of_a_trigger_is_named_with_its_line() {
    let world = World::new("");
    let settings = "triggers:
  Bad Name: {cron: '61 * * * *', zone: Mars/Olympus, missed: never}
  both:
    cron: '@daily'
    webhook: A
  files:
    files: /srv/inbox
    match: ['[']
    settle: 2
    missed: all
  hook:
    webhook: whsec_a-secret-in-a-file
    wakes: 0
    when:
      - {path: state, equals: 1}
      - {path: /a, matches: '('}
      - {path: /a, above: much, }
      - {path: /a}
      - {equals: 1}
    pause_after: 3
  copied:
    clipboard: true
";
    write_agent(&world, "scribe", settings);
    let said = world.gyrus(&["agents", "check"]).exits(2);
    let expected = [
        (6, "invalid name `Bad Name` of a trigger"),
        (6, "the minute `61` is not 0 to 59"),
        (6, "there is no time zone `Mars/Olympus`"),
        (6, "invalid `missed`: possible values: skip, once, all"),
        (
            7,
            "a trigger has one of `cron`, `files`, `clipboard` and `webhook`",
        ),
        (12, "invalid `match`"),
        (13, "invalid `settle`"),
        (14, "for files it is skip or once"),
        (16, "it names the variable with the secret"),
        (17, "invalid `wakes`"),
        (19, "invalid path `state`"),
        (20, "invalid pattern"),
        (21, "invalid `above`: it is not a number"),
        (
            22,
            "a condition has one of equals, matches, above, below, changed",
        ),
        (23, "`path` is missing"),
        (24, "did you mean `pause-after`?"),
        (26, "a copied text may be a password"),
    ];
    let lines: Vec<&str> = said.out.lines().collect();
    for (number, (line, words)) in expected.into_iter().enumerate() {
        let found = lines.get(number).copied().unwrap_or_default();
        assert!(
            found.contains(&format!("line {line}: ")),
            "{line} {words}: {said:#?}"
        );
        assert!(found.contains(words), "{line} {words}: {said:#?}");
    }
    assert_eq!(lines.len(), expected.len(), "{said:#?}");
    // The secret is not repeated.
    assert!(!said.out.contains("a-secret-in-a-file"), "{said:#?}");
}
