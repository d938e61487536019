//! `cargo xtask apps`: how complete our view of real applications is, beside what the browser says
//! of them, and how much of it stands in the text that a model gets. `cargo xtask apps tasks` does
//! tasks on them, with each input beside the page's own events.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a developer reads the table"
)]

mod applications;
mod compare;
mod hands;
mod oracle;
mod record;
mod servers;
mod steps;
mod tasks;

use std::{path::PathBuf, process::ExitCode};

use anyhow::Context as _;
use gyrus_contract::{LookOptions, Screen as _};
use gyrus_screen::{Browser, Launch, ProfileChoice};

use self::{
    applications::{APPLICATIONS, Application, State},
    compare::Count,
};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(installed) = arguments.next().map(PathBuf::from) else {
        eprintln!("call this as `cargo xtask apps`, which installs the applications");
        return ExitCode::from(2);
    };
    let mut wanted: Vec<String> = arguments.collect();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime starts where threads do");
    let measured = if wanted.first().is_some_and(|first| first == "tasks") {
        runtime.block_on(all_tasks(&installed, &wanted.split_off(1)))
    } else {
        runtime.block_on(all(&installed, &wanted))
    };
    match measured {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("apps: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Does the tasks of the files whose names hold one of `wanted`.
async fn all_tasks(installed: &std::path::Path, wanted: &[String]) -> anyhow::Result<()> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/apps/tasks");
    let files = std::fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path()));
    let mut files: Vec<PathBuf> = files.collect::<Result<_, _>>()?;
    files.sort();
    let mut done = Vec::new();
    for file in files {
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        if wanted.is_empty()
            || wanted
                .iter()
                .any(|word| name.contains(&word.to_lowercase()))
        {
            match tasks::all(&file, installed).await {
                Ok(one) => done.push(one),
                Err(error) => eprintln!("{name}: {error:#}"),
            }
        }
    }
    print!("{}", record::table(&done));
    Ok(())
}

async fn all(installed: &std::path::Path, wanted: &[String]) -> anyhow::Result<()> {
    let is_wanted = |application: &&Application| {
        let name = application.name.to_lowercase();
        wanted.is_empty()
            || wanted
                .iter()
                .any(|word| name.contains(&word.to_lowercase()))
    };
    let mut counts = Vec::new();
    for application in APPLICATIONS.iter().filter(is_wanted) {
        let server = servers::start(application.server, installed).await?;
        let mut count = Count::default();
        let launch = Launch::default();
        let browser = Browser::new(launch, ProfileChoice::Ephemeral, steps::run());
        for state in application.states {
            // A busy machine may take longer than an order may.
            let mut one = seen(&browser, &server.origin, state).await;
            if one.is_err() {
                one = seen(&browser, &server.origin, state).await;
            }
            match one {
                Ok(one) => count.add(one, state.0),
                Err(error) => count.failed.push(format!("{}: {error:#}", state.0)),
            }
        }
        eprint!("{}", count.misses(application.name));
        counts.push((application.name, application.states.len(), count));
    }
    print!("{}", compare::table(&counts));
    Ok(())
}

/// One state of an application, from its address on.
async fn seen(browser: &Browser, origin: &str, (_, path, steps): &State) -> anyhow::Result<Count> {
    browser.open("about:blank").await?;
    browser.open(&format!("{origin}{path}")).await?;
    for step in *steps {
        steps::take(browser, *step)
            .await
            .with_context(|| format!("{step:?}"))?;
    }
    let look = LookOptions {
        frame: false,
        documents: 0,
    };
    let view = browser.look(look).await?.view;
    let usable = oracle::usable(browser).await?;
    Ok(compare::compare(&view, &usable))
}
