//! Odd machines: what surrounds a run is not as anybody expects. A run there reaches its goal, or says
//! what is in its way; where that is gone, it goes on.

use std::{fs, path::Path, process::Command};

use anyhow::{bail, ensure};

use super::world::{RUN, World, not_panicked};

/// A machine: the namespaces that it needs, as `unshare` names them, the line of a shell that makes it,
/// and words that a run says which cannot reach its goal there; a run without such words reaches it.
struct OddMachine(&'static str, &'static str, &'static str);

const MACHINES: [OddMachine; 51] = [
    OddMachine("", ":", ""),
    // Limits.
    OddMachine("-Ur", "echo 0 >/proc/sys/user/max_inotify_instances", ""),
    OddMachine("-Ur", "echo 0 >/proc/sys/user/max_inotify_watches", ""),
    OddMachine("-Ur", "echo 0 >/proc/sys/user/max_user_namespaces", ""),
    OddMachine("-Ur", "echo 0 >/proc/sys/user/max_pid_namespaces", ""),
    OddMachine("", "ulimit -n 64", ""),
    OddMachine("", "ulimit -n 40", ""),
    OddMachine("", "ulimit -n 16", "ulimit -n"),
    OddMachine("", "ulimit -n 10", "ulimit -n"),
    OddMachine("", "ulimit -f 64", ""),
    OddMachine("", "ulimit -f 4", "ulimit -f"),
    OddMachine("", "ulimit -f 0", "ulimit -f"),
    OddMachine("", "ulimit -v 400000", ""),
    OddMachine("", "ulimit -s 1024", ""),
    OddMachine("", "ulimit -c 0; ulimit -l 0", ""),
    // The environment.
    OddMachine("", "unset HOME", ""),
    OddMachine("", "export HOME=", ""),
    OddMachine("", "export HOME=person", ""),
    OddMachine("", "export HOME=/nonexistent/me", ""),
    OddMachine("", "export HOME=/etc/hostname", ""),
    OddMachine("", "export GYRUS_HOME=../home", ""),
    OddMachine("", "unset PATH", ""),
    OddMachine("", "export PATH=:/nonexistent:.", ""),
    OddMachine("", "export TMPDIR=/nonexistent", ""),
    OddMachine("", "export TMPDIR=/etc/hostname", ""),
    OddMachine(
        "",
        "export LC_ALL=tr_TR.UTF-8 LANG=xx TZ=Nowhere/Town TERM=odd",
        "",
    ),
    OddMachine(
        "",
        "export TZ=:/dev/zero COLUMNS=0 LINES=-1 USER= LOGNAME=",
        "",
    ),
    OddMachine(
        "",
        "export BIG=$(head -c 120000 /dev/zero | tr '\\0' x)",
        "",
    ),
    OddMachine("", "export BAD=\"$(printf 'a\\377')\"", ""),
    OddMachine("", "umask 0", ""),
    OddMachine("", "umask 777", ""),
    OddMachine("", "trap '' HUP INT QUIT TERM PIPE CHLD USR1 USR2 ALRM", ""),
    OddMachine("", "exec <&-", ""),
    OddMachine("", "exec >/dev/full", "the output cannot be written"),
    // File systems.
    OddMachine("-m", "mount --bind . .; cd \"$PWD\"", ""),
    OddMachine("-m", "mkdir in; mount -t tmpfs none in", ""),
    OddMachine(
        "-m",
        "mount --bind . .; mount -o remount,bind,ro .; cd \"$PWD\"",
        "",
    ),
    OddMachine(
        "-m",
        "mount --bind \"$GYRUS_HOME\" \"$GYRUS_HOME\"; mount -o remount,bind,ro \"$GYRUS_HOME\"",
        "mounted read-only",
    ),
    OddMachine(
        "-m",
        "mount --bind \"$GYRUS_HOME\" \"$GYRUS_HOME\"; \
         mount -o remount,bind,noexec,nosuid,nodev \"$GYRUS_HOME\"",
        "",
    ),
    OddMachine(
        "-m",
        "mount --bind /tmp /tmp; mount -o remount,bind,nosuid,nodev /tmp; cd \"$PWD\"",
        "",
    ),
    OddMachine("-m", "mount -t tmpfs none /proc", "mount -t proc"),
    OddMachine("-m", "mount -t tmpfs none /dev", ""),
    OddMachine("-m", "mount -t tmpfs none /etc", ""),
    OddMachine("-m", "mount -t tmpfs none /sys", ""),
    OddMachine(
        "-m",
        "mount -t tmpfs none /var; mount -t tmpfs none /run",
        "",
    ),
    OddMachine(
        "",
        "truncate -s 10G sparse; mkfifo pipe; ln -s / root; ln -s loop loop",
        "",
    ),
    OddMachine(
        "",
        "mkdir -m 000 closed; touch \"$(printf 'a\\nb')\" \"$(printf '\\377')\" -- -rf",
        "",
    ),
    OddMachine(
        "",
        "touch stopped; chmod 000 stopped; mkdir .git; touch .git/config .git/HEAD",
        "",
    ),
    // Networks and processes.
    OddMachine("-n", ":", "Network is unreachable"),
    OddMachine("-p", ":", ""),
    OddMachine(
        "-u",
        "hostname \"$(head -c 64 /dev/zero | tr '\\0' h)\"",
        "",
    ),
];

/// Seconds by which clocks are wrong: by a day, a year and more than all of time, both ways.
const WRONG_BY: [i64; 6] = [
    86_400,
    -86_400,
    31_536_000,
    -31_536_000,
    9_000_000_000_000,
    -2_000_000_000,
];

/// Lets a run begin on each of the machines, and then on one that has what was missing.
pub(super) fn odd_machines(program: &Path, _seed: u64) -> anyhow::Result<u64> {
    let mut count = 0;
    let mut wrong = String::new();
    for machine in &MACHINES {
        match on_machine(program, machine) {
            Ok(()) => count += 1,
            Err(error) => wrong.push_str(&format!("\n  `{}`: {error:#}", machine.1)),
        }
    }
    ensure!(wrong.is_empty(), "{count} of {}:{wrong}", MACHINES.len());
    Ok(count)
}

fn on_machine(
    program: &Path,
    OddMachine(namespaces, line, words): &OddMachine,
) -> anyhow::Result<()> {
    let world = World::new(program)?;
    let line = format!("{line}\nexec \"$GYRUS\" \"$@\"");
    let mut command = if namespaces.is_empty() {
        world.beside("sh")
    } else {
        let mut command = world.beside("unshare");
        command.args([namespaces, "sh"]);
        if *namespaces == "-p" {
            command = world.beside("unshare");
            command.args(["-pf", "sh"]);
        }
        command
    };
    command.args(["-ec", &line, "sh"]).args(RUN);
    let output = command.output()?;
    not_panicked(&output)?;
    let said = String::from_utf8_lossy(&output.stderr);
    let is_as_expected = if words.is_empty() {
        output.status.success()
    } else {
        output.status.code().is_some_and(|code| code != 0) && said.contains(words)
    };
    ensure!(is_as_expected, "it ended with {}: {said}", output.status);
    if output.status.success() {
        world.check_run()
    } else {
        world.to_its_end()
    }
}

/// Sets the clock of a run's processes between them, and kills each of them but the last.
pub(super) fn wrong_clocks(program: &Path, seed: u64) -> anyhow::Result<u64> {
    let mut random = fastrand::Rng::with_seed(seed);
    let world = World::new(program)?;
    let (source, library, ahead) = (world.path("c.c"), world.path("c.so"), world.path("ahead"));
    fs::write(
        &source,
        include_str!("../../../crates/gyrus/tests/fixtures/clock.c"),
    )?;
    let made = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &source])
        .status();
    if !made.is_ok_and(|made| made.success()) {
        bail!("there is no compiler for C, with which clocks are set");
    }
    let mut begun = false;
    let times = random.u64(2..=4);
    for time in 0..times {
        let by = random.choice(WRONG_BY).unwrap_or_default();
        fs::write(&ahead, by.to_string())?;
        let arguments: &[&str] = if begun { &["resume", "last"] } else { &RUN };
        let mut command = world.gyrus(arguments);
        command
            .env("LD_PRELOAD", &library)
            .env("CLOCK_AHEAD", &ahead);
        let mut child = command.spawn()?;
        if time + 1 < times {
            std::thread::sleep(std::time::Duration::from_millis(random.u64(..900)));
            let _ = child.kill();
        }
        not_panicked(&child.wait_with_output()?)?;
        begun = world.has_run()?;
    }
    world.to_its_end()?;
    Ok(times)
}
