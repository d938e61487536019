//! The trials. Each returns how many of its events happened, or what it found.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    path::Path,
    process::{Child, Output},
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail, ensure};

use super::{
    machines::{odd_machines, wrong_clocks},
    world::{RUN, World, not_panicked},
};
use crate::repository;

pub(super) struct Trial {
    pub(super) name: &'static str,
    /// The events that are counted.
    pub(super) events: &'static str,
    /// Number of times that it is tried before the next trial's turn.
    pub(super) in_a_round: u32,
    pub(super) perform: fn(&Path, u64) -> anyhow::Result<u64>,
}

pub(super) const TRIALS: [Trial; 8] = [
    Trial {
        name: "run",
        events: "kills",
        in_a_round: 40,
        perform: kill_run,
    },
    Trial {
        name: "serve",
        events: "kills",
        in_a_round: 10,
        perform: kill_server,
    },
    Trial {
        name: "disk",
        events: "full disks",
        in_a_round: 10,
        perform: fill_disk,
    },
    Trial {
        name: "machines",
        events: "odd machines",
        in_a_round: 1,
        perform: odd_machines,
    },
    Trial {
        name: "clocks",
        events: "wrong clocks",
        in_a_round: 10,
        perform: wrong_clocks,
    },
    Trial {
        name: "power",
        events: "states of a cut power",
        in_a_round: 1,
        perform: |_, seed| simulated(&["sim", "--states", "200"], seed, 200),
    },
    Trial {
        name: "agents",
        events: "rounds of killed agents",
        in_a_round: 1,
        perform: |_, seed| simulated(&["sim", "events"], seed, 1),
    },
    Trial {
        name: "fleet",
        events: "rounds of a fleet's faults",
        in_a_round: 1,
        perform: |_, seed| simulated(&["fleet", "--runs", "6"], seed, 1),
    },
];

/// The longest time between a start and a kill, in milliseconds: a little more than a run takes.
const LONGEST_LIFE: u64 = 900;

/// Kills after which a run may end.
const MOST_KILLS: u32 = 4;

/// The longest time that anything here takes.
const PATIENCE: Duration = Duration::from_mins(2);

const TOKEN: &str = "the-secret-of-a-trial-0123456789";

/// Kills the process of a run at any instant, takes the run up, kills that one too, and so on.
fn kill_run(program: &Path, seed: u64) -> anyhow::Result<u64> {
    let mut random = fastrand::Rng::with_seed(seed);
    let world = World::new(program)?;
    let mut kills = 0;
    let mut has_begun = false;
    for _ in 0..random.u32(1..=MOST_KILLS) {
        let arguments: &[&str] = if has_begun { &["resume", "last"] } else { &RUN };
        let mut child = world.gyrus(arguments).spawn()?;
        sleep(Duration::from_millis(random.u64(..LONGEST_LIFE)));
        if child.try_wait()?.is_some() {
            break;
        }
        child.kill()?;
        not_panicked(&child.wait_with_output()?)?;
        kills += 1;
        has_begun = has_begun || world.has_run()?;
    }
    world.to_its_end()?;
    Ok(kills)
}

/// A server that ends with this value.
struct Server {
    child: Child,
    host: String,
}

