//! Keepers with real processes. This program is its own keeper, and with `--order` the run's
//! process that a test kills; hence a `main` instead of the usual harness.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test, though without harness"
)]

mod lease;

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use gyrus_contract::{CommandOutcome, CommandSpec, Exit, KeeperError};
use gyrus_process::{
    ProcessIdentity,
    keeper::{self, Keeper, KeeperLevel},
};
use libtest_mimic::{Arguments, Trial};

/// Time limit for a busy machine; no wait comes close to it when the code works.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Name of a variable in the environment of every process of a test's command.
const MARK: &str = "GYRUS_KEEPER_TEST";

/// Script that leaves the session, forks twice, ignores every polite signal, holds the output open,
/// and writes the file `ready` once it has escaped from its parents.
const ESCAPE: &str = r#"
trap '' TERM HUP INT QUIT PIPE
(setsid bash -c '
  trap "" TERM HUP INT QUIT PIPE
  (setsid bash -c "trap \"\" TERM HUP INT QUIT PIPE; touch ready; while :; do sleep 1000; done" &)
  while :; do sleep 1000; done' &)
until [ -e ready ]; do sleep 0.01; done
"#;

fn main() {
    keeper::serve_if_asked(lease::confine);
    let arguments: Vec<String> = std::env::args().collect();
    if arguments
        .get(1)
        .is_some_and(|argument| argument == "--order")
    {
        return order(&arguments[2], &arguments[3]);
    }
    if lease::serve_if_asked(&arguments) {
        return;
    }
    let arguments = Arguments::from_args();
    let namespaces = keeper::probe().expect("a keeper starts") == KeeperLevel::Namespace;
    let mut trials = Vec::new();
    for level in [KeeperLevel::Namespace, KeeperLevel::Subreaper] {
        for (name, test) in TESTS.into_iter().chain(lease::WITH_KEEPERS) {
            let name = format!("{level:?}::{name}").to_lowercase();
            let trial = Trial::test(name, move || {
                test(level);
                Ok(())
            });
            // Shown as ignored where the system does not allow it.
            trials.push(trial.with_ignored_flag(level == KeeperLevel::Namespace && !namespaces));
        }
    }
    for (name, test) in lease::ALONE {
        trials.push(Trial::test(name, move || {
            test();
            Ok(())
        }));
    }
    let figures = || {
        lease::figures();
        Ok(())
    };
    trials.push(Trial::test("figures_of_leases", figures).with_ignored_flag(true));
    libtest_mimic::run(&arguments, trials).exit();
}

type Test = (&'static str, fn(KeeperLevel));

const TESTS: [Test; 11] = [
    ("ends_as_the_command_ends", ends_as_the_command_ends),
    (
        "gives_exactly_what_was_ordered",
        gives_exactly_what_was_ordered,
    ),
    ("stands_apart_from_us", stands_apart_from_us),
    ("kills_at_the_time_limit", kills_at_the_time_limit),
    ("leaves_no_daemon_behind", leaves_no_daemon_behind),
    ("dies_with_the_run", dies_with_the_run),
    (
        "killing_one_half_kills_the_tree",
        killing_one_half_kills_the_tree,
    ),
    ("dropping_kills", dropping_kills),
    (
        "keeps_head_and_tail_of_a_flood",
        keeps_head_and_tail_of_a_flood,
    ),
    ("survives_orphans", survives_orphans),
    (
        "a_grace_lets_it_end_by_itself",
        a_grace_lets_it_end_by_itself,
    ),
];

/// A command in a folder of its own.
struct World {
    folder: tempfile::TempDir,
    level: KeeperLevel,
}

impl World {
    fn new(level: KeeperLevel) -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            level,
        }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the value of [`MARK`], unique to this world.
    fn mark(&self) -> String {
        self.path().to_str().unwrap().to_owned()
    }

    fn spec(&self, script: &str) -> CommandSpec {
        spec(self.path(), script)
    }

    fn keeper(&self) -> Keeper {
        Keeper::at_level(&std::env::current_exe().unwrap(), self.level).unwrap()
    }

    fn run(&self, spec: CommandSpec) -> Result<CommandOutcome, KeeperError> {
        let keeper = self.keeper();
        let identity = keeper.identity().clone();
        let outcome = block_on(async { tokio::time::timeout(TIMEOUT, keeper.run(spec)).await })
            .expect("an answer in time");
        assert_eq!(self.alive(), [], "something outlived the answer");
        assert!(identity.wait_gone(TIMEOUT).unwrap());
        outcome
    }

    fn output(&self, script: &str) -> String {
        let outcome = self.run(self.spec(script)).unwrap();
        assert_eq!(outcome.exit, Exit::Code(0), "{outcome:?}");
        assert_eq!(outcome.output.omitted_bytes, 0);
        outcome.output.head
    }

    /// Returns the living processes of the command, found by their environment.
    fn alive(&self) -> Vec<ProcessIdentity> {
        let mark = format!("{MARK}={}", self.mark()).into_bytes();
        fs::read_dir("/proc")
            .unwrap()
            .filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok())
            .filter(|pid: &u32| {
                let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
                environment
                    .split(|byte| *byte == 0)
                    .any(|variable| variable == mark)
            })
            .filter_map(|pid| ProcessIdentity::of(pid).unwrap())
            .filter(|process| process.is_alive().unwrap())
            .collect()
    }

    /// Waits until [`ESCAPE`] has escaped; returns its processes.
    async fn ready(&self) -> Vec<ProcessIdentity> {
        let ready = self.path().join("ready");
        let mut alive = Vec::new();
        until("the escape", || {
            alive = self.alive();
            ready.exists() && alive.len() >= 3
        })
        .await;
        alive
    }
}

