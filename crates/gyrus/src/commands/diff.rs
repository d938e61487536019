//! `gyrus diff`

use std::io::Write as _;

use clap::Args;
use gyrus_contract::RunId;
use gyrus_journal::Store;
use gyrus_kernel::{is_record, undo, workspace};
use gyrus_text::{counted, one_line};

use super::run_argument::RunArgument;
use crate::{Gyrus, exit::Code, failure::Failure};
use gyrus_surfaces::{
    console::{Painter, put},
    output,
};

/// Show what a run changed in its folder, as a patch
///
/// It shows what `gyrus undo` would take back. Away from a terminal it is a patch for `git apply`:
/// gyrus diff last > changes.patch
#[derive(Args)]
pub(crate) struct Diff {
    #[command(flatten)]
    run: RunArgument,
    /// Show only what changed after this step; 0 is before the run
    #[arg(long, value_name = "STEP", default_value_t = 0)]
    since: u32,
}

impl Diff {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        let store = gyrus.store()?;
        let run = self.run.find(gyrus, &store)?;
        show(gyrus, &store, run, self.since)
    }
}

/// Prints the changes of a run after a step.
pub(crate) fn show(gyrus: &Gyrus, store: &Store, run: RunId, since: u32) -> Result<Code, Failure> {
    let failed = |error| super::undo::failure(error, run);
    // A run of a fleet may have worked in a folder that is not on this machine, and a record did.
    let folder = workspace(store, run);
    let is_here = !is_record(store, run) && folder.is_none_or(|folder| folder.is_dir());
    let (patch, left_out) = if is_here {
        let found = undo::plan(store, run, since).map_err(failed)?;
        found.patch(store).map_err(failed)?
    } else {
        undo::recorded_patch(store, run, since).map_err(failed)?
    };
    let mut out = output::standard();
    if out.is_terminal() {
        let painter = Painter::new(&out, gyrus.environment.plain);
        for line in painter.patch(&patch).iter().filter(|_| !patch.is_empty()) {
            writeln!(out, "{line}")?;
        }
    } else {
        out.raw().write_all(patch.as_bytes())?;
    }
    out.flush()?;
    if !left_out.is_empty() {
        let paths: Vec<_> = left_out.iter().map(|path| one_line(path)).collect();
        put(&format!(
            "left out, because it was changed since or is not kept as text ({}): {}\n",
            counted(paths.len(), "path"),
            paths.join(", ")
        ))?;
    }
    if patch.is_empty() && left_out.is_empty() {
        put("no file that the run changed is still as the run left it\n")?;
    }
    Ok(Code::Reached)
}
