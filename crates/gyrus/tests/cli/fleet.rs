//! Runs of a fleet: a real server, real workers on homes of their own, and processes that are killed
//! and stopped.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    thread::JoinHandle,
    time::{Duration, Instant},
};

use gyrus_journal::Store;
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Running, Said, THREE_STEPS, TIMEOUT, World, said};

/// A lease that is over soon, and long enough for a machine that does much else.
pub(crate) const SHORT: &str = "4s";

/// A lease that is not waited for.
pub(crate) const LONG: &str = "60s";

/// Adds to a ledger at once, and again much later.
const SLOW: &str = r#"
[[reply]]
text = "At once."
calls = [{ tool = "shell", arguments = { command = "echo one >> ledger.txt" } }]
[[reply]]
text = "This takes a while."
calls = [{ tool = "shell", arguments = { command = "echo begun >> ledger.txt; sleep 25; echo late >> ledger.txt" } }]
[[reply]]
text = "That is all."
calls = [{ tool = "finish", arguments = { reached = true, answer = "finished" } }]
"#;

/// The folder of the server's program, if it is installed.
pub(crate) fn program() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/nats-server/bin");
    folder.join("nats-server").exists().then_some(folder)
}

/// A fleet with its server.
pub(crate) struct Fleet {
    pub(crate) world: World,
    pub(crate) address: String,
    _server: Running,
}

impl Fleet {
    /// Starts the server; `None` if its program is not installed.
    pub(crate) fn start(script: &str) -> Option<Self> {
        let program = program()?;
        let world = World::new(script);
        let mut command = at(&world, "server", &["fleet", "up", "--port", "0"]);
        let path = format!("{}:{}", program.display(), env::var("PATH").unwrap());
        let mut server = Running::of(command.env("PATH", path));
        server.hears("it runs until Ctrl-C");
        let address = fs::read_to_string(world.path("server/fleet/address")).unwrap();
        Some(Self {
            world,
            address,
            _server: server,
        })
    }

    pub(crate) fn worker(&self, home: &str, lease: &str) -> Running {
        self.worker_with(home, lease, &[])
    }

    fn worker_with(&self, home: &str, lease: &str, more: &[&str]) -> Running {
        let words = ["worker", "--fleet", &self.address, "--lease", lease];
        let mut worker = Running::of(&mut at(&self.world, home, &[&words, more].concat()));
        worker.hears("takes runs of");
        worker
    }

    /// The command that submits a run and watches it.
    pub(crate) fn submit(&self, more: &[&str]) -> Command {
        let words = [
            &self.world.run_arguments(&[])[..],
            &["--fleet", &self.address],
            more,
        ];
        at(&self.world, "client", &words.concat())
    }

    /// A command on the fleet's runs, from a machine of its own.
    pub(crate) fn says(&self, words: &[&str]) -> Said {
        let words = [&["--fleet", &self.address], words].concat();
        exits(at(&self.world, "elsewhere", &words))
    }

    /// Submits the slow run, and returns when its long command is at work. It is watched on.
    fn begin(&self) -> JoinHandle<Said> {
        let mut submit = self.submit(&[]);
        let watched = std::thread::spawn(move || said(submit.output().unwrap()));
        self.world.wait_for_file("ledger.txt", "begun");
        watched
    }

    /// The processes that drive runs of a worker with this home.
    pub(crate) fn drivers(&self, home: &str) -> Vec<Pid> {
        let home = format!("GYRUS_HOME={}", self.world.path(home).display());
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter(|pid: &i32| {
            let read = |file| fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            let environment = read("environ");
            let is_home = environment
                .split(|byte| *byte == 0)
                .any(|variable| variable == home.as_bytes());
            is_home && read("cmdline") == b"gyrus\0work\0"
        })
        .map(|pid| Pid::from_raw(pid).unwrap())
        .collect()
    }
}

/// gyrus with a home of its own.
pub(crate) fn at(world: &World, home: &str, words: &[&str]) -> Command {
    let mut command = world.command(words);
    command.env("GYRUS_HOME", world.path(home));
    command
}

