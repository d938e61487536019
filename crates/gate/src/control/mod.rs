//! Control files: files by which other programs run things, or from which agents take
//! instructions, without a person starting that by name.
//!
//! One function, [`withheld`], decides which changes may not stay without a person's yes, whoever
//! makes them. What is known before it happens (`write`, a changeset) is asked about then; what a
//! command or a server did while it ran is known only afterwards, and taken back until a person
//! has seen it. The names stand in `control_files.toml`; what cannot be told by a name is here.

mod bare;
mod changes;
mod look;
mod named;
mod surroundings;
mod table;

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use gyrus_contract::{ChangedPath, PathChange, WithheldChange};
use gyrus_workspace::snapshot::is_left_out;

use self::{
    changes::CallChanges,
    surroundings::is_makefile,
    table::{ControlTool, New, embedded, parts},
};
pub(crate) use self::{
    look::WorkspaceLook,
    surroundings::WorkspaceState,
    table::{ControlTable, obeyed_by},
};

/// The place in which changes are judged.
#[derive(Clone, Copy)]
pub(crate) struct ChangeSite<'a> {
    /// The real path of the workspace.
    pub(crate) workspace: &'a Path,
    /// Folders in which the person's shell looks for programs.
    pub(crate) programs: &'a [PathBuf],
    /// The names of control files that the person and the project added.
    pub(crate) added: &'a ControlTable,
    pub(crate) surroundings: &'a WorkspaceState,
}

/// Decides which changes may not stay without a person's yes.
pub(crate) fn withheld(all: &[ChangedPath], around: &ChangeSite<'_>) -> Vec<WithheldChange> {
    let changes = CallChanges::new(all);
    let bare = bare::repositories(&changes, around.workspace);
    let mut outputs = Outputs::new(around.workspace);
    let found = all.iter().enumerate().filter_map(|(index, change)| {
        let reason = by_path(change, &change.path, &changes, around, &mut outputs)
            .or_else(|| {
                bare::is_obeyed(change, &changes, &bare)
                    .then(|| "git takes the folder for a repository, and obeys it there".to_owned())
            })
            .or_else(|| special(change))
            .or_else(|| link_in_place(change, &changes, around))
            .or_else(|| {
                // Who changes a file changes it under each of its names.
                let mut others = around.surroundings.other_names(&change.path).into_iter();
                others.find_map(|other| {
                    let reason = by_path(change, &other, &changes, around, &mut outputs)?;
                    Some(format!("by the link `{}`, {reason}", other.display()))
                })
            })?;
        Some(WithheldChange { index, reason })
    });
    found.collect()
}

/// Decides which files may not be written, or removed (`false`), without a person's yes. All are
/// of one call, and below the workspace.
pub(crate) fn withheld_writes(
    files: &[(PathBuf, bool)],
    around: &ChangeSite<'_>,
) -> Vec<Option<String>> {
    let exists = |path: &Path| around.workspace.join(path).symlink_metadata().is_ok();
    let mut changes = Vec::new();
    for (path, stays) in files {
        let change = match (stays, exists(path)) {
            (false, _) => PathChange::Deleted,
            (true, true) => PathChange::Changed,
            (true, false) => PathChange::Created,
        };
        let folders = path
            .ancestors()
            .skip(1)
            .take_while(|folder| !folder.as_os_str().is_empty() && *stays && !exists(folder));
        changes.extend(folders.map(|folder| ChangedPath {
            path: folder.to_owned(),
            change: PathChange::Created,
        }));
        changes.push(ChangedPath {
            path: path.clone(),
            change,
        });
    }
    changes.sort_by(|one, two| one.path.cmp(&two.path));
    changes.dedup();
    let withheld = withheld(&changes, around);
    let reason = |path: &Path| {
        let mut withheld = withheld.iter();
        withheld
            .find(|one| changes[one.index].path == path)
            .map(|one| one.reason.clone())
    };
    // A file makes the folders that it needs.
    let of_file = |(path, _): &(PathBuf, bool)| path.ancestors().find_map(reason);
    files.iter().map(of_file).collect()
}

/// Judges a change by one of the names of its file.
fn by_path(
    change: &ChangedPath,
    path: &Path,
    changes: &CallChanges<'_>,
    around: &ChangeSite<'_>,
    outputs: &mut Outputs<'_>,
) -> Option<String> {
    by_name(change, path, changes, around, outputs)
        .or_else(|| makefile(change, path, changes, around))
        .or_else(|| in_program_folder(change, path, around))
        .or_else(|| read_by_another(change, path, changes, around))
}

