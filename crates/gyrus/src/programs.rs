//! Folders that no program is taken from, because runs have worked there.

use std::env;

use gyrus_journal::Store;
use gyrus_kernel::workspaces;
use gyrus_process::Programs;

use crate::{env::Environment, home::Home};

/// Runs whose folders are looked up, the newest first.
const MAX_RUNS: usize = 2_000;

/// Takes no program out of this folder, out of gyrus's own folders, or out of one in which a run has
/// worked.
pub(crate) fn keep_out_of_workspaces(environment: &Environment) {
    let programs = Programs::of_this_process();
    let Ok(home) = Home::find(environment) else {
        return;
    };
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
            Some(Ok(store)) => workspaces(&store, MAX_RUNS).unwrap_or_default(),
            Some(Err(_)) | None => Vec::new(),
        }
    });
}