fn spec(folder: &Path, script: &str) -> CommandSpec {
    let path = std::env::var("PATH").unwrap();
    let mark = folder.to_str().unwrap().to_owned();
    CommandSpec {
        program: "bash".to_owned(),
        arguments: vec!["-c".to_owned(), script.to_owned()],
        folder: folder.to_owned(),
        environment: BTreeMap::from([("PATH".to_owned(), path), (MARK.to_owned(), mark)]),
        stdin: String::new(),
        time_limit_ms: 3_600_000,
        head_bytes: 4096,
        tail_bytes: 4096,
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Returns the keeper's process that is not the recorded one.
fn other_half(recorded: &ProcessIdentity, level: KeeperLevel) -> ProcessIdentity {
    match level {
        KeeperLevel::Namespace => parent_of(recorded),
        KeeperLevel::Subreaper => child_of(recorded),
    }
}

/// Returns the parent of a process.
fn parent_of(process: &ProcessIdentity) -> ProcessIdentity {
    let parent = parent_number(process.pid).unwrap();
    ProcessIdentity::of(parent).unwrap().unwrap()
}

/// Returns a child of a process.
fn child_of(process: &ProcessIdentity) -> ProcessIdentity {
    let pid = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok())
        .find(|pid| parent_number(*pid) == Some(process.pid));
    ProcessIdentity::of(pid.unwrap()).unwrap().unwrap()
}

fn parent_number(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status
        .lines()
        .find_map(|line| line.strip_prefix("PPid:"))?
        .trim()
        .parse()
        .ok()
}

/// Returns the peak resident memory of a process, in kilobytes.
fn peak_memory(process: &ProcessIdentity) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", process.pid)).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

/// A run's process. It is killed like any that a person kills with -9, also if the test fails.
struct KilledOnDrop(Child);

impl KilledOnDrop {
    fn spawn(command: &mut Command) -> Self {
        Self(command.stdout(Stdio::piped()).spawn().unwrap())
    }
}

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Main function of the run's process: orders a command from a keeper, prints the keeper, and
/// waits.
fn order(level: &str, folder: &str) {
    let level = if level == "Namespace" {
        KeeperLevel::Namespace
    } else {
        KeeperLevel::Subreaper
    };
    let keeper = Keeper::at_level(&std::env::current_exe().unwrap(), level).unwrap();
    println!("{}", serde_json::to_string(keeper.identity()).unwrap());
    std::io::stdout().flush().unwrap();
    let script = format!("{ESCAPE}\nsleep 1000");
    block_on(keeper.run(spec(Path::new(folder), &script))).unwrap();
}

fn ends_as_the_command_ends(level: KeeperLevel) {
    let world = World::new(level);
    let check = |script: &str, exit, output: &str| {
        let outcome = world.run(world.spec(script)).unwrap();
        assert_eq!(
            (outcome.exit, outcome.output.head.as_str()),
            (exit, output),
            "{script}"
        );
    };
    check("true", Exit::Code(0), "");
    check("exit 7", Exit::Code(7), "");
    check("kill -TERM $$", Exit::Signal(15), "");
    check("kill -KILL $$", Exit::Signal(9), "");
    // The output comes in the order written, whichever stream it was written to.
    check(
        "echo a; echo b >&2; echo c; exit 3",
        Exit::Code(3),
        "a\nb\nc\n",
    );
    check("kill 0", Exit::Signal(15), "");
    check("exec >&- 2>&-; exit 4", Exit::Code(4), "");

    let refused = |change: fn(&mut CommandSpec), words: &str| {
        let mut spec = world.spec("true");
        change(&mut spec);
        let program = spec.program.clone();
        match world.run(spec) {
            Err(KeeperError::Start {
                program: named,
                reason,
            }) => {
                assert_eq!(named, program);
                assert!(reason.contains(words), "{reason}");
            }
            other => panic!("{other:?}"),
        }
    };
    refused(
        |spec| spec.program = "/no/such/program".to_owned(),
        "No such file",
    );
    refused(
        |spec| spec.program = "/etc/passwd".to_owned(),
        "Permission denied",
    );
    refused(
        |spec| spec.folder = "/no/such/folder".into(),
        "`/no/such/folder` does not exist",
    );
    refused(|spec| spec.arguments.push("a\0b".to_owned()), "nul byte");
}

fn gives_exactly_what_was_ordered(level: KeeperLevel) {
    let world = World::new(level);
    // More than a pipe holds, and the command reads none of it for a while.
    let mut spec = world.spec("sleep 0.1; wc -c; pwd; exec /usr/bin/env -0");
    spec.stdin = "ü".repeat(100_000);
    spec.environment
        .insert("ODD".to_owned(), "a=b\nc".to_owned());
    let outcome = world.run(spec).unwrap();
    let mut variables: Vec<&str> = outcome.output.head.split('\0').collect();
    let real = world.path().canonicalize().unwrap();
    let first = format!("200000\n{}\n", real.display());
    assert!(variables[0].starts_with(&first), "{variables:?}");
    variables[0] = &variables[0][first.len()..];
    variables.retain(|variable| {
        // bash sets these by itself.
        let name = variable.split('=').next().unwrap_or_default();
        !["", "PWD", "SHLVL", "_", "OLDPWD"].contains(&name)
    });
    variables.sort_unstable();
    let path = format!("PATH={}", std::env::var("PATH").unwrap());
    let mark = format!("{MARK}={}", world.mark());
    assert_eq!(variables, [mark.as_str(), "ODD=a=b\nc", path.as_str()]);
    assert_eq!(
        world.output("cat"),
        "",
        "without a text standard input is at its end"
    );
}

/// Returns the open files of a process besides pipes, `/dev/null`, and files in its folder. Empty
/// if the process is gone.
fn strays_of(proc: &str, folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(format!("{proc}/fd")) else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok())
        .filter(|target| !target.starts_with("/dev/null") && !target.starts_with(folder))
        .filter(|target| !target.to_str().unwrap().starts_with("pipe:"))
        .collect()
}

