//! Watches the folders of a vault, so that a search need not look at every note again.
//!
//! The kernel queues what happens in the folders; a search reads the queue and looks at the notes
//! that are named in it. There is no thread, and no moment at which an edit that was made before a
//! search is not yet known to it. Whatever the queue cannot tell (folders that come or go, a queue
//! that overflowed, file systems that other machines write to) ends the watch, and the next search
//! looks at all notes.

use std::{
    collections::{BTreeSet, HashMap},
    mem::MaybeUninit,
    os::fd::{AsRawFd as _, OwnedFd},
};

use rustix::{
    fs::{
        fstatfs,
        inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags},
    },
    io::Errno,
};

/// Maximum number of changed notes that are examined one by one.
const MAX_CHANGED: usize = 4_096;

/// Size of the buffer for events, in bytes.
const BUFFER_BYTES: usize = 64 << 10;

/// Types of file systems whose changes all pass this machine's kernel: ext4, Btrfs, XFS, tmpfs, ZFS,
/// F2FS, bcachefs and overlays, as `statfs(2)` names them.
const LOCAL: [u64; 8] = [
    0xef53,
    0x9123_683e,
    0x5846_5342,
    0x0102_1994,
    0x2fc1_2fc1,
    0xf2f5_2010,
    0xca45_1a4e,
    0x794c_7630,
];

#[derive(Debug)]
pub(crate) struct VaultWatch {
    inotify: OwnedFd,
    /// The folders below the vault, by their watch descriptors.
    folders: HashMap<i32, String>,
}

impl VaultWatch {
    /// Creates a watch; `None` if the system allows no more of them.
    pub(crate) fn new() -> Option<Self> {
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
        Some(Self {
            inotify,
            folders: HashMap::new(),
        })
    }

    /// Adds an open folder. Whether what happens in it will be known.
    pub(crate) fn add(&mut self, folder: &OwnedFd, below: &str) -> bool {
        let is_local = fstatfs(folder).is_ok_and(|of| LOCAL.contains(&(of.f_type as u64)));
        // The path names the folder that was opened, whatever lies at its place by now.
        let path = format!("/proc/self/fd/{}", folder.as_raw_fd());
        let events = WatchFlags::CREATE
            | WatchFlags::MODIFY
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::ATTRIB
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO
            | WatchFlags::DELETE
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF
            | WatchFlags::ONLYDIR;
        match inotify::add_watch(&self.inotify, path, events) {
            // A folder that is mounted at two places has one watch.
            Ok(number) if is_local => self.folders.insert(number, below.to_owned()).is_none(),
            Ok(_) | Err(_) => false,
        }
    }

    /// Returns the notes that may have changed since the last call; `None` if that is unknown.
    pub(crate) fn changed(&self) -> Option<BTreeSet<String>> {
        let mut changed = BTreeSet::new();
        let mut buffer = [MaybeUninit::uninit(); BUFFER_BYTES];
        let mut reader = Reader::new(&self.inotify, &mut buffer);
        loop {
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::WOULDBLOCK) => return Some(changed),
                Err(Errno::INTR) => continue,
                Err(_) => return None,
            };
            // Without a name it is about the folder itself, or the queue has overflowed.
            let below = self.folders.get(&event.wd())?;
            let Some(name) = event.file_name() else {
                if event.events() == ReadFlags::ATTRIB | ReadFlags::ISDIR {
                    continue;
                }
                return None;
            };
            let Ok(name) = name.to_str() else { continue };
            if name.starts_with('.') {
                continue;
            }
            if event.events().contains(ReadFlags::ISDIR) {
                return None;
            }
            if !name.ends_with(".md") {
                continue;
            }
            changed.insert(if below.is_empty() {
                name.to_owned()
            } else {
                format!("{below}/{name}")
            });
            if changed.len() > MAX_CHANGED {
                return None;
            }
        }
    }
}
