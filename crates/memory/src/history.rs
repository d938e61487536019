//! The log of all changes that gyrus made to the notes, with every version.
//!
//! Contents are files named by their digests. A change is two lines: one before the note is
//! touched, with both versions on disk by then, and one after, which says how it ended. A process
//! that dies between them leaves a change without an end, which the next writer settles by looking
//! at the note.
//!
//! Changes by gyrus itself, two after each run, do not stay for ever: of these only the newest are
//! kept, and each that replaced a version which somebody else wrote.

use std::{
    collections::HashSet,
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use gyrus_contract::{Digest, EffectId, RunId};
use gyrus_workspace::Pace;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

/// Number of changes by gyrus itself that are kept in the history.
const KEPT_OWN: usize = 200;

/// Number of changes by gyrus itself at which the oldest of them are removed.
const MAX_OWN: usize = 2 * KEPT_OWN;

/// Name of the log file.
const LOG: &str = "changes.jsonl";

/// Author of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Author {
    /// A person, by a command.
    Person {
        /// The person's name on this machine.
        name: String,
    },
    Run {
        run: RunId,
        effect: EffectId,
        /// Whether the run had read untrusted text.
        exposed: bool,
    },
    /// gyrus itself, at the end of a run.
    Gyrus { run: RunId },
    /// A program that does not identify itself.
    Unknown,
}

impl Author {
    /// Whether the author's text is untrusted.
    pub fn is_untrusted(&self) -> bool {
        match self {
            Author::Person { .. } | Author::Gyrus { .. } => false,
            Author::Run { exposed, .. } => *exposed,
            Author::Unknown => true,
        }
    }

    pub(crate) fn is_gyrus(&self) -> bool {
        matches!(self, Author::Gyrus { .. })
    }

