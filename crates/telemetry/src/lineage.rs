//! The run at the top of the runs that delegated another: its trace is theirs.

use gyrus_contract::RunId;
use gyrus_journal::Store;
use gyrus_kernel::{Entry, MAX_DEPTH, log_name};

/// Returns the topmost parent of a run: itself if nobody delegated it. Where a parent's journal is
/// gone, that parent counts as topmost.
pub(crate) fn topmost(store: &Store, run: RunId) -> RunId {
    let mut top = run;
    for _ in 0..=MAX_DEPTH {
        let reader = store.reader(&log_name(top));
        let first = reader.and_then(|reader| reader.entry(1)).ok().flatten();
        let parent = match first.map(|first| gyrus_kernel::parse(&first)) {
            Some(Ok(Entry::RunStarted(started))) => started.parent,
            _ => None,
        };
        match parent {
            Some(parent) => top = parent.run,
            None => break,
        }
    }
    top
}
