//! The run that a command is about, as a person names it.

use clap::Args;
use gyrus_contract::RunId;
use gyrus_journal::Store;
use gyrus_kernel::{QuestionId, check_not_record, find_run, is_record, newest_run_in};

use crate::{Gyrus, failure::Failure, workdir::here};

/// The run that a command is about.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RunArgument {
    /// The run: its id, or the start or end of it; `last`, or nothing, is the newest of this folder
    #[arg(value_name = "RUN")]
    given: Option<String>,
    /// Let `last` be the newest run of this machine, whatever its folder
    #[arg(long)]
    anywhere: bool,
}

impl RunArgument {
    pub(crate) fn of(run: RunId) -> Self {
        Self {
            given: Some(run.to_string()),
            anywhere: false,
        }
    }

    pub(crate) fn is_given(&self) -> bool {
        self.given.is_some() || self.anywhere
    }

    /// Returns the card that was typed instead of a run: `gyrus approve 2.3`.
    pub(super) fn card(&self) -> Option<QuestionId> {
        let given = self.given.as_deref().filter(|given| given.contains('.'));
        given.and_then(|given| given.parse().ok())
    }

    pub(crate) fn words(&self) -> &str {
        self.given.as_deref().unwrap_or("last")
    }

    pub(crate) fn find(&self, gyrus: &Gyrus, store: &Store) -> Result<RunId, Failure> {
        find(gyrus, store, self.words(), self.anywhere)
    }

    /// Finds a run that was begun here, for commands that act on the word of its journal.
    pub(crate) fn find_own(&self, gyrus: &Gyrus, store: &Store) -> Result<RunId, Failure> {
        let run = self.find(gyrus, store)?;
        check_not_record(store, run)?;
        Ok(run)
    }
}

/// Finds the run that `given` names; `last` is looked up in the current folder or `anywhere`.
pub(super) fn find(
    gyrus: &Gyrus,
    store: &Store,
    given: &str,
    anywhere: bool,
) -> Result<RunId, Failure> {
    if given != "last" || anywhere || gyrus.is_anywhere() {
        return Ok(find_run(store, given)?);
    }
    let folder = here()?;
    if let Some((run, _)) = newest_run_in(store, &folder)? {
        return Ok(run);
    }
    let newest = find_run(store, given)?;
    // A record belongs to no folder, and is the newest only where there is nothing else.
    if is_record(store, newest) {
        return Ok(newest);
    }
    let failure = Failure::usage(format!("you have begun no run in {} yet", folder.display()));
    Err(failure.hint(format!(
        "the newest of this machine is {}: name it, or say --anywhere; all: gyrus runs --all",
        newest.short()
    )))
}
