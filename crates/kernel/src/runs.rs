//! The runs of a store: their logs, their entries, and how they ended.

use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
};

use gyrus_contract::{RunId, View};
use gyrus_journal::{Birth, Error, LockWait, LogName, LogReader, Recovery, Store, Writer};
use gyrus_text::on_the_clock;

use crate::{Ending, Entry, Inline, Stop, log::parse};

/// The kind of log in which runs are stored.
pub const RUNS: &str = "runs";

/// Returns the name of the log that holds a run.
pub fn log_name(run: RunId) -> LogName {
    LogName::new(RUNS, &run.to_string()).expect("a run id is a valid name of a log")
}

/// Whether a run is a record: it was imported or copied from elsewhere, or the whole store was. It can
/// be read, and nothing that stands in it counts.
pub fn is_record(store: &Store, run: RunId) -> bool {
    let name = log_name(run);
    store.exists(&name) && store.birth(&name) != Birth::Here
}

/// Checks that a run exists and was begun here. Required before acting on the word of its journal.
///
/// # Errors
/// Returns [`Error::BornElsewhere`] if the run is a record, and [`Error::CopiedStore`] if all runs of
/// the store are.
pub fn check_not_record(store: &Store, run: RunId) -> Result<(), Error> {
    let name = log_name(run);
    if !store.exists(&name) {
        return Err(Error::NotFound { name });
    }
    store.check_not_copied()?;
    match store.birth(&name) {
        Birth::Here => Ok(()),
        // What a journal of an unknown place says could be anybody's word.
        Birth::Unproven | Birth::Elsewhere => Err(Error::BornElsewhere { name }),
    }
}

/// Returns a reader of a run that was begun here.
pub(crate) fn own_reader(store: &Store, run: RunId) -> Result<LogReader, Error> {
    check_not_record(store, run)?;
    store.reader(&log_name(run))
}

/// Takes the journal of a run begun here, to continue it. No other function takes journals.
pub(crate) fn take(store: &Store, run: RunId, how: LockWait) -> Result<(Writer, Recovery), Error> {
    check_not_record(store, run)?;
    store.take(&log_name(run), how)
}

/// The folder of a run is no longer where the run knows it.
#[derive(Debug, thiserror::Error)]
#[error("the folder of the run, {}, {why}", workspace.display())]
pub struct WorkspaceMoved {
    workspace: PathBuf,
    why: String,
}

/// Checks that a run's workspace is a folder, and that no part of its path became a link to another
/// one, whose files are not the run's.
///
/// # Errors
/// Returns an error when it is not.
pub fn check_workspace(workspace: &Path) -> Result<(), WorkspaceMoved> {
    let why = match workspace.canonicalize() {
        Ok(real) if real != workspace => format!("leads to {} now", real.display()),
        Ok(real) if !real.is_dir() => "is not a folder any more".to_owned(),
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => "is gone".to_owned(),
        Err(error) => format!("cannot be opened: {error}"),
    };
    let workspace = workspace.to_owned();
    Err(WorkspaceMoved { workspace, why })
}

/// Returns all runs of a store, in order of id: those that people started by time, with children in
/// between.
pub fn runs(store: &Store) -> Result<Vec<RunId>, gyrus_journal::Error> {
    let names = store.names(RUNS)?;
    let ids = names.iter().filter_map(|name| name.id().parse().ok());
    Ok(ids.collect())
}

/// Returns the folder in which a run works; `None` if its journal cannot be read or is a record.
pub fn workspace(store: &Store, run: RunId) -> Option<PathBuf> {
    if is_record(store, run) {
        return None;
    }
    let reader = store.reader(&log_name(run)).ok()?;
    match parse(&reader.entry(1).ok()??) {
        Ok(Entry::RunStarted(started)) => Some(started.workspace),
        Ok(_) | Err(_) => None,
    }
}

