//! Simulates random schedules of runs that share budgets.
//!
//! `budgets [--schedules N] [--seed S]`: N schedules, all of which follow from S. Prints one line;
//! on a failure it prints the seed and the events until then, and exits with 1.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a developer reads it"
)]

use std::process::ExitCode;

use gyrus_kernel::sim::sweep;

/// Number of schedules that are simulated by default.
const SCHEDULES: u64 = 100_000;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let Some((schedules, seed)) = options(&arguments) else {
        eprintln!("budgets takes --schedules N and --seed S, both whole numbers");
        return ExitCode::from(2);
    };
    match sweep(schedules, seed) {
        Ok(done) => {
            println!("{done}");
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
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
