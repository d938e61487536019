//! The folders from which this process starts no program: those in which runs have worked.

use std::env;

use gyrus_journal::Store;
use gyrus_kernel::Register;
use gyrus_process::Programs;

use super::Home;

/// Maximum number of runs whose folders are looked up, the newest first.
const MAX_RUNS: usize = 2_000;

/// Prevents this process from starting programs in the current folder, in gyrus's own folders, or
/// in one in which a run has worked.
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
            Some(Ok(store)) => Register::read(&store)
                .unwrap_or_default()
                .workspaces(MAX_RUNS),
            Some(Err(_)) | None => Vec::new(),
        }
    });
}
