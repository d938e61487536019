//! The folder of notes: where it is, which notes it has, and reading them.
//!
//! The folder is a person's: it may be edited at any time, by any program. Nothing here follows a
//! symbolic link, and no path leads out of the folder.

use std::{
    collections::BTreeSet,
    fmt,
    fs::{self, DirBuilder},
    io,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{DirBuilderExt as _, MetadataExt as _},
    },
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use gyrus_contract::Digest;
use gyrus_search::{IndexDocument, SourceStamp, name_of};
use gyrus_workspace::{
    Pace, RootError, RootFolder,
    changeset::{ApplyError, HOME},
};
use parking_lot::Mutex;
use rustix::{
    fs::{AtFlags, Dir, FileType, OFlags, Stat, statat},
    io::Errno,
};

use crate::{embedding::Embedder, kept::WarmIndex, note::Note, watch::VaultWatch};

/// File that distinguishes a vault at the default place from another folder of that name.
const MARKER: &str = ".gyrus-vault";

const MARKER_TEXT: &str =
    "gyrus keeps its notes in this folder. Without this file it leaves the folder alone.\n";

/// Maximum bytes of a note that is read or written.
pub const MAX_NOTE_BYTES: u64 = 32 << 20;

/// Number of bytes of a note that are indexed; the rest of a longer one is not found by its words.
const MAX_INDEXED_BYTES: usize = 4 << 20;

/// Maximum bytes of a note's name.
const MAX_NAME_BYTES: usize = 512;

/// Maximum depth of folders that are searched for notes.
const MAX_DEPTH: usize = 32;

/// Maximum number of notes that are listed.
const MAX_NOTES: usize = 1_000_000;

/// Time after a change within which another one may result in the same stamp.
const STAMP_UNCERTAIN: Duration = Duration::from_millis(50);

