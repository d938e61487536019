//! Walks the files below a folder, in order, without ever leaving it.
//!
//! Each folder is opened by its one name in the folder above, and no link is followed, so a path
//! that is swapped meanwhile does not lead elsewhere; nor is another file system entered. Files
//! that `.gitignore` excludes and names that start with a dot are left out and counted, unless
//! hidden files are wanted; `.git` is always left out.

use std::{
    ffi::{OsStr, OsString},
    fmt::Write as _,
    fs::File,
    io::Read as _,
    os::{fd::OwnedFd, unix::ffi::OsStrExt as _},
    path::{Path, PathBuf},
    vec,
};

use ignore::{
    Match,
    gitignore::{Gitignore, GitignoreBuilder},
};
use rustix::{
    fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, fstat, openat, statat},
    io::Errno,
};

use crate::{background::Deadline, failure::ToolFailure, listing::printable, place::AccessPlace};

/// Maximum number of names visited in one walk.
const MAX_NAMES: usize = 200_000;

/// Maximum depth of nested folders; each is held open.
const MAX_DEPTH: usize = 64;

/// Maximum bytes and lines of one `.gitignore`.
const MAX_IGNORE_BYTES: u64 = 256 * 1024;
const MAX_IGNORE_LINES: usize = 4_000;

pub(crate) struct WalkEntry {
    /// Path below the start.
    pub(crate) path: PathBuf,
    pub(crate) stat: Stat,
    pub(crate) kind: FileType,
    /// Number of folders between the start and the entry.
    pub(crate) depth: usize,
    /// Whether the entry is a folder whose content comes next.
    pub(crate) is_entered: bool,
}

impl WalkEntry {
    pub(crate) fn name(&self) -> &OsStr {
        self.path.file_name().unwrap_or_default()
    }
}

pub(crate) struct WalkExtent {
    /// Whether the walk includes names with a leading dot and files that `.gitignore` excludes.
    pub(crate) hidden: bool,
    /// Number of levels of folders, 1 for the start's own names only; the walk has a bound of its
    /// own.
    pub(crate) levels: usize,
}

impl WalkExtent {
    pub(crate) fn everywhere(hidden: bool) -> Self {
        let levels = usize::MAX;
        Self { hidden, levels }
    }
}

/// A walk below a folder: folders before their contents, names sorted by byte.
pub(crate) struct FolderWalk {
    reach: WalkExtent,
    device: u64,
    /// The `.gitignore` files of folders above, and the start's path below each.
    above: Vec<(Gitignore, PathBuf)>,
    levels: Vec<WalkLevel>,
    entering: Option<(OwnedFd, PathBuf)>,
    looked_at: usize,
    left: LeftOutCounts,
}

struct WalkLevel {
    folder: OwnedFd,
    /// Path below the start.
    path: PathBuf,
    names: vec::IntoIter<OsString>,
    ignore: Option<Gitignore>,
}

/// Numbers of entries that were left out.
#[derive(Default)]
struct LeftOutCounts {
    hidden: usize,
    ignored: usize,
    unreadable: usize,
    other_systems: usize,
    too_deep: usize,
    broke_off: Option<&'static str>,
}

