//! The emergency stop: while a file named `stopped` exists in the state home, no run does anything.
//!
//! The file is the latch. A stop writes it first and then kills the working processes
//! ([`stop_all`]), so a stop that is itself killed in between leaves nothing half done: every run
//! checks the latch before each action, and a person has to lift it. Only the existence of the file
//! counts; its content is for people. So a latch that cannot be read stops all the same.
//!
//! This module does not decide who may lift it. The folder is hidden from every command and closed
//! to every tool.

mod stopper;

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use gyrus_contract::Principal;
use gyrus_journal::os::watch;
use serde::{Deserialize, Serialize};

use crate::{Ending, clock::now_ms};

pub use stopper::{StillWorking, StopResult, stop_all};

/// The file's name in the state home.
const NAME: &str = "stopped";

/// Maximum number of bytes of a latch that are read.
const READ_LIMIT: u64 = 64 << 10;

/// The latch of a state home.
#[derive(Debug, Clone)]
pub struct Latch {
    path: PathBuf,
}

/// The content of a latch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatchContent {
    /// The person who stopped all runs.
    pub by: Principal,
    /// The time, in milliseconds since 1970, UTC.
    pub since_ms: i64,
    /// The reason, in that person's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The error that all runs are stopped, or that nobody can see whether they are.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("all runs are stopped: {} stands there, or cannot be looked for", path.display())]
pub struct AllStopped {
    pub path: PathBuf,
    /// The content; `None` if it cannot be read.
    pub told: Option<LatchContent>,
    /// The number of the system's error for which the file cannot even be looked for.
    pub refused: Option<i32>,
}

impl From<AllStopped> for Ending {
    fn from(latched: AllStopped) -> Self {
        let somebody = || Principal {
            surface: "emergency stop".to_owned(),
            id: "somebody".to_owned(),
        };
        let (by, reason) = match latched.told {
            Some(told) => (told.by, told.reason),
            None => (somebody(), None),
        };
        Self::Stopped { by, reason }
    }
}

/// The result of setting the latch.
#[derive(Debug)]
pub enum LatchResult {
    /// The latch was set now, with its content.
    Now,
    /// The latch was set now, but its content could not be written: only the stop itself is on
    /// disk.
    WithoutWords(io::Error),
    /// The latch was set already and is unchanged.
    Before(AllStopped),
}

