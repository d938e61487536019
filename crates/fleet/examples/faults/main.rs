//! Lets a fleet of real processes do runs while workers and servers are killed, stopped and cut off, and
//! then compares what the servers have with what happened.
//!
//! `cargo xtask fleet` builds everything and starts it. Which faults happen to what is decided by a
//! seed, when they happen by how far the runs are: so two runs with one seed are alike, not the same.
//! Prints what happened; on a failure also the seed, what broke and where everything is kept, and exits
//! with 1.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a developer reads it"
)]

mod answers;
mod appends;
mod check;
mod faults;
mod harms;
mod options;
mod proxy;
mod reader;
mod report;
mod runs;
mod servers;
mod workers;
mod world;

use std::process::ExitCode;

use options::{Options, USAGE};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let options = match Options::read(&arguments) {
        Ok(options) => options,
        Err(why) => {
            eprintln!("{why}; {USAGE}");
            return ExitCode::from(2);
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("no threads can be started: {error}");
            return ExitCode::from(2);
        }
    };
    let seed = options.seed;
    match runtime.block_on(world::live(options)) {
        Ok(is_good) if is_good => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("seed {seed}: {error:#}");
            ExitCode::FAILURE
        }
    }
}