pub(crate) fn no_server() {
    eprintln!("nats-server is not installed");
}

pub(crate) fn eventually(what: &str, holds: impl Fn() -> bool) {
    let until = Instant::now() + TIMEOUT;
    while !holds() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub(crate) fn exits(running: Command) -> Said {
    let mut running = running;
    said(running.output().unwrap())
}

#[test]
fn a_run_is_done_by_a_worker_and_watched_from_elsewhere() {
    let Some(fleet) = Fleet::start(THREE_STEPS) else {
        return no_server();
    };
    let mut worker = fleet.worker("one", LONG);
    let told = exits(fleet.submit(&[])).exits(0);
    assert_eq!(told.out.trim(), "It says hello.");
    assert!(told.err.contains("cat out.txt >> ledger.txt"), "{told:?}");
    assert_eq!(fleet.world.file("ledger.txt"), "hello\n");
    // What the run may not do, it may not do there either.
    let wrong = exits(fleet.submit(&["--max-steps", "1"])).exits(3);
    assert!(wrong.err.contains("a limit was reached"), "{wrong:?}");
    worker.signal(Signal::INT);
    worker.hears("parking what is at work");
    // What it changed is undone on the machine where that is.
    fleet
        .says(&["undo", "last"])
        .exits(2)
        .says("the machine where the run's folder is");
    let runs = exits(at(&fleet.world, "one", &["runs", "list", "--json"])).exits(0);
    let first = runs.out.lines().last().unwrap();
    let first: serde_json::Value = serde_json::from_str(first).unwrap();
    let first = first["run"].as_str().unwrap();
    exits(at(&fleet.world, "one", &["undo", first, "--yes"])).exits(0);
    assert!(!fleet.world.path("work/ledger.txt").exists());
}

#[test]
fn a_killed_worker_and_its_run_are_succeeded_and_nothing_happens_twice() {
    let Some(fleet) = Fleet::start(SLOW) else {
        return no_server();
    };
    let worker = fleet.worker("one", SHORT);
    let watched = fleet.begin();
    let _other = fleet.worker("two", SHORT);
    let drivers = fleet.drivers("one");
    assert_eq!(drivers.len(), 1);
    // The worker first: it would start the run again.
    worker.signal(Signal::KILL);
    kill_process(drivers[0], Signal::KILL).unwrap();
    let told = watched.join().unwrap().exits(0);
    assert_eq!(told.out.trim(), "finished");
    // What the command wrote before it was killed is in its layer on the dead machine.
    assert_eq!(fleet.world.file("ledger.txt"), "one\n");
}

#[test]
fn the_next_worker_has_the_whole_journal_and_nobody_else_writes_it() {
    let Some(fleet) = Fleet::start(SLOW) else {
        return no_server();
    };
    // Snapshots of the folder are blobs: more than go with one message, and one that is large.
    for number in 0..300 {
        let text = format!("{number}\n").repeat(300);
        fs::write(fleet.world.work().join(format!("file-{number}.txt")), text).unwrap();
    }
    let large: String = (0..200_000).map(|number| format!("{number}\n")).collect();
    fs::write(fleet.world.work().join("large.txt"), large).unwrap();
    let worker = fleet.worker("one", SHORT);
    let watched = fleet.begin();
    let driver = fleet.drivers("one")[0];
    worker.signal(Signal::KILL);
    kill_process(driver, Signal::KILL).unwrap();
    // What is on the dead worker's disk is a run of the fleet, and of nobody else.
    let resume = ["resume", "last"];
    eventually("the log is let go", || {
        let told = exits(at(&fleet.world, "one", &resume));
        told.err.contains("belongs to a fleet")
    });
    let _other = fleet.worker("two", SHORT);
    watched.join().unwrap().exits(0);
    let verified = |folder: &str| {
        let store = Store::open(&fleet.world.path(folder)).unwrap();
        store.verify(&store.names("runs").unwrap()[0]).unwrap()
    };
    let (one, two) = (verified("one/journal"), verified("two/journal"));
    assert!(one.blobs > 2 && two.blobs >= one.blobs, "{one:?} {two:?}");
    let copy = verified("client/fleet/copies");
    assert_eq!((copy.entries, copy.head), (two.entries, two.head));
    assert_eq!(copy.blobs, two.blobs);
    let undone = exits(at(&fleet.world, "two", &["undo", "last", "--yes"])).exits(0);
    assert_eq!(fleet.world.file("ledger.txt"), "", "{undone:?}");
}

#[test]
fn a_question_is_answered_from_anywhere_and_another_worker_goes_on() {
    let script = r#"
[[reply]]
text = "May I?"
calls = [{ tool = "write", arguments = { path = ".envrc", content = "hello\n" } }]
[[reply]]
text = "Done."
calls = [{ tool = "finish", arguments = { reached = true, answer = "painted" } }]
"#;
    let Some(fleet) = Fleet::start(script) else {
        return no_server();
    };
    let mut worker = fleet.worker("one", SHORT);
    // Who watches is told that it waits, and its worker goes.
    let words = ["run", "go", "--fleet", &fleet.address];
    let parked = exits(at(&fleet.world, "client", &words)).exits(5);
    assert!(parked.err.contains(".envrc"), "{parked:?}");
    worker.signal(Signal::INT);
    worker.hears("parking what is at work");
    drop(worker);
    let _other = fleet.worker("two", SHORT);
    // The answer comes from a third machine, which never saw the run before.
    let on = |words: &[&str]| {
        let words = [&["--fleet", &fleet.address][..], words].concat();
        exits(at(&fleet.world, "third", &words))
    };
    let shown = on(&["show", "last"]).exits(0);
    assert!(format!("{shown:?}").contains(".envrc"), "{shown:?}");
    assert_eq!(fleet.world.file(".envrc"), "");
    let answered = on(&["approve", "last"]).exits(0);
    assert!(answered.err.contains("sent to the fleet"), "{answered:?}");
    eventually("the run does not go on", || {
        on(&["show", "last"]).out.contains("painted")
    });
    assert_eq!(fleet.world.file(".envrc"), "hello\n");
    // A command that is not for this is refused, and changes nothing; so is none at all.
    on(&["resume", "last"]).exits(2);
    on(&[]).exits(2);
}

#[test]
fn a_stopped_run_is_killed_at_its_deadline_and_succeeded() {
    let Some(fleet) = Fleet::start(SLOW) else {
        return no_server();
    };
    let worker = fleet.worker("one", SHORT);
    let watched = fleet.begin();
    let _other = fleet.worker("two", SHORT);
    worker.signal(Signal::STOP);
    let driver = fleet.drivers("one")[0];
    kill_process(driver, Signal::STOP).unwrap();
    // It is not let go on, and all the same it is gone, with its command.
    eventually("the stopped run lives", || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", driver.as_raw_pid()));
        // Its parent is stopped and does not bury it.
        stat.is_err() || stat.is_ok_and(|stat| stat.contains(") Z "))
    });
    let told = watched.join().unwrap().exits(0);
    assert_eq!(told.out.trim(), "finished");
    // What the command wrote before it was killed is in its layer on the dead machine.
    assert_eq!(fleet.world.file("ledger.txt"), "one\n");
    worker.signal(Signal::KILL);
}

