//! Replays learned procedures on changed pages or on real applications, and prints what they came
//! to. The exit code is 1 if one was wrong.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a developer reads the output"
)]

use std::{collections::BTreeMap, process::ExitCode};

use anyhow::{Context as _, bail};
use gyrus_replays::{ApplicationSeries, Count, Kills, Series, gyrus_beside, table};

const HELP: &str = "\
Replays learned procedures and judges each by what really happened

Usage: cargo xtask replays [OPTIONS]

Options:
  --count N      Number of replays in all (3000); with --apps, of each task (15)
  --first N      Number of the first replay, by which pages and values are chosen (1)
  --only NAME    Only tasks, or with --apps applications, whose name contains this
  --kills always Kill each replay and resume it
  --apps         Replay on real applications, which are installed below target/apps
  --help         Show this";

/// What is asked for on the command line.
struct Asked {
    count: Option<u64>,
    first: u64,
    only: String,
    kills: Kills,
    /// The folder of the installed applications, if they are meant.
    applications: Option<String>,
}

fn asked(arguments: impl Iterator<Item = String>) -> anyhow::Result<Option<Asked>> {
    let mut asked = Asked {
        count: None,
        first: 1,
        only: String::new(),
        kills: Kills::Never,
        applications: None,
    };
    let mut arguments = arguments;
    while let Some(name) = arguments.next() {
        if ["--help", "-h"].contains(&name.as_str()) {
            return Ok(None);
        }
        if !["--count", "--first", "--only", "--kills", "--apps"].contains(&name.as_str()) {
            bail!("there is no option `{name}`\n\n{HELP}");
        }
        let value = arguments
            .next()
            .with_context(|| format!("`{name}` needs a value\n\n{HELP}"))?;
        let number = || {
            let parsed = value.parse();
            parsed.with_context(|| format!("`{value}` is not a number, as `{name}` needs one"))
        };
        match name.as_str() {
            "--count" => asked.count = Some(number()?),
            "--first" => asked.first = number()?,
            "--only" => asked.only = value,
            "--apps" => asked.applications = Some(value),
            _ if value == "always" => asked.kills = Kills::Always,
            _ => bail!("`{value}` is not a value of `--kills`, which knows only `always`"),
        }
    }
    Ok(Some(asked))
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let Some(asked) = asked(std::env::args().skip(1))? else {
        println!("{HELP}");
        return Ok(ExitCode::SUCCESS);
    };
    let gyrus = gyrus_beside(&std::env::current_exe()?)?;
    let tell = |text: &str| eprintln!("{text}");
    let counts = match asked.applications {
        Some(installed) => {
            let series = ApplicationSeries {
                gyrus,
                installed: installed.into(),
                only: asked.only,
                replays: usize::try_from(asked.count.unwrap_or(15))?,
            };
            series.run(tell).await?
        }
        None => {
            let series = Series {
                gyrus,
                replays: asked.count.unwrap_or(3_000),
                first: asked.first,
                only: asked.only,
                kills: asked.kills,
            };
            series.run(tell).await?
        }
    };
    Ok(told(&counts))
}

/// Prints the counts.
fn told(counts: &BTreeMap<String, Count>) -> ExitCode {
    println!("{}", table(counts));
    for (key, count) in counts.iter().filter(|(key, _)| !key.starts_with("pages ")) {
        for (reason, times) in &count.reasons {
            eprintln!("{key}, handed over {times} times: {reason}");
        }
    }
    let wrong: Vec<_> = counts.values().flat_map(|count| &count.wrong).collect();
    for what in &wrong {
        println!("wrong: {what}");
    }
    if wrong.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
