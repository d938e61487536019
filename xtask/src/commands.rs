//! Parsing of arguments to a command.

use anyhow::bail;

#[cfg(feature = "gyrus")]
use crate::sim;
use crate::{
    agentdojo, apps, clients, dist, endure, error::CannotStart, eval, fuzz, oracle, pages,
    programs, replays, repository, rows, test, third_run, tidy, whole,
};

/// A command: what it is called, what it takes, what it does.
struct Command {
    name: &'static str,
    takes: &'static str,
    about: &'static str,
    run: fn(&[String]) -> anyhow::Result<()>,
}

const COMMANDS: [Command; 21] = [
    Command {
        name: "test",
        takes: "[--all]",
        about: "what must hold before a change goes in; with --all also desktops, fleets, replays and long work in browsers",
        run: |arguments| match arguments {
            [all] if all == "--all" => test::run(test::Scope::All),
            _ => no_arguments(arguments).and_then(|()| test::run(test::Scope::Default)),
        },
    },
    Command {
        name: "tidy",
        takes: "",
        about: "the project's own rules: dependencies, circles, banned words, sizes, links",
        run: |arguments| no_arguments(arguments).and_then(|()| tidy::run()),
    },
    Command {
        name: "rows",
        takes: "",
        about: "what was promised: each row with how it is used and its test, which must exist",
        run: |arguments| no_arguments(arguments).and_then(|()| rows::run()),
    },
    Command {
        name: "sim",
        takes: "[streams|budgets|events|fleet] [--… N] [--seed S]",
        about: "simulate the journal under faults, streams of models, budgets, killed events, many machines; in release",
        run: simulate,
    },
    Command {
        name: "fleet",
        takes: "[--runs N] [--steps N] [--seed N] …",
        about: "let a fleet of real processes do runs while workers and servers die and are cut off, and check everything; in release",
        run: fleet,
    },
    Command {
        name: "attacks",
        takes: "[WORDS]",
        about: "let a model that obeys whatever it reads work in an office, and see what gets through",
        run: whole::attacks,
    },
    Command {
        name: "wire",
        takes: "[WORDS]",
        about: "let servers of models misbehave in every way we know, and see that each reply ends well",
        run: whole::wire,
    },
    Command {
        name: "oracle",
        takes: "[--seed N] [--count N] [--only N]",
        about: "let hostile lines take the real path, and see whether a person is harmed; in release",
        run: oracle::run,
    },
    Command {
        name: "replays",
        takes: "[--apps] [--count N] [--first N] [--only NAME] [--kills always]",
        about: "replay learned procedures on changed pages or real applications, judged by what happened there; in release",
        run: replays::run,
    },
    Command {
        name: "everyday",
        takes: "[SECTION|LINES|WORDS]",
        about: "run everyday commands inside and outside the sandbox, and compare their ends",
        run: whole::everyday,
    },
    Command {
        name: "sessions",
        takes: "[WORDS]",
        about: "do a hundred sessions of a working day inside and outside the sandbox, and compare what is left",
        run: whole::sessions,
    },
    Command {
        name: "apps",
        takes: "[tasks] [NAME …]",
        about: "install real applications, and measure how complete our view of them is, or do tasks on them; in release",
        run: apps::run,
    },
    Command {
        name: "clients",
        takes: "",
        about: "try the HTTP API by clients from generators, and by schemathesis",
        run: |arguments| no_arguments(arguments).and_then(|()| clients::run()),
    },
    Command {
        name: "endure",
        takes: "[--hours N] [--minutes N] [--only NAME] [--seed N] …",
        about: "kill real runs and servers, fill disks, cut power, for as long as one says; in release",
        run: endure::run,
    },
    Command {
        name: "dist",
        takes: "[--program FILE] [--sign KEY] [--to FOLDER]",
        about: "make what people install: an archive and a Debian package with completions, manual, list of parts, checksums",
        run: dist::run,
    },
    Command {
        name: "agentdojo",
        takes: "[--first] [--structured] [--suite NAME] [--task ID]",
        about: "play the tasks of a public benchmark under attack, by a model that obeys all that it reads",
        run: agentdojo::run,
    },
    Command {
        name: "pages",
        takes: "",
        about: "look for what keeps people from using the dashboard, by axe-core, and check its scripts",
        run: |arguments| no_arguments(arguments).and_then(|()| pages::run()),
    },
    Command {
        name: "eval",
        takes: "[demo-site|everyday|desktop] [--only PATTERN] [--jobs N] …",
        about: "play the tasks that come with gyrus by the perfect player, in a real browser, in folders, or on a desktop",
        run: eval::run,
    },
    Command {
        name: "third-run",
        takes: "[--only PATTERN] [--jobs N] …",
        about: "play them three times in one home, with memory, skills and lessons; the third is not worse",
        run: third_run::run,
    },
    Command {
        name: "fuzz",
        takes: "[TARGET …] [--seconds N] [--seed N]",
        about: "bytes nobody expected, for command lines, policies and redaction; guided by coverage",
        run: fuzz::run,
    },
    Command {
        name: "bench",
        takes: "[NAME …]",
        about: "measure, and print a markdown table of ratios, as packages are built",
        run: measure,
    },
];

