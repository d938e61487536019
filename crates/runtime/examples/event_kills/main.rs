//! Kills a process that publishes and receives durable events.
//!
//! `event_kills [--kills N] [--seed S]`: N kills, at moments that follow from S as far as a machine
//! repeats itself. Prints one line; on a failure it prints what was wrong, and exits with 1.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a developer reads it"
)]

mod kills;

use std::process::ExitCode;

/// Number of kills by default.
const KILLS: u64 = 1_000;

fn main() -> ExitCode {
    if let Some(orders) = kills::Orders::given() {
        kills::run_until_killed(&orders);
        return ExitCode::SUCCESS;
    }
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let Some((count, seed)) = options(&arguments) else {
        eprintln!("event_kills takes --kills N and --seed S, both whole numbers");
        return ExitCode::from(2);
    };
    let done = tempfile::tempdir()
        .map_err(Into::into)
        .and_then(|folder| kills::kill_repeatedly(folder.path(), count, seed, &[]));
    match done {
        Ok(report) => {
            println!("seed {seed}: {report}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("seed {seed}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn options(arguments: &[String]) -> Option<(u64, u64)> {
    let (mut count, mut seed) = (KILLS, 1);
    let mut pairs = arguments.chunks_exact(2);
    for pair in &mut pairs {
        match pair[0].as_str() {
            "--kills" => count = pair[1].parse().ok()?,
            "--seed" => seed = pair[1].parse().ok()?,
            _ => return None,
        }
    }
    pairs.remainder().is_empty().then_some((count, seed))
}
