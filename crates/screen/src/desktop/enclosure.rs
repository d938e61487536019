//! The place in which a nested desktop and its programs run: a folder of its own, and a way to run
//! one command, which may be confined.
//!
//! Confined programs see the folder as `/tmp`. What they leave there is theirs, so this process
//! never follows a link in it.

use std::{
    io,
    os::fd::{AsRawFd as _, OwnedFd},
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};

use crate::{RunCommand, TemporaryFolder};

/// The path of the folder as confined programs see it.
const SEEN_AS: &str = "/tmp";

/// Place in which a nested desktop and its programs run.
pub struct Enclosure {
    run: RunCommand,
    /// The folder of the desktop, outside.
    folder: PathBuf,
    /// The folder that programs begin in, if they are confined.
    workspace: Option<PathBuf>,
    /// Removed when the desktop is over.
    _held: TemporaryFolder,
}

/// Function that makes the place of a desktop. The error is the reason in words.
pub type MakeEnclosure = Arc<dyn Fn() -> Result<Enclosure, String> + Send + Sync>;

/// A socket in an enclosure, which exists until this value is dropped.
pub(super) struct EnclosureSocket {
    /// Path at which this process connects to the socket.
    pub(super) path: PathBuf,
    _opened: Option<OwnedFd>,
}

impl Enclosure {
    /// Creates an enclosure whose programs have the rights of this process.
    ///
    /// # Errors
    /// Its folder cannot be made.
    pub fn open(run: RunCommand) -> io::Result<Self> {
        let held = TemporaryFolder::of_desktop()?;
        Ok(Self {
            run,
            folder: held.path().to_owned(),
            workspace: None,
            _held: held,
        })
    }

    /// Creates an enclosure whose programs are confined by `run`, start in `workspace`, and see the
    /// folder `tmp` in `held` as `/tmp`.
    pub fn confined(run: RunCommand, workspace: PathBuf, held: TemporaryFolder) -> Self {
        Self {
            run,
            folder: held.path().join("tmp"),
            workspace: Some(workspace),
            _held: held,
        }
    }

    /// Returns a function that makes enclosures as [`Self::open`] does.
    pub fn opener(run: RunCommand) -> MakeEnclosure {
        Arc::new(move || {
            let opened = Self::open(run.clone());
            opened.map_err(|error| format!("the folder of a desktop cannot be made: {error}"))
        })
    }

    pub(super) fn run(&self) -> &RunCommand {
        &self.run
    }

    /// Whether the enclosure confines its programs.
    pub(super) fn is_confined(&self) -> bool {
        self.workspace.is_some()
    }

    /// Returns the path of an entry of the folder.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Returns the path of an entry of the folder as programs see it.
    pub(super) fn inner_path(&self, name: &str) -> String {
        let folder = if self.is_confined() {
            Path::new(SEEN_AS)
        } else {
            &self.folder
        };
        folder.join(name).to_string_lossy().into_owned()
    }

    /// Returns the folder that confined programs work in.
    pub(super) fn workspace(&self) -> Option<&Path> {
        self.workspace.as_deref()
    }

    /// Returns the folder that programs begin in.
    pub(super) fn begins_in(&self) -> PathBuf {
        let home = || PathBuf::from(self.inner_path("home"));
        self.workspace.clone().unwrap_or_else(home)
    }

    /// Finds the socket that programs see at `inner`, an absolute path.
    pub(super) fn socket(&self, inner: &Path) -> io::Result<EnclosureSocket> {
        if !self.is_confined() {
            return Ok(EnclosureSocket {
                path: inner.to_owned(),
                _opened: None,
            });
        }
        let below = inner.strip_prefix(SEEN_AS).map_err(io::Error::other)?;
        let folder = openat2(
            CWD,
            &self.folder,
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
            ResolveFlags::empty(),
        )?;
        let opened = openat2(
            &folder,
            below,
            OFlags::PATH | OFlags::CLOEXEC,
            Mode::empty(),
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS,
        )?;
        Ok(EnclosureSocket {
            path: PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd())),
            _opened: Some(opened),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::{fs::symlink, net::UnixListener};

    use super::*;

    #[test]
    fn a_link_in_a_confined_folder_leads_nowhere() {
        let outside = tempfile::tempdir().unwrap();
        let held = TemporaryFolder::of_desktop().unwrap();
        let temporary = held.path().join("tmp");
        std::fs::create_dir(&temporary).unwrap();
        let _one = UnixListener::bind(outside.path().join("bus")).unwrap();
        let _other = UnixListener::bind(temporary.join("bus")).unwrap();
        symlink(outside.path().join("bus"), temporary.join("link")).unwrap();
        symlink(outside.path(), temporary.join("folder")).unwrap();
        let run: RunCommand = Arc::new(|_| unreachable!());
        let enclosure = Enclosure::confined(run, PathBuf::from("/"), held);
        let connects = |inner: &str| {
            let socket = enclosure.socket(Path::new(inner))?;
            std::os::unix::net::UnixStream::connect(&socket.path).map(drop)
        };
        connects("/tmp/bus").unwrap();
        let outer = outside.path().join("bus");
        for inner in [
            "/tmp/link",
            "/tmp/folder/bus",
            "/tmp/../bus",
            "/bus",
            outer.to_str().unwrap(),
        ] {
            assert!(connects(inner).is_err(), "{inner}");
        }
    }
}
