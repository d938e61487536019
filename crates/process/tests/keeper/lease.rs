//! Leases with real processes. A lease kills the process that holds it, so each is begun in a
//! process of its own (`--leased`), which does what it is told line by line.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader, Lines, Write},
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{Child, ChildStdout, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use gyrus_contract::{
    BoxedFuture, ConfinementRecord, ConnectionPolicy, Containment, Destination, Listeners, Network,
    Outlet, ResourceLimits,
};
use gyrus_process::{
    ProcessIdentity,
    keeper::{Keeper, KeeperLevel, KeeperSandbox},
    lease::{BootTime, LeaseError, LifeLease},
};
use rustix::{
    process::{Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, waitpid},
    time::{ClockId, clock_gettime},
};

use crate::{ESCAPE, TIMEOUT, World, block_on, child_of, other_half, parent_of, spec, until};

/// Duration of leases that tests wait for.
const SHORT: Duration = Duration::from_millis(250);

/// Duration of leases that are measured.
const SOON: Duration = Duration::from_millis(20);

/// Duration of leases that never run out.
const LONG: Duration = Duration::from_secs(3_600);

/// Tests that need a keeper of each level.
pub(super) const WITH_KEEPERS: [super::Test; 6] = [
    ("a_deadline_ends_everything", a_deadline_ends_everything),
    (
        "the_end_of_a_run_ends_what_is_stopped",
        the_end_of_a_run_ends_what_is_stopped,
    ),
    (
        "the_end_of_a_guard_ends_what_is_stopped",
        the_end_of_a_guard_ends_what_is_stopped,
    ),
    ("an_extended_lease_kills_nothing", an_extended_lease),
    ("an_ended_lease_kills_nothing", an_ended_lease),
    ("a_keeper_must_not_come_first", a_keeper_must_not_come_first),
];

/// Tests without keepers.
pub(super) const ALONE: [(&str, fn()); 3] = [
    ("leases_are_refused_with_reasons", refused_with_reasons),
    ("a_deadline_in_the_past_kills_at_once", in_the_past),
    ("an_init_process_gets_no_lease", an_init_process),
];

/// Process that does what the first argument says, if that is one of these.
pub(super) fn serve_if_asked(arguments: &[String]) -> bool {
    let arguments: Vec<&str> = arguments.iter().skip(1).map(String::as_str).collect();
    match arguments[..] {
        ["--leased", level, place, folder] => leased(level, place, folder),
        ["--refusals"] => refusals(),
        ["--begin", deadline] => begin(deadline.parse().unwrap()),
        ["--keeper-first", level] => keeper_first(level),
        ["--time-extending"] => time_extending(),
        ["--time-starting", name, leases] => time_starting(name, leases),
        _ => return false,
    }
    true
}

fn level(name: &str) -> KeeperLevel {
    match name {
        "Namespace" => KeeperLevel::Namespace,
        _ => KeeperLevel::Subreaper,
    }
}

fn say(line: impl std::fmt::Display) {
    println!("{line}");
    std::io::stdout().flush().unwrap();
}

/// Main function of a run's process: begins a lease, has a keeper run a command that escapes from
/// its parents, and obeys the lines of its standard input.
fn leased(name: &str, place: &str, folder: &str) {
    let lease = LifeLease::begin(BootTime::now().saturating_add(LONG)).unwrap();
    // The thread that starts the nursery ends at once. Keepers must not die with it.
    let program = std::env::current_exe().unwrap();
    let level = level(name);
    let keeper = thread::spawn(move || Keeper::at_level(&program, level).unwrap());
    let keeper = keeper.join().unwrap();
    say(serde_json::to_string(keeper.identity()).unwrap());
    thread::spawn(move || obey(lease));
    let command = spec(Path::new(folder), &format!("{ESCAPE}\nsleep 1000"));
    let containment = containment(folder);
    let sandbox = (place == "Supervised").then_some(KeeperSandbox {
        containment: &containment,
        outlet: &Nothing,
        policy: &Nothing,
        ended: None,
    });
    // A test may kill the keeper.
    let _ = block_on(keeper.run_in(command, sandbox));
    thread::sleep(LONG);
}

/// Returns a containment that [`confine`] does not look at.
fn containment(folder: &str) -> Containment {
    Containment {
        writable: Vec::new(),
        read_only: Vec::new(),
        temporary: folder.into(),
        hidden: Vec::new(),
        layered: Vec::new(),
        binds: Vec::new(),
        moved: BTreeMap::new(),
        network: Network::None,
        forwarded: Vec::new(),
        asked: Vec::new(),
        serves: false,
        sockets: Vec::new(),
        limits: ResourceLimits {
            processes: 100,
            memory_bytes: 1 << 30,
            cpu_seconds: 100,
            file_bytes: 1 << 30,
        },
    }
}

/// Confines nothing, but returns in a child, as sandboxes do where namespaces are refused.
#[expect(unsafe_code, reason = "a fork")]
pub(super) fn confine(_: &Containment) -> Result<ConfinementRecord, String> {
    // SAFETY: a process that confines itself has one thread.
    let child = unsafe { libc::fork() };
    if child == 0 {
        set_child_subreaper(Some(getpid())).unwrap();
        return Ok(ConfinementRecord::default());
    }
    let status = waitpid(Pid::from_raw(child), WaitOptions::empty());
    let code = status.unwrap().and_then(|(_, status)| status.exit_status());
    std::process::exit(code.unwrap_or(1));
}

/// An outlet and a policy for sandboxes without sockets.
struct Nothing;

impl Outlet for Nothing {
    fn serve<'a>(&'a self, _: Listeners, _: &'a dyn ConnectionPolicy) -> BoxedFuture<'a, ()> {
        Box::pin(async {})
    }
}

impl ConnectionPolicy for Nothing {
    fn decide<'a>(&'a self, _: &'a Destination) -> BoxedFuture<'a, Result<(), String>> {
        Box::pin(async { Err("there is no network".to_owned()) })
    }
}

/// The process that is the server of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The guard's child.
    Bare,
    /// A child of that, which [`confine`] made.
    Supervised,
}

