//! Developer commands, called as `cargo xtask COMMAND`.
//!
//! Each command is one module and one line in [`COMMANDS`]. Exit codes: 0 done, 1 a check failed,
//! 2 the command was not understood or this machine lacks something.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a developer reads the output"
)]

mod commands;
mod error;
mod test;
mod oracle;
mod replays;
mod whole;
mod eval;
mod third_run;
mod apps;
mod agentdojo;
mod clients;
mod dist;
mod image;
mod release;
mod endure;
mod pages;
mod fuzz;
mod programs;
mod licences;
mod rows;
mod tidy;
mod repository;
#[cfg(feature = "gyrus")]
mod sim;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Err(error) = commands::dispatch(&arguments) else {
        return ExitCode::SUCCESS;
    };
    eprintln!("error: {error:#}");
    if error.is::<error::CannotStart>() {
        ExitCode::from(2)
    } else {
        ExitCode::FAILURE
    }
}