impl Server {
    fn start(world: &World) -> anyhow::Result<Self> {
        let mut child = world
            .gyrus(&["serve", "--port", "0", "--token", TOKEN])
            .spawn()?;
        let mut line = String::new();
        let stdout = child.stdout.take().context("the server has no output")?;
        BufReader::new(stdout).read_line(&mut line)?;
        let address = line
            .split_once("/#")
            .and_then(|(address, _)| address.strip_prefix("http://"));
        let Some(host) = address.map(str::to_owned) else {
            child.kill()?;
            let output = child.wait_with_output()?;
            bail!(
                "the server did not start: {}",
                String::from_utf8_lossy(&output.stderr)
            );
        };
        Ok(Self { child, host })
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> anyhow::Result<String> {
        let mut stream = TcpStream::connect(&self.host)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {TOKEN}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            self.host,
            body.len()
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }

    fn kill(mut self) -> anyhow::Result<Output> {
        self.child.kill()?;
        Ok(self.child.wait_with_output()?)
    }
}

/// Kills a server at any instant while it has runs to do; the next one goes on with them.
fn kill_server(program: &Path, seed: u64) -> anyhow::Result<u64> {
    let mut random = fastrand::Rng::with_seed(seed);
    let world = World::new(program)?;
    let works: Vec<_> = (0..3)
        .map(|number| world.path(&format!("work-{number}")))
        .collect();
    let mut kills = 0;
    let mut accepted = Vec::new();
    for _ in 0..random.u32(1..=MOST_KILLS) {
        let server = Server::start(&world)?;
        for (number, work) in works.iter().enumerate() {
            if accepted.contains(&number) {
                continue;
            }
            world.settle(work)?;
            let body = format!(
                "{{\"goal\": \"write it down\", \"workdir\": \"{}\", \"key\": \"{number}\", \
                 \"options\": {{\"approve\": \"auto\", \"on-ask\": \"deny\"}}}}",
                work.display()
            );
            let answer = server.ask("POST", "/api/runs", &body)?;
            ensure!(
                answer.starts_with("HTTP/1.1 20"),
                "a run was not accepted: {answer}"
            );
            accepted.push(number);
            if random.bool() {
                break;
            }
        }
        sleep(Duration::from_millis(random.u64(..2 * LONGEST_LIFE)));
        not_panicked(&server.kill()?)?;
        kills += 1;
    }
    let server = Server::start(&world)?;
    let started = Instant::now();
    loop {
        let listed = server.ask("GET", "/api/commands", "")?;
        if listed.matches("\"state\":\"ended\"").count() >= accepted.len() {
            break;
        }
        ensure!(
            started.elapsed() < PATIENCE,
            "what was accepted does not end: {listed}"
        );
        sleep(Duration::from_millis(50));
    }
    not_panicked(&server.kill()?)?;
    for number in accepted {
        world.check_work(&works[number])?;
        let ledger = fs::read_to_string(works[number].join("ledger.txt")).unwrap_or_default();
        ensure!(
            ledger.ends_with("5\n"),
            "an accepted run did not come to its end: {ledger:?}"
        );
    }
    Ok(kills)
}

/// Lets a run begin on a disk with hardly any room, or on one with hardly any files left, makes room,
/// and lets it end.
fn fill_disk(program: &Path, seed: u64) -> anyhow::Result<u64> {
    let mut random = fastrand::Rng::with_seed(seed);
    let world = World::new(program)?;
    let line = "mount -t tmpfs -o size=4m,nr_inodes=\"$1\" none \"$GYRUS_HOME\"
        shift
        dd if=/dev/zero of=\"$GYRUS_HOME/fill\" bs=1k count=\"$1\" status=none || :
        shift
        \"$GYRUS\" \"$@\" 2>first || :
        grep -q 'panicked at' first && { cat first >&2; exit 9; }
        rm -f \"$GYRUS_HOME/fill\"
        mount -o remount,size=8m,nr_inodes=4000 \"$GYRUS_HOME\"
        \"$GYRUS\" runs --json | grep -q . && set -- resume last
        \"$GYRUS\" \"$@\" >&2 || grep -qE 'is over|reached' first || { cat first >&2; exit 8; }
        \"$GYRUS\" replay last >&2";
    let (mut count, mut files) = (random.u32(3300..4096).to_string(), "4000".to_owned());
    if random.u8(..4) == 0 {
        (count, files) = ("1".to_owned(), random.u32(8..90).to_string());
    }
    let mut command = world.beside("unshare");
    command
        .args(["-m", "sh", "-ec", line, "sh", &files, &count])
        .args(RUN);
    let output = command.output()?;
    not_panicked(&output)?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "with {count} kB taken and {files} files, {}: {said}",
        output.status
    );
    world.check_work(&world.path("work"))?;
    Ok(1)
}

/// Has another command of xtask simulate something with this seed.
fn simulated(arguments: &[&str], seed: u64, events: u64) -> anyhow::Result<u64> {
    let mut cargo = repository::cargo(&["xtask"])?;
    cargo.args(arguments).args(["--seed", &seed.to_string()]);
    let output = cargo.output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    let printed = String::from_utf8_lossy(&output.stdout);
    ensure!(
        output.status.success(),
        "`xtask {}`: {printed}{said}",
        arguments.join(" ")
    );
    Ok(events)
}
