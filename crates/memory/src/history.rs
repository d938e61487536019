//! The log of all changes that gyrus made to the notes, with every version.
//!
//! Contents are files named by their digests. A change is two lines: one before the note is
//! touched, with both versions on disk by then, and one after, which says how it ended. A process
//! that dies between them leaves a change without an end, which the next writer settles by looking
//! at the note.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
};

use gyrus_contract::{Digest, EffectId, RunId};
use gyrus_workspace::Pace;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

/// Author of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Author {
    /// A person, by a command.
    Person {
        /// Their name on this machine.
        name: String,
    },
    /// A run.
    Run {
        /// The run.
        run: RunId,
        /// The call.
        effect: EffectId,
        /// Whether it had read untrusted text.
        exposed: bool,
    },
    /// gyrus itself, at the end of a run.
    Gyrus {
        /// The run.
        run: RunId,
    },
    /// A program that says no more of itself.
    Unknown,
}

impl Author {
    /// Whether what it writes is untrusted.
    pub fn is_untrusted(&self) -> bool {
        match self {
            Author::Person { .. } | Author::Gyrus { .. } => false,
            Author::Run { exposed, .. } => *exposed,
            Author::Unknown => true,
        }
    }

    /// Returns it in words.
    pub fn in_words(&self) -> String {
        match self {
            Author::Person { name } => name.clone(),
            Author::Run { run, effect, .. } => format!("run {run}, step {effect}"),
            Author::Gyrus { run } => format!("gyrus, after run {run}"),
            Author::Unknown => "unknown".to_owned(),
        }
    }
}

/// End of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeEnd {
    /// The note was changed.
    Done,
    /// The note stayed as it was.
    Dropped,
    /// A crash cut it off, and the note is neither as before nor as after it.
    Unknown,
}

/// A change of one note.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VaultChange {
    /// Its number, from 1.
    pub id: u64,
    /// Its time, in milliseconds since 1970.
    pub at_ms: i64,
    /// Its author.
    pub author: Author,
    /// The reason.
    pub why: String,
    /// Path of the note below the vault.
    pub note: String,
    /// The content before; `None` if there was no note.
    pub before: Option<Digest>,
    /// The content after; `None` if the note was deleted.
    pub after: Option<Digest>,
    /// Its end; `None` while it is being made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<ChangeEnd>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Begun(VaultChange),
    Ended { id: u64, end: ChangeEnd },
}

/// The log of a vault, held by one writer.
pub(crate) struct History {
    folder: PathBuf,
    log: File,
    pace: Pace<'static>,
    changes: Vec<VaultChange>,
}

impl History {
    /// Opens the log for writing, and waits until nobody else does.
    pub(crate) fn hold(folder: &Path, pace: Pace<'static>) -> io::Result<Self> {
        pace()?;
        fs::create_dir_all(folder.join("contents"))?;
        let log = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(folder.join("changes.jsonl"))?;
        flock(&log, FlockOperation::LockExclusive)?;
        let mut history = Self {
            folder: folder.to_owned(),
            changes: Vec::new(),
            log,
            pace,
        };
        let mut text = Vec::new();
        history.log.seek(SeekFrom::Start(0))?;
        history.log.read_to_end(&mut text)?;
        if text.last().is_some_and(|last| *last != b'\n') {
            // The line that a crash cut off is no change: nothing followed it.
            (history.pace)()?;
            history.log.write_all(b"\n")?;
        }
        history.changes = parse(&text);
        Ok(history)
    }

    /// Reads the changes, oldest first.
    pub(crate) fn read(folder: &Path) -> io::Result<Vec<VaultChange>> {
        match fs::read(folder.join("changes.jsonl")) {
            Ok(text) => Ok(parse(&text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn changes(&self) -> &[VaultChange] {
        &self.changes
    }

    /// Returns a version by its digest.
    pub(crate) fn content(folder: &Path, digest: &Digest) -> io::Result<Vec<u8>> {
        let content = fs::read(content_path(folder, digest))?;
        if Digest::of(&content) == *digest {
            Ok(content)
        } else {
            Err(io::Error::other(format!("the version {digest} is damaged")))
        }
    }

    /// Stores a version, and waits until it is on disk.
    pub(crate) fn store(&self, content: &[u8]) -> io::Result<Digest> {
        let digest = Digest::of(content);
        if Self::content(&self.folder, &digest).is_ok() {
            return Ok(digest);
        }
        let path = content_path(&self.folder, &digest);
        let draft = self.folder.join("draft");
        (self.pace)()?;
        let mut file = File::create(&draft)?;
        (self.pace)()?;
        file.write_all(content)?;
        file.sync_all()?;
        (self.pace)()?;
        fs::rename(&draft, &path)?;
        File::open(self.folder.join("contents"))?.sync_all()?;
        Ok(digest)
    }

    /// Records a change that is about to be made.
    pub(crate) fn begin(&mut self, change: VaultChange) -> io::Result<()> {
        self.append(&Line::Begun(change.clone()))?;
        self.changes.push(change);
        Ok(())
    }

    /// Records how the newest change ended.
    pub(crate) fn end(&mut self, end: ChangeEnd) -> io::Result<()> {
        let Some(last) = self.changes.last() else {
            return Ok(());
        };
        self.append(&Line::Ended { id: last.id, end })?;
        if let Some(last) = self.changes.last_mut() {
            last.end = Some(end);
        }
        Ok(())
    }

    fn append(&mut self, line: &Line) -> io::Result<()> {
        let mut text = serde_json::to_string(line)?;
        text.push('\n');
        (self.pace)()?;
        self.log.write_all(text.as_bytes())?;
        (self.pace)()?;
        self.log.sync_all()
    }
}

fn content_path(folder: &Path, digest: &Digest) -> PathBuf {
    folder.join("contents").join(digest.to_string())
}

fn parse(text: &[u8]) -> Vec<VaultChange> {
    let mut changes: Vec<VaultChange> = Vec::new();
    for line in text.split(|byte| *byte == b'\n') {
        match serde_json::from_slice(line) {
            Ok(Line::Begun(change)) => changes.push(change),
            Ok(Line::Ended { id, end }) => {
                if let Some(change) = changes.iter_mut().rev().find(|change| change.id == id) {
                    change.end = Some(end);
                }
            }
            Err(_) => {}
        }
    }
    changes
}
