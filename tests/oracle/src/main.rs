//! Tries what contains commands: `cargo xtask oracle`.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a developer reads the output"
)]

use std::{collections::BTreeMap, process::ExitCode};

use gyrus_oracle::{
    Attack, Between, Error, Failure, Fixture, Kind, Settings, Summary, Task, run, serve_if_asked,
    tasks, why_not,
};
use parking_lot::Mutex;

const USAGE: &str = "usage: oracle [--seed N] [--count N] [--from N] [--workers N] \
                     [--sandbox on|off|nothing] [--only N | --line LINE … [--ground NAME] [--killed-after MS]]";

/// Values of `--sandbox`; `nothing` is for trying the oracle itself.
const WORDS: [(Between, &str); 4] = [
    (Between::Sandbox, "on"),
    (Between::Landlock, "without-namespaces"),
    (Between::Gate, "off"),
    (Between::Nothing, "nothing"),
];

/// Tasks of one class with the same kinds of findings that are shown whole.
const SHOWN: u32 = 3;

/// Options from the arguments.
struct Asked {
    seed: u64,
    count: u64,
    from: u64,
    workers: usize,
    /// One trial after the other.
    between: Vec<Between>,
    only: Option<u64>,
    lines: Vec<String>,
    killed_after: Option<u64>,
    fixture: Fixture,
}

fn main() -> ExitCode {
    serve_if_asked();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(asked) = asked(&arguments) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    if let Some(reason) = why_not() {
        eprintln!("{reason}");
        return ExitCode::from(2);
    }
    match trials(&asked) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn asked(arguments: &[String]) -> Option<Asked> {
    let mut asked = Asked {
        seed: 1,
        count: 20_000,
        from: 0,
        workers: std::thread::available_parallelism().map_or(1, usize::from),
        between: vec![Between::Sandbox, Between::Gate],
        only: None,
        lines: Vec::new(),
        killed_after: None,
        fixture: Fixture::Ordinary,
    };
    for option in arguments.chunks(2) {
        let value = option.get(1)?;
        match option[0].as_str() {
            "--seed" => asked.seed = value.parse().ok()?,
            "--count" => asked.count = value.parse().ok()?,
            "--from" => asked.from = value.parse().ok()?,
            "--workers" => asked.workers = value.parse::<usize>().ok()?.max(1),
            "--only" => asked.only = Some(value.parse().ok()?),
            "--killed-after" => asked.killed_after = Some(value.parse().ok()?),
            "--line" => asked.lines.push(value.clone()),
            "--ground" => {
                asked.fixture = value.parse().ok()?;
            }
            "--sandbox" => {
                let mut words = WORDS.into_iter();
                asked.between = vec![words.find(|(_, word)| word == value)?.0];
            }
            _ => return None,
        }
    }
    Some(asked)
}

fn trials(asked: &Asked) -> Result<bool, Error> {
    let all = tasks(asked.seed)?;
    let given = Task {
        number: 0,
        fixture: asked.fixture,
        attack: Attack {
            class: "given".to_owned(),
            lines: asked.lines.clone(),
            killed_after: asked.killed_after,
        },
    };
    let is_one = asked.only.is_some() || !asked.lines.is_empty();
    let task = |number: u64| {
        if asked.lines.is_empty() {
            all.task(number)
        } else {
            given.clone()
        }
    };
    let numbers: Vec<u64> = match (asked.only, asked.lines.is_empty()) {
        (Some(number), _) => vec![number],
        (None, false) => vec![0],
        (None, true) => (asked.from..asked.from + asked.count).collect(),
    };
    let mut is_good = true;
    for between in asked.between.iter().copied() {
        let settings = Settings {
            numbers: numbers.clone(),
            workers: asked.workers.min(numbers.len()).max(1),
            between,
        };
        let shown = Mutex::default();
        let summary = run(&settings, &task, &|failure, texts| {
            if is_one {
                println!("{failure}");
                texts.iter().for_each(|text| println!("{text}\n"));
            } else if !failure.findings.is_empty() && is_new(failure, &shown) {
                println!("{failure}");
            }
        })?;
        tell(asked, between, &summary);
        is_good &= summary.failures.is_empty();
    }
    Ok(is_good)
}

/// Whether few like it were shown before.
fn is_new(failure: &Failure, shown: &Mutex<BTreeMap<(String, Vec<Kind>), u32>>) -> bool {
    let mut kinds: Vec<Kind> = failure
        .findings
        .iter()
        .map(|finding| finding.kind)
        .collect();
    kinds.sort();
    kinds.dedup();
    let mut shown = shown.lock();
    let count = shown
        .entry((failure.task.attack.class.clone(), kinds))
        .or_default();
    *count += 1;
    *count <= SHOWN
}

fn tell(asked: &Asked, between: Between, summary: &Summary) {
    let word = WORDS.iter().find(|(known, _)| *known == between);
    let word = word.map_or("", |(_, word)| word);
    println!("\n## Sandbox {word}, seed {}\n\n{summary}\n", asked.seed);
    if !summary.failures.is_empty() {
        println!(
            "one again: cargo xtask oracle --seed {} --sandbox {word} --only NUMBER",
            asked.seed
        );
        let open: Vec<&str> = Kind::open(between).iter().map(|kind| kind.name()).collect();
        println!("not closed yet: {}", open.join(", "));
        println!(
            "beyond what is known to be open: {}",
            summary.unexpected(between).len()
        );
    }
}