/// States that `sim` explores when nobody says how many.
const DEFAULT_STATES: u64 = 1_000;
/// Schedules of budgets that `sim budgets` runs when nobody says how many.
const DEFAULT_SCHEDULES: u64 = 100_000;
/// The seed that `sim` starts from when nobody names one.
const DEFAULT_SEED: u64 = 1;

/// Runs the command that the first argument names.
pub(crate) fn dispatch(arguments: &[String]) -> anyhow::Result<()> {
    let Some((name, rest)) = arguments.split_first() else {
        bail!(CannotStart(format!("no command given\n\n{}", usage())));
    };
    if matches!(name.as_str(), "help" | "-h" | "--help") {
        println!("{}", usage());
        return Ok(());
    }
    match COMMANDS.iter().find(|command| command.name == name) {
        Some(command) => (command.run)(rest),
        None => {
            let names = COMMANDS.iter().map(|command| command.name);
            let meant = gyrus_text::closest(name, names)
                .map_or_else(String::new, |known| format!("; did you mean `{known}`?"));
            bail!(CannotStart(format!(
                "there is no command `{name}`{meant}\n\n{}",
                usage()
            )))
        }
    }
}

fn usage() -> String {
    let mut text = String::from("usage: cargo xtask COMMAND\n");
    for Command {
        name, takes, about, ..
    } in &COMMANDS
    {
        text += &format!("\n  {:<47} {about}", format!("{name} {takes}"));
    }
    text
}

fn no_arguments(arguments: &[String]) -> anyhow::Result<()> {
    match arguments.first() {
        None => Ok(()),
        Some(unknown) => bail!(CannotStart(format!("`{unknown}` is one argument too many"))),
    }
}

/// Simulations that are examples of a package: name, package, features, example.
const EXAMPLES: [(&str, &str, &str, &str); 3] = [
    ("streams", "gyrus-simulation", "streams", "mutate"),
    ("events", "gyrus-runtime", "", "event_kills"),
    ("fleet", "gyrus-simulation", "fleet", "schedules"),
];

fn simulate(arguments: &[String]) -> anyhow::Result<()> {
    let subject = arguments
        .first()
        .and_then(|first| EXAMPLES.iter().find(|(name, ..)| name == first));
    if let Some((name, package, features, example)) = subject {
        let run = [
            "run",
            "--quiet",
            "--release",
            "--package",
            package,
            "--no-default-features",
            "--features",
            features,
            "--example",
            example,
            "--",
        ];
        let rest = &arguments[1..];
        return ended(name, repository::cargo(&run)?.args(rest).status()?);
    }
    if let Some(("budgets", rest)) = arguments.split_first().map(|(word, rest)| (&**word, rest)) {
        return simulate_budgets(rest);
    }
    // A wrong option is told before anything is built.
    simulation_size(arguments, "--states", DEFAULT_STATES)?;
    #[cfg(feature = "gyrus")]
    if !cfg!(debug_assertions) {
        let (states, seed) = simulation_size(arguments, "--states", DEFAULT_STATES)?;
        return sim::run(states, seed);
    }
    in_release("sim", arguments)
}