impl FolderWalk {
    /// Starts at a place, which must be a folder; `advice` is for a model that named a file.
    pub(crate) fn below(
        place: &AccessPlace<'_>,
        reach: WalkExtent,
        advice: &str,
    ) -> Result<Self, ToolFailure> {
        let (folder, stat) = place.open()?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
            let words = format!("`{}` is a file{advice}", place.given());
            return Err(ToolFailure::new(words));
        }
        Self::new(place, folder, reach).map_err(|error| place.error(error).into())
    }

    pub(crate) fn new(
        place: &AccessPlace<'_>,
        folder: OwnedFd,
        reach: WalkExtent,
    ) -> Result<Self, Errno> {
        let device = fstat(&folder)?.st_dev;
        let mut above = Vec::new();
        if !reach.hidden {
            for (folder, below) in place.folders_above() {
                above.extend(ignore_file(&folder).map(|ignore| (ignore, below)));
            }
        }
        Ok(Self {
            reach,
            device,
            above,
            levels: Vec::new(),
            entering: Some((folder, PathBuf::new())),
            looked_at: 0,
            left: LeftOutCounts::default(),
        })
    }

    /// Returns the next entry; `None` at the end, or when the walk was cut off.
    pub(crate) fn next(&mut self, deadline: &Deadline) -> Option<WalkEntry> {
        if let Some((folder, path)) = self.entering.take() {
            self.enter(folder, path);
        }
        loop {
            let Some(name) = self.levels.last_mut()?.names.next() else {
                self.levels.pop();
                continue;
            };
            if deadline.is_over() {
                self.left.broke_off = Some("time was up");
                return None;
            }
            self.looked_at += 1;
            if let Some(found) = self.look(&name) {
                return Some(found);
            }
        }
    }

    pub(crate) fn folder(&self) -> Option<&OwnedFd> {
        self.levels.last().map(|level| &level.folder)
    }

    pub(crate) fn open(&self, found: &WalkEntry) -> Result<File, Errno> {
        let folder = self.folder().ok_or(Errno::NOENT)?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(folder, found.name(), flags, Mode::empty())?;
        // Swapped in between for a pipe or a device.
        match FileType::from_raw_mode(fstat(&file)?.st_mode) {
            FileType::RegularFile => Ok(file.into()),
            _ => Err(Errno::INVAL),
        }
    }

    /// Skips the names that follow the last entry in its folder, and returns their number.
    pub(crate) fn skip_folder(&mut self) -> usize {
        self.entering = None;
        match self.levels.last_mut() {
            Some(level) => level.names.by_ref().count(),
            None => 0,
        }
    }

    /// Returns the entry of this name in the current folder, if the walk includes it.
    fn look(&mut self, name: &OsStr) -> Option<WalkEntry> {
        let level = self.levels.last()?;
        let Ok(stat) = statat(&level.folder, name, AtFlags::SYMLINK_NOFOLLOW) else {
            // Deleted since, or out of reach.
            self.left.unreadable += 1;
            return None;
        };
        let kind = FileType::from_raw_mode(stat.st_mode);
        let path = level.path.join(name);
        let is_folder = kind == FileType::Directory;
        if name == ".git" || (!self.reach.hidden && name.as_bytes().starts_with(b".")) {
            self.left.hidden += 1;
            return None;
        }
        if !self.reach.hidden && self.is_ignored(&path, is_folder) {
            self.left.ignored += 1;
            return None;
        }
        let depth = self.levels.len() - 1;
        let mut is_entered = false;
        if is_folder && depth + 1 < self.reach.levels {
            is_entered = self.may_enter(name, &stat, &path);
        }
        Some(WalkEntry {
            path,
            stat,
            kind,
            depth,
            is_entered,
        })
    }

    fn may_enter(&mut self, name: &OsStr, stat: &Stat, path: &Path) -> bool {
        if self.levels.len() >= MAX_DEPTH {
            self.left.too_deep += 1;
            return false;
        }
        if stat.st_dev != self.device {
            self.left.other_systems += 1;
            return false;
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = self
            .folder()
            .map(|folder| openat(folder, name, flags, Mode::empty()));
        match opened {
            Some(Ok(folder)) => {
                self.entering = Some((folder, path.to_owned()));
                true
            }
            _ => {
                self.left.unreadable += 1;
                false
            }
        }
    }

    fn is_ignored(&self, path: &Path, is_folder: bool) -> bool {
        // The nearest file that says anything decides.
        let here = self.levels.iter().rev().filter_map(|level| {
            let below = path.strip_prefix(&level.path).ok()?;
            Some(level.ignore.as_ref()?.matched(below, is_folder))
        });
        let above = self.above.iter().rev();
        let above = above.map(|(ignore, start)| ignore.matched(start.join(path), is_folder));
        let decided = here.chain(above).find(|decision| !decision.is_none());
        matches!(decided, Some(Match::Ignore(_)))
    }

    fn enter(&mut self, folder: OwnedFd, path: PathBuf) {
        let mut names = Vec::new();
        match Dir::read_from(&folder) {
            Ok(entries) => {
                for entry in entries {
                    let Ok(entry) = entry else {
                        self.left.unreadable += 1;
                        break;
                    };
                    let name = entry.file_name().to_bytes();
                    if name == b"." || name == b".." {
                        continue;
                    }
                    if self.looked_at + names.len() >= MAX_NAMES {
                        self.left.broke_off = Some("there are very many names");
                        break;
                    }
                    names.push(OsStr::from_bytes(name).to_owned());
                }
            }
            Err(_) => self.left.unreadable += 1,
        }
        names.sort_unstable();
        let ignore = (!self.reach.hidden).then(|| ignore_file(&folder)).flatten();
        self.levels.push(WalkLevel {
            folder,
            path,
            names: names.into_iter(),
            ignore,
        });
    }

    /// Returns the counts of omitted entries as one note in brackets; empty if there are none.
    pub(crate) fn note(&self) -> String {
        let LeftOutCounts {
            hidden,
            ignored,
            unreadable,
            other_systems,
            too_deep,
            broke_off,
        } = &self.left;
        let mut parts = Vec::new();
        let mut part = |count: usize, words: &str| {
            if count > 0 {
                parts.push(format!("{count} {words}"));
            }
        };
        part(*hidden, "hidden");
        part(*ignored, "by .gitignore");
        part(*unreadable, "not readable");
        part(*other_systems, "on other file systems");
        part(*too_deep, "too deep");
        let mut note = String::new();
        if !parts.is_empty() {
            let _ = write!(note, "[left out: {}", parts.join(", "));
            if !self.reach.hidden && hidden + ignored > 0 {
                note.push_str("; `hidden`: true shows hidden and ignored ones");
            }
            note.push_str("]\n");
        }
        if let Some(why) = broke_off {
            let _ = writeln!(
                note,
                "[broken off after {}, as {why}; take a folder further down]",
                gyrus_text::counted(self.looked_at, "name")
            );
        }
        note
    }
}

/// Returns the folder's `.gitignore`, if it has one and it can be read.
fn ignore_file(folder: &OwnedFd) -> Option<Gitignore> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(folder, ".gitignore", flags, Mode::empty()).ok()?;
    let stat = fstat(&file).ok()?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return None;
    }
    let mut bytes = Vec::new();
    let mut file = File::from(file).take(MAX_IGNORE_BYTES);
    file.read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let mut builder = GitignoreBuilder::new("");
    for line in text.lines().take(MAX_IGNORE_LINES) {
        // An invalid pattern excludes nothing, as in git.
        let _ = builder.add_line(None, line);
    }
    builder.build().ok()
}

/// Formats a path below the place on one line, as `read` accepts it.
pub(crate) fn shown(given: &str, below: &Path) -> String {
    match given.trim_end_matches('/') {
        "" if given.is_empty() => printable(below.as_os_str()),
        "." => printable(below.as_os_str()),
        folder => printable(
            Path::new(if folder.is_empty() { "/" } else { folder })
                .join(below)
                .as_os_str(),
        ),
    }
}
