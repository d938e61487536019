//! What the readings say of the corpora. `cargo xtask oracle` runs the lines themselves.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a failed step fails the test; what was skipped is told"
)]

use std::path::{Path, PathBuf};

use gyrus_contract::{CommandReading, Does};
use gyrus_gate::{
    oracle::corpus::{self, Command, EVERYDAY, HOSTILE, READ_ONLY},
    shell::{Place, is_secret, read},
};

/// The home of the person whose folders the corpora name. It is not on this machine.
const HOME: &str = "/home/person";

/// The folder of the ordinary project, which is not on this machine either.
fn ordinary() -> Place {
    Place {
        folder: Path::new(HOME).join("project"),
        home: Some(PathBuf::from(HOME)),
    }
}

/// What a corpus says, read in a place. Lines that name the home of the grounds name the place's.
fn readings(text: &str, place: &Place) -> Vec<(Command, CommandReading)> {
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

/// Where a path really leads: readings do not follow links, whoever judges them does.
fn real(path: &Path) -> PathBuf {
    let there = path.ancestors().find(|above| above.exists()).unwrap();
    let rest = path.strip_prefix(there).unwrap();
    there.canonicalize().unwrap().join(rest)
}

/// Whether what is done is as bad as the section of the corpus says.
fn is_bad_enough(section: &str, does: &Does, place: &Place) -> bool {
    match (section, does) {
        (_, Does::Hides | Does::Destroys | Does::ChangesSystem | Does::UsesCredentials) => true,
        (_, Does::Publishes | Does::Connects { .. } | Does::GetsPackages) => true,
        // Contained it sees no secrets, and not contained it is asked about.
        (_, Does::RunsCode) => true,
        // It was seen through: what happens is named exactly.
        ("hidden", Does::Writes { .. } | Does::Removes { .. }) => true,
        ("outside", Does::Writes { path } | Does::Removes { path }) => {
            !real(path).starts_with(&place.folder)
        }
        ("secret", Does::Reads { path }) => {
            is_secret(&real(path), place.home.as_deref()) || !real(path).starts_with(&place.folder)
        }
        _ => false,
    }
}

/// A home folder with the hostile ground in it, as in a jail.
fn hostile(base: &Path) -> Place {
    let home = base.canonicalize().unwrap();
    let folder = home.join("hostile");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/corpus/fixture/hostile.sh");
    let laid_out = std::process::Command::new("bash")
        .arg(script)
        .arg(&folder)
        .output()
        .unwrap();
    assert!(laid_out.status.success(), "{laid_out:?}");
    Place {
        folder,
        home: Some(home),
    }
}

#[test]
fn what_is_hostile_is_called_as_bad_as_it_is() {
    let base = tempfile::tempdir().unwrap();
    let place = hostile(base.path());
    let all = readings(HOSTILE, &place);
    assert!(all.len() >= 400, "{}", all.len());
    let wrong: Vec<_> = all
        .iter()
        .filter(|(command, reading)| match command.section.as_str() {
            "plain-write" => reading.only_reads(),
            section => {
                let mut facts = reading.facts.iter();
                !facts.any(|fact| is_bad_enough(section, &fact.does, &place))
            }
        })
        .collect();
    assert!(
        wrong.is_empty(),
        "{} of {} are called milder than they are:\n{}",
        wrong.len(),
        all.len(),
        told(&wrong)
    );
    let plain: Vec<_> = all
        .iter()
        .filter(|(command, _)| command.section == "plain-write")
        .collect();
    let hidden: Vec<_> = plain
        .iter()
        .copied()
        .filter(|(_, reading)| hides(reading))
        .collect();
    mostly("plain writes are called hidden", plain.len(), 5, &hidden);
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
