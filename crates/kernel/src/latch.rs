//! The emergency stop: while a file named `stopped` stands in the state home, no run does anything.
//!
//! The file is the latch. Whoever stops writes it first and then ends what is at work
//! ([`stop_all`]), so a stopper that is killed in between leaves nothing half done: every run looks
//! at the latch before each thing that it would do, and a person has to lift it. That anything
//! stands there is what counts; its content is only for people. So a latch that nobody can read
//! stops as well as any.
//!
//! Not here: who may lift it. The folder is hidden from every command and closed to every tool.

mod stopper;

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    time::Duration,
};

use gyrus_contract::Principal;
use gyrus_journal::os::watch;
use serde::{Deserialize, Serialize};

use crate::core::now_ms;

pub use stopper::{Left, Stopped, stop_all};

/// The file's name in the state home.
const NAME: &str = "stopped";

/// Most bytes of it that are read.
const READ_LIMIT: u64 = 64 << 10;

/// How long a run that sees the latch waits to be ended before it stops by itself: it may belong
/// to a user whom the stopper may not kill.
const GRACE: Duration = Duration::from_secs(2);

/// Where the latch of a state home is.
#[derive(Debug, Clone)]
pub struct Latch {
    path: PathBuf,
}

/// What a latch says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// Who stopped everything.
    pub by: Principal,
    /// When, in milliseconds since 1970, UTC.
    pub since_ms: i64,
    /// Why, in that person's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// All runs are stopped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("all runs are stopped: {} stands there", path.display())]
pub struct Latched {
    /// The latch.
    pub path: PathBuf,
    /// Who, when and why; `None` if that cannot be read.
    pub told: Option<Told>,
}

impl Latched {
    /// Who stopped everything, for the journal.
    pub(crate) fn by(self) -> Principal {
        self.told.map_or_else(
            || Principal {
                surface: "emergency stop".to_owned(),
                id: "somebody".to_owned(),
            },
            |told| told.by,
        )
    }
}

/// How the latch came to stand.
#[derive(Debug)]
pub enum Tripped {
    /// Now, with who and why.
    Now,
    /// Now, but the words could not be written: only that everything is stopped is on disk.
    WithoutWords(io::Error),
    /// It stood already and stays as it was.
    Before(Latched),
}

impl Latch {
    /// The latch of the state home `state`.
    pub fn of(state: &Path) -> Self {
        Self {
            path: state.join(NAME),
        }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Says whether anything may be done: one look at the file system, some microseconds.
    ///
    /// # Errors
    /// When the latch stands, whatever it says, and when nobody can tell whether it does.
    pub fn check(&self) -> Result<(), Latched> {
        match fs::symlink_metadata(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            _ => Err(Latched {
                path: self.path.clone(),
                told: self.read().ok(),
            }),
        }
    }

    /// Stops everything from here on. When this returns, the latch is on disk; what is at work is
    /// not ended yet.
    ///
    /// # Errors
    /// When not even an empty file can be made. Then nothing is latched.
    pub fn trip(&self, told: &Told) -> io::Result<Tripped> {
        if let Err(latched) = self.check() {
            // A stopper may have been killed before it was on disk.
            sync_folder(&self.path)?;
            return Ok(Tripped::Before(latched));
        }
        match self.write(told) {
            Ok(()) => Ok(Tripped::Now),
            // A full disk often still has room for a name.
            Err(error) => match OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .open(&self.path)
                .and_then(|_| sync_folder(&self.path))
            {
                Ok(()) => Ok(Tripped::WithoutWords(error)),
                Err(_) => Err(error),
            },
        }
    }

    /// Lets runs go on; `false` if they could already. When this returns, that is on disk.
    ///
    /// # Errors
    /// When the file cannot be removed. Then everything stays stopped.
    pub fn lift(&self) -> io::Result<bool> {
        match fs::remove_file(&self.path) {
            Ok(()) => sync_folder(&self.path).map(|()| true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns when the latch has stood for so long that whoever is to be killed is dead.
    pub(crate) async fn outlived(&self) -> Latched {
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        // Where nothing can be watched, the look before each intent has to do.
        let Ok(mut changes) = watch::watch(folder) else {
            return std::future::pending().await;
        };
        loop {
            if self.check().is_err() {
                tokio::time::sleep(GRACE).await;
                if let Err(latched) = self.check() {
                    return latched;
                }
            }
            changes.changed().await;
        }
    }

    fn read(&self) -> io::Result<Told> {
        // Whatever stands there, reading it must not wait.
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW)
            .open(&self.path)?;
        let mut text = Vec::new();
        file.take(READ_LIMIT).read_to_end(&mut text)?;
        Ok(serde_json::from_slice(&text)?)
    }

    /// Whole or not at all.
    fn write(&self, told: &Told) -> io::Result<()> {
        let beside = self
            .path
            .with_file_name(format!(".{NAME}-{}", std::process::id()));
        let written = write_beside(&beside, told).and_then(|()| fs::rename(&beside, &self.path));
        if written.is_err() {
            // It is of no use, and nobody looks at it.
            let _ = fs::remove_file(&beside);
        }
        written.and_then(|()| sync_folder(&self.path))
    }
}

impl Told {
    /// That `by` stops everything now.
    pub fn now(by: Principal, reason: Option<String>) -> Self {
        Self {
            by,
            since_ms: now_ms(),
            reason,
        }
    }
}

fn write_beside(path: &Path, told: &Told) -> io::Result<()> {
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

    fn told(reason: Option<&str>) -> Told {
        let by = Principal {
            surface: "test".to_owned(),
            id: "tester".to_owned(),
        };
        Told::now(by, reason.map(str::to_owned))
    }

    #[test]
    fn it_stands_until_it_is_lifted_and_the_first_words_stay() {
        let home = tempfile::tempdir().unwrap();
        let latch = Latch::of(home.path());
        assert_eq!(latch.check(), Ok(()));
        assert!(!latch.lift().unwrap());
        let first = told(Some("it writes to my sister"));
        assert!(matches!(latch.trip(&first).unwrap(), Tripped::Now));
        let Tripped::Before(before) = latch.trip(&told(None)).unwrap() else {
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
                Tripped::Before(_)
            ));
            assert!(latch.lift().unwrap(), "{case}");
        }
        // Nobody can tell: a file stands where the folder should be.
        fs::write(home.path().join("file"), "").unwrap();
        assert!(Latch::of(&home.path().join("file")).check().is_err());
    }

    #[test]
    fn without_room_for_words_it_stands_all_the_same() {
        let home = tempfile::tempdir().unwrap();
        let latch = Latch::of(home.path());
        // What would be written beside it cannot be: a folder has its name.
        let beside = format!(".{NAME}-{}", std::process::id());
        fs::create_dir(home.path().join(beside)).unwrap();
        assert!(matches!(
            latch.trip(&told(None)).unwrap(),
            Tripped::WithoutWords(_)
        ));
        assert_eq!(latch.check().unwrap_err().told, None);
        assert!(
            Latch::of(&home.path().join("missing"))
                .trip(&told(None))
                .is_err()
        );
    }
}
