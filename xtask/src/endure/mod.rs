//! A standing trial: real processes are killed, disks fill up and power is cut, again and again, for as
//! long as one says. Each trial has a seed that repeats it.

mod machines;
mod trials;
mod world;

use std::{
    fs,
    path::PathBuf,
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail, ensure};

use self::trials::TRIALS;
use crate::{error::CannotStart, repository};

/// Findings after which the rest of the time is not worth it.
const MOST_FINDINGS: usize = 20;

/// The options of the command line.
struct Options {
    until: Duration,
    /// The seed of the first trial; the next ones count up.
    seed: u64,
    only: Option<String>,
    program: Option<PathBuf>,
}

impl Options {
    fn parse(arguments: &[String]) -> anyhow::Result<Self> {
        let mut options = Self {
            until: Duration::from_hours(1),
            seed: 1,
            only: None,
            program: None,
        };
        for pair in arguments.chunks(2) {
            let [name, value] = pair else {
                bail!(CannotStart(format!("`{}` needs a value after it", pair[0])));
            };
            let number = || {
                let number = value.parse::<u64>();
                number.map_err(|_| CannotStart(format!("`{value}` is not a whole number")))
            };
            match name.as_str() {
                "--hours" => options.until = Duration::from_hours(number()?),
                "--minutes" => options.until = Duration::from_mins(number()?),
                "--seed" => options.seed = number()?,
                "--only" => options.only = Some(value.clone()),
                "--program" => options.program = Some(std::path::absolute(value)?),
                other => bail!(CannotStart(format!(
                    "`endure` takes --hours, --minutes, --seed, --only and --program, not {other}"
                ))),
            }
        }
        if let Some(only) = &options.only {
            let is_known = TRIALS.iter().any(|trial| trial.name == *only);
            let names: Vec<_> = TRIALS.iter().map(|trial| trial.name).collect();
            ensure!(
                is_known,
                CannotStart(format!(
                    "there is no trial `{only}`; there are {}",
                    names.join(", ")
                ))
            );
        }
        Ok(options)
    }
}

/// Runs trials until the time is over, then prints what was done and what was found.
///
/// # Errors
/// Something was found.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let options = Options::parse(arguments)?;
    let program = match options.program {
        Some(program) => program,
        None => build()?,
    };
    let chosen = TRIALS.iter().filter(|trial| {
        options
            .only
            .as_deref()
            .is_none_or(|only| trial.name == only)
    });
    let mut rows: Vec<_> = chosen.map(|trial| (trial, 0_u64, 0_u64, 0.0)).collect();
    let (began, mut seed) = (Instant::now(), options.seed);
    let mut findings = Vec::new();
    'time: loop {
        for (trial, times, events, seconds) in &mut rows {
            for _ in 0..trial.in_a_round {
                let started = Instant::now();
                match (trial.perform)(&program, seed) {
                    Ok(count) => *events += count,
                    Err(error) => findings.push(format!(
                        "{error:#}\n  again: cargo xtask endure --only {} --seed {seed} --minutes 0",
                        trial.name
                    )),
                }
                *times += 1;
                *seconds += started.elapsed().as_secs_f64();
                seed += 1;
                if began.elapsed() >= options.until || findings.len() >= MOST_FINDINGS {
                    break 'time;
                }
            }
        }
    }
    println!("| trial | times | events | seconds |\n| --- | --- | --- | --- |");
    for (trial, times, events, seconds) in &rows {
        println!(
            "| {} | {times} | {events} {} | {seconds:.0} |",
            trial.name, trial.events
        );
    }
    for finding in &findings {
        println!("\nfound: {finding}");
    }
    ensure!(
        findings.is_empty(),
        "{} of the trials found something",
        findings.len()
    );
    Ok(())
}

fn build() -> anyhow::Result<PathBuf> {
    let root = repository::root()?;
    let mut cargo: Command = repository::cargo(&["build", "--quiet", "--release"])?;
    let built = cargo.args(["--package", "gyrus"]).status()?;
    ensure!(built.success(), "gyrus cannot be built");
    let program = root.join("target/release/gyrus");
    fs::metadata(&program).with_context(|| format!("there is no {}", program.display()))?;
    Ok(program)
}
