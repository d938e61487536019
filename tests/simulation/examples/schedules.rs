//! Lives random schedules of workers over a model of the shared log.
//!
//! `schedules [--schedules N] [--seed S]`: N schedules, from seed S on. Prints what happened in them,
//! and after how many schedules each flaw is found that is made on purpose. On a failure it prints
//! the seed and the end of what happened, and exits with 1.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a developer reads it"
)]

use std::{process::ExitCode, time::Instant};

use gyrus_simulation::fleet::{Flaw, sweep};

/// Number of schedules that are lived by default.
const SCHEDULES: u64 = 100_000;

/// Number of schedules within which a flaw is found.
const FLAWED: u64 = 100_000;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let Some((schedules, seed)) = options(&arguments) else {
        eprintln!("fleet takes --schedules N and --seed S, both whole numbers");
        return ExitCode::from(2);
    };
    let start = Instant::now();
    match sweep(schedules, seed, None) {
        Ok(outcome) => {
            println!("{outcome:#?}");
            let seconds = start.elapsed().as_secs_f64();
            println!("{schedules} schedules, {:.0}/s", schedules as f64 / seconds);
        }
        Err(failed) => {
            eprintln!("{failed}");
            return ExitCode::FAILURE;
        }
    }
    for flaw in Flaw::ALL {
        match sweep(FLAWED, seed, Some(flaw)) {
            Ok(_) => {
                eprintln!("{flaw:?} was not found in {FLAWED} schedules");
                return ExitCode::FAILURE;
            }
            Err(failed) => println!("{flaw:?}: seed {}: {}", failed.seed, failed.why),
        }
    }
    ExitCode::SUCCESS
}

fn options(arguments: &[String]) -> Option<(u64, u64)> {
    let (mut schedules, mut seed) = (SCHEDULES, 1);
    let mut pairs = arguments.chunks_exact(2);
    for pair in &mut pairs {
        match pair[0].as_str() {
            "--schedules" => schedules = pair[1].parse().ok()?,
            "--seed" => seed = pair[1].parse().ok()?,
            _ => return None,
        }
    }
    pairs.remainder().is_empty().then_some((schedules, seed))
}
