//! Sends broken streams through the readers of every protocol.
//!
//! `mutate [--bytes N] [--seed S]`: N bytes of streams, all of which follow from S. Prints one
//! line; on a failure the seed and the smallest stream that shows it, and exits with 1.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a developer reads it"
)]

use std::process::ExitCode;

use gyrus_simulation::streams::sweep;

/// Default number of bytes to read.
const BYTES: u64 = 100_000_000;

/// Maximum memory that the readers may need, in kilobytes: a few times the longest event.
const MAX_MEMORY_KB: u64 = 192 * 1024;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let Some((bytes, seed)) = options(&arguments) else {
        eprintln!("mutate takes --bytes N and --seed S, both whole numbers");
        return ExitCode::from(2);
    };
    // The sweep finds panics and reports the stream that causes them.
    std::panic::set_hook(Box::new(|_| {}));
    match sweep(bytes, seed) {
        Ok(done) => println!("{done}"),
        Err(failure) => {
            eprintln!("{failure}");
            return ExitCode::FAILURE;
        }
    }
    match peak_memory_kb() {
        Some(peak) if peak > MAX_MEMORY_KB => {
            eprintln!("the readers needed {peak} kB of memory; {MAX_MEMORY_KB} kB are enough");
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}

fn options(arguments: &[String]) -> Option<(u64, u64)> {
    let (mut bytes, mut seed) = (BYTES, 1);
    let mut pairs = arguments.chunks_exact(2);
    for pair in &mut pairs {
        match pair[0].as_str() {
            "--bytes" => bytes = pair[1].parse().ok()?,
            "--seed" => seed = pair[1].parse().ok()?,
            _ => return None,
        }
    }
    pairs.remainder().is_empty().then_some((bytes, seed))
}

/// Returns the peak memory of this process, where the system reports it.
fn peak_memory_kb() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}
