//! Clocks that are set while gyrus works, and a year under a wrong one.

use std::{fs, path::PathBuf, process::Command};

use serde_json::json;

use crate::{
    server::{
        Server,
        agents::{ONE_LINE, goals, wait, write_agent},
    },
    support::{World, said},
};

/// A library that sets the clock of the processes that load it ahead, by the seconds in a file.
const LIBRARY: &str = include_str!("../fixtures/clock.c");

const HOUR: i64 = 3_600;
const YEAR: i64 = 365 * 24 * HOUR;

/// The clock of a world's processes.
struct Clock {
    ahead: PathBuf,
    library: PathBuf,
}

impl Clock {
    /// Returns none where no library can be made.
    fn of(world: &World) -> Option<Self> {
        let clock = Self {
            ahead: world.path("ahead"),
            library: world.path("clock.so"),
        };
        let source = world.path("clock.c");
        fs::write(&source, LIBRARY).unwrap();
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-o"]);
        let made = compiler.args([&clock.library, &source]).status();
        if !made.is_ok_and(|made| made.success()) {
            eprintln!("skipped: there is no compiler for C");
            return None;
        }
        Some(clock)
    }

    /// Sets it ahead of the machine's.
    fn set(&self, seconds: i64) {
        // Whoever looks sees the old time or the new one.
        let new = self.ahead.with_extension("new");
        fs::write(&new, seconds.to_string()).unwrap();
        fs::rename(new, &self.ahead).unwrap();
    }

    fn variables(&self) -> [(&'static str, &str); 2] {
        [
            ("LD_PRELOAD", self.library.to_str().unwrap()),
            ("CLOCK_AHEAD", self.ahead.to_str().unwrap()),
        ]
    }
}

#[test]
fn a_year_under_a_wrong_clock_holds_nothing_up() {
    let world = World::new(ONE_LINE);
    let Some(clock) = Clock::of(&world) else {
        return;
    };
    write_agent(&world, "scribe", "budget: {runs: 1}\n");
    clock.set(YEAR);
    let server = Server::start_in(&world, &[], &clock.variables());
    let in_an_hour = |goal: &str| {
        let workdir = world.work();
        let body = json!({"goal": goal, "workdir": workdir, "delay_ms": HOUR * 1_000,
            "options": {"approve": "auto"}});
        server.post("/api/runs", &body).is(202).json()
    };
    let event = json!({"topic": "agent.scribe.inbox", "payload": 1});
    let later = in_an_hour("first");
    server.post("/api/events", &event).is(202);
    wait(&server, "scribe", |agent| agent["handled"] == 1);

    // What waits for a time that does not come for a year, begins; nothing of that year counts today.
    clock.set(0);
    let ended = server.wait_for_end(&later);
    assert_eq!(ended["stage"]["code"], 0, "{ended:#}");
    server.post("/api/events", &event).is(202);
    wait(&server, "scribe", |agent| agent["handled"] == 2);

    // The time comes also when the clock is set to it.
    let later = in_an_hour("last of all");
    clock.set(2 * HOUR);
    let ended = server.wait_for_end(&later);
    assert_eq!(ended["stage"]["code"], 0, "{ended:#}");

    // The newest is what began last, whatever the clock was then.
    let last = later["run"].as_str().unwrap();
    let runs = server.get("/api/runs?limit=1").is(200).json();
    assert_eq!(runs["runs"][0]["run"], last, "{runs:#}");
    let all = goals(&server);
    assert_eq!(all.len(), 4, "{all:?}");
    assert_eq!(world.file("ledger.txt").lines().count(), 4);
    clock.set(-YEAR);
    let mut newest = world.command(&["show", "last"]);
    newest.envs(clock.variables());
    let newest = said(newest.output().unwrap()).exits(0);
    assert!(newest.out.contains("last of all"), "{newest:?}");
}
