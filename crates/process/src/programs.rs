//! Finding programs for what runs with the person's own rights: what gyrus starts for itself, and
//! what a person lets a run start outside of the sandbox.
//!
//! A program is found once, by absolute path, and only where neither a run nor another user could
//! have put it: never in a workspace or another folder that runs write, never in a folder or a file
//! that somebody else may change, and never by a relative entry of `PATH`. Every folder and every
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
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use gyrus_contract::{FileIdentity, ResolvedProgram};

use self::{
    owners::Owners,
    walk::{Distrust, Found, Walk},
};

/// Where programs are, after what `PATH` says.
const STANDARD_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Entries of `PATH` that are looked at.
const MAX_FOLDERS: usize = 500;

/// Bytes of a program's name or path.
const MAX_NAME_BYTES: usize = 4_096;

/// Entries that an error names.
const MAX_SKIPPED: usize = 8;

/// Folders where only the system's administrator installs programs. A workspace is none of them.
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

/// Why a program cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProgramError {
    /// Nothing of that name is in a folder that may be used.
    #[error("`{name}` was not found{}", passed_over(.skipped))]
    NotFound {
        /// The name.
        name: String,
        /// Entries of `PATH` and files that were passed over, each with the reason.
        skipped: Vec<String>,
    },
    /// It is a path that depends on the folder in which it is read.
    #[error(
        "invalid program `{given}`: a relative path; give the bare name of a program on PATH, or an \
         absolute path"
    )]
    Relative {
        /// As it was given.
        given: String,
    },
    /// It is neither a name nor a path.
    #[error("invalid program: {reason}")]
    Invalid {
        /// Why.
        reason: &'static str,
    },
    /// There is no such file, or it cannot be executed.
    #[error("`{}` is not a program: {reason}", .path.display())]
    NotAProgram {
        /// The absolute path.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// Somebody else could have put it there.
    #[error("`{}` is not started: {reason}", .path.display())]
    Untrusted {
        /// The absolute path.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

/// The end of a sentence about what was passed over.
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

/// Looks up folders in which runs have written.
type Elsewhere = dyn Fn() -> Vec<PathBuf> + Send + Sync;

/// Finds programs.
pub struct Programs {
    /// The entries of `PATH` in their order.
    entries: Vec<PathBuf>,
    /// Folders that runs write, as they were named.
    writable: Mutex<BTreeSet<PathBuf>>,
    /// More of them, looked up when a program outside of the system's folders is found.
    elsewhere: OnceLock<Box<Elsewhere>>,
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
    /// Looks in the folders of this `PATH`, and then in the standard ones.
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

    /// What this process looks programs up with: in its own `PATH`, and out of the folders that it
    /// was told of.
    pub fn of_this_process() -> &'static Arc<Self> {
        static PROGRAMS: OnceLock<Arc<Programs>> = OnceLock::new();
        PROGRAMS.get_or_init(|| Arc::new(Self::on_path(env::var_os("PATH").as_deref())))
    }

    /// Takes no program out of a folder that runs can write, nor out of anything below it. The
    /// folder need not exist yet.
    pub fn keep_out_of(&self, folder: &Path) {
        let mut writable = self.writable.lock().unwrap_or_else(PoisonError::into_inner);
        if !writable.contains(folder) {
            writable.insert(folder.to_owned());
        }
    }

    /// Also takes none out of these folders, which are asked for once, when a program outside of
    /// the system's own folders is found. The first to say so counts.
    pub fn keep_out_of_all(&self, folders: impl Fn() -> Vec<PathBuf> + Send + Sync + 'static) {
        let _ = self.elsewhere.set(Box::new(folders));
    }

    /// The program of that name on `PATH`, or the one at that absolute path.
    ///
    /// # Errors
    /// When there is none that may be started; the words say what was passed over and why.
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
                // As when a shell looks: the next folder may have it.
                Err(_) => {}
            }
        }
        Err(ProgramError::NotFound {
            name: name.to_owned(),
            skipped,
        })
    }

    /// The program at an absolute path.
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
        let Found { real, file } = found;
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

    /// The `PATH` for what is started with the person's own rights: its folders out of which a
    /// program may be taken, in their order.
    pub fn path(&self) -> String {
        let may = self
            .entries
            .iter()
            .filter(|entry| self.folder(entry).is_ok());
        let folders: Vec<&str> = may.filter_map(|entry| entry.to_str()).collect();
        folders.join(":")
    }

    /// A command that starts this program with the person's own rights, and finds others as this
    /// does.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env("PATH", self.path());
        command
    }

    /// A command that runs a line of the person's own in a shell.
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

    /// Follows a path to the folder or file that it leads to, if nobody else can change that.
    fn trusted(&self, path: &Path) -> Result<Found, Distrust> {
        let writable = self.writable();
        let walk = Walk::new(&self.owners, &writable);
        let found = walk.follow(path)?;
        let is_of_system = |path: &Path| SYSTEM.iter().any(|system| path.starts_with(system));
        if is_of_system(path) && is_of_system(&found.real) {
            return Ok(found);
        }
        match (self.looked_up.get(), self.elsewhere.get()) {
            (Some(more), _) => Walk::new(&self.owners, more).follow(path),
            (None, Some(_)) => Walk::new(&self.owners, self.more()).follow(path),
            (None, None) => Ok(found),
        }
    }

    fn writable(&self) -> Vec<PathBuf> {
        let writable = self.writable.lock().unwrap_or_else(PoisonError::into_inner);
        writable.iter().cloned().collect()
    }

    fn more(&self) -> &[PathBuf] {
        self.looked_up
            .get_or_init(|| self.elsewhere.get().map_or_else(Vec::new, |all| all()))
    }
}

fn shown(entry: &Path) -> String {
    match entry.as_os_str().is_empty() {
        true => "an entry".to_owned(),
        false => String::from_utf8_lossy(entry.as_os_str().as_bytes()).into_owned(),
    }
}

/// What a file is at this moment.
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