fn obey(mut lease: LifeLease) {
    for order in std::io::stdin().lines() {
        let order = order.unwrap();
        lease.end();
        let duration = if order == "run out soon" { SOON } else { SHORT };
        let deadline = BootTime::now().saturating_add(duration);
        lease = LifeLease::begin(deadline).unwrap();
        match order.as_str() {
            "run out" | "run out soon" => {}
            "run out, stopped" => kill_process(getpid(), Signal::STOP).unwrap(),
            "extend" => lease.extend(deadline.saturating_add(LONG)).unwrap(),
            "end" => {
                lease.end();
                say(deadline.as_ms());
                return;
            }
            _ => panic!("{order}"),
        }
        say(deadline.as_ms());
    }
    // The test has ended.
    std::process::exit(1);
}

/// Main function of a process that tries what must be refused.
fn refusals() {
    let later = |seconds| BootTime::now().saturating_add(Duration::from_secs(seconds));
    let first = later(1_000);
    let lease = LifeLease::begin(first).unwrap();
    assert!(matches!(LifeLease::begin(later(1)), Err(LeaseError::Held)));
    assert!(matches!(
        lease.extend(later(1)),
        Err(LeaseError::Earlier { current, .. }) if current == first
    ));
    // Not even to the past, which would kill.
    assert!(lease.extend(BootTime::from_ms(0)).is_err());
    assert_eq!(lease.deadline(), first);
    lease.extend(first).unwrap();
    let last = BootTime::from_ms(u64::MAX);
    lease.extend(last).unwrap();
    assert_eq!(lease.deadline(), last);
    assert!(lease.extend(later(1_000)).is_err());
    lease.end();
    for _ in 0..2 {
        drop(LifeLease::begin(later(1_000)).unwrap());
    }
    let threads: Vec<_> = (0..8)
        .map(|_| thread::spawn(move || LifeLease::begin(last)))
        .collect();
    let leases = threads.into_iter().map(|thread| thread.join().unwrap());
    let leases: Vec<_> = leases.filter_map(Result::ok).collect();
    assert_eq!(leases.len(), 1);
}

