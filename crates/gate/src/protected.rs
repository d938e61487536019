//! Paths that stay read-only in a workspace that a program may change, because no comparison
//! afterwards could tell or take back what it did there.

use std::path::{Path, PathBuf};

use gyrus_contract::Containment;
use gyrus_workspace::{repository, snapshot::is_left_out};

/// Folder with a project's rules.
const RULES: &str = ".gyrus";

/// Makes folders read-only in which the person's shell finds programs and which no snapshot holds,
/// so that what a command leaves there could not be told and taken back.
pub(crate) fn protect_programs(
    workspace: &Path,
    programs: &[PathBuf],
    containment: &mut Containment,
) {
    let unseen = programs.iter().filter(|folder| {
        let below = folder.strip_prefix(workspace);
        below.is_ok_and(|below| is_left_out(workspace, below)) && is_real(folder)
    });
    containment.read_only.extend(unseen.cloned());
}

/// Makes the repositories and the rules of a workspace read-only for a long-running program such as
/// a server, after which nothing is compared.
pub fn protect_from_server(workspace: &Path, containment: &mut Containment) {
    let found = repository::find(workspace).unwrap_or_default();
    let directories = found.directories.into_iter();
    let guarded = directories.flat_map(|one| one.pointers.into_iter().chain([one.path]));
    let guarded = guarded.chain([workspace.join(RULES)]);
    containment
        .read_only
        .extend(guarded.filter(|path| is_real(path)));
}

/// Whether the path exists and is not a link, which cannot be mounted over.
fn is_real(path: &Path) -> bool {
    path.symlink_metadata()
        .is_ok_and(|data| data.is_dir() || data.is_file())
}
