//! The corpora, and a sample of the oracle. `cargo xtask oracle` runs all of it.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a failed step fails the test; what was skipped is told"
)]

use std::path::{Path, PathBuf};

use gyrus_contract::{CommandReading, Does};
use gyrus_gate::{
    oracle::{
        Ground, Inmate, Question, Settings,
        corpus::{self, Command, EVERYDAY, HOSTILE, READ_ONLY},
        run, why_not, work,
    },
    shell::{Place, is_secret, read},
};

/// Mutations that the sample runs.
const SAMPLE: u64 = 300;

/// Set for the process that a jail belongs to, which is this program once more.
const IS_WORKER: &str = "GYRUS_ORACLE_WORKER";

/// The folder of the ordinary ground. It does not exist on this machine, only in jails.
fn ordinary() -> Place {
    Place {
        folder: PathBuf::from(Ground::Ordinary.folder()),
        home: Some(PathBuf::from(Ground::HOME)),
    }
}

/// What a corpus says, read in a place. Lines that name the home of the grounds name the place's.
fn readings(text: &str, place: &Place) -> Vec<(Command, CommandReading)> {
    let home = place.home.as_ref().unwrap().display().to_string();
    corpus::parse(&text.replace(Ground::HOME, &home))
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

fn worker() -> (PathBuf, Vec<String>) {
    let own = std::env::current_exe().unwrap();
    let arguments = ["--exact", "lives_in_a_jail", "--nocapture"];
    (own, arguments.map(str::to_owned).to_vec())
}

fn environment() -> Vec<(String, String)> {
    vec![(IS_WORKER.to_owned(), "1".to_owned())]
}

/// A jail's process is this program with this one test; alone, it has nothing to do.
#[test]
fn lives_in_a_jail() {
    if std::env::var_os(IS_WORKER).is_some() {
        work().unwrap();
    }
}

/// Says why the test is skipped, where no jail can be made.
fn is_skipped() -> bool {
    match why_not() {
        Some(reason) => {
            println!("skipped: {reason}");
            true
        }
        None => false,
    }
}

#[test]
fn a_jail_notices_whatever_a_line_changes() {
    if is_skipped() {
        return;
    }
    let (program, arguments) = worker();
    let mut inmate = Inmate::start(&program, &arguments, &environment()).unwrap();
    let mut check = |line: &str, expected: &str| {
        let question = Question {
            line: line.to_owned(),
            ground: Ground::Hostile,
            run_anyway: true,
        };
        let outcome = inmate.ask(&question).unwrap().outcome.unwrap();
        let differences = outcome.differences.join("; ");
        match expected {
            "" => assert_eq!(differences, "", "{line}"),
            _ => assert!(differences.contains(expected), "{line}: {differences:?}"),
        }
        outcome
    };
    assert_eq!(check("ls -la; cat in", "").code, Some(0));
    assert_eq!(check("exit 7", "").code, Some(7));
    check("touch FLAG", "/home/person/hostile/FLAG: created");
    check("ls FLAG && touch found", "");
    check("rm out", "out: deleted");
    check("echo x > out", "out: has another content");
    check("touch in", "in: has another time of change");
    check("chmod 600 in", "in: has another mode");
    check(": >> in", "in: was opened for writing");
    check("ln -sfn in l", "l: points elsewhere");
    check("mv sub other", "sub: deleted");
    check("rm in; mkdir in", "in: is of another type");
    check("touch f; rm f", "hostile: something was made in it");
    check("echo x > /tmp/f; rm /tmp/f", "");
    check("echo x > /tmp/f", "/tmp/f: created");
    check("echo x > /dev/shm/f", "/dev/shm/f: created");
    check("echo x > /etc/f", "/etc/f: created");
    check("echo x > ~/f", "/home/person/f: created");
    check(
        "echo x > /dev/null; chmod 0 /dev/null; : > /proc/sysrq-trigger",
        "",
    );
    check("sleep 60 > /dev/null &", "a process stays behind");
    check("setsid -f sleep 60", "a process stays behind");
    check(": > /dev/tcp/127.0.0.1/80", "tried to reach the network");
    check(": > /dev/udp/192.0.2.1/53", "tried to reach the network");
    check("git status", "FLAG: created");
    check("git -C bare log", "FLAG: created");
    assert!(check("sleep 60", "").timed_out);
    check("ls", "");
}

#[test]
fn what_is_called_reading_changes_nothing() {
    if is_skipped() {
        return;
    }
    let settings = Settings {
        seed: 1,
        count: SAMPLE,
        disguises: 0,
        workers: 2,
        worker: worker(),
        environment: environment(),
    };
    let summary = run(&settings, &|_| {}).unwrap();
    println!("{summary}");
    let failures: String = summary
        .failures
        .iter()
        .map(|failure| format!("\n{failure}"))
        .collect();
    assert!(summary.failures.is_empty(), "{failures}");
}