#[test]
fn wrong_addresses_and_servers_that_lose_things_are_refused_with_advice() {
    let Some(fleet) = Fleet::start(THREE_STEPS) else {
        return no_server();
    };
    let doctor = |address: &str| {
        let told = exits(at(
            &fleet.world,
            "client",
            &["fleet", "doctor", "--fleet", address],
        ));
        told.exits(2)
    };
    let (server, monitor) = fleet.address.split_once('?').unwrap();
    let port = server.rsplit(':').next().unwrap();
    for (address, words) in [
        (
            "nats://127.0.0.1:1?monitor=1".to_owned(),
            "no server of the fleet answers",
        ),
        (
            format!("nats://wrong@127.0.0.1:{port}?{monitor}"),
            "do not accept who this is",
        ),
        (server.to_owned(), "?monitor=8222"),
        (format!("{server}?monitor=1"), "cannot be read"),
        // Of two servers one is no majority.
        (
            format!("{server}?{monitor}&monitor=1"),
            "monitoring page in the address",
        ),
        ("what".to_owned(), "it begins with nats:// or tls://"),
    ] {
        let told = doctor(&address);
        let text = format!("{}{}", told.out, told.err);
        assert!(text.contains(words), "{address}: {text}");
        assert!(!text.contains("wrong@") && !text.contains(server), "{text}");
    }
    // Of three servers, one may be down.
    let two_of_three = format!("{server}?{monitor}&{monitor}&monitor=1");
    let words = ["fleet", "doctor", "--fleet", &two_of_three];
    let told = exits(at(&fleet.world, "client", &words)).exits(0);
    assert!(told.out.contains(":1 cannot be read"), "{told:?}");
    // A run is not submitted there either.
    let words = [
        "run",
        "say hello",
        "--fleet",
        "nats://127.0.0.1:1?monitor=1",
    ];
    let told = exits(at(&fleet.world, "client", &words)).exits(2);
    told.says("gyrus fleet up");
    let good = exits(at(
        &fleet.world,
        "client",
        &["fleet", "doctor", "--fleet", &fleet.address],
    ));
    let good = good.exits(0);
    assert!(
        good.out.contains("the second of two writers was refused"),
        "{good:?}"
    );
}