/// Budgets are the kernel's own business, so their simulation is a test in it.
fn simulate_budgets(arguments: &[String]) -> anyhow::Result<()> {
    let (schedules, seed) = simulation_size(arguments, "--schedules", DEFAULT_SCHEDULES)?;
    let mut run = repository::cargo(&["test", "--quiet", "--release"])?;
    run.args(["--package", "gyrus-kernel", "--all-features", "--lib"])
        .args(["--", "--nocapture", "--exact"])
        .arg("sim::tests::budgets_hold_under_random_schedules")
        .env("GYRUS_SIM_SCHEDULES", schedules.to_string())
        .env("GYRUS_SIM_SEED", seed.to_string());
    ended("budgets", run.status()?)
}

/// The binary of the workers is built first; what harms and checks them is an example.
fn fleet(arguments: &[String]) -> anyhow::Result<()> {
    programs::ensure_nats()?;
    let build = ["build", "--quiet", "--release"];
    let built = repository::cargo(&build)?
        .args(["--package", "gyrus"])
        .status()?;
    ended("building gyrus", built)?;
    let run = ["run", "--quiet", "--release", "--package", "gyrus-fleet"];
    let example = ["--features", "nats", "--example", "faults", "--"];
    let mut run = repository::cargo(&run)?;
    ended("fleet", run.args(example).args(arguments).status()?)
}

/// Returns the size of a simulation, which the option `sized` sets, and the first seed.
fn simulation_size(arguments: &[String], sized: &str, default: u64) -> anyhow::Result<(u64, u64)> {
    let (mut size, mut seed) = (default, DEFAULT_SEED);
    for option in arguments.chunks(2) {
        let number = match option[0].as_str() {
            option if option == sized => &mut size,
            "--seed" => &mut seed,
            unknown => {
                bail!(CannotStart(format!(
                    "`sim` takes {sized} and --seed, not {unknown}"
                )))
            }
        };
        *number = match option.get(1).map(|value| value.parse()) {
            Some(Ok(value)) => value,
            Some(Err(_)) | None => {
                bail!(CannotStart(format!(
                    "`{}` needs a whole number after it",
                    option[0]
                )))
            }
        };
    }
    Ok((size, seed))
}

/// The binary that is measured is built first; the measuring is a package of its own.
fn measure(arguments: &[String]) -> anyhow::Result<()> {
    let cargo = |command| {
        let built = [command, "--quiet", "--profile", "dist", "--package"];
        repository::cargo(&built)
    };
    let build = cargo("build")?.arg("gyrus").status()?;
    ended("building gyrus", build)?;
    let bench = cargo("run")?
        .args(["gyrus-bench", "--"])
        .args(arguments)
        .status()?;
    ended("bench", bench)
}

/// Runs the same command again, built with optimisation and with the crates of gyrus.
fn in_release(name: &str, arguments: &[String]) -> anyhow::Result<()> {
    let build = [
        "run",
        "--quiet",
        "--release",
        "--package",
        "xtask",
        "--features",
        "gyrus",
        "--",
    ];
    ended(
        name,
        repository::cargo(&build)?
            .arg(name)
            .args(arguments)
            .status()?,
    )
}

fn ended(name: &str, status: std::process::ExitStatus) -> anyhow::Result<()> {
    match status.code() {
        Some(0) => Ok(()),
        // It has said itself what was wrong.
        Some(2) => bail!(CannotStart(format!("`{name}` did not start"))),
        _ => bail!("`{name}` ended with {status}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(arguments: &[&str]) -> Vec<String> {
        arguments.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_wrong_command_names_the_nearest() {
        for (given, expected) in [("tests", "test"), ("tdiy", "tidy"), ("orcale", "oracle")] {
            let error = dispatch(&strings(&[given])).unwrap_err();
            assert!(error.is::<CannotStart>(), "{given}");
            assert!(
                error
                    .to_string()
                    .contains(&format!("did you mean `{expected}`")),
                "{error}"
            );
        }
    }

    #[test]
    fn sim_reads_its_options() {
        let check = |arguments: &[&str], expected: Option<(u64, u64)>| {
            assert_eq!(
                simulation_size(&strings(arguments), "--states", DEFAULT_STATES).ok(),
                expected,
                "{arguments:?}"
            );
        };
        check(&[], Some((DEFAULT_STATES, DEFAULT_SEED)));
        check(&["--seed", "7", "--states", "9"], Some((9, 7)));
        check(&["--states"], None);
        check(&["--states", "many"], None);
        check(&["--speed", "7"], None);
    }
}
