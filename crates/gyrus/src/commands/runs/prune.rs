//! `gyrus runs prune`

use std::time::Duration;

use clap::Args;
use gyrus::runtime::sandbox_folders;
use gyrus_contract::RunId;
use gyrus_journal::Store;
use gyrus_kernel::{log_name, undo};
use gyrus_text::counted;

use super::{
    blobs::{CountPictures, needed},
    standing::{ListedStanding, StateFilter},
};
use gyrus_text::parse_duration;

use crate::{Gyrus, exit::Code, failure::Failure, inside_run};
use gyrus_surfaces::console::put;

/// Free the space of old runs, keeping their journals
///
/// Snapshots of folders and pictures go, of runs that are over for long enough. Such a run can
/// still be shown, verified and replayed; a fork of it works in place only.
#[derive(Args)]
pub(crate) struct Prune {
    /// Minimum time since a run ended
    #[arg(long, value_name = "DURATION", default_value = "30d", value_parser = parse_duration)]
    older_than: Duration,
}

impl Prune {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        inside_run::refuse("prune runs")?;
        let home = gyrus.home()?;
        let store = home.store()?;
        let age_ms = i64::try_from(self.older_than.as_millis()).unwrap_or(i64::MAX);
        let before_ms = gyrus_kernel::now_ms().saturating_sub(age_ms);
        let (mut runs, mut bytes) = (0_u64, 0_u64);
        for run in gyrus_kernel::runs(&store)? {
            if let Some(dropped) = prune(&store, run, before_ms)? {
                sandbox_folders::remove(&home, &[run]);
                runs += u64::from(dropped > 0);
                bytes += dropped;
            }
        }
        let freed = store.sweep()?;
        put(&format!(
            "dropped {} of {}; {} of disk space freed\n",
            counted(bytes, "byte"),
            counted(runs, "run"),
            counted(freed, "byte")
        ))?;
        Ok(Code::Reached)
    }
}

/// Removes the parts that a run which ended before `before_ms` does not need; `None` if it did not
/// end before.
fn prune(store: &Store, run: RunId, before_ms: i64) -> Result<Option<u64>, Failure> {
    if !matches!(
        ListedStanding::of(store, run).state,
        StateFilter::Over | StateFilter::Record
    ) {
        return Ok(None);
    }
    let name = log_name(run);
    let reader = store.reader(&name)?;
    let last = reader.entries_back()?.next().transpose()?;
    if last.is_none_or(|entry| entry.at_ms > before_ms) {
        return Ok(None);
    }
    let needed = needed(&reader, CountPictures::Without)?;
    let dropped = store.drop_blobs(&name, &|blob| !needed.contains(blob))?;
    let kept = undo::drop_kept(store, run)?;
    Ok(Some(dropped + store.drop_private(&name)? + kept))
}
