//! The folder of a new run, where the one that it would work in needs a person's word first.

use std::{
    env,
    fs::{self, OpenOptions},
    io::Write as _,
    path::{Path, PathBuf},
};

use gyrus::runtime::{self, Home, RuntimeError};
use gyrus_contract::Mode;
use gyrus_gate::WorkspaceError;
use gyrus_runtime::request::{Approve, RunFlags};
use gyrus_surfaces::{console::put, terminal};

use crate::{failure::Failure, question::confirm};

/// Returns the folder in which a run works. At a terminal, a person is asked for another folder
/// instead of their home folder, and for confirmation of a folder of the system, which is
/// remembered.
pub(crate) fn settle(home: &Home, flags: &mut RunFlags) -> Result<PathBuf, Failure> {
    let given = flags.workdir.clone().unwrap_or_else(|| PathBuf::from("."));
    let error = match runtime::workspace(home, &given) {
        Err(error) if terminal::can_ask() => error,
        settled => return Ok(settled?),
    };
    match error {
        RuntimeError::Workspace(WorkspaceError::Home { folder }) => {
            flags.workdir = Some(instead_of(&folder, flags)?);
        }
        RuntimeError::SystemFolder { folder } => {
            let what = format!(
                "{} belongs to the system: let runs change what is in it",
                folder.display()
            );
            confirm(&what, false)?;
            agree(&home.agreed_folders(), &folder)?;
        }
        other => return Err(other.into()),
    }
    Ok(runtime::workspace(
        home,
        flags.workdir.as_deref().unwrap_or(&given),
    )?)
}

/// Records the person's agreement to a folder of the system.
fn agree(file: &Path, folder: &Path) -> Result<(), Failure> {
    // A line of the file is a folder: the rest of this name would be one of its own.
    let name = folder.display().to_string();
    if name.contains('\n') {
        let name = gyrus_text::one_line(&name);
        let failure = Failure::usage(format!("{name} has a line break in its name"));
        return Err(failure.hint("rename it, or name another folder"));
    }
    let kept = file
        .parent()
        .map_or(Ok(()), fs::create_dir_all)
        .and_then(|()| {
            let mut agreed = OpenOptions::new().create(true).append(true).open(file)?;
            writeln!(agreed, "{}", folder.display())
        });
    kept.map_err(|error| {
        Failure::failed(format!("{} cannot be written", file.display())).because(&error)
    })
}

/// Asks for a folder to work in, in place of the home folder. Without one nothing can be changed.
fn instead_of(home: &Path, flags: &mut RunFlags) -> Result<PathBuf, Failure> {
    let named = terminal::answer(&format!(
        "{} is your home folder, with everything in it. Name a folder in it to work in (it is made \
         if it is not there), or press Enter to change nothing: ",
        home.display()
    ))?;
    if named.is_empty() {
        flags.approvals.approve = Some(Approve::Mode(Mode::ReadOnly));
        let folder = tempfile::Builder::new()
            .prefix("gyrus-read-only-")
            .tempdir()?;
        put("read-only: nothing is changed, and nothing in your home folder is read\n")?;
        return Ok(folder.keep());
    }
    let folder = home.join(named.strip_prefix("~/").unwrap_or(&named));
    fs::create_dir_all(&folder).map_err(|error| {
        Failure::usage(format!("{} cannot be made", folder.display())).because(&error)
    })?;
    // Later commands of this process, and those that a hint names, are about this folder.
    env::set_current_dir(&folder)?;
    put(&format!(
        "working in {}; next time: cd {0}\n",
        folder.display()
    ))?;
    Ok(folder)
}

/// Returns the current folder, for commands that only read.
pub(crate) fn here() -> Result<PathBuf, Failure> {
    let folder = env::current_dir().and_then(|folder| folder.canonicalize());
    folder.map_err(|error| {
        Failure::usage("the folder that you are in cannot be read").because(&error)
    })
}