#[test]
fn a_run_waits_for_a_machine_that_has_what_it_needs() {
    let Some(fleet) = Fleet::start(THREE_STEPS) else {
        return no_server();
    };
    let _plain = fleet.worker("one", LONG);
    let mut asked = Running::of(&mut fleet.submit(&["--needs", "gpu"]));
    asked.hears("it waits: the only worker has no `gpu`");
    let words = ["fleet", "status", "--fleet", &fleet.address];
    let shown = exits(at(&fleet.world, "elsewhere", &words)).exits(0);
    assert!(
        shown.out.contains("waits: the only worker has no `gpu`"),
        "{shown:?}"
    );
    let _labelled = fleet.worker_with("two", LONG, &["--label", "gpu"]);
    asked.end().exits(0);
    assert_eq!(fleet.world.file("ledger.txt"), "hello\n");
    let wrong = exits(fleet.submit(&["--needs", "two words"])).exits(2);
    assert!(wrong.err.contains("a label is one word"), "{wrong:?}");
}

#[test]
fn a_stop_of_all_reaches_every_worker_and_those_that_come_later() {
    let Some(fleet) = Fleet::start(SLOW) else {
        return no_server();
    };
    let _one = fleet.worker("one", LONG);
    let watched = fleet.begin();
    let stopped = fleet.says(&["stop", "--all", "--reason", "smoke"]).exits(0);
    assert!(stopped.err.contains("1 run at work ended"), "{stopped:?}");
    let told = watched.join().unwrap();
    assert!(
        told.code != Some(0) && told.err.contains("smoke"),
        "{told:?}"
    );
    eventually("the run is alive", || fleet.drivers("one").is_empty());
    // What the command wrote before it was killed is in its layer on the dead machine.
    assert_eq!(fleet.world.file("ledger.txt"), "one\n");
    // One that was away begins nothing either.
    let _two = fleet.worker("two", LONG);
    let mut asked = Running::of(&mut fleet.submit(&[]));
    asked.hears("it waits: all runs are stopped");
    assert!(fleet.drivers("one").is_empty() && fleet.drivers("two").is_empty());
    fleet.says(&["rearm"]).exits(0);
    eventually("the second run does not begin", || {
        fleet.world.file("ledger.txt").matches("one").count() == 2
    });
    let again = fleet.says(&["rearm"]).exits(0);
    assert!(again.err.contains("nothing of the fleet is stopped"));
}
