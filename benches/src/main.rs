//! `cargo xtask bench [NAME …] [ADDRESS …]`: what gyrus costs, beside the bare thing, in one run.
//!
//! The machine's disk and clock drift, so every figure that can be is a ratio of two things done
//! in turns within the same seconds. Nothing here asserts; `docs/benchmarks.md` holds what a run
//! printed and what was aimed at.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a developer reads the table"
)]

mod bus;
mod durable;
mod fleet;
mod footprint;
mod long;
mod look;
mod parked;
mod provider;
mod server;
mod start;
mod steps;
mod stop;
mod terminal;
mod tokens;
mod verdict;
mod world;

use std::{borrow::Cow, process::ExitCode};

/// Every benchmark: its name, and what it prints as rows of a table.
type Benchmark = fn() -> anyhow::Result<Vec<Row>>;

const BENCHMARKS: &[(&str, Benchmark)] = &[
    ("footprint", footprint::thousand),
    ("fleet", fleet::runs),
    ("fleet-queue", fleet::queued),
    ("bus", bus::bus),
    ("durable", durable::one_run),
    ("concurrent", durable::many_runs),
    ("steps", steps::bytes),
    ("long", long::million),
    ("look", look::looks),
    ("parked", parked::thousand),
    ("server", server::loaded),
    ("start", start::version),
    ("stop", stop::everything),
    ("terminal", terminal::typing),
    ("tokens", tokens::turns),
    ("verdict", verdict::verdicts),
    ("request", footprint::first_request),
];

/// One line of the result.
pub(crate) struct Row {
    what: Cow<'static, str>,
    measured: String,
    aim: &'static str,
}

pub(crate) fn row(what: impl Into<Cow<'static, str>>, measured: String, aim: &'static str) -> Row {
    Row {
        what: what.into(),
        measured,
        aim,
    }
}

fn main() -> ExitCode {
    // Addresses are for the benchmark that looks at pages.
    let wanted = std::env::args().skip(1);
    let wanted: Vec<String> = wanted.filter(|name| !name.contains("://")).collect();
    let known = |name: &String| BENCHMARKS.iter().any(|(bench, _)| bench == name);
    if let Some(unknown) = wanted.iter().find(|name| !known(name)) {
        let names: Vec<_> = BENCHMARKS.iter().map(|(name, _)| *name).collect();
        eprintln!(
            "there is no benchmark `{unknown}`; there are {}",
            names.join(", ")
        );
        return ExitCode::from(2);
    }
    println!("| benchmark | what | measured | aim |\n| --- | --- | --- | --- |");
    for (name, bench) in BENCHMARKS {
        if !wanted.is_empty() && !wanted.iter().any(|wanted| wanted == name) {
            continue;
        }
        match bench() {
            Ok(rows) => {
                for Row {
                    what,
                    measured,
                    aim,
                } in rows
                {
                    println!("| {name} | {what} | {measured} | {aim} |");
                }
            }
            Err(error) => {
                eprintln!("benchmark {name}: {error:#}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}