    pub fn in_words(&self) -> String {
        match self {
            Author::Person { name } => name.clone(),
            Author::Run { run, effect, .. } => format!("run {run}, step {effect}"),
            Author::Gyrus { run } => format!("gyrus, after run {run}"),
            Author::Unknown => "unknown".to_owned(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeEnd {
    /// The note was changed.
    Done,
    /// The note was not changed.
    Dropped,
    /// A crash interrupted the change, and the note is neither as before nor as after it.
    Unknown,
}

/// A change of one note.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VaultChange {
    /// The number of the change, from 1.
    pub id: u64,
    /// The time of the change, in milliseconds since 1970.
    pub at_ms: i64,
    pub author: Author,
    pub why: String,
    /// Path of the note below the vault.
    pub note: String,
    /// The content before; `None` for a new note.
    pub before: Option<Digest>,
    /// The content after; `None` for a deleted note.
    pub after: Option<Digest>,
    /// The end of the change; `None` while it is in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<ChangeEnd>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum HistoryLine {
    Begun(VaultChange),
    Ended { id: u64, end: ChangeEnd },
}

pub(crate) struct VaultHistory {
    folder: PathBuf,
    log: File,
    pace: Pace<'static>,
    changes: Vec<VaultChange>,
}

impl VaultHistory {
    /// Opens the log for writing, and waits until no other process writes.
    pub(crate) fn hold(folder: &Path, pace: Pace<'static>) -> io::Result<Self> {
        pace()?;
        fs::create_dir_all(folder.join("contents"))?;
        let mut history = Self {
            folder: folder.to_owned(),
            changes: Vec::new(),
            log: hold_log(&folder.join(LOG))?,
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
        match fs::read(folder.join(LOG)) {
            Ok(text) => Ok(parse(&text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn changes(&self) -> &[VaultChange] {
        &self.changes
    }

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

    /// Records a change before it is made.
    pub(crate) fn begin(&mut self, change: VaultChange) -> io::Result<()> {
        self.append(&HistoryLine::Begun(change.clone()))?;
        self.changes.push(change);
        Ok(())
    }

    pub(crate) fn end(&mut self, end: ChangeEnd) -> io::Result<()> {
        let Some(last) = self.changes.last() else {
            return Ok(());
        };
        self.append(&HistoryLine::Ended { id: last.id, end })?;
        if let Some(last) = self.changes.last_mut() {
            last.end = Some(end);
        }
        Ok(())
    }

    fn append(&mut self, line: &HistoryLine) -> io::Result<()> {
        let text = as_text(line)?;
        (self.pace)()?;
        self.log.write_all(text.as_bytes())?;
        (self.pace)()?;
        self.log.sync_all()
    }

    /// Removes the oldest changes by gyrus itself if there are many, and versions that only they
    /// refer to. All changes have ended.
    pub(crate) fn forget_own(&mut self) -> io::Result<()> {
        let is_own = |change: &&VaultChange| change.author.is_gyrus();
        let own = self.changes.iter().filter(is_own).count();
        if own <= MAX_OWN {
            return Ok(());
        }
        let own_changes = self.changes.iter().filter(is_own);
        let written: HashSet<_> = own_changes.filter_map(|change| change.after).collect();
        let mut surplus = own - KEPT_OWN;
        self.changes.retain(|change| {
            if !change.author.is_gyrus() || surplus == 0 {
                return true;
            }
            surplus -= 1;
            change
                .before
                .is_some_and(|before| !written.contains(&before))
        });
        self.rewrite()?;
        self.sweep()
    }

    /// Replaces the log by one with the known changes, and keeps the new one open.
    fn rewrite(&mut self) -> io::Result<()> {
        let mut text = String::new();
        for change in &self.changes {
            text.push_str(&as_text(&HistoryLine::Begun(change.clone()))?);
        }
        let (path, draft) = (self.folder.join(LOG), self.folder.join("draft"));
        (self.pace)()?;
        fs::write(&draft, text)?;
        let log = OpenOptions::new().read(true).append(true).open(&draft)?;
        log.sync_all()?;
        flock(&log, FlockOperation::LockExclusive)?;
        (self.pace)()?;
        fs::rename(&draft, &path)?;
        File::open(&self.folder)?.sync_all()?;
        self.log = log;
        Ok(())
    }

    /// Removes the versions that no change knows.
    fn sweep(&self) -> io::Result<()> {
        let versions = |change: &VaultChange| [change.before, change.after];
        let known: HashSet<_> = self.changes.iter().flat_map(versions).flatten().collect();
        let known: HashSet<_> = known.iter().map(Digest::to_string).collect();
        for entry in fs::read_dir(self.folder.join("contents"))? {
            let entry = entry?;
            let is_known = entry
                .file_name()
                .to_str()
                .is_some_and(|name| known.contains(name));
            if !is_known {
                (self.pace)()?;
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }
}

/// Opens the log and waits for its lock. Another process may have put a new log into its place
/// meanwhile.
fn hold_log(path: &Path) -> io::Result<File> {
    loop {
        let log = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(path)?;
        flock(&log, FlockOperation::LockExclusive)?;
        let (held, present) = (log.metadata()?, fs::metadata(path));
        match present {
            Ok(present) if (held.dev(), held.ino()) == (present.dev(), present.ino()) => {
                return Ok(log);
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
}

fn as_text(line: &HistoryLine) -> io::Result<String> {
    let mut text = serde_json::to_string(line)?;
    text.push('\n');
    Ok(text)
}

fn content_path(folder: &Path, digest: &Digest) -> PathBuf {
    folder.join("contents").join(digest.to_string())
}

fn parse(text: &[u8]) -> Vec<VaultChange> {
    let mut changes: Vec<VaultChange> = Vec::new();
    for line in text.split(|byte| *byte == b'\n') {
        match serde_json::from_slice(line) {
            Ok(HistoryLine::Begun(change)) => changes.push(change),
            Ok(HistoryLine::Ended { id, end }) => {
                if let Some(change) = changes.iter_mut().rev().find(|change| change.id == id) {
                    change.end = Some(end);
                }
            }
            Err(_) => {}
        }
    }
    changes
}