/// A note cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// The name is not valid for a note.
    #[error("`{name}` cannot be the name of a note: {why}")]
    Name {
        /// The name as given.
        name: String,
        why: &'static str,
    },
    /// There is no note of this name.
    #[error("there is no note `{name}`{}", meant(.like))]
    Missing {
        /// The name as given.
        name: String,
        /// The name of the note that was probably meant.
        like: Option<String>,
    },
    #[error("`{note}` is larger than {} MB, the most that a note may have", MAX_NOTE_BYTES >> 20)]
    TooLarge { note: String },
    /// The default folder exists, but is not marked as a vault.
    #[error(
        "the folder {} exists already and is not a vault of gyrus; name the folder of your notes \
         with GYRUS_VAULT, or with `vault` in the section [memory] of config.toml",
        .0.display()
    )]
    NotAVault(PathBuf),
    /// The note is not as the change expects.
    #[error("{0}")]
    Conflict(String),
    /// The change is not in the log.
    #[error("there is no change {0}; see the list: gyrus memory log")]
    NoChange(u64),
    /// The change would not alter the note.
    #[error("`{note}` is like that already")]
    Unchanged { note: String },
    /// The file system reports an error at a note.
    #[error(transparent)]
    Note(#[from] RootError),
    /// A change of a note failed.
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// The file system reports an error at gyrus's own files about the vault.
    #[error("the state of the memory in {} cannot be used: {source}", folder.display())]
    State {
        folder: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

fn meant(like: &Option<String>) -> String {
    like.as_ref()
        .map(|like| format!("; did you mean `{like}`?"))
        .unwrap_or_default()
}

/// A folder of notes.
#[derive(Clone)]
pub struct Vault {
    folder: PathBuf,
    is_named: bool,
    pub(crate) state: PathBuf,
    pub(crate) pace: Pace<'static>,
    /// Index and watch that the last search left open.
    pub(crate) kept: Arc<Mutex<WarmIndex>>,
    pub(crate) embedder: Option<Arc<dyn Embedder>>,
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vault")
            .field("folder", &self.folder)
            .field("is_named", &self.is_named)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

impl Vault {
    /// Returns the vault in a folder, which need not exist. `is_named` says whether a person named
    /// the folder; else it is the default one, which counts only if gyrus made it. Versions and
    /// index are kept below `state`.
    pub fn at(folder: &Path, is_named: bool, state: &Path) -> Self {
        let key = Digest::of(folder.as_os_str().as_bytes()).to_string();
        let key = &key[key.len().saturating_sub(16)..];
        Self {
            folder: folder.to_owned(),
            is_named,
            state: state.join("memory").join(key),
            pace: &|| Ok(()),
            kept: Arc::default(),
            embedder: None,
        }
    }

    /// Calls `pace` before each change of the disk, for tests of crashes.
    #[must_use]
    pub fn with_pace(self, pace: Pace<'static>) -> Self {
        Self { pace, ..self }
    }

    /// Searches by meaning as well.
    #[must_use]
    pub fn with_embedder(self, embedder: Arc<dyn Embedder>) -> Self {
        Self {
            embedder: Some(embedder),
            ..self
        }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether the folder exists and is a vault.
    pub fn exists(&self) -> bool {
        self.folder.is_dir() && (self.is_named || self.folder.join(MARKER).is_file())
    }

    /// Whether runs are to be offered the memory: there is one, or a person named its place.
    pub fn is_wanted(&self) -> bool {
        self.is_named || self.exists()
    }

    pub(crate) fn make(&self) -> Result<(), VaultError> {
        if self.exists() {
            return Ok(());
        }
        let empty = || {
            let mut entries = fs::read_dir(&self.folder).ok()?;
            Some(entries.next().is_none())
        };
        if self.folder.exists() && !self.is_named && empty() != Some(true) {
            return Err(VaultError::NotAVault(self.folder.clone()));
        }
        let made = (self.pace)()
            .map_err(io::Error::from)
            .and_then(|()| match self.folder.parent() {
                Some(above) => fs::create_dir_all(above),
                None => Ok(()),
            })
            // It is about a person, so only for them.
            .and_then(|()| {
                let mut folder = DirBuilder::new();
                folder.recursive(true).mode(0o700).create(&self.folder)
            })
            .and_then(|()| (self.pace)().map_err(io::Error::from))
            .and_then(|()| fs::write(self.folder.join(MARKER), MARKER_TEXT));
        made.map_err(|source| VaultError::State {
            folder: self.folder.clone(),
            source,
        })
    }

    pub(crate) fn root(&self) -> Result<RootFolder<'static>, VaultError> {
        Ok(RootFolder::with_pace(&self.folder, self.pace)?)
    }

    pub(crate) fn state_error(&self, source: io::Error) -> VaultError {
        VaultError::State {
            folder: self.state.clone(),
            source,
        }
    }

    /// Returns the path of a note by its name: a path, or a link such as `[[name#heading|words]]`.
    ///
    /// # Errors
    /// The name cannot be that of a note.
    pub fn path_of(name: &str) -> Result<String, VaultError> {
        let wrong = |why| {
            Err(VaultError::Name {
                name: gyrus_text::shorten(name, 100).into_owned(),
                why,
            })
        };
        let inner = name.trim();
        let inner = inner.strip_prefix("[[").unwrap_or(inner);
        let inner = inner.strip_suffix("]]").unwrap_or(inner);
        let inner = inner
            .split(['|', '#', '^'])
            .next()
            .unwrap_or_default()
            .trim();
        if inner.is_empty() {
            return wrong("it is empty");
        }
        if inner.len() > MAX_NAME_BYTES || inner.split('/').any(|part| part.len() > 200) {
            return wrong("it is too long");
        }
        if inner.starts_with(['/', '~']) || inner.contains('\\') {
            return wrong("it must be a path below the folder of the notes");
        }
        if inner.chars().any(gyrus_text::is_unseen) || inner.chars().any(char::is_control) {
            return wrong("it contains characters that cannot be seen");
        }
        let hidden = |part: &str| part.is_empty() || part.starts_with('.');
        if inner.split('/').any(hidden) {
            return wrong("no part of it may be empty or begin with a full stop");
        }
        let is_note = Path::new(inner).extension().is_some_and(|end| end == "md");
        Ok(if is_note {
            inner.to_owned()
        } else {
            format!("{inner}.md")
        })
    }

    /// Returns the path of an existing note. A name without a folder is looked for in all folders;
    /// of several the one with the shortest path is meant, as in Obsidian.
    ///
    /// # Errors
    /// The name is wrong, or there is no such note.
    pub fn find(&self, name: &str) -> Result<String, VaultError> {
        let path = Self::path_of(name)?;
        let missing = |like| VaultError::Missing {
            name: name_of(&path).to_owned(),
            like,
        };
        if !self.exists() {
            return Err(missing(None));
        }
        if self.root()?.stat(Path::new(&path))?.is_some_and(is_file) {
            return Ok(path);
        }
        let notes = self.notes(&mut None)?;
        let wanted = name_of(&path).to_lowercase();
        let mut same: Vec<&str> = notes
            .iter()
            .map(|(note, _)| note.as_str())
            .filter(|note| !path.contains('/') && name_of(note).to_lowercase() == wanted)
            .collect();
        same.sort_by_key(|note| (note.matches('/').count(), note.len(), *note));
        match same.first() {
            Some(found) => Ok((*found).to_owned()),
            None => {
                let names = notes.iter().map(|(note, _)| name_of(note));
                let like = gyrus_text::closest(name_of(&path), names).map(str::to_owned);
                Err(missing(like))
            }
        }
    }

    /// Reads a note by its path; `None` if it does not exist.
    ///
    /// # Errors
    /// The note cannot be read, or is too large.
    pub fn bytes(&self, path: &str) -> Result<Option<Vec<u8>>, VaultError> {
        let root = self.root()?;
        match root.stat(Path::new(path))? {
            Some(stat) if u64::try_from(stat.st_size).unwrap_or(0) > MAX_NOTE_BYTES => {
                Err(VaultError::TooLarge {
                    note: path.to_owned(),
                })
            }
            Some(stat) if is_file(stat) => Ok(Some(root.read(Path::new(path))?.0)),
            Some(_) => Err(VaultError::Conflict(format!(
                "`{path}` is not a regular file"
            ))),
            None => Ok(None),
        }
    }

    /// Reads an existing note by its name.
    ///
    /// # Errors
    /// The name is wrong, there is no such note, or it cannot be read.
    pub fn read(&self, name: &str) -> Result<Note, VaultError> {
        let path = self.find(name)?;
        match self.bytes(&path)? {
            Some(content) => Ok(Note::new(&path, &content)),
            None => Err(VaultError::Missing {
                name: name_of(&path).to_owned(),
                like: None,
            }),
        }
    }

    /// Returns the paths of all notes, sorted, with their states. The folders are added to the
    /// watch, which ends if it could miss a change of them.
    pub(crate) fn notes(
        &self,
        watch: &mut Option<VaultWatch>,
    ) -> Result<Vec<(String, SourceStamp)>, VaultError> {
        let mut walk = NoteWalk {
            certain: certain(),
            notes: Vec::new(),
            watch,
        };
        if self.exists() {
            self.walk("", 0, &mut walk)?;
        }
        let mut notes = walk.notes;
        notes.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        Ok(notes)
    }

    fn walk(&self, below: &str, depth: usize, walk: &mut NoteWalk<'_>) -> Result<(), VaultError> {
        let at = |error| RootError {
            path: below.into(),
            error,
        };
        let opened = self.root()?.open_at(
            Path::new(below),
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW,
        );
        let folder = match opened {
            Ok(folder) => folder,
            // It was removed or replaced meanwhile, or is somebody else's.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS) if depth > 0 => {
                return Ok(());
            }
            Err(error) => return Err(at(error).into()),
        };
        // Before it is read, so that nothing happens between the two.
        walk.watch.take_if(|watch| !watch.add(&folder, below));
        for entry in Dir::read_from(&folder).map_err(at)? {
            let entry = entry.map_err(at)?;
            // A name that is not UTF-8 could not be written in a link or a call.
            let Ok(name) = entry.file_name().to_str() else {
                continue;
            };
            if name.starts_with('.') || walk.notes.len() >= MAX_NOTES {
                continue;
            }
            let path = if below.is_empty() {
                name.to_owned()
            } else {
                format!("{below}/{name}")
            };
            let may_be_folder =
                matches!(entry.file_type(), FileType::Directory | FileType::Unknown);
            if may_be_folder && depth < MAX_DEPTH {
                self.walk(&path, depth + 1, walk)?;
            }
            if !name.ends_with(".md") || entry.file_type() == FileType::Directory {
                continue;
            }
            if let Ok(stat) = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)
                && is_file(stat)
            {
                // By its other name it could be changed unseen.
                walk.watch.take_if(|_| stat.st_nlink > 1);
                walk.notes.push((path, stamp(&stat, walk.certain)));
            }
        }
        Ok(())
    }

    /// Returns the states of some notes; `None` stands for one that is gone. Ends the watch if it
    /// could miss a change of them.
    pub(crate) fn states<'p>(
        &self,
        paths: &'p BTreeSet<String>,
        watch: &mut Option<VaultWatch>,
    ) -> Result<Vec<(&'p str, Option<SourceStamp>)>, VaultError> {
        let (root, certain) = (self.root()?, certain());
        let mut states = Vec::with_capacity(paths.len());
        for path in paths {
            let stat = root.stat(Path::new(path))?.filter(|stat| is_file(*stat));
            watch.take_if(|_| stat.is_some_and(|stat| stat.st_nlink > 1));
            states.push((path.as_str(), stat.map(|stat| stamp(&stat, certain))));
        }
        Ok(states)
    }

    /// Returns the folder's device and inode number; `None` if it does not exist.
    pub(crate) fn identity(&self) -> Option<(u64, u64)> {
        let folder = fs::metadata(&self.folder).ok().filter(|_| self.exists())?;
        Some((folder.dev(), folder.ino()))
    }

    pub(crate) fn for_index(&self, path: &str) -> Option<(IndexDocument, SourceStamp)> {
        let certain = certain();
        let root = self.root().ok()?;
        let stat = root.stat(Path::new(path)).ok()??;
        if u64::try_from(stat.st_size).unwrap_or(0) > MAX_NOTE_BYTES || !is_file(stat) {
            // Known by its name alone, so that it is not tried at every use.
            return Some((Note::new(path, b"").document(), stamp(&stat, certain)));
        }
        let (content, stat) = root.read(Path::new(path)).ok()?;
        let content = &content[..content.len().min(MAX_INDEXED_BYTES)];
        let document = Note::new(path, content).document();
        Some((document, stamp(&stat, certain)))
    }

    /// Returns the file that the last applied change replaced.
    pub(crate) fn replaced(&self) -> Result<Vec<u8>, VaultError> {
        Ok(self.root()?.read(&Path::new(HOME).join("0"))?.0)
    }
}

