//! Runs git for gyrus itself, bounded in time and memory, and independent of all files that a
//! command wrote.
//!
//! Every process gets one of this module's own git directories (the skeleton: no references, no
//! hooks, fixed settings) and only the *objects* of a repository, by `GIT_OBJECT_DIRECTORY`. So
//! neither the configuration of the private copy nor that of the real repository is read, nor the
//! person's own: no filter, hook, pager, signature program, helper or remote can be configured.
//! Only plumbing commands on objects are run: `pack-objects`, `unpack-objects`, `index-pack`,
//! `rev-list`, `log`, `cat-file`.

use std::{
    ffi::OsString,
    fs::{self, File},
    io,
    os::unix::ffi::{OsStrExt as _, OsStringExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, Resource, Rlimit, pidfd_open, prlimit},
};

use super::carried::CarryError;

pub(super) const TIME_LIMIT: Duration = Duration::from_secs(120);
/// Maximum memory of one process, in bytes, without mapped files.
const MEMORY: u64 = 3 << 30;
/// Maximum bytes of a message of git that is passed on.
const MAX_MESSAGE: usize = 600;

/// Settings of every process.
const SETTINGS: [&str; 15] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.pager=cat",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.commitGraph=false",
    "core.multiPackIndex=false",
    "core.bigFileThreshold=64m",
    "core.fsync=committed,loose-object",
    "core.fsyncMethod=batch",
    "gc.auto=0",
    "maintenance.auto=false",
    "pack.threads=1",
    "pack.writeReverseIndex=false",
    "protocol.allow=never",
];

/// A git program and a folder for its own files.
pub(super) struct Git<'a> {
    program: &'a Path,
    folder: PathBuf,
}

impl<'a> Git<'a> {
    /// Creates the skeleton in `folder`, which is the run's own. `program` is an absolute path.
    pub(super) fn new(program: &'a Path, folder: &Path) -> Result<Self, CarryError> {
        if !program.is_absolute() {
            return Err(CarryError::Git {
                path: program.to_owned(),
                source: io::Error::new(io::ErrorKind::InvalidInput, "the path is not absolute"),
            });
        }
        let git = Self {
            program,
            folder: folder.join("git"),
        };
        let make = || {
            fs::create_dir_all(git.folder.join("refs"))?;
            fs::create_dir_all(git.folder.join("objects"))?;
            fs::write(git.folder.join("HEAD"), "ref: refs/heads/none\n")?;
            fs::write(
                git.folder.join("config"),
                "[core]\n\trepositoryformatversion = 0\n\tbare = true\n",
            )
        };
        make().map_err(|error| git.failed(error))?;
        Ok(git)
    }

    fn failed(&self, source: io::Error) -> CarryError {
        let path = self.program.to_owned();
        CarryError::Git { path, source }
    }

    /// Sets the commits at which the history of the real repository ends (a shallow clone).
    pub(super) fn set_shallow(&self, commits: Option<&[u8]>) -> Result<(), CarryError> {
        let path = self.folder.join("shallow");
        let set = match commits {
            Some(commits) => fs::write(path, commits),
            None => match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            },
        };
        set.map_err(|error| self.failed(error))
    }

    /// Returns a command that reads and writes `objects`, and reads `other`.
    pub(super) fn command(
        &self,
        objects: &Path,
        other: Option<&Path>,
        arguments: &[&str],
    ) -> Command {
        let mut command = Command::new(self.program);
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        command
            .args(arguments)
            .current_dir(&self.folder)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", "/nonexistent")
            .env("LC_ALL", "C")
            .env("GIT_DIR", &self.folder)
            .env("GIT_OBJECT_DIRECTORY", objects)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_ATTR_NOSYSTEM", "1")
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_ALLOW_PROTOCOL", "")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if let Some(other) = other {
            command.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", quoted(other));
        }
        command
    }

    /// Creates a file in this module's own folder with the input for the process of that name.
    pub(super) fn input(
        &self,
        name: &str,
        lines: impl IntoIterator<Item = String>,
    ) -> Result<File, CarryError> {
        let path = self.folder.join(format!("{name}.input"));
        let mut text = String::new();
        for line in lines {
            text.push_str(&line);
            text.push('\n');
        }
        let open = || {
            fs::write(&path, text)?;
            File::open(&path)
        };
        open().map_err(|error| self.failed(error))
    }

    /// Starts a command; its messages go to one of this module's own files.
    pub(super) fn start(&self, mut command: Command, name: &str) -> Result<GitProcess, CarryError> {
        let messages = self.folder.join(format!("{name}.messages"));
        let mut start = || {
            let file = File::create(&messages)?;
            let child = command.stderr(file).spawn()?;
            let pid = Pid::from_child(&child);
            // The process may have ended already.
            let limit = Rlimit {
                current: Some(MEMORY),
                maximum: Some(MEMORY),
            };
            let _ = prlimit(Some(pid), Resource::Data, limit);
            Ok(child)
        };
        let child = start().map_err(|error| self.failed(error))?;
        Ok(GitProcess {
            child,
            messages,
            name: name.to_owned(),
        })
    }
}

