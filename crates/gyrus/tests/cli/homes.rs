//! Homes that released versions wrote, kept under `tests/homes`: every later version opens them, goes
//! on with their runs, replays and exports them.
//!
//! A release adds its own: `GYRUS_MAKE_HOME=NAME cargo nextest run -E 'test(a_home_is_made)'`.

use std::{fs, path::PathBuf, process::Command};

use gyrus_kernel::{Entry, log_name};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    planning::{self, plan, reply, summary, write},
    server::Server,
    support::{THREE_STEPS, World},
};

/// Reads a file of the person, for which it asks.
const ASKS: &str = r#"
[[reply]]
calls = [{ tool = "read", arguments = { path = "../person/notes" } }]
[[reply]]
calls = [{ tool = "finish", arguments = { reached = true, answer = "read" } }]
"#;

const GIVES_UP: &str = r#"
[[reply]]
calls = [{ tool = "finish", arguments = { reached = false, answer = "it cannot be done" } }]
"#;

fn homes() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/homes")
}

fn tar(arguments: &[&str]) {
    let done = Command::new("tar").args(arguments).status().unwrap();
    assert!(done.success(), "tar {arguments:?}");
}

/// Returns the state of each run by its id.
fn states(world: &World) -> Value {
    let listed = world.gyrus(&["runs", "list", "--all", "--limit", "1000", "--json"]);
    let lines = listed.exits(0).out;
    let runs = lines.lines().map(|line| {
        let run: Value = serde_json::from_str(line).unwrap();
        (
            run["run"].as_str().unwrap().to_owned(),
            run["state"].clone(),
        )
    });
    Value::Object(runs.collect())
}

fn script(world: &World, text: &str) {
    fs::write(world.path("script.toml"), text).unwrap();
}

/// Makes one of everything that a home holds, where a name for it is given.
#[test]
fn a_home_is_made() {
    let Some(name) = std::env::var_os("GYRUS_MAKE_HOME") else {
        return;
    };
    let world = World::new(THREE_STEPS);
    fs::write(world.path("person/notes"), "remember\n").unwrap();
    world.run(&["--reflect"]).exits(0);
    world.gyrus(&["undo", "last", "--yes"]).exits(0);
    world.gyrus(&["fork", "last", "1", "--run"]);
    script(&world, GIVES_UP);
    world.run(&[]).exits(1);
    let plan = plan(&[write("a", "plan.txt", "planned\n", &[])]);
    script(
        &world,
        &(reply("plan", &plan, "") + &summary("It is planned.")),
    );
    planning::run(&world, &[]).exits(0);
    script(&world, ASKS);
    world
        .gyrus(&["run", "read the notes", "--on-ask", "park"])
        .exits(5);
    world.gyrus(&["approve", "last", "--always"]).exits(0);
    world.gyrus(&["resume", "last"]).exits(0);
    world.gyrus(&["approvals", "revoke", "1"]).exits(0);
    world
        .gyrus(&["memory", "add", "the bees like the lime tree"])
        .exits(0);
    fs::create_dir(world.path("person/garden")).unwrap();
    fs::create_dir_all(world.path("home/agents")).unwrap();
    let agent = "---\nworkdir: ~/garden\nsubscribe: [garden.dry]\n---\nWater what is dry.\n";
    fs::write(world.path("home/agents/gardener.md"), agent).unwrap();
    script(&world, "[[reply]]\ntext = \"Four.\"\n");
    let server = Server::start(&world);
    server.wait_for_end(&server.run("What is 2 + 2?", &json!({})));
    server.signal(Signal::TERM);
    server.end();
    script(&world, ASKS);
    world
        .gyrus(&["run", "read the notes again", "--on-ask", "park"])
        .exits(5);
    fs::write(world.path("states.json"), states(&world).to_string()).unwrap();
    fs::create_dir_all(homes()).unwrap();
    let archive = homes().join(name).with_extension("tar.gz");
    let parts = ["home", "person", "work", "script.toml", "states.json"];
    let folder = world.path("");
    let fixed = [
        "-czf",
        archive.to_str().unwrap(),
        "-C",
        folder.to_str().unwrap(),
    ];
    tar(&[&fixed[..], &parts].concat());
}

