//! Duration of the emergency stop, from the command to when nothing is left.
//!
//! The runs' commands ignore every signal that can be ignored and keep the processor busy, in
//! sessions of their own. Whether something is left is looked for when the command has returned;
//! if so, there is no figure.

use std::{
    fs,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use gyrus_kernel::latch::Latch;

use crate::{Row, row, start::gyrus};

/// Stops that are measured.
const STOPS: usize = 100;

/// Runs that are at work at each.
const RUNS: usize = 10;

/// Looks at the latch that are measured.
const LOOKS: u32 = 100_000;

/// Timeout for all runs together to be at work.
const TIMEOUT: Duration = Duration::from_secs(120);

const SCRIPT: &str = r#"
[[reply]]
calls = [{ tool = "shell", arguments = { command = "trap '' TERM INT HUP; (setsid sh -c 'trap \"\" TERM INT HUP; until [ -e ../go ]; do sleep 0.01; done; while :; do :; done' &) ; touch begun; until [ -e ../go ]; do sleep 0.01; done; while :; do :; done" } }]
"#;

fn command(at: &Path, arguments: &[&str]) -> anyhow::Result<Command> {
    let mut command = Command::new(gyrus()?);
    command
        .args(arguments)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", at.join("person"))
        .env("GYRUS_HOME", at.join("home"))
        .env(
            "GYRUS_MODEL",
            format!("script:{}", at.join("script.toml").display()),
        )
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    Ok(command)
}

/// Starts runs and waits until the commands of all are at work.
fn at_work(at: &Path) -> anyhow::Result<Vec<Child>> {
    let mut children = Vec::new();
    let mut begun = Vec::new();
    // Those that begin first must not keep the processor from the others.
    let go = at.join("work/go");
    let _ = fs::remove_file(&go);
    for number in 0..RUNS {
        let work = at.join(format!("work/{number}"));
        // What was there belonged to the stop before.
        let _ = fs::remove_dir_all(&work);
        fs::create_dir_all(&work)?;
        begun.push(work.join("begun"));
        let arguments = ["run", "go", "--approve", "auto", "--workdir", "."];
        children.push(command(at, &arguments)?.current_dir(&work).spawn()?);
    }
    let since = Instant::now();
    while !begun.iter().all(|file| file.exists()) {
        anyhow::ensure!(since.elapsed() < TIMEOUT, "the runs do not begin");
        thread::sleep(Duration::from_millis(2));
    }
    fs::write(go, "")?;
    Ok(children)
}

/// Counts the processes that work below a folder.
fn left(at: &Path) -> anyhow::Result<usize> {
    let work = at.join("work").canonicalize()?;
    let mut left = 0;
    for process in fs::read_dir("/proc")? {
        let folder = fs::read_link(process?.path().join("cwd"));
        left += usize::from(folder.is_ok_and(|folder| folder.starts_with(&work)));
    }
    Ok(left)
}

/// `gyrus stop --all` while runs are at work, again and again.
pub(crate) fn everything() -> anyhow::Result<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    let at = folder.path();
    fs::create_dir(at.join("person"))?;
    fs::write(at.join("script.toml"), SCRIPT)?;
    let mut took = Vec::new();
    for _ in 0..STOPS {
        let children = at_work(at)?;
        let mut stop = command(at, &["stop", "--all"])?;
        let since = Instant::now();
        let status = stop.status()?;
        took.push(since.elapsed());
        let left = left(at)?;
        anyhow::ensure!(
            status.success() && left == 0,
            "{left} processes are left, and the stop ended with {status}"
        );
        for mut child in children {
            child.wait()?;
        }
        let status = command(at, &["rearm", "--yes"])?.status()?;
        anyhow::ensure!(status.success(), "the stop cannot be lifted");
    }
    took.sort_unstable();
    let at_percent = |percent: usize| took[(took.len() - 1) * percent / 100].as_secs_f64() * 1e3;
    let latch = Latch::of(&at.join("home"));
    let since = Instant::now();
    for _ in 0..LOOKS {
        latch.check()?;
    }
    let look = since.elapsed().as_secs_f64() / f64::from(LOOKS) * 1e6;
    let looked = row(
        "a look at the latch, before each thing that a run does",
        format!("{look:.1} µs"),
        "< 20 µs",
    );
    let stopped = row(
        "`gyrus stop --all`, until nothing is left of ten runs that ignore signals",
        format!(
            "median {:.0} ms, 99 % within {:.0} ms, longest {:.0} ms",
            at_percent(50),
            at_percent(99),
            at_percent(100)
        ),
        "99 % within 200 ms",
    );
    Ok(vec![stopped, looked])
}