/// Returns a path in the form of git's lists separated by colons.
fn quoted(path: &Path) -> OsString {
    let mut quoted = vec![b'"'];
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'"' | b'\\' => quoted.extend([b'\\', *byte]),
            b'\n' => quoted.extend(b"\\n"),
            _ => quoted.push(*byte),
        }
    }
    quoted.push(b'"');
    OsString::from_vec(quoted)
}

/// A running process of git. It is killed if it is dropped before its end.
pub(super) struct GitProcess {
    pub(super) child: Child,
    messages: PathBuf,
    name: String,
}

impl GitProcess {
    /// Waits for the process to end, at most until `deadline`.
    ///
    /// # Errors
    /// [`CarryError::Refused`] with git's message if it failed, or took too long.
    pub(super) fn finish(mut self, deadline: Instant) -> Result<(), CarryError> {
        match self.wait(deadline) {
            Ok(Some(status)) if status.success() => Ok(()),
            Ok(Some(_)) => Err(CarryError::Refused {
                reason: self.message(),
            }),
            Ok(None) => Err(too_slow(&self.name)),
            Err(source) => Err(CarryError::Git {
                path: PathBuf::from(&self.name),
                source,
            }),
        }
    }

    fn wait(&mut self, deadline: Instant) -> io::Result<Option<ExitStatus>> {
        if let Some(status) = self.child.try_wait()? {
            return Ok(Some(status));
        }
        let process = pidfd_open(Pid::from_child(&self.child), PidfdFlags::empty())?;
        if !is_ready(&process, PollFlags::IN, deadline)? {
            return Ok(None);
        }
        self.child.wait().map(Some)
    }

    /// Returns git's messages on one line.
    fn message(&self) -> String {
        let text = fs::read(&self.messages).unwrap_or_default();
        let text = String::from_utf8_lossy(&text[..text.len().min(MAX_MESSAGE)]).into_owned();
        let lines: Vec<_> = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .collect();
        let text: String = lines
            .join("; ")
            .chars()
            .filter(|c| !c.is_control())
            .collect();
        let name = &self.name;
        match text.as_str() {
            "" => format!("`git {name}` failed"),
            text => format!("`git {name}` failed: {text}"),
        }
    }
}

impl Drop for GitProcess {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

pub(super) fn too_slow(name: &str) -> CarryError {
    CarryError::Refused {
        reason: format!("`git {name}` took longer than {} s", TIME_LIMIT.as_secs()),
    }
}

/// Waits until a descriptor is ready; returns false at `deadline`.
pub(super) fn is_ready(
    descriptor: &impl std::os::fd::AsFd,
    flags: PollFlags,
    deadline: Instant,
) -> io::Result<bool> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(false);
        }
        let timeout = Timespec {
            tv_sec: left.as_secs().cast_signed(),
            tv_nsec: left.subsec_nanos().into(),
        };
        let mut polled = [PollFd::new(descriptor, flags)];
        match poll(&mut polled, Some(&timeout)) {
            Ok(0) => return Ok(false),
            Ok(_) => return Ok(true),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