#[test]
fn homes_of_earlier_versions_are_gone_on_with() {
    let archives: Vec<_> = fs::read_dir(homes()).unwrap().flatten().collect();
    assert!(!archives.is_empty());
    for archive in archives {
        let world = World::new("");
        let (file, folder) = (archive.path(), world.path(""));
        tar(&[
            "-xzf",
            file.to_str().unwrap(),
            "-C",
            folder.to_str().unwrap(),
        ]);
        goes_on(&world);
    }
}

/// The folder that a home's runs worked in, at its place again until this is dropped.
struct Place(PathBuf);

impl Place {
    fn of(world: &World) -> Self {
        let entries = world.entries();
        let Entry::RunStarted(started) = &entries[0] else {
            panic!("a run begins with its start");
        };
        let folder = started.workspace.parent().unwrap().to_owned();
        assert!(!folder.exists(), "{} is of somebody else", folder.display());
        fs::create_dir_all(folder.join("work")).unwrap();
        fs::create_dir(folder.join("person")).unwrap();
        fs::copy(world.path("person/notes"), folder.join("person/notes")).unwrap();
        Self(folder)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn goes_on(world: &World) {
    let before: Value =
        serde_json::from_slice(&fs::read(world.path("states.json")).unwrap()).unwrap();
    let told = world.gyrus(&["doctor", "--upgrade"]).exits(0).out;
    assert!(told.contains("this version reads them all"), "{told}");
    // It was copied: nothing begins in it before a person says that it is theirs.
    world.gyrus(&["resume", "last", "--anywhere"]).exits(2);
    world.gyrus(&["runs", "adopt", "--yes"]).exits(0);
    assert_eq!(states(world), before);
    world.gyrus(&["runs", "verify"]).exits(0);
    let mut parked = Vec::new();
    for (run, state) in before.as_object().unwrap() {
        world.gyrus(&["show", run]).exits(0);
        let file = world.path(&format!("{run}.gyrus"));
        world
            .gyrus(&["runs", "export", run, file.to_str().unwrap()])
            .exits(0);
        let replayed = world.gyrus(&["replay", run]).exits(0).out;
        assert!(replayed.contains("0 differences"), "{replayed}");
        if state == "waiting" || state == "parked" {
            parked.push(run);
        }
    }
    assert!(!parked.is_empty());
    let place = Place::of(world);
    let model = format!("script:{}", world.path("script.toml").display());
    for run in parked {
        world.gyrus(&["approve", run]).exits(0);
        world.gyrus(&["resume", run, "--model", &model]).exits(0);
    }
    drop(place);
    let found = world.gyrus(&["memory", "search", "lime tree"]).exits(0).out;
    assert!(found.contains("bees"), "{found}");
    let agents = world.gyrus(&["agents", "list"]).exits(0).out;
    assert!(agents.contains("gardener"), "{agents}");
    assert_eq!(Server::start(world).get("/api/status").status, 200);
}

/// A home of a version that is yet to come is read, and nothing in it changes.
#[test]
fn a_newer_home_is_left_alone() {
    let world = World::new(THREE_STEPS);
    world.run(&[]).exits(0);
    let format = world.path("home/journal/format");
    fs::write(&format, "2\n").unwrap();
    let log = world.store().folder(&log_name(world.runs()[0]));
    let bytes = || fs::read(log.join("000001.jsonl")).unwrap();
    let before = bytes();
    world.run(&[]).exits(2).says("has format 2");
    let told = world.gyrus(&["doctor", "--upgrade"]);
    assert!(told.out.contains("a newer version wrote here"), "{told:?}");
    world.gyrus(&["show", "last"]).exits(0);
    assert_eq!((bytes(), world.runs().len()), (before, 1));
}
