//! Sessions: chains of runs that continue each other. There is no other record of them, so every
//! session can be listed and gone on with, however it began.

use std::{collections::BTreeMap, path::PathBuf};

use gyrus_contract::RunId;
use gyrus_journal::Store;
use gyrus_kernel::{Entry, Register, RegisterLine, RunStarted, is_record, log_name};
use gyrus_text::{clip, one_line};

use crate::projection;

/// Maximum number of runs that are searched, the newest first.
const LOOKED_AT: usize = 2_000;

/// Columns of a title.
const TITLE: usize = 80;

/// A session in a list.
#[derive(Debug)]
pub struct SessionSummary {
    pub first: RunId,
    pub last: RunId,
    /// The beginning of the first run's goal.
    pub title: String,
    pub folder: PathBuf,
}

impl SessionSummary {
    /// Returns the time of the last entry, in milliseconds.
    pub fn active_at_ms(&self, store: &Store) -> Option<i64> {
        let reader = store.reader(&log_name(self.last)).ok()?;
        let last = reader.entries_back().ok()?.next()?.ok()?;
        Some(last.at_ms)
    }
}

/// Returns the sessions of the wanted runs, the most recently begun last run first.
///
/// # Errors
/// The register of runs cannot be read.
pub fn sessions(
    store: &Store,
    wanted: impl Fn(&RegisterLine) -> bool,
) -> Result<Vec<SessionSummary>, gyrus_journal::Error> {
    let register = Register::read(store)?;
    let newest = register.roots().filter(wanted);
    let mut runs: Vec<RunId> = newest.take(LOOKED_AT).map(|line| line.run).collect();
    runs.reverse();
    let mut sessions: Vec<SessionSummary> = Vec::new();
    let mut of_run: BTreeMap<RunId, usize> = BTreeMap::new();
    for run in runs {
        let Some(started) = run_started(store, run) else {
            continue;
        };
        let known = started.continues.and_then(|run| of_run.get(&run).copied());
        let place = known.unwrap_or(sessions.len());
        of_run.insert(run, place);
        match sessions.get_mut(place) {
            Some(session) => session.last = run,
            None => sessions.push(SessionSummary {
                // A session whose beginning was removed begins with what is left.
                first: run,
                last: run,
                title: title_of(store, &started),
                folder: started.workspace,
            }),
        }
    }
    sessions.sort_by_key(|session| std::cmp::Reverse(session.last));
    Ok(sessions)
}

/// Reads the first entry of a run; `None` if it cannot be read, or if the run is a record, which
/// belongs to no session here.
pub fn run_started(store: &Store, run: RunId) -> Option<RunStarted> {
    if is_record(store, run) {
        return None;
    }
    let first = store.reader(&log_name(run)).ok()?.entry(1).ok()??;
    match gyrus_kernel::parse(&first) {
        Ok(Entry::RunStarted(started)) => Some(started),
        Ok(_) | Err(_) => None,
    }
}

/// Returns a title for the session that begins with this run.
fn title_of(store: &Store, started: &RunStarted) -> String {
    let goal = store
        .reader(&log_name(started.run))
        .map(|reader| projection::goal(&started.goal, &reader));
    session_title(&goal.unwrap_or_default())
}

/// Returns a title for a session that begins with a goal.
pub fn session_title(goal: &str) -> String {
    clip(&one_line(goal.trim()), TITLE)
}
