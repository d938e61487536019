//! `gyrus runs`: what is kept, and getting it in and out.

mod standing;
mod adopt;
mod blobs;
mod list;
mod show;
mod rm;
mod export;
mod import;
mod prune;
mod verify;

use clap::{Args, Subcommand};

use crate::{Gyrus, exit::Code, failure::Failure};

/// List, look at, copy and remove runs; alone it lists them
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct RunsFlags {
    #[command(subcommand)]
    command: Option<RunsCommand>,
    #[command(flatten)]
    list: list::ListRuns,
}

#[derive(Subcommand)]
enum RunsCommand {
    List(list::ListRuns),
    Show(show::ShowRun),
    Rm(rm::Rm),
    Export(export::Export),
    Import(import::ImportRun),
    Adopt(adopt::Adopt),
    Prune(prune::Prune),
    Verify(verify::Verify),
}

impl RunsFlags {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        match self.command.unwrap_or(RunsCommand::List(self.list)) {
            RunsCommand::List(list) => list.execute(gyrus),
            RunsCommand::Show(show) => show.execute(gyrus),
            RunsCommand::Rm(rm) => rm.execute(gyrus),
            RunsCommand::Export(export) => export.execute(gyrus),
            RunsCommand::Import(import) => import.execute(gyrus),
            RunsCommand::Adopt(adopt) => adopt.execute(gyrus),
            RunsCommand::Prune(prune) => prune.execute(gyrus),
            RunsCommand::Verify(verify) => verify.execute(gyrus),
        }
    }
}
