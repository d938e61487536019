//! Readings of the lines of the corpora. `cargo xtask oracle` runs the lines themselves.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a failed step fails the test; what was skipped is told"
)]

use std::path::{Path, PathBuf};

use gyrus_contract::{CommandReading, Does};
use gyrus_gate::shell::{ShellPlace, read};
use gyrus_lines::corpus::{self, Command, EVERYDAY, HOSTILE, READ_ONLY};

/// The home of the person whose folders the corpora name. It is not on this machine.
const HOME: &str = "/home/person";

/// The folder of the ordinary project, which is not on this machine either.
fn ordinary() -> ShellPlace {
    ShellPlace {
        folder: Path::new(HOME).join("project"),
        home: Some(PathBuf::from(HOME)),
    }
}

/// Reads the lines of a corpus in a place. Lines that name the home of the grounds name the
/// place's.
fn readings(text: &str, place: &ShellPlace) -> Vec<(Command, CommandReading)> {
    let home = place.home.as_ref().unwrap().display().to_string();
    corpus::parse(&text.replace(HOME, &home))
        .unwrap()
        .into_iter()
        .map(|command| {
            let reading = read(&command.line, place);
            (command, reading)
        })
        .collect()
}

fn told(wrong: &[&(Command, CommandReading)]) -> String {
    let line = |(command, reading): &(Command, CommandReading)| {
        let facts = reading.facts.iter();
        let facts: Vec<String> = facts
            .map(|fact| format!("{:?}: {}", fact.does, fact.why))
            .collect();
        let Command { number, line, .. } = command;
        format!(
            "  line {number}: {line:?}\n      {}\n",
            facts.join("\n      ")
        )
    };
    wrong.iter().map(|one| line(one)).collect()
}

fn hides(reading: &CommandReading) -> bool {
    reading.facts.iter().any(|fact| fact.does == Does::Hides)
}

#[test]
fn nothing_hostile_is_plain() {
    let all = readings(HOSTILE, &ordinary());
    assert!(all.len() >= 400, "{}", all.len());
    // It leaves the workspace or shows keys by its plain words, which whoever judges it sees.
    let seen = ["outside", "secret"];
    let wrong: Vec<_> = all
        .iter()
        .filter(|(command, reading)| reading.plain && !seen.contains(&&*command.section))
        .collect();
    assert!(wrong.is_empty(), "{}", told(&wrong));
}

#[test]
fn most_that_only_reads_is_recognised() {
    let all = readings(READ_ONLY, &ordinary());
    assert!(all.len() >= 300, "{}", all.len());
    let missed: Vec<_> = all
        .iter()
        .filter(|(_, reading)| !reading.only_reads())
        .collect();
    mostly("reading lines are not recognised", all.len(), 10, &missed);
}

#[test]
fn a_day_is_understood() {
    let all = readings(EVERYDAY, &ordinary());
    assert!(all.len() >= 500, "{}", all.len());
    let hidden: Vec<_> = all.iter().filter(|(_, reading)| hides(reading)).collect();
    mostly("everyday lines are not understood", all.len(), 5, &hidden);
}

/// Prints the exceptions, and fails if they are more than these of a hundred.
fn mostly(what: &str, of: usize, percent: usize, wrong: &[&(Command, CommandReading)]) {
    let told = format!("{} of {of} {what}:\n{}", wrong.len(), told(wrong));
    println!("{told}");
    assert!(wrong.len() * 100 <= of * percent, "{told}");
}
