//! Sessions as chains of runs. The id of a session is the id that its first run has; there is no
//! other record of it, so every session of gyrus can be listed and gone on with, however it began.

use std::path::Path;

use gyrus_contract::RunId;
use gyrus_journal::Store;
use gyrus_kernel::{Register, RegisterLine, RunStarted, log_name};
use gyrus_surfaces::{SessionSummary, run_started, sessions};
use gyrus_text::utc;
use serde_json::{Value, json};

/// Number of sessions on a page of the list.
const PAGE: usize = 50;

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
    let Some(started) = run_started(store, first) else {
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
        let Some(started) = run_started(store, run) else {
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

/// Returns a page of the sessions, the most recently active first. `after` is the cursor of the
/// page before.
pub(crate) fn list(
    store: &Store,
    folder: Option<&Path>,
    after: Option<RunId>,
) -> Result<Value, gyrus_journal::Error> {
    let is_here = |line: &RegisterLine| folder.is_none_or(|folder| line.workspace == folder);
    let mut sessions = sessions(store, is_here)?;
    sessions.retain(|session| after.is_none_or(|after| session.last < after));
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
    if let Some(at_ms) = session.active_at_ms(store) {
        shown["updatedAt"] = json!(utc(at_ms));
    }
    shown
}
