//! Finds programs to run with the person's own rights: those that gyrus starts for itself, and
//! those that a person allows a run to start outside of the sandbox.
//!
//! A program is found once, by absolute path, and only where neither a run nor another user could
//! have put it: never in a workspace or another folder that runs write, never in a folder or a file
//! that another user may change, and never by a relative entry of `PATH`. Every folder and every
//! link on the way to the file is looked at, and so is the file that they lead to.
//!
//! Not here: whether a program may be started at all, and with which arguments.

mod environment;
mod owners;
mod walk;

use std::{
    collections::BTreeSet,
    env,
    ffi::OsStr,
    fmt,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, OnceLock},
};

use gyrus_contract::{FileIdentity, ResolvedProgram};
use parking_lot::Mutex;

use self::{
    owners::Owners,
    walk::{Distrust, FoundProgram, PathWalk},
};

/// Folders searched after those of `PATH`.
const STANDARD_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Maximum number of `PATH` entries that are searched.
const MAX_FOLDERS: usize = 500;

/// Maximum bytes of a program's name or path.
const MAX_NAME_BYTES: usize = 4_096;

/// Maximum number of entries that an error names.
const MAX_SKIPPED: usize = 8;

/// Folders where only the system's administrator installs programs. A workspace is never inside
/// one.
const SYSTEM: [&str; 12] = [
    "/usr/bin",
    "/usr/sbin",
    "/usr/lib",
    "/usr/lib64",
    "/usr/libexec",
    "/usr/share",
    "/usr/local/bin",
    "/usr/local/sbin",
    "/bin",
    "/sbin",
    "/snap",
    "/nix/store",
];

/// Reason why a program cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProgramError {
    /// No allowed folder contains a program of that name.
    #[error("`{name}` was not found{}", passed_over(.skipped))]
    NotFound {
        name: String,
        /// Entries of `PATH` and files that were skipped, each with the reason.
        skipped: Vec<String>,
    },
    /// The path is relative, so it depends on the current folder.
    #[error(
        "invalid program `{given}`: a relative path; give the bare name of a program on PATH, or an \
         absolute path"
    )]
    Relative {
        /// The path as given.
        given: String,
    },
    /// The text is neither a name nor a path.
    #[error("invalid program: {reason}")]
    Invalid { reason: &'static str },
    /// The file does not exist or is not executable.
    #[error("`{}` is not a program: {reason}", .path.display())]
    NotAProgram {
        /// The absolute path of the program.
        path: PathBuf,
        reason: String,
    },
    /// Another user or a run could have put the program there.
    #[error("`{}` is not started: {reason}", .path.display())]
    Untrusted {
        /// The absolute path of the program.
        path: PathBuf,
        reason: String,
    },
}

/// Writes the end of a sentence about the entries that were passed over.
fn passed_over(skipped: &[String]) -> String {
    if skipped.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "; passed over: {}",
        skipped[..skipped.len().min(MAX_SKIPPED)].join("; ")
    );
    if skipped.len() > MAX_SKIPPED {
        text.push_str(&format!("; and {} more", skipped.len() - MAX_SKIPPED));
    }
    text
}

/// Function that looks up folders in which runs have written.
type WrittenFolders = dyn Fn() -> Vec<PathBuf> + Send + Sync;

/// Finds programs that neither runs nor other users can replace.
pub struct Programs {
    /// The entries of `PATH` in their order.
    entries: Vec<PathBuf>,
    /// Folders that runs write, as given.
    writable: Mutex<BTreeSet<PathBuf>>,
    /// Looks up further such folders when a program outside the system's folders is found.
    elsewhere: OnceLock<Box<WrittenFolders>>,
    looked_up: OnceLock<Vec<PathBuf>>,
    owners: Owners,
}

impl fmt::Debug for Programs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Programs")
            .field("entries", &self.entries)
            .field("writable", &self.writable)
            .finish_non_exhaustive()
    }
}

impl Programs {
    /// Searches the folders of this `PATH`, and then the standard ones.
    pub fn on_path(path: Option<&OsStr>) -> Self {
        let path = path.filter(|path| !path.is_empty());
        let own = path
            .into_iter()
            .flat_map(env::split_paths)
            .take(MAX_FOLDERS);
        let mut entries: Vec<PathBuf> = Vec::new();
        for entry in own.chain(env::split_paths(STANDARD_PATH)) {
            if !entries.contains(&entry) {
                entries.push(entry);
            }
        }
        Self {
            entries,
            writable: Mutex::default(),
            elsewhere: OnceLock::new(),
            looked_up: OnceLock::new(),
            owners: Owners::of_this_process(),
        }
    }

