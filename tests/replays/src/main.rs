//! `gyrus-replays [--count N] [--first N] [--only TASK] [--kills always]`: replays learned procedures on
//! changed pages and prints what they came to. The exit code is 1 if one was wrong.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a developer reads the output"
)]

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use gyrus_replays::{Kills, Series, gyrus_beside, table};

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let mut series = Series {
        gyrus: gyrus_beside(&std::env::current_exe()?)?,
        replays: 3_000,
        first: 1,
        only: String::new(),
        kills: Kills::Never,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments
            .next()
            .with_context(|| format!("`{name}` needs a value"))?;
        match name.as_str() {
            "--count" => series.replays = value.parse()?,
            "--first" => series.first = value.parse()?,
            "--only" => series.only = value,
            "--kills" if value == "always" => series.kills = Kills::Always,
            _ => bail!(
                "there is no option `{name} {value}`; there are --count, --first, --only and \
                 --kills always"
            ),
        }
    }
    let counts = series.run(|text| eprintln!("{text}")).await?;
    println!("{}", table(&counts));
    for (key, count) in counts.iter().filter(|(key, _)| key.starts_with("task ")) {
        for (reason, times) in &count.reasons {
            eprintln!("{key}, handed over {times} times: {reason}");
        }
    }
    let wrong: Vec<_> = counts.values().flat_map(|count| &count.wrong).collect();
    for what in &wrong {
        println!("wrong: {what}");
    }
    Ok(if wrong.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
