//! The folders from which this process starts no program: those in which runs have worked.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::{Path, PathBuf},
};

use gyrus_contract::RunId;
use gyrus_journal::Store;
use gyrus_kernel::{RUNS, workspace};
use gyrus_process::Programs;

use super::Home;

/// Runs whose folders are looked up, the newest first.
const MAX_RUNS: usize = 2_000;

/// File in the state with the folders of these runs, which can be deleted at any time.
const KNOWN: &str = "workspaces";

/// Keeps this process from starting programs out of the current folder, out of gyrus's own, or out of
/// one in which a run has worked.
pub fn keep_out_of_workspaces(home: Home) {
    let programs = Programs::of_this_process();
    for own in home.own() {
        programs.keep_out_of(&own);
    }
    // Where no run can work, none has planted anything.
    let here = env::current_dir().and_then(|here| here.canonicalize());
    if let Ok(here) = here
        && gyrus_gate::check_workspace(&here, home.person.as_deref(), &home.state).is_ok()
    {
        programs.keep_out_of(&here);
    }
    programs.keep_out_of_all(move || {
        let journal = home.state.join("journal");
        match journal.is_dir().then(|| Store::open(&journal)) {
            Some(Ok(store)) => workspaces(&store, &home.state.join(KNOWN)),
            Some(Err(_)) | None => Vec::new(),
        }
    });
}

/// Returns the folders in which the newest runs that people started have worked, also of some that
/// were removed since. What was found is kept in the file `known`, so that each journal is opened
/// once.
fn workspaces(store: &Store, known: &Path) -> Vec<PathBuf> {
    let mut folders: BTreeMap<RunId, PathBuf> = fs::read(known)
        .ok()
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .unwrap_or_default();
    let oldest = folders.keys().next().copied();
    let oldest = oldest.filter(|_| folders.len() >= MAX_RUNS);
    let is_new = |run: RunId| {
        let is_newer = oldest.is_none_or(|oldest| run > oldest);
        run.is_root() && is_newer && !folders.contains_key(&run)
    };
    let new = store.names_where(RUNS, |id| id.parse().is_ok_and(is_new));
    let new: Vec<RunId> = new
        .unwrap_or_default()
        .iter()
        .filter_map(|name| name.id().parse().ok())
        .collect();
    let newest = new.into_iter().rev().take(MAX_RUNS);
    let found = newest.filter_map(|run| Some((run, workspace(store, run)?)));
    let found: Vec<_> = found.collect();
    if !found.is_empty() {
        folders.extend(found);
        while folders.len() > MAX_RUNS {
            folders.pop_first();
        }
        keep(known, &folders);
    }
    let folders: BTreeSet<PathBuf> = folders.into_values().collect();
    folders.into_iter().collect()
}

/// Replaces the file. Without it the next process opens the journals again.
fn keep(known: &Path, folders: &BTreeMap<RunId, PathBuf>) {
    let unfinished = known.with_extension(std::process::id().to_string());
    if let Ok(json) = serde_json::to_vec(folders)
        && (fs::write(&unfinished, json).is_err() || fs::rename(&unfinished, known).is_err())
    {
        let _ = fs::remove_file(&unfinished);
    }
}
