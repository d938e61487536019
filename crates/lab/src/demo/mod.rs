//! `gyrus demo`: a task, a crash in the middle of it, and everything that holds after it.
//!
//! It starts gyrus as a process, watches it through its journal, kills it, resumes it, and then
//! looks for itself: at the process table, at the shop's own ledger, at the journal. Nothing is
//! asserted that was not looked at.

mod actor;
mod browser;
mod folder;
mod folders;
mod person;
mod report;
mod shop;

use std::path::Path;

use gyrus_contract::RunId;
use gyrus_journal::Store;
use gyrus_kernel::{Entry, log_name};
use tokio::runtime::Runtime;

use self::{folders::DemoFolders, report::DemoReport};
use crate::{Installation, LabConsole, LabError, TrialEnd};
use gyrus_surfaces::projection::Tone;

/// Options of the demo, as a person types them.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct DemoOptions {
    /// Print what was found as JSON, one line a finding, and ask nothing
    #[arg(long)]
    pub json: bool,
    /// Keep the folder, to look around in it
    #[arg(long)]
    pub keep: bool,
    /// Item to order, by its name in the shop
    #[arg(long, value_name = "NAME")]
    pub item: Option<String>,
    /// If no browser is installed, install one without asking
    #[arg(long)]
    pub install: bool,
}

/// Creates an installation whose state is in a folder.
pub type MakeInstallation<'a> = dyn Fn(&Path) -> Result<Box<dyn Installation>, LabError> + 'a;

/// Plays the demo with an installation that `install` creates in an empty folder; returns whether
/// everything held.
pub fn play(
    options: &DemoOptions,
    console: &LabConsole,
    runtime: &Runtime,
    install: &MakeInstallation<'_>,
) -> Result<TrialEnd, LabError> {
    let item = options.item.as_deref().map(shop::on_sale).transpose()?;
    let mut report = DemoReport::new(options.json, console);
    report.say(
        Tone::Strong,
        "Scripted: the model's replies, nothing else. Real: what comes of them, the gate, the \
         crash, the resume, the checks.",
    )?;
    // Questions come before anything listens for Ctrl-C, which would keep it from whoever is asked.
    let has_browser = browser::installed(&report, options)?;
    let item = match item {
        None if has_browser && !options.json => shop::ask(console)?,
        named => named.unwrap_or_else(shop::default_item),
    };
    let files = DemoFolders::make()?;
    let gyrus = install(&files.home)?;
    let uncontained = uncontained(&*gyrus, &mut report)?;
    let stage = DemoStage {
        gyrus,
        files,
        seen: !options.json,
    };
    let played = runtime.block_on(async {
        let play = async {
            if has_browser && browser::works(&*stage.gyrus, &report).await? {
                shop::play(&stage, &mut report, item).await
            } else {
                folder::play(&stage, &mut report).await
            }
        };
        tokio::select! {
            played = play => played.map(Some),
            // Dropping the play kills what it started.
            _ = tokio::signal::ctrl_c() => Ok(None),
        }
    });
    match played? {
        Some(next) => stage.farewell(&report, &next, options.keep, uncontained),
        None => Ok(TrialEnd::Interrupted),
    }
}

/// Returns the reason why commands are not contained here, if they are not. Reports the parts of
/// the containment that are missing.
fn uncontained(
    gyrus: &dyn Installation,
    report: &mut DemoReport<'_>,
) -> Result<Option<String>, LabError> {
    let missing = match gyrus.sandbox() {
        Ok(missing) => missing,
        Err(why) => return Ok(Some(why)),
    };
    if !missing.is_empty() {
        let detail = format!(
            "commands are contained, but for this: {}; `gyrus doctor` says what helps",
            missing.join("; ")
        );
        report.found("commands_are_contained", true, &detail)?;
    }
    Ok(None)
}

struct DemoStage {
    files: DemoFolders,
    gyrus: Box<dyn Installation>,
    /// Whether the console of the runs is shown.
    seen: bool,
}

struct NextCommands {
    /// Commands for which the folder stays; `GYRUS_HOME` is set.
    here: Vec<String>,
    /// Commands that are useful in any case.
    own: Vec<String>,
}

impl DemoStage {
    fn farewell(
        self,
        report: &DemoReport<'_>,
        next: &NextCommands,
        keep: bool,
        uncontained: Option<String>,
    ) -> Result<TrialEnd, LabError> {
        let end = report.end();
        let everything = match (end, uncontained) {
            (TrialEnd::Passed, _) => "Everything held.".to_owned(),
            (_, None) => {
                "Not everything held. That is a fault of gyrus: please report it.".to_owned()
            }
            (_, Some(why)) => format!(
                "Not everything held: no sandbox contains commands here, so each is asked about, and \
                 the demo has nobody to ask ({why}). `gyrus doctor` says what helps."
            ),
        };
        report.part(&everything)?;
        for line in &next.own {
            report.say(Tone::Plain, line)?;
        }
        if keep {
            let home = self.files.home.display().to_string();
            let folder = self.files.keep();
            report.say(
                Tone::Plain,
                &format!(
                    "\nThe folder stays: {}. In it:\n  export GYRUS_HOME={home}",
                    folder.display()
                ),
            )?;
            for line in &next.here {
                report.say(Tone::Plain, &format!("  {line}"))?;
            }
        } else {
            let gone = "\nThe folder of all this is gone. To look around in it: gyrus demo --keep";
            report.say(Tone::Aside, gone)?;
        }
        Ok(end)
    }
}

/// Returns the entries of a run that this version can read.
fn entries(store: &Store, run: RunId) -> Result<Vec<Entry>, LabError> {
    let mut entries = Vec::new();
    for entry in store.reader(&log_name(run))?.entries(1)? {
        entries.extend(gyrus_kernel::parse(&entry?));
    }
    Ok(entries)
}
