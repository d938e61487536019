//! `cargo xtask test`: each check in turn, stopping at the first that fails.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    process::{Command, Stdio},
    time::Instant,
};

use anyhow::{Context, ensure};

use crate::{licences, programs, repository, tidy};

/// The tests that are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// All but desktops, fleets and long work in browsers, by the filter in `.config/nextest.toml`: as
    /// long as a contributor waits.
    Default,
    All,
}

/// One check. It may add to the count of tests.
type Step = fn(Scope, &mut Tally) -> anyhow::Result<()>;

const STEPS: [(&str, Step); 6] = [
    ("formatting", |_, _| cargo(&["fmt", "--all", "--check"])),
    ("clippy", |_, _| {
        let scope = ["clippy", "--workspace", "--all-targets", "--all-features"];
        cargo(&[&scope[..], &["--", "-D", "warnings"]].concat())?;
        // The program as a newcomer builds it: with all features, what only some of them use has a use.
        cargo(&["clippy", "-p", "gyrus", "--", "-D", "warnings"])
    }),
    ("tidy", |_, _| tidy::run()),
    ("tests", tests),
    ("doctests", |_, tally| {
        counted(
            &["test", "--doc", "--workspace", "--all-features"],
            Output::Standard,
            tally,
        )
    }),
    ("licences and bans", |_, _| licences::run()),
];

/// Runs every check, then says how many tests passed and failed.
pub(crate) fn run(scope: Scope) -> anyhow::Result<()> {
    programs::ensure_installed()?;
    programs::ensure_servers()?;
    programs::ensure_nats()?;
    let mut tally = Tally::default();
    let outcome = STEPS.into_iter().try_for_each(|(heading, step)| {
        println!("\n== {heading}");
        let started = Instant::now();
        let outcome = step(scope, &mut tally).with_context(|| format!("{heading} failed"));
        println!("== {heading}: {:.1} s", started.elapsed().as_secs_f64());
        outcome
    });
    // Without a test that ran, counts would read as if nothing had failed.
    if tally != Tally::default() {
        println!("\n{} passed, {} failed", tally.passed, tally.failed);
    }
    outcome
}

fn tests(scope: Scope, tally: &mut Tally) -> anyhow::Result<()> {
    let packages = ["--workspace", "--all-features"];
    if repository::has_subcommand("nextest")? {
        // Most of them wait, for a disk or a process; those that measure a browser's time need a core.
        let threads = std::thread::available_parallelism().map_or(2, |cores| cores.get() * 2);
        let threads = threads.to_string();
        let chosen: &[&str] = match scope {
            Scope::Default => &["--test-threads", &threads],
            Scope::All => &["--ignore-default-filter"],
        };
        // nextest writes its results to standard error.
        return counted(
            &[&["nextest", "run"], &packages[..], chosen].concat(),
            Output::Error,
            tally,
        );
    }
    println!("cargo-nextest is not installed: the tests run by `cargo test`");
    let targets = ["--lib", "--bins", "--tests", "--no-fail-fast"];
    counted(
        &[&["test"], &packages[..], &targets].concat(),
        Output::Standard,
        tally,
    )
}

fn cargo(arguments: &[&str]) -> anyhow::Result<()> {
    let status = repository::cargo(arguments)?
        .status()
        .context("cannot run cargo")?;
    ensure!(
        status.success(),
        "`cargo {}` ended with {status}",
        arguments.join(" ")
    );
    Ok(())
}

/// The stream of a test runner that carries its results.
#[derive(Clone, Copy)]
enum Output {
    Standard,
    Error,
}

/// Runs cargo, passes everything on, and counts the tests that it reports.
fn counted(arguments: &[&str], results: Output, tally: &mut Tally) -> anyhow::Result<()> {
    let mut command = repository::cargo(arguments)?;
    // The results are read by their words.
    command.env("CARGO_TERM_COLOR", "never");
    pass_on(&mut command, results, &mut io::stdout(), tally)
        .with_context(|| format!("while running `cargo {}`", arguments.join(" ")))
}

fn pass_on(
    command: &mut Command,
    results: Output,
    echo: &mut impl Write,
    tally: &mut Tally,
) -> anyhow::Result<()> {
    match results {
        Output::Standard => command.stdout(Stdio::piped()),
        Output::Error => command.stderr(Stdio::piped()),
    };
    let mut child = command.spawn().context("cannot start it")?;
    let stream: Box<dyn Read> = match results {
        Output::Standard => Box::new(child.stdout.take().expect("the stream was piped above")),
        Output::Error => Box::new(child.stderr.take().expect("the stream was piped above")),
    };
    let mut stream = BufReader::new(stream);
    let mut line = Vec::new();
    while stream.read_until(b'\n', &mut line)? > 0 {
        echo.write_all(&line)?;
        tally.read(&String::from_utf8_lossy(&line));
        line.clear();
    }
    let status = child.wait()?;
    ensure!(status.success(), "it ended with {status}");
    Ok(())
}

/// Counts of the tests that passed and failed so far.
#[derive(Debug, Default, PartialEq)]
struct Tally {
    passed: u64,
    failed: u64,
}

impl Tally {
    /// Adds what a line of a runner's output says, if it is a summary:
    /// `test result: ok. 2 passed; 0 failed; …` or `Summary [ 1s] 2 tests run: 2 passed, …`.
    fn read(&mut self, line: &str) {
        // What nextest repeats of a test that failed is indented, its summary too.
        let is_summary = line.starts_with("test result: ") || line.trim().starts_with("Summary [");
        let Some((_, counts)) = line.split_once(": ").filter(|_| is_summary) else {
            return;
        };
        for count in counts.split([',', ';', '.']) {
            let mut words = count.split_whitespace();
            let number = words
                .next()
                .and_then(|word| word.parse::<u64>().ok())
                .unwrap_or(0);
            match words.next() {
                Some("passed") => self.passed += number,
                // `1 failed`, `1 timed out`, `1 exec failed`
                Some("failed" | "timed" | "exec") => self.failed += number,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_are_counted() {
        let check = |line: &str, passed, failed| {
            let mut tally = Tally::default();
            tally.read(line);
            assert_eq!(tally, Tally { passed, failed }, "{line}");
        };
        check(
            "test result: ok. 5 passed; 0 failed; 1 ignored; finished in 0.01s\n",
            5,
            0,
        );
        check(
            "test result: FAILED. 5 passed; 2 failed; 0 ignored; 0 measured",
            5,
            2,
        );
        check(
            "     Summary [   0.005s] 12 tests run: 12 passed, 0 skipped\n",
            12,
            0,
        );
        check(
            "Summary [9s] 9/12 tests run: 4 passed (1 slow), 3 failed, 1 timed out, 1 exec failed",
            4,
            5,
        );
        check("        PASS [   0.003s] 7 passed", 0, 0);
        check("5 passed; 0 failed", 0, 0);
        check(
            "    test result: FAILED. 0 passed; 1 failed; 0 ignored",
            0,
            0,
        );
    }

    #[test]
    fn a_failing_child_fails_after_its_output_was_counted() {
        let script = "echo 'test result: FAILED. 1 passed; 2 failed'; exit 3";
        let (mut echo, mut tally) = (Vec::new(), Tally::default());
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let outcome = pass_on(&mut command, Output::Standard, &mut echo, &mut tally);
        assert!(outcome.unwrap_err().to_string().contains('3'));
        assert_eq!(echo, b"test result: FAILED. 1 passed; 2 failed\n");
        assert_eq!(
            tally,
            Tally {
                passed: 1,
                failed: 2
            }
        );
    }
}
