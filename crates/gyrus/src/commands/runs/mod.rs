//! `gyrus runs`: what is kept, and getting it in and out.

mod blobs;
mod list;
mod show;
mod rm;
mod export;
mod import;
mod prune;
mod verify;

use clap::{Args, Subcommand};
use gyrus_contract::RunId;
use gyrus_journal::Store;
use gyrus_kernel::{Ending, Entry, approvals, log_name, summary};

use crate::{Gyrus, exit::Code, failure::Failure};

/// List, look at, copy and remove runs; alone it lists them
#[derive(Args)]
pub(crate) struct Runs {
    #[command(subcommand)]
    command: Option<RunsCommand>,
}

#[derive(Subcommand)]
enum RunsCommand {
    List(list::List),
    Show(show::Show),
    Rm(rm::Rm),
    Export(export::Export),
    Import(import::Import),
    Prune(prune::Prune),
    Verify(verify::Verify),
}

impl Runs {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        match self.command.unwrap_or(RunsCommand::List(list::List {})) {
            RunsCommand::List(list) => list.execute(gyrus),
            RunsCommand::Show(show) => show.execute(gyrus),
            RunsCommand::Rm(rm) => rm.execute(gyrus),
            RunsCommand::Export(export) => export.execute(gyrus),
            RunsCommand::Import(import) => import.execute(gyrus),
            RunsCommand::Prune(prune) => prune.execute(gyrus),
            RunsCommand::Verify(verify) => verify.execute(gyrus),
        }
    }
}

/// Standing of a run.
enum Standing {
    /// A process has it.
    Running {
        /// The process.
        pid: u32,
        /// It waits for an answer.
        asks: bool,
    },
    /// No process holds it, and it can be resumed.
    Parked(String),
    /// It came to its end.
    Over(String),
    /// Its journal cannot be read.
    Unreadable(String),
}

impl Standing {
    fn of(store: &Store, run: RunId) -> Self {
        Self::read(store, run).unwrap_or_else(|failure| Standing::Unreadable(failure.message))
    }

    fn read(store: &Store, run: RunId) -> Result<Self, Failure> {
        let name = log_name(run);
        if let Some(holder) = store.holder(&name)? {
            let asks = !approvals::open(store, run)?.is_empty();
            return Ok(Standing::Running {
                pid: holder.process.pid,
                asks,
            });
        }
        let last = store.reader(&name)?.entries_back()?.next().transpose()?;
        Ok(match last.map(|entry| gyrus_kernel::parse(&entry)) {
            Some(Ok(Entry::RunEnded(ended))) => Standing::Over(summary(&ended.ending)),
            Some(Ok(Entry::RunParked(parked))) => Standing::Parked(match &parked.ending {
                Ending::Waiting { question, .. } => format!("waits for an answer: {question}"),
                ending => summary(ending),
            }),
            _ => Standing::Parked("its process died".to_owned()),
        })
    }

    /// In a few words.
    fn words(&self) -> String {
        match self {
            Standing::Running { pid, asks: false } => format!("running in process {pid}"),
            Standing::Running { pid, asks: true } => format!("asks a person, in process {pid}"),
            Standing::Parked(why) => format!("parked: {why}"),
            Standing::Over(how) => how.clone(),
            Standing::Unreadable(why) => format!("cannot be read: {why}"),
        }
    }
}