fn stands_apart_from_us(level: KeeperLevel) {
    let world = World::new(level);
    // A descriptor that our own parent forgot to close, and a signal that it ignored.
    let script = format!(
        "trap '' USR1; exec 9</etc/passwd; exec {} --order {level:?} {}",
        std::env::current_exe().unwrap().display(),
        world.mark()
    );
    let mut command = Command::new("bash");
    let parent = KilledOnDrop::spawn(command.arg("-c").arg(script));
    let mut looked_at = 0;
    let deadline = Instant::now() + TIMEOUT / 2;
    for process in block_on(world.ready()) {
        let proc = format!("/proc/{}", process.pid);
        // Inherited descriptors stay open; those from which a starting program reads its libraries
        // do not.
        let mut strays = Vec::new();
        block_on(until("the end of what only starting needs", || {
            strays = strays_of(&proc, world.path());
            strays.is_empty() || Instant::now() > deadline
        }));
        assert!(strays.is_empty(), "{strays:?}");
        let Ok(status) = fs::read_to_string(format!("{proc}/status")) else {
            continue;
        };
        looked_at += 1;
        let ignored = status
            .lines()
            .find_map(|line| line.strip_prefix("SigIgn:"))
            .unwrap();
        let ignored = u64::from_str_radix(ignored.trim(), 16).unwrap();
        assert_eq!(ignored & (1 << (10 - 1)), 0, "SIGUSR1 is still ignored");
    }
    assert!(looked_at > 0);
    drop(parent);
    block_on(until("the end of all", || world.alive().is_empty()));

    // There must be no terminal to open.
    assert_eq!(
        world.output("(: </dev/tty) 2>/dev/null || echo none"),
        "none\n"
    );
    if level == KeeperLevel::Namespace {
        assert_eq!(
            world.output("echo $(($$ < 9))"),
            "1\n",
            "numbers count from 1"
        );
    }
}