    /// Returns this process's instance, which searches its `PATH` and avoids the given folders.
    pub fn of_this_process() -> &'static Arc<Self> {
        static PROGRAMS: OnceLock<Arc<Programs>> = OnceLock::new();
        PROGRAMS.get_or_init(|| Arc::new(Self::on_path(env::var_os("PATH").as_deref())))
    }

    /// Excludes programs in and below a folder that runs can write. The folder need not exist yet.
    pub fn keep_out_of(&self, folder: &Path) {
        let mut writable = self.writable.lock();
        if !writable.contains(folder) {
            writable.insert(folder.to_owned());
        }
    }

    /// Also avoids programs in these folders. The function is called once, when a program outside
    /// of the system's own folders is found. Only the first such function counts.
    pub fn keep_out_of_all(&self, folders: impl Fn() -> Vec<PathBuf> + Send + Sync + 'static) {
        let _ = self.elsewhere.set(Box::new(folders));
    }

    /// Finds the program of this name on `PATH`, or the one at this absolute path.
    ///
    /// # Errors
    /// When there is none that may be started; the error names the entries that were passed over,
    /// with reasons.
    pub fn find(&self, name: &str) -> Result<ResolvedProgram, ProgramError> {
        let invalid = |reason| Err(ProgramError::Invalid { reason });
        if name.is_empty() {
            return invalid("it is empty");
        }
        if name.contains('\0') {
            return invalid("it contains a NUL character");
        }
        if name.len() > MAX_NAME_BYTES {
            return invalid("it is longer than 4096 bytes");
        }
        if name.starts_with('/') {
            return self.check(Path::new(name));
        }
        if name.contains('/') || name == "." || name == ".." {
            return Err(ProgramError::Relative {
                given: name.to_owned(),
            });
        }
        let mut skipped = Vec::new();
        for entry in &self.entries {
            let file = entry.join(name);
            // Most folders do not have it, and need no looking at.
            if entry.is_absolute() && file.symlink_metadata().is_err() {
                continue;
            }
            match self.folder(entry) {
                Ok(()) => {}
                Err(Distrust::NotThere(_)) => continue,
                Err(Distrust::Untrusted(reason)) => {
                    skipped.push(format!("{} ({reason})", shown(entry)));
                    continue;
                }
            }
            match self.check(&file) {
                Ok(found) => return Ok(found),
                Err(ProgramError::Untrusted { path, reason }) => {
                    skipped.push(format!("{} ({reason})", path.display()));
                }
                // A shell goes on too: the next folder may have it.
                Err(_) => {}
            }
        }
        Err(ProgramError::NotFound {
            name: name.to_owned(),
            skipped,
        })
    }

    /// Returns the program at an absolute path.
    ///
    /// # Errors
    /// When it may not be started, or is not there.
    pub fn check(&self, path: &Path) -> Result<ResolvedProgram, ProgramError> {
        let not_a_program = |reason: &str| ProgramError::NotAProgram {
            path: path.to_owned(),
            reason: reason.to_owned(),
        };
        let found = self.trusted(path).map_err(|distrust| match distrust {
            Distrust::NotThere(reason) => not_a_program(&reason),
            Distrust::Untrusted(reason) => ProgramError::Untrusted {
                path: path.to_owned(),
                reason,
            },
        })?;
        let FoundProgram { real, file } = found;
        let Some(stat) = file else {
            return Err(not_a_program("it is a folder"));
        };
        if !stat.is_executable {
            return Err(not_a_program("it is not a file that can be executed"));
        }
        Ok(ResolvedProgram {
            path: path.to_owned(),
            real,
            file: stat.identity,
        })
    }

    /// Returns the `PATH` for programs that run with the person's own rights: the trusted folders,
    /// in their order.
    pub fn path(&self) -> String {
        let may = self
            .entries
            .iter()
            .filter(|entry| self.folder(entry).is_ok());
        let folders: Vec<&str> = may.filter_map(|entry| entry.to_str()).collect();
        folders.join(":")
    }

    /// Creates a command that starts this program with the person's own rights and the same search
    /// path.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env("PATH", self.path());
        command
    }

    /// Returns a command that runs a line of the person's own in a shell.
    ///
    /// # Errors
    /// If there is no shell.
    pub fn shell(&self, line: &str) -> Result<Command, ProgramError> {
        let mut command = self.command(&self.find("sh")?.path);
        command.args(["-c", line]);
        Ok(command)
    }

    /// Whether programs may be taken out of this entry of `PATH`.
    fn folder(&self, entry: &Path) -> Result<(), Distrust> {
        if entry.as_os_str().is_empty() {
            let why = "an empty entry means the current folder";
            return Err(Distrust::Untrusted(why.to_owned()));
        }
        if !entry.is_absolute() {
            return Err(Distrust::Untrusted("a relative path".to_owned()));
        }
        match self.trusted(entry)?.file {
            None => Ok(()),
            Some(_) => Err(Distrust::NotThere("it is not a folder".to_owned())),
        }
    }

    /// Follows a path to its folder or file, if no other user can change it.
    fn trusted(&self, path: &Path) -> Result<FoundProgram, Distrust> {
        let writable = self.writable();
        let walk = PathWalk::new(&self.owners, &writable);
        let found = walk.follow(path)?;
        let is_of_system = |path: &Path| SYSTEM.iter().any(|system| path.starts_with(system));
        if is_of_system(path) && is_of_system(&found.real) {
            return Ok(found);
        }
        match (self.looked_up.get(), self.elsewhere.get()) {
            (Some(more), _) => PathWalk::new(&self.owners, more).follow(path),
            (None, Some(_)) => PathWalk::new(&self.owners, self.more()).follow(path),
            (None, None) => Ok(found),
        }
    }

    fn writable(&self) -> Vec<PathBuf> {
        let writable = self.writable.lock();
        writable.iter().cloned().collect()
    }

    fn more(&self) -> &[PathBuf] {
        self.looked_up
            .get_or_init(|| self.elsewhere.get().map_or_else(Vec::new, |all| all()))
    }
}

fn shown(entry: &Path) -> String {
    if entry.as_os_str().is_empty() {
        "an entry".to_owned()
    } else {
        String::from_utf8_lossy(entry.as_os_str().as_bytes()).into_owned()
    }
}

/// Returns the identity of the file at this moment.
fn identity(stat: &rustix::fs::Stat) -> FileIdentity {
    let seconds = i128::from(stat.st_ctime);
    let changed = seconds * 1_000_000_000 + i128::from(stat.st_ctime_nsec);
    FileIdentity {
        device: stat.st_dev,
        inode: stat.st_ino,
        bytes: u64::try_from(stat.st_size).unwrap_or(0),
        changed_ns: i64::try_from(changed).unwrap_or(i64::MAX),
    }
}

#[cfg(test)]
mod tests;
