//! Sessions as chains of runs. The id of a session is the id that its first run has; there is no
//! other record of it, so every session of gyrus can be listed and gone on with, however it began.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use gyrus_contract::RunId;
use gyrus_journal::Store;
use gyrus_kernel::{Entry, Register, RunStarted, is_record, log_name};
use gyrus_surfaces::projection;
use gyrus_text::{clip, one_line, utc};
use serde_json::{Value, json};

/// Maximum number of runs that are searched for a list, the newest first.
const LOOKED_AT: usize = 2_000;

/// Number of sessions on a page of the list.
const PAGE: usize = 50;

/// Columns of a title.
const TITLE: usize = 80;

/// A session, as a chain of runs that continue each other.
#[derive(Debug)]
pub(crate) struct Chain {
    /// The runs of the session, oldest first; never empty.
    pub(crate) runs: Vec<RunId>,
    pub(crate) last: RunStarted,
}

/// Returns the session that begins with a run; `None` if there is no such run. Where several runs
/// go on from the same one, the newest counts.
pub(crate) fn of(store: &Store, first: RunId) -> Result<Option<Chain>, gyrus_journal::Error> {
    if !first.is_root() || !store.exists(&log_name(first)) {
        return Ok(None);
    }
    let Some(started) = started(store, first) else {
        return Ok(None);
    };
    let mut chain = Chain {
        runs: vec![first],
        last: started,
    };
    let register = Register::read(store)?;
    let later = register.newest_first().take_while(|run| *run != first);
    let mut later: Vec<RunId> = later.filter(|run| run.is_root()).collect();
    later.reverse();
    for run in later {
        let Some(started) = self::started(store, run) else {
            continue;
        };
        let before = started.continues;
        if let Some(place) = chain.runs.iter().position(|run| Some(*run) == before) {
            chain.runs.truncate(place + 1);
            chain.runs.push(run);
            chain.last = started;
        }
    }
    Ok(Some(chain))
}

/// Reads the first entry of a run; `None` if it cannot be read, or if the run is a record, which
/// belongs to no session here.
fn started(store: &Store, run: RunId) -> Option<RunStarted> {
    if is_record(store, run) {
        return None;
    }
    let first = store.reader(&log_name(run)).ok()?.entry(1).ok()??;
    match gyrus_kernel::parse(&first) {
        Ok(Entry::RunStarted(started)) => Some(started),
        Ok(_) | Err(_) => None,
    }
}

struct SessionSummary {
    first: RunId,
    last: RunId,
    title: String,
    folder: PathBuf,
}

/// Returns a page of the sessions, the most recently active first. `after` is the cursor of the
/// page before.
pub(crate) fn list(
    store: &Store,
    folder: Option<&Path>,
    after: Option<RunId>,
) -> Result<Value, gyrus_journal::Error> {
    let register = Register::read(store)?;
    let newest = register.newest_first().filter(|run| run.is_root());
    let mut runs: Vec<RunId> = newest.take(LOOKED_AT).collect();
    runs.reverse();
    let mut sessions: Vec<SessionSummary> = Vec::new();
    let mut of_run: BTreeMap<RunId, usize> = BTreeMap::new();
    for run in runs {
        let Some(started) = started(store, run) else {
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
    sessions.retain(|session| {
        folder.is_none_or(|folder| session.folder == folder)
            && after.is_none_or(|after| session.last < after)
    });
    let next = sessions.get(PAGE).and_then(|_| sessions.get(PAGE - 1));
    let next = next.map(|session| session.last.to_string());
    let shown: Vec<Value> = sessions
        .iter()
        .take(PAGE)
        .map(|session| shown(store, session))
        .collect();
    let mut page = json!({"sessions": shown});
    if let Some(next) = next {
        page["nextCursor"] = json!(next);
    }
    Ok(page)
}

fn shown(store: &Store, session: &SessionSummary) -> Value {
    let mut shown = json!({
        "sessionId": session.first.to_string(),
        "cwd": session.folder,
        "title": session.title,
    });
    let last = store
        .reader(&log_name(session.last))
        .and_then(|reader| reader.entries_back()?.next().transpose());
    if let Ok(Some(last)) = last {
        shown["updatedAt"] = json!(utc(last.at_ms));
    }
    shown
}

/// Returns a title for the session that begins with this run.
fn title_of(store: &Store, started: &RunStarted) -> String {
    let goal = store
        .reader(&log_name(started.run))
        .map(|reader| projection::goal(&started.goal, &reader));
    title(&goal.unwrap_or_default())
}

/// Returns a title for a session that begins with a goal.
pub(crate) fn title(goal: &str) -> String {
    clip(&one_line(goal.trim()), TITLE)
}
