//! The files that a list of changes names: no duplicates, and only files that a changeset may
//! change.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use gyrus_contract::{ResolvedCall, path_in_list};
use gyrus_workspace::changeset::HOME;

use super::CHANGES;

pub(super) struct CallPaths<'a> {
    call: &'a ResolvedCall,
    taken: BTreeSet<PathBuf>,
}

impl<'a> CallPaths<'a> {
    pub(super) fn of(call: &'a ResolvedCall) -> Self {
        Self {
            call,
            taken: BTreeSet::new(),
        }
    }

    /// Returns the path of the change with this number, below the workspace. The error describes
    /// the invalid path.
    pub(super) fn take(&mut self, index: usize) -> Result<PathBuf, String> {
        let Some(resolved) = self.call.paths.get(&path_in_list(CHANGES, index)) else {
            return Err(format!("the path of change {index} was not looked up"));
        };
        let given = &resolved.given;
        let Some(path) = &resolved.in_workspace else {
            return Err(format!("`{given}` is outside the workspace"));
        };
        let wrong = if path.as_os_str().is_empty() {
            "is the workspace itself, not a file"
        } else if path.to_str().is_none() {
            "has a name that is not UTF-8"
        } else if path.starts_with(Path::new(HOME)) {
            "lies where changesets are made ready"
        } else if !self.taken.insert(path.clone()) {
            "is named twice"
        } else {
            return Ok(path.clone());
        };
        Err(format!("`{given}` {wrong}"))
    }
}