/// Main function of a process that begins a lease and sleeps for a while.
fn begin(milliseconds: u64) {
    match LifeLease::begin(BootTime::from_ms(milliseconds)) {
        Ok(lease) => {
            say("begun");
            thread::sleep(TIMEOUT);
            lease.end();
        }
        Err(error) => say(format!("{error:?}")),
    }
}

/// Main function of a process that starts a keeper before its lease.
fn keeper_first(name: &str) {
    let keeper = Keeper::at_level(&std::env::current_exe().unwrap(), level(name)).unwrap();
    let lease = LifeLease::begin(BootTime::now().saturating_add(LONG));
    assert!(matches!(lease, Err(LeaseError::HasKeepers)));
    keeper.end();
    let lease = LifeLease::begin(BootTime::now().saturating_add(LONG));
    // The nursery is still there.
    assert!(matches!(lease, Err(LeaseError::HasKeepers)));
}

fn this_program(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(arguments);
    command
}

/// A run's process with a lease, its keeper, and its command.
struct Leased {
    run: Child,
    says: Lines<BufReader<ChildStdout>>,
    world: World,
    guard: ProcessIdentity,
    /// The guard's child, and the child of that if it is another process.
    servers: Vec<ProcessIdentity>,
}

impl Leased {
    fn start(level: KeeperLevel, place: Place) -> Self {
        let world = World::new(level);
        let (name, place_name) = (format!("{level:?}"), format!("{place:?}"));
        let mut run = this_program(&["--leased", &name, &place_name, &world.mark()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut says = BufReader::new(run.stdout.take().unwrap()).lines();
        let recorded = serde_json::from_str(&says.next().unwrap().unwrap()).unwrap();
        block_on(world.ready());
        let other = other_half(&recorded, level);
        let (guard, server) = match level {
            KeeperLevel::Namespace => (other, recorded),
            KeeperLevel::Subreaper => (recorded, other),
        };
        let mut servers = vec![server];
        if place == Place::Supervised {
            servers.push(child_of(&servers[0]));
        }
        Self {
            run,
            says,
            world,
            guard,
            servers,
        }
    }

    fn order(&mut self, order: &str) {
        writeln!(self.run.stdin.as_ref().unwrap(), "{order}").unwrap();
    }

    /// Gives an order; returns the deadline that the process names.
    fn deadline(&mut self, order: &str) -> BootTime {
        self.order(order);
        let said = self.says.next().unwrap().unwrap();
        BootTime::from_ms(said.parse().unwrap())
    }

    fn stop(&self, parts: &[Part]) {
        for part in parts {
            // Shells of the command may still come and go.
            block_on(until("stopped processes", || {
                let processes = match part {
                    Part::Nursery => vec![parent_of(&self.guard)],
                    Part::Guard => vec![self.guard.clone()],
                    Part::Servers => self.servers.clone(),
                    Part::Command => self.world.alive(),
                };
                let mut are_stopped = true;
                for process in processes {
                    signal(&process, Signal::STOP);
                    are_stopped &= state(process.pid) == Some('T');
                }
                are_stopped
            }));
        }
    }

    /// Waits for the end of the run's process; returns how it ended.
    fn ended(&mut self) -> ExitStatus {
        let mut status = None;
        block_on(until("the end of the run's process", || {
            status = self.run.try_wait().unwrap();
            status.is_some()
        }));
        status.unwrap()
    }

    fn assert_all_gone(&self) {
        for keeper in self.servers.iter().chain([&self.guard]) {
            assert!(keeper.wait_gone(TIMEOUT).unwrap(), "a keeper survived");
        }
        block_on(until("the end of the tree", || {
            self.world.alive().is_empty()
        }));
    }

    fn assert_all_alive(&mut self) {
        assert!(self.run.try_wait().unwrap().is_none());
        for keeper in self.servers.iter().chain([&self.guard]) {
            assert!(keeper.is_alive().unwrap());
        }
        assert!(self.world.alive().len() >= 3);
    }
}

impl Drop for Leased {
    fn drop(&mut self) {
        let _ = self.run.kill();
        let _ = self.run.wait();
        // If a test fails, its processes may be stopped.
        for process in self.servers.iter().chain([&self.guard]) {
            let _ = process.kill();
        }
        for process in self.world.alive() {
            let _ = process.kill();
        }
    }
}

/// Processes that a test stops.
#[derive(Debug, Clone, Copy)]
enum Part {
    Nursery,
    Guard,
    Servers,
    Command,
}

/// Signals a process that lives, or lived until just now.
fn signal(process: &ProcessIdentity, signal: Signal) {
    let pid = Pid::from_raw(process.pid.cast_signed()).unwrap();
    if process.is_alive().unwrap() {
        let _ = kill_process(pid, signal);
    }
}

/// Returns the letter of a process's state.
fn state(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat[stat.rfind(')')? + 1..].trim_start().chars().next()
}

fn a_deadline_ends_everything(level: KeeperLevel) {
    for (stopped, order) in [
        (&[][..], "run out"),
        (&[], "run out, stopped"),
        (&[Part::Guard], "run out"),
        (&[Part::Servers], "run out"),
        (&[Part::Guard, Part::Servers], "run out"),
        (
            &[Part::Nursery, Part::Guard, Part::Servers, Part::Command],
            "run out, stopped",
        ),
    ] {
        let mut leased = Leased::start(level, Place::Bare);
        leased.stop(stopped);
        // The process begins its lease later, so this is at most the deadline.
        let earliest = BootTime::now().saturating_add(SHORT);
        leased.order(order);
        if order == "run out, stopped" {
            let pid = leased.run.id();
            let is_stopped = || matches!(state(pid), Some('T' | 'Z'));
            block_on(until("a stopped run", is_stopped));
        }
        let ended = leased.ended();
        let end = BootTime::now();
        assert_eq!(ended.signal(), Some(9), "{stopped:?}");
        assert!(end >= earliest, "{stopped:?}: {end}, {earliest}");
        leased.assert_all_gone();
    }
}

fn the_end_of_a_run_ends_what_is_stopped(level: KeeperLevel) {
    for place in [Place::Bare, Place::Supervised] {
        for stopped in [
            &[Part::Guard][..],
            &[Part::Servers],
            &[Part::Guard, Part::Servers],
            &[Part::Nursery, Part::Guard],
            &[Part::Nursery, Part::Guard, Part::Servers, Part::Command],
        ] {
            let mut leased = Leased::start(level, place);
            leased.stop(stopped);
            leased.run.kill().unwrap();
            leased.assert_all_gone();
        }
    }
}

fn the_end_of_a_guard_ends_what_is_stopped(level: KeeperLevel) {
    let leased = Leased::start(level, Place::Bare);
    leased.stop(&[Part::Servers, Part::Command]);
    signal(&leased.guard, Signal::KILL);
    leased.assert_all_gone();
}

fn an_extended_lease(level: KeeperLevel) {
    let mut leased = Leased::start(level, Place::Bare);
    let earlier = leased.deadline("extend");
    block_on(until("the earlier deadline", || {
        BootTime::now() > earlier.saturating_add(SHORT / 2)
    }));
    leased.assert_all_alive();
    // It can still be shortened by ending it.
    leased.deadline("run out");
    assert_eq!(leased.ended().signal(), Some(9));
    leased.assert_all_gone();
}

fn an_ended_lease(level: KeeperLevel) {
    let mut leased = Leased::start(level, Place::Bare);
    let deadline = leased.deadline("end");
    block_on(until("the deadline", || {
        BootTime::now() > deadline.saturating_add(SHORT / 2)
    }));
    leased.assert_all_alive();
    leased.run.kill().unwrap();
    leased.assert_all_gone();
}

fn a_keeper_must_not_come_first(level: KeeperLevel) {
    let status = this_program(&["--keeper-first", &format!("{level:?}")]).status();
    assert!(status.unwrap().success());
}

fn refused_with_reasons() {
    assert!(this_program(&["--refusals"]).status().unwrap().success());
}

fn in_the_past() {
    let now = BootTime::now().as_ms();
    for deadline in [0, 1, now] {
        let started = Instant::now();
        let output = this_program(&["--begin", &deadline.to_string()]).output();
        assert_eq!(output.unwrap().status.signal(), Some(9), "{deadline}");
        assert!(started.elapsed() < TIMEOUT);
    }
}

fn an_init_process() {
    let program = std::env::current_exe().unwrap();
    let begin = |options: &[&str]| {
        let mut command = Command::new("unshare");
        command
            .args(options)
            .args(["--pid", "--fork"])
            .arg(&program);
        command.args(["--begin", "0"]).output().unwrap()
    };
    let mut output = begin(&[]);
    if !output.status.success() {
        output = begin(&["--user", "--map-root-user"]);
    }
    assert_eq!(String::from_utf8_lossy(&output.stdout), "IsInit\n");
}

/// Time on the clock of leases, with fractions of a millisecond.
fn now() -> Duration {
    Duration::try_from(clock_gettime(ClockId::Boottime)).unwrap()
}

/// Main function of a process that says how long an extension takes.
fn time_extending() {
    const TIMES: u32 = 100_000;
    let lease = LifeLease::begin(BootTime::now().saturating_add(LONG)).unwrap();
    let started = Instant::now();
    for _ in 0..TIMES {
        let deadline = BootTime::now().saturating_add(LONG);
        lease.extend(deadline).unwrap();
    }
    say(format!("extending: {:?}", started.elapsed() / TIMES));
}

/// Main function of a process that says how long a command with a new keeper takes.
fn time_starting(name: &str, leases: &str) {
    let _lease = (leases == "leased")
        .then(|| LifeLease::begin(BootTime::now().saturating_add(LONG)).unwrap());
    let program = std::env::current_exe().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut times: Vec<Duration> = (0..300)
        .map(|_| {
            let started = Instant::now();
            let keeper = Keeper::at_level(&program, level(name)).unwrap();
            let mut command = spec(folder.path(), "");
            command.program = "true".to_owned();
            command.arguments.clear();
            block_on(keeper.run(command)).unwrap();
            started.elapsed()
        })
        .collect();
    times.sort();
    let (first, median) = (times[times.len() / 10], times[times.len() / 2]);
    say(format!(
        "{name}, {leases}: tenth {first:?}, median {median:?}"
    ));
}

/// Prints what leases cost and how late they kill.
pub(super) fn figures() {
    let print = |arguments: &[&str]| {
        let output = this_program(arguments).output().unwrap();
        print!("{}", String::from_utf8_lossy(&output.stdout));
    };
    print(&["--time-extending"]);
    for name in ["Namespace", "Subreaper"] {
        for leases in ["free", "leased", "free", "leased"] {
            print(&["--time-starting", name, leases]);
        }
    }
    for level in [KeeperLevel::Namespace, KeeperLevel::Subreaper] {
        let all = [Part::Nursery, Part::Guard, Part::Servers, Part::Command];
        for stopped in [&[][..], &all] {
            let mut late: Vec<[Duration; 2]> = (0..100)
                .map(|_| {
                    let mut leased = Leased::start(level, Place::Bare);
                    leased.stop(stopped);
                    let deadline = leased.deadline("run out soon");
                    let deadline = Duration::from_millis(deadline.as_ms());
                    let run = ProcessIdentity::of(leased.run.id()).unwrap().unwrap();
                    assert!(run.wait_gone(TIMEOUT).unwrap());
                    let run = now() - deadline;
                    let last = match level {
                        KeeperLevel::Namespace => &leased.servers[0],
                        KeeperLevel::Subreaper => &leased.guard,
                    };
                    assert!(last.wait_gone(TIMEOUT).unwrap());
                    [run, now() - deadline]
                })
                .collect();
            for (index, whose) in ["the run's process", "the whole tree"].iter().enumerate() {
                late.sort_by_key(|times| times[index]);
                let (median, most) = (late[50][index], late[99][index]);
                println!(
                    "{level:?}, {} stopped: {whose} ended {median:?} late in the median, at most \
                     {most:?}",
                    stopped.len()
                );
            }
        }
    }
}
