//! Looks at a workspace that are used again for as long as nothing changed that they have seen.

use std::{
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use super::{surroundings::WorkspaceState, table::ControlTable};

/// Age of a change after which a later change has another timestamp on every file system.
const SETTLED_AFTER: Duration = Duration::from_millis(20);

/// Identity, size and time of the last change in nanoseconds; `None` for what is not there.
type LookStamp = Option<(u64, u64, i128)>;

/// Result of looking at a workspace, with the state of every folder and file that was read.
#[derive(Debug, Clone, Default)]
pub(crate) struct WorkspaceLook {
    pub(crate) surroundings: WorkspaceState,
    stamps: Vec<(PathBuf, LookStamp)>,
    /// Whether a later change of the files that were read would be noticed.
    is_settled: bool,
}

impl WorkspaceLook {
    /// Looks at a workspace, which is real. `home` is that of the person, whose git configuration
    /// may name files of the workspace.
    pub(crate) fn at(workspace: &Path, home: Option<&Path>, added: &ControlTable) -> Self {
        let mut read = Vec::new();
        let surroundings = WorkspaceState::look(workspace, home, added, &mut read);
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let settled = now.unwrap_or_default().saturating_sub(SETTLED_AFTER);
        let settled = i128::try_from(settled.as_nanos()).unwrap_or(0);
        let stamps: Vec<_> = read
            .into_iter()
            .map(|path| {
                let stamp = stamp(&path);
                (path, stamp)
            })
            .collect();
        let is_old = |stamp: &LookStamp| stamp.is_none_or(|(_, _, changed)| changed < settled);
        Self {
            surroundings,
            is_settled: stamps.iter().all(|(_, stamp)| is_old(stamp)),
            stamps,
        }
    }

    /// Whether a new look would have the same result.
    pub(crate) fn is_still_true(&self) -> bool {
        self.is_settled
            && self
                .stamps
                .iter()
                .all(|(path, before)| stamp(path) == *before)
    }
}

fn stamp(path: &Path) -> LookStamp {
    let read = || {
        let data = fs::symlink_metadata(path)?;
        let changed = i128::from(data.ctime()) * 1_000_000_000 + i128::from(data.ctime_nsec());
        io::Result::Ok((data.ino(), data.len(), changed))
    };
    read().ok()
}