fn kills_at_the_time_limit(level: KeeperLevel) {
    let world = World::new(level);
    let mut spec = world.spec(&format!("{ESCAPE}\necho started; sleep 1000"));
    spec.time_limit_ms = 1500;
    let started = Instant::now();
    let outcome = world.run(spec).unwrap();
    assert_eq!(outcome.exit, Exit::TimedOut);
    assert!(started.elapsed() >= Duration::from_millis(1500));
    assert_eq!(
        outcome.output.head, "started\n",
        "what it said before is kept"
    );
}

fn leaves_no_daemon_behind(level: KeeperLevel) {
    let world = World::new(level);
    let started = Instant::now();
    assert_eq!(world.output(&format!("{ESCAPE}\necho done")), "done\n");
    assert!(started.elapsed() < TIMEOUT, "it waited for the daemon");
    assert!(world.path().join("ready").exists(), "the daemon never was");
}

fn dies_with_the_run(level: KeeperLevel) {
    let world = World::new(level);
    let mut command = Command::new(std::env::current_exe().unwrap());
    let mut run =
        KilledOnDrop::spawn(command.args(["--order", &format!("{level:?}"), &world.mark()]));
    let mut line = String::new();
    BufReader::new(run.0.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let keeper: ProcessIdentity = serde_json::from_str(&line).unwrap();
    block_on(world.ready());
    assert!(keeper.is_alive().unwrap());
    drop(run);
    assert!(block_on(keeper::wait_until_gone(&keeper, TIMEOUT)));
    // Checked without waiting: the end of the keeper is the proof that its tree is gone.
    assert_eq!(world.alive(), []);
}

fn killing_one_half_kills_the_tree(level: KeeperLevel) {
    // The recorded half, and the other one.
    for recorded in [true, false] {
        let world = World::new(level);
        let keeper = world.keeper();
        let identity = keeper.identity().clone();
        let script = format!("{ESCAPE}\nsleep 1000");
        let victim = if recorded {
            identity.clone()
        } else {
            other_half(&identity, level)
        };
        let killing = async {
            world.ready().await;
            victim.kill().unwrap();
        };
        let running = keeper.run(world.spec(&script));
        let (outcome, ()) = block_on(async { tokio::join!(running, killing) });
        let error = outcome.unwrap_err();
        assert!(matches!(error, KeeperError::Keeper { .. }), "{error:?}");
        assert_eq!(
            world.alive(),
            [],
            "the answer came before the tree was gone"
        );
    }
}

fn dropping_kills(level: KeeperLevel) {
    let world = World::new(level);
    let keeper = world.keeper();
    let identity = keeper.identity().clone();
    block_on(async {
        let script = format!("{ESCAPE}\nsleep 1000");
        tokio::select! {
            outcome = keeper.run(world.spec(&script)) => panic!("{outcome:?}"),
            _ = world.ready() => {}
        }
        // A caller that abandoned the command may restore its files at once.
        assert_eq!(world.alive(), []);
    });
    assert!(block_on(keeper::wait_until_gone(&identity, TIMEOUT)));

    // A keeper that was never given a command.
    let idle = world.keeper();
    let identity = idle.identity().clone();
    assert!(identity.is_alive().unwrap());
    drop(idle);
    assert!(identity.wait_gone(TIMEOUT).unwrap());
}

fn a_grace_lets_it_end_by_itself(level: KeeperLevel) {
    let world = World::new(level);
    let ends = "trap 'echo saved > saved; exit' INT; touch ready; while :; do sleep 0.1; done";
    for (script, saved) in [
        (ends, true),
        ("trap '' INT; touch ready; sleep 1000", false),
    ] {
        let keeper = world.keeper();
        let identity = keeper.identity().clone();
        let grace = Duration::from_millis(if saved { 10_000 } else { 100 });
        block_on(async {
            let ready = world.path().join("ready");
            tokio::select! {
                outcome = keeper.run_with_grace(world.spec(script), grace) => panic!("{outcome:?}"),
                () = until("the command", || ready.exists()) => {}
            }
        });
        assert!(identity.wait_gone(TIMEOUT).unwrap());
        assert_eq!(world.alive(), []);
        assert_eq!(world.path().join("saved").exists(), saved);
        for left in ["ready", "saved"] {
            let _ = fs::remove_file(world.path().join(left));
        }
    }
}

fn keeps_head_and_tail_of_a_flood(level: KeeperLevel) {
    let world = World::new(level);
    let total = 50_000_000;
    let script = format!(
        "printf first; head -c {} /dev/zero | tr '\\0' x; printf last",
        total - "first".len() - "last".len()
    );
    let keeper = world.keeper();
    let server = match level {
        KeeperLevel::Namespace => keeper.identity().clone(),
        KeeperLevel::Subreaper => other_half(keeper.identity(), level),
    };
    let started = Instant::now();
    let mut most_memory = 0;
    let outcome = block_on(async {
        let running = keeper.run(world.spec(&script));
        tokio::pin!(running);
        loop {
            tokio::select! {
                outcome = &mut running => break outcome.unwrap(),
                () = tokio::time::sleep(Duration::from_millis(2)) => {
                    most_memory = most_memory.max(peak_memory(&server).unwrap_or(0));
                }
            }
        }
    });
    println!(
        "{level:?}: 50 MB in {:?}, at most {most_memory} kB resident",
        started.elapsed()
    );
    assert_eq!(outcome.exit, Exit::Code(0));
    let output = outcome.output;
    assert_eq!((output.head.len(), output.tail.len()), (4096, 4096));
    assert!(output.head.starts_with("firstx") && output.tail.ends_with("xlast"));
    assert_eq!(output.omitted_bytes, total as u64 - 8192);
    assert!((1..30_000).contains(&most_memory), "{most_memory} kB");
}

fn survives_orphans(level: KeeperLevel) {
    let world = World::new(level);
    // Each orphan is to be reaped while the command runs, or they pile up and `kill -0` lies.
    let script = "
        for i in $(seq 50); do (sleep 0 & echo $! >>orphans); done
        for pid in $(cat orphans); do while kill -0 $pid 2>/dev/null; do sleep 0.01; done; done
        echo reaped";
    assert_eq!(world.output(script), "reaped\n");
}
