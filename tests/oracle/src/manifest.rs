//! Manifest of a tree: enough of every entry to see that somebody touched it.

use std::{
    collections::BTreeMap,
    fs, io,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::fs::MetadataExt,
    },
    path::{Path, PathBuf},
    rc::Rc,
};

use rustix::fs::{CWD, Mode, OFlags, openat};

/// More entries than these are not looked at; a line that makes more is told by their number.
const MAX_ENTRIES: usize = 50_000;

/// How a folder is opened to be listed.
const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// One entry. Its time of status change cannot be set by anybody, so that alone tells.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    inode: u64,
    mode: u32,
    owner: (u32, u32),
    size: u64,
    changed: (i64, i64),
}

/// The entries of a tree, by their paths below it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Manifest(BTreeMap<PathBuf, Entry>);

impl Manifest {
    /// Looks at `root` and all below, but for what `skip` names. A missing root is empty.
    pub(crate) fn of(root: &Path, skip: &dyn Fn(&Path) -> bool) -> io::Result<Self> {
        let mut entries = BTreeMap::new();
        // Folders are opened from the folder above: a path may be longer than the kernel takes.
        let mut folders = vec![(None::<Rc<OwnedFd>>, PathBuf::new())];
        while let Some((above, folder)) = folders.pop() {
            let opened = match (&above, folder.file_name()) {
                (Some(above), Some(name)) => openat(above, name, FOLDER, Mode::empty()),
                _ => openat(CWD, root, FOLDER, Mode::empty()),
            };
            // Gone meanwhile, or closed to everybody: its own entry tells.
            let Ok(opened) = opened.map(Rc::new) else {
                continue;
            };
            let listed = fs::read_dir(format!("/proc/self/fd/{}", opened.as_raw_fd()));
            for entry in listed.into_iter().flatten().filter_map(Result::ok) {
                let path = folder.join(entry.file_name());
                if skip(&path) || entries.len() >= MAX_ENTRIES {
                    continue;
                }
                let Ok(data) = fs::symlink_metadata(entry.path()) else {
                    continue;
                };
                if data.is_dir() {
                    folders.push((Some(Rc::clone(&opened)), path.clone()));
                }
                entries.insert(path, of(&data));
            }
        }
        Ok(Self(entries))
    }

    /// The paths at which `self` and `other` differ.
    pub(crate) fn differences(&self, other: &Self) -> Vec<PathBuf> {
        let gone = self.0.keys().filter(|path| !other.0.contains_key(*path));
        let others = other
            .0
            .iter()
            .filter(|(path, entry)| self.0.get(*path) != Some(entry))
            .map(|(path, _)| path);
        let mut paths: Vec<PathBuf> = gone.chain(others).cloned().collect();
        paths.sort();
        paths
    }

    /// Whether there was an entry.
    pub(crate) fn holds(&self, path: &Path) -> bool {
        self.0.contains_key(path)
    }
}

fn of(data: &fs::Metadata) -> Entry {
    Entry {
        inode: data.ino(),
        mode: data.mode(),
        owner: (data.uid(), data.gid()),
        // What it costs to hold names is nobody's change.
        size: if data.is_dir() { 0 } else { data.size() },
        changed: (data.ctime(), data.ctime_nsec()),
    }
}