impl Latch {
    /// Returns the latch of the state home `state`.
    pub fn of(state: &Path) -> Self {
        Self {
            path: state.join(NAME),
        }
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Checks that the latch is not set. This is one access to the file system, which takes some
    /// microseconds.
    ///
    /// # Errors
    /// Returns an error when the latch is set, whatever its content, and when that cannot be
    /// determined.
    pub fn check(&self) -> Result<(), AllStopped> {
        match fs::symlink_metadata(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            looked => Err(AllStopped {
                path: self.path.clone(),
                told: self.read().ok(),
                refused: looked.err().and_then(|error| error.raw_os_error()),
            }),
        }
    }

    /// Sets the latch. When this returns, the latch is on disk; working processes are not killed
    /// yet.
    ///
    /// # Errors
    /// Returns an error when not even an empty file can be created. Then the latch is not set.
    pub fn trip(&self, told: &LatchContent) -> io::Result<LatchResult> {
        if let Err(latched) = self.check() {
            // A stop may have been killed before the latch was on disk.
            sync_folder(&self.path)?;
            return Ok(LatchResult::Before(latched));
        }
        match self.write(told) {
            Ok(()) => Ok(LatchResult::Now),
            // A full disk often still has room for a name.
            Err(error) => match OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .open(&self.path)
                .and_then(|_| sync_folder(&self.path))
            {
                Ok(()) => Ok(LatchResult::WithoutWords(error)),
                Err(_) => Err(error),
            },
        }
    }

    /// Lifts the latch, durably; returns `false` if it was not set.
    ///
    /// # Errors
    /// Returns an error when the file cannot be removed. Then all runs stay stopped.
    pub fn lift(&self) -> io::Result<bool> {
        match fs::remove_file(&self.path) {
            Ok(()) => sync_folder(&self.path).map(|()| true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns when the latch is set. A run stops by itself then; one that does not is killed.
    pub(crate) async fn tripped(&self) -> AllStopped {
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        // Where watching is impossible, the check before each intent has to do.
        let Ok(mut changes) = watch::watch(folder) else {
            return std::future::pending().await;
        };
        loop {
            if let Err(latched) = self.check() {
                return latched;
            }
            changes.changed().await;
        }
    }

    fn read(&self) -> io::Result<LatchContent> {
        // Opening must not block, whatever kind of file it is.
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW)
            .open(&self.path)?;
        let mut text = Vec::new();
        file.take(READ_LIMIT).read_to_end(&mut text)?;
        Ok(serde_json::from_slice(&text)?)
    }

    /// Writes the file atomically.
    fn write(&self, told: &LatchContent) -> io::Result<()> {
        let beside = self
            .path
            .with_file_name(format!(".{NAME}-{}", std::process::id()));
        let written = write_beside(&beside, told).and_then(|()| fs::rename(&beside, &self.path));
        if written.is_err() {
            // It is of no use, and nothing reads it.
            let _ = fs::remove_file(&beside);
        }
        written.and_then(|()| sync_folder(&self.path))
    }
}

impl LatchContent {
    /// Creates the content for a stop by `by` at the present time.
    pub fn now(by: Principal, reason: Option<String>) -> Self {
        Self {
            by,
            since_ms: now_ms(),
            reason,
        }
    }
}

fn write_beside(path: &Path, told: &LatchContent) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    let mut line = serde_json::to_vec(told)?;
    line.push(b'\n');
    file.write_all(&line)?;
    file.sync_all()
}

fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path.parent().unwrap_or(Path::new("/")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(reason: Option<&str>) -> LatchContent {
        let by = Principal {
            surface: "test".to_owned(),
            id: "tester".to_owned(),
        };
        LatchContent::now(by, reason.map(str::to_owned))
    }

    #[test]
    fn it_stands_until_it_is_lifted_and_the_first_words_stay() {
        let home = tempfile::tempdir().unwrap();
        let latch = Latch::of(home.path());
        assert_eq!(latch.check(), Ok(()));
        assert!(!latch.lift().unwrap());
        let first = told(Some("it writes to my sister"));
        assert!(matches!(latch.trip(&first).unwrap(), LatchResult::Now));
        let LatchResult::Before(before) = latch.trip(&told(None)).unwrap() else {
            panic!("the second stop took the place of the first");
        };
        assert_eq!(before.told, Some(first));
        assert_eq!(latch.check(), Err(before));
        assert!(latch.lift().unwrap());
        assert_eq!(latch.check(), Ok(()));
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
    }

    #[test]
    fn whatever_stands_there_stops() {
        let home = tempfile::tempdir().unwrap();
        let latch = Latch::of(home.path());
        let pipe = |path: &Path| {
            let mode = rustix::fs::Mode::RUSR;
            rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0)
                .unwrap();
        };
        let link = |path: &Path| std::os::unix::fs::symlink("nowhere", path).unwrap();
        let stands: [&dyn Fn(&Path); 6] = [
            &|path| fs::write(path, "").unwrap(),
            &|path| fs::write(path, "\u{0}garbage").unwrap(),
            &|path| fs::write(path, r#"{"by": 7}"#).unwrap(),
            &|path| fs::write(path, vec![b'['; 1 << 20]).unwrap(),
            &pipe,
            &link,
        ];
        for (case, stand) in stands.iter().enumerate() {
            stand(latch.path());
            let latched = latch.check().unwrap_err();
            assert_eq!(latched.told, None, "{case}");
            assert!(matches!(
                latch.trip(&told(None)).unwrap(),
                LatchResult::Before(_)
            ));
            assert!(latch.lift().unwrap(), "{case}");
        }
        // The state cannot be determined: a file stands in the place of the folder.
        fs::write(home.path().join("file"), "").unwrap();
        assert!(Latch::of(&home.path().join("file")).check().is_err());
    }

    #[test]
    fn without_room_for_words_it_stands_all_the_same() {
        let home = tempfile::tempdir().unwrap();
        let latch = Latch::of(home.path());
        // The temporary file cannot be written: a folder has its name.
        let beside = format!(".{NAME}-{}", std::process::id());
        fs::create_dir(home.path().join(beside)).unwrap();
        assert!(matches!(
            latch.trip(&told(None)).unwrap(),
            LatchResult::WithoutWords(_)
        ));
        assert_eq!(latch.check().unwrap_err().told, None);
        assert!(
            Latch::of(&home.path().join("missing"))
                .trip(&told(None))
                .is_err()
        );
    }
}
