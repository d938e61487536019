//! Tries the readings of command lines by running what they call reading: `cargo xtask oracle`.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a developer reads the output"
)]

use std::process::ExitCode;

use gyrus_gate::oracle::{Ground, Inmate, Question, Settings, run, why_not, work};

const USAGE: &str = "usage: oracle [--seed N] [--count N] [--workers N] | oracle --try LINE";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--work"] => ended(work().map(|()| true)),
        ["--try", line] => ready(|| try_one(line)),
        _ => match settings(&arguments) {
            Some(settings) => ready(|| trial(&settings)),
            None => {
                eprintln!("{USAGE}");
                ExitCode::from(2)
            }
        },
    }
}

type Ended = Result<bool, gyrus_gate::oracle::Error>;

fn ready(act: impl FnOnce() -> Ended) -> ExitCode {
    match why_not() {
        Some(reason) => {
            eprintln!("{reason}");
            ExitCode::from(2)
        }
        None => ended(act()),
    }
}

fn ended(result: Ended) -> ExitCode {
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn worker() -> (std::path::PathBuf, Vec<String>) {
    let own = std::env::current_exe().expect("a running program has a path");
    (own, vec!["--work".to_owned()])
}

fn settings(arguments: &[String]) -> Option<Settings> {
    let mut settings = Settings {
        seed: 1,
        count: 20_000,
        disguises: Ground::DISGUISES,
        workers: std::thread::available_parallelism().map_or(1, usize::from),
        worker: worker(),
        environment: Vec::new(),
    };
    for option in arguments.chunks(2) {
        let number: u64 = option.get(1)?.parse().ok()?;
        match option[0].as_str() {
            "--seed" => settings.seed = number,
            "--count" => settings.count = number,
            "--workers" => settings.workers = usize::try_from(number).ok()?.max(1),
            _ => return None,
        }
    }
    Some(settings)
}

fn trial(settings: &Settings) -> Ended {
    let summary = run(settings, &|failure| println!("{failure}"))?;
    println!("{summary}");
    Ok(summary.failures.is_empty())
}

/// Runs one line whatever its reading says, and tells what it did.
fn try_one(line: &str) -> Ended {
    let (program, arguments) = worker();
    let mut inmate = Inmate::start(&program, &arguments, &[])?;
    let mut is_good = true;
    let disguises = (0..Ground::DISGUISES).map(Ground::Disguised);
    for ground in [Ground::Ordinary, Ground::Hostile]
        .into_iter()
        .chain(disguises)
    {
        let question = Question {
            line: line.to_owned(),
            ground,
            run_anyway: true,
        };
        let reply = inmate.ask(&question)?;
        let changes = reply
            .outcome
            .iter()
            .any(|outcome| !outcome.differences.is_empty());
        is_good &= !(reply.only_reads && changes);
        println!("{}: {reply:?}", ground.folder());
    }
    Ok(is_good)
}
