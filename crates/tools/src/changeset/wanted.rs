//! Turns the arguments of `apply_changeset` into changes.

use std::path::Path;

use gyrus_contract::{Digest, MAX_CHANGES, ResolvedCall, Site, WantedChange};
use gyrus_workspace::{
    RootFolder,
    changeset::{After, FileChange, look},
};

use super::{
    diff::{self, DiffError},
    named,
    paths::CallPaths,
};
use crate::failure::ToolFailure;

/// Returns the changes, with the values of their secrets. No interrupted changeset may be left in
/// the workspace.
///
/// # Errors
/// Also returns the conflicts, if a diff was made for another version of a file.
pub(super) fn wanted(
    call: &ResolvedCall,
    changes: Vec<WantedChange>,
    root: &RootFolder<'_>,
    site: &dyn Site,
) -> Result<Vec<FileChange>, ToolFailure> {
    if changes.is_empty() || changes.len() > MAX_CHANGES {
        let count = changes.len();
        return Err(refused(&format!(
            "a changeset has 1 to {MAX_CHANGES} files, not {count}"
        )));
    }
    let mut paths = CallPaths::of(call);
    let mut read = Vec::with_capacity(changes.len());
    let mut is_stale = false;
    for (index, change) in changes.into_iter().enumerate() {
        let path = paths.take(index).map_err(|wrong| refused(&wrong))?;
        let about = |wrong: &str| refused(&format!("`{}` {wrong}", change.path));
        let content = match (&change.content, &change.diff) {
            (Some(_), Some(_)) => return Err(about("has both `content` and `diff`")),
            (None, None) if change.before.is_none() => {
                return Err(about(
                    "is deleted, so `before` must say which file was meant",
                ));
            }
            (None, None) => None,
            (Some(content), None) => Some(site.reveal(content)?.into_bytes()),
            (None, Some(diff)) => {
                let made = patched(root, &path, change.before, &site.reveal(diff)?);
                let made =
                    made.map_err(|error| about(&format!("does not fit its diff: {error}")))?;
                is_stale |= made.is_none();
                // Without content the change is never applied: the error of the file is reported
                // below.
                Some(made.unwrap_or_default())
            }
        };
        read.push(FileChange {
            path,
            before: change.before,
            after: content.map(|content| After {
                content,
                executable: change.executable,
            }),
        });
    }
    if is_stale {
        return Err(match look(root, &read) {
            Err(conflicts) => named(conflicts),
            Ok(_) => refused("a file was changed while it was read; try again"),
        });
    }
    Ok(read)
}

fn refused(what: &str) -> ToolFailure {
    ToolFailure::new(format!("{what}; nothing was changed"))
}

/// Returns the file with the diff applied, also if it was applied already; `None` if it was made
/// for another version.
fn patched(
    root: &RootFolder<'_>,
    path: &Path,
    before: Option<Digest>,
    diff: &str,
) -> Result<Option<Vec<u8>>, DiffError> {
    let now = match root.stat(path) {
        Ok(None) if before.is_none() => return diff::patch(b"", diff).map(Some),
        Ok(Some(_)) => root.read(path),
        Ok(None) | Err(_) => return Ok(None),
    };
    let Ok((now, _)) = now else {
        return Ok(None);
    };
    if before == Some(Digest::of(&now)) {
        return diff::patch(&now, diff).map(Some);
    }
    let is_done = diff::unpatch(&now, diff).is_some_and(|old| match before {
        Some(before) => Digest::of(&old) == before,
        None => old.is_empty(),
    });
    Ok(is_done.then_some(now))
}