/// Notes that a walk has found so far.
struct NoteWalk<'w> {
    /// Time before which every change has left a distinct stamp.
    certain: i64,
    notes: Vec<(String, SourceStamp)>,
    watch: &'w mut Option<VaultWatch>,
}

/// Returns the time before which every change has left a distinct stamp, in nanoseconds since 1970.
fn certain() -> i64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let certain = now.unwrap_or_default().saturating_sub(STAMP_UNCERTAIN);
    i64::try_from(certain.as_nanos()).unwrap_or(i64::MAX)
}

fn is_file(stat: Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
}

/// Returns the state of a file. One that changed a moment ago could change again without a trace:
/// its inode is left out, so that it differs from every state seen later.
fn stamp(stat: &Stat, certain: i64) -> SourceStamp {
    let nanoseconds = |seconds: i64, rest: i64| {
        let whole = seconds.checked_mul(1_000_000_000);
        whole
            .and_then(|whole| whole.checked_add(rest))
            .unwrap_or(i64::MAX)
    };
    let changed = nanoseconds(
        stat.st_ctime,
        i64::try_from(stat.st_ctime_nsec).unwrap_or(0),
    );
    SourceStamp {
        size: u64::try_from(stat.st_size).unwrap_or(0),
        inode: if changed < certain { stat.st_ino } else { 0 },
        modified: nanoseconds(
            stat.st_mtime,
            i64::try_from(stat.st_mtime_nsec).unwrap_or(0),
        ),
        changed,
    }
}
