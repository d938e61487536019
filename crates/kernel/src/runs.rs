//! The runs of a store: their logs, their entries, and how they ended.

use std::{collections::BTreeSet, path::PathBuf};

use gyrus_contract::{RunId, View};
use gyrus_journal::{LogName, Store};

use crate::{Ending, Entry, Inline, Stop, log::parse};

/// The kind of log in which runs are stored.
pub const RUNS: &str = "runs";

/// Returns the name of the log that holds a run.
pub fn log_name(run: RunId) -> LogName {
    LogName::new(RUNS, &run.to_string()).expect("a run id is a valid name of a log")
}

/// Returns all runs of a store, in order of id: those that people started by time, with children in
/// between.
pub fn runs(store: &Store) -> Result<Vec<RunId>, gyrus_journal::Error> {
    let names = store.names(RUNS)?;
    let ids = names.iter().filter_map(|name| name.id().parse().ok());
    Ok(ids.collect())
}

/// Returns the folders in which the newest runs that people started have worked, for at most
/// `of_runs` runs. A journal that cannot be read is skipped.
pub fn workspaces(store: &Store, of_runs: usize) -> Result<Vec<PathBuf>, gyrus_journal::Error> {
    let mut folders: Vec<PathBuf> = Vec::new();
    let roots = runs(store)?.into_iter().rev().filter(|run| run.is_root());
    for folder in roots.take(of_runs).filter_map(|run| workspace(store, run)) {
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    Ok(folders)
}

/// Returns the folder in which a run works; `None` if its journal cannot be read.
pub fn workspace(store: &Store, run: RunId) -> Option<PathBuf> {
    let reader = store.reader(&log_name(run)).ok()?;
    match parse(&reader.entry(1).ok()??) {
        Ok(Entry::RunStarted(started)) => Some(started.workspace),
        Ok(_) | Err(_) => None,
    }
}

/// Returns a run and the runs below it, itself last, so that removing them in order leaves no
/// orphans.
pub fn family(store: &Store, run: RunId) -> Result<Vec<RunId>, gyrus_journal::Error> {
    let mut children = BTreeSet::new();
    for entry in store.reader(&log_name(run))?.entries(1)? {
        if let Ok(Entry::ChildStarted(child)) = parse(&entry?) {
            children.insert(child.child);
        }
    }
    let mut found = Vec::new();
    let kept = |child: &RunId| store.exists(&log_name(*child));
    for child in children.into_iter().filter(kept) {
        found.extend(family(store, child)?);
    }
    found.push(run);
    Ok(found)
}

/// Returns the address of the last page that a run, or a run below it, looked at; `None` if there was
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
        Ending::Sleeping { .. } => "sleeps".to_owned(),
        Ending::Stuck { what } => format!("stuck: {}", first_line(what)),
        Ending::ModelUnreachable { error } => error.to_string(),
        Ending::Stopped { by, reason } => {
            let reason = reason
                .as_deref()
                .map(|words| format!(": {}", first_line(words)));
            format!(
                "stopped by {} ({}){}",
                by.id,
                by.surface,
                reason.unwrap_or_default()
            )
        }
        Ending::Interrupted => "interrupted".to_owned(),
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// Returns the entries of a run that this version of gyrus can read, from `from` on.
///
/// # Errors
/// Returns an error when the journal is damaged or holds an unreadable entry.
pub fn entries(
    reader: &gyrus_journal::Reader,
    from: u64,
) -> Result<impl Iterator<Item = Result<(u64, Entry), Stop>>, Stop> {
    Ok(reader.entries(from)?.map(|entry| {
        let entry = entry?;
        Ok((entry.seq, parse(&entry)?))
    }))
}
