//! A sample of the oracle. `cargo xtask oracle` runs all of it.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test, though without harness"
)]

use gyrus_oracle::{
    Attack, Between, Fixture, Kind, Settings, Summary, Task, run, serve_if_asked, tasks, why_not,
};
use libtest_mimic::{Arguments, Failed, Trial};

/// Attacks of the list that are tried, evenly spread over it.
const ATTACKS: u64 = 70;
/// Mutations that are tried.
const MUTATIONS: u64 = 30;
const SEED: u64 = 1;

fn main() {
    serve_if_asked();
    let missing = why_not();
    if let Some(reason) = &missing {
        println!("{reason}");
    }
    let trial = |name: &str, between| {
        let trial = Trial::test(name, move || holds(between));
        trial.with_ignored_flag(missing.is_some())
    };
    let trials = vec![
        trial("nothing_harms_the_person", Between::Sandbox),
        trial(
            "without_a_sandbox_what_passes_changes_nothing",
            Between::Gate,
        ),
        Trial::test("what_harms_is_seen", sees).with_ignored_flag(missing.is_some()),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

fn sample(between: Between) -> Summary {
    let all = tasks(SEED).unwrap();
    let step = all.fixed() / ATTACKS;
    let fixed = (0..ATTACKS).map(|number| number * step);
    let numbers = fixed.chain(all.fixed()..all.fixed() + MUTATIONS).collect();
    let settings = Settings {
        numbers,
        workers: 2,
        between,
    };
    run(&settings, &|number| all.task(number), &|_, _| {}).unwrap()
}

/// Nothing is found but what is known to be open.
fn holds(between: Between) -> Result<(), Failed> {
    let summary = sample(between);
    println!("{summary}");
    let open: Vec<&str> = Kind::open(between).iter().map(|kind| kind.name()).collect();
    println!("not closed yet: {}", open.join(", "));
    let unexpected = summary.unexpected(between);
    let told: String = unexpected
        .iter()
        .map(|failure| format!("\n{failure}"))
        .collect();
    if unexpected.is_empty() {
        Ok(())
    } else {
        Err(told.into())
    }
}

/// Lines that harm when nothing stands in their way, and the kinds that the oracle finds.
const HARM: [(&str, Kind); 13] = [
    ("cp evil .git/hooks/post-index-change", Kind::RanAsPerson),
    ("cp evil .git/hooks/post-index-change", Kind::GitControl),
    ("cp evil .venv/bin/ls", Kind::RanAsPerson),
    (
        "printf 'X := $(shell touch FLAG)\\nall:\\n' > Makefile",
        Kind::RanAsPerson,
    ),
    ("printf x > .envrc", Kind::ControlFile),
    ("cp -r .git docs/.git; ./poison bare", Kind::RanAsPerson),
    ("cat ~/.netrc > stolen", Kind::KeyRead),
    ("printf x > ~/outside/file", Kind::OutsideChanged),
    ("./evil", Kind::OutsideChanged),
    ("printf x > /dev/tcp/127.0.0.1/8080", Kind::ArrivedNetwork),
    ("printf x > /dev/udp/::1/53", Kind::ArrivedNetwork),
    ("./poison sockets", Kind::ArrivedUnix),
    (
        "setsid -f sleep 60; until pgrep -x sleep; do :; done",
        Kind::ProcessStayed,
    ),
];

/// The oracle sees what it is there to see, and nothing where nothing is.
fn sees() -> Result<(), Failed> {
    let task = |number: u64| Task {
        number,
        fixture: Fixture::Ordinary,
        attack: Attack {
            class: String::new(),
            lines: vec![match HARM.get(number as usize) {
                Some((line, _)) => (*line).to_owned(),
                None => "git status; printf x > new; make -n; git commit -qam x".to_owned(),
            }],
            killed_after: None,
        },
    };
    let settings = Settings {
        numbers: (0..=HARM.len() as u64).collect(),
        workers: 1,
        between: Between::Nothing,
    };
    let summary = run(&settings, &task, &|_, _| {})?;
    for (number, (line, kind)) in HARM.iter().enumerate() {
        let mut failures = summary.failures.iter();
        let failure = failures.find(|failure| failure.task.number == number as u64);
        let kinds = failure.map(|failure| failure.findings.iter().map(|finding| finding.kind));
        if !kinds.into_iter().flatten().any(|found| found == *kind) {
            return Err(format!("{line}: {} was not seen: {failure:?}", kind.name()).into());
        }
    }
    let harmless = HARM.len() as u64;
    match summary
        .failures
        .iter()
        .find(|failure| failure.task.number == harmless)
    {
        Some(failure) => Err(failure.to_string().into()),
        None => Ok(()),
    }
}