/// Returns a run and the runs below it, itself last, so that removing them in this order leaves no
/// orphans.
pub fn family(store: &Store, run: RunId) -> Result<Vec<RunId>, gyrus_journal::Error> {
    let mut children = BTreeSet::new();
    for entry in store.reader(&log_name(run))?.entries(1)? {
        if let Ok(Entry::ChildStarted(child)) = parse(&entry?) {
            children.insert(child.child);
        }
    }
    let mut found = Vec::new();
    // A record may name any run as its child: it is one if it came in the same way, and names no
    // other run as its parent.
    let birth = store.birth(&log_name(run));
    let kept = |child: &RunId| {
        let name = log_name(*child);
        let parent = store.reader(&name).ok().and_then(|child| parent(&child));
        let is_child = !child.is_root() && parent.is_none_or(|parent| parent == run);
        is_child && store.exists(&name) && store.birth(&name) == birth
    };
    for child in children.into_iter().filter(kept) {
        found.extend(family(store, child)?);
    }
    found.push(run);
    Ok(found)
}

/// Returns the run that started a run; `None` if a person did, or if it cannot be read.
fn parent(reader: &LogReader) -> Option<RunId> {
    match parse(&reader.entry(1).ok()??) {
        Ok(Entry::RunStarted(started)) => Some(started.parent?.run),
        Ok(_) | Err(_) => None,
    }
}

/// Returns the address of the last page that a run, or a run below it, visited; `None` if there was
/// none on the web.
pub fn last_page(store: &Store, run: RunId) -> Result<Option<String>, gyrus_journal::Error> {
    let mut last: Option<(i64, String)> = None;
    for run in family(store, run)? {
        let reader = store.reader(&log_name(run))?;
        for entry in reader.entries_back()? {
            let entry = entry?;
            let Ok(Entry::ScreenViewed(viewed)) = parse(&entry) else {
                continue;
            };
            // A view that is gone or damaged is like one that failed.
            let text = match &viewed.view {
                Inline::Is(text) => Some(text.clone()),
                Inline::Blob(id) => reader
                    .blob(id)
                    .ok()
                    .and_then(|bytes| serde_json::from_slice(&bytes).ok()),
            };
            let view: Option<View> = text.and_then(|text| serde_json::from_str(&text).ok());
            let Some(address) = view.map(|view| view.address) else {
                continue;
            };
            if !address.starts_with("http") {
                continue;
            }
            if last.as_ref().is_none_or(|(at_ms, _)| *at_ms < entry.at_ms) {
                last = Some((entry.at_ms, address));
            }
            break;
        }
    }
    Ok(last.map(|(_, address)| address))
}

/// Describes an ending in one line.
pub fn summary(ending: &Ending) -> String {
    match ending {
        Ending::Reached { claim, strength } => {
            format!("{}: {}", strength.word(), first_line(&claim.answer))
        }
        Ending::Failed { reason, .. } => format!("failed: {}", first_line(reason)),
        Ending::Limit { what } => format!("limit reached: {what}"),
        Ending::Waiting {
            effect, question, ..
        } => format!("waits at {effect}: {question}"),
        Ending::Sleeping {
            signal: Some(signal),
            ..
        } => format!("waits for `{signal}`"),
        Ending::Sleeping { until_ms, .. } => match until_ms {
            Some(until_ms) => format!("sleeps until {}", on_the_clock(*until_ms)),
            None => "sleeps".to_owned(),
        },
        Ending::Stuck { what } => format!("stuck: {}", first_line(what)),
        Ending::ModelUnreachable { error } => error.to_string(),
        Ending::Stopped { by, reason } => {
            let reason = reason
                .as_deref()
                .map(|words| format!(": {}", first_line(words)));
            format!("stopped by {by}{}", reason.unwrap_or_default())
        }
        Ending::Interrupted => "interrupted".to_owned(),
    }
}

/// Describes a record, with its ending, in one line.
pub fn record_summary(ending: Option<&Ending>) -> String {
    let end = ending.map(|ending| format!(": {}", summary(ending)));
    format!("a record from elsewhere{}", end.unwrap_or_default())
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// Returns the entries of a run that this version of gyrus can read, from `from` on.
///
/// # Errors
/// Returns an error when the journal is damaged or holds an unreadable entry.
pub fn entries(
    reader: &gyrus_journal::LogReader,
    from: u64,
) -> Result<impl Iterator<Item = Result<(u64, Entry), Stop>>, Stop> {
    Ok(reader.entries(from)?.map(|entry| {
        let entry = entry?;
        Ok((entry.seq, parse(&entry)?))
    }))
}