fn by_name(
    change: &ChangedPath,
    path: &Path,
    changes: &CallChanges<'_>,
    around: &ChangeSite<'_>,
    outputs: &mut Outputs<'_>,
) -> Option<String> {
    let parts = parts(path);
    let is_new = change.change == PathChange::Created;
    let mut counts = |tool: &&ControlTool| {
        let new_counts = match tool.new {
            New::Anywhere => true,
            New::KnownFolder => !is_new || !changes.made_folder_of(path),
        };
        new_counts && (tool.acts.in_build_output() || !outputs.hold(path, changes))
    };
    let mut tools = embedded().find(&parts).chain(around.added.find(&parts));
    let tool = tools.find(|tool| counts(tool))?;
    Some(format!("it is obeyed by {}", tool.obeyed_by))
}

/// A new makefile deep in the tree is build output; one at the top, or in the place of one that a
/// person knows, is what they run next.
fn makefile(
    change: &ChangedPath,
    path: &Path,
    changes: &CallChanges<'_>,
    around: &ChangeSite<'_>,
) -> Option<String> {
    let name = path.file_name()?.to_string_lossy().to_lowercase();
    let folder = path.parent()?;
    let counts = is_makefile(&name)
        && change.change != PathChange::Deleted
        && (folder.as_os_str().is_empty()
            || change.change == PathChange::Changed
            || around.surroundings.has_makefile(folder, changes));
    counts.then(|| "it is obeyed by make, even by `make -n`".to_owned())
}

fn in_program_folder(change: &ChangedPath, path: &Path, around: &ChangeSite<'_>) -> Option<String> {
    let workspace = around.workspace;
    let real = workspace.join(path);
    let mut programs = around.programs.iter();
    let folder = programs.find(|folder| real.starts_with(folder))?;
    // A folder of programs that is the workspace itself holds everything else, too.
    let direct = *folder != workspace || path.components().count() == 1;
    (direct && change.change != PathChange::Deleted).then(|| {
        let folder = folder.strip_prefix(workspace).unwrap_or(folder).display();
        format!("your shell finds programs in `{folder}`, which is in your PATH")
    })
}

/// Judges a file that a control file reads: it takes effect when that one does, if it exists.
fn read_by_another(
    change: &ChangedPath,
    path: &Path,
    changes: &CallChanges<'_>,
    around: &ChangeSite<'_>,
) -> Option<String> {
    if change.change == PathChange::Deleted {
        return None;
    }
    let reader = around.surroundings.reader_of(path, changes)?;
    Some(format!("`{}` reads it", reader.display()))
}

/// Judges a link in the place of a folder in which programs look for control files: what it leads
/// to may have any name.
fn link_in_place(
    change: &ChangedPath,
    changes: &CallChanges<'_>,
    around: &ChangeSite<'_>,
) -> Option<String> {
    let path = &change.path;
    if matches!(change.change, PathChange::Deleted) || changes.below(path) {
        return None;
    }
    let parts = parts(path);
    if !embedded().leads_to(&parts) && !around.added.leads_to(&parts) {
        return None;
    }
    let is_link = match around.workspace.join(path).symlink_metadata() {
        Ok(data) => data.is_symlink(),
        // Not there yet: nobody makes an empty hidden folder.
        Err(_) => parts.last().is_some_and(|name| name.starts_with('.')),
    };
    is_link.then(|| "it leads to where programs look for what they obey".to_owned())
}

/// Returns the reason against special files: a pipe makes its readers wait for ever, and a socket
/// is of no use without its process.
fn special(change: &ChangedPath) -> Option<String> {
    (change.change == PathChange::Special).then(|| "it is a pipe, a socket or a device".to_owned())
}

/// Cache of the folders with build output of a workspace.
struct Outputs<'a> {
    workspace: &'a Path,
    known: HashMap<PathBuf, bool>,
}

impl<'a> Outputs<'a> {
    fn new(workspace: &'a Path) -> Self {
        Self {
            workspace,
            known: HashMap::new(),
        }
    }

    /// Whether a path lies in an output folder. A folder that these changes made is none yet.
    fn hold(&mut self, path: &Path, changes: &CallChanges<'_>) -> bool {
        let mut above: Vec<&Path> = path.ancestors().skip(1).collect();
        above.pop();
        above.reverse();
        above
            .into_iter()
            .any(|folder| match self.known.get(folder) {
                Some(known) => *known,
                None => {
                    let is_one = changes.was_there(folder) && is_left_out(self.workspace, folder);
                    self.known.insert(folder.to_owned(), is_one);
                    is_one
                }
            })
    }
}

/// Whether git reads its configuration or hooks below this path, in any letter case.
pub(crate) fn has_git_part(path: &Path) -> bool {
    path.iter().any(|part| part.eq_ignore_ascii_case(".git"))
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
