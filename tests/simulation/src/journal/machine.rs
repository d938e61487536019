//! The state of a simulated disk and of the machine it is in: files, clock, locks, planned faults.

use std::{collections::BTreeMap, io, path::Path};

use gyrus_journal::{FileMetadata, LockMode};
use gyrus_process::ProcessIdentity;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

use super::tree::{Node, Tree};

/// A fault of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The disk is full: a write is cut in half, a new name is refused.
    NoSpace,
    /// The call fails; if it was a sync, what it should have written is dropped, and later syncs
    /// succeed.
    Io,
    /// A write accepts half of its bytes and reports that.
    ShortWrite,
    /// The power is cut: from this call on nothing works any more.
    PowerCut,
}

#[derive(Debug)]
pub(super) struct Machine {
    pub(super) tree: Tree,
    pub(super) clock_us: u64,
    pub(super) calls: u64,
    pub(super) faults: BTreeMap<u64, Fault>,
    /// Number of faults that happened.
    pub(super) fired: u64,
    pub(super) off: bool,
    pub(super) boot: u64,
    /// The locks: file, handle and mode.
    pub(super) locks: Vec<(u64, u64, LockMode)>,
    pub(super) handles: u64,
    pub(super) watches: BTreeMap<u64, watch::Sender<u64>>,
}

pub(super) fn lock(machine: &Mutex<Machine>) -> MutexGuard<'_, Machine> {
    machine.lock()
}

impl Machine {
    pub(super) fn new(tree: Tree, clock_us: u64, boot: u64) -> Self {
        Self {
            tree,
            clock_us,
            calls: 0,
            faults: BTreeMap::new(),
            fired: 0,
            off: false,
            boot,
            locks: Vec::new(),
            handles: 0,
            watches: BTreeMap::new(),
        }
    }

    /// Counts a call and returns its planned fault. The call must fail if this returns an error.
    pub(super) fn call(&mut self) -> io::Result<Option<Fault>> {
        if self.off {
            return Err(io::Error::other("the power is off"));
        }
        self.calls += 1;
        self.clock_us += 100;
        let fault = self.faults.remove(&self.calls);
        self.fired += u64::from(fault.is_some());
        self.off |= fault == Some(Fault::PowerCut);
        Ok(fault)
    }

    /// Counts a call that reads.
    pub(super) fn reading(&mut self) -> io::Result<&mut Tree> {
        match self.call()? {
            Some(Fault::Io | Fault::PowerCut) => Err(io_error()),
            Some(Fault::NoSpace | Fault::ShortWrite) | None => Ok(&mut self.tree),
        }
    }

    /// Counts a call that changes names.
    pub(super) fn naming(&mut self, path: &Path) -> io::Result<&mut Tree> {
        match self.call()? {
            Some(Fault::Io | Fault::PowerCut) => return Err(io_error()),
            Some(Fault::NoSpace) => return Err(io::ErrorKind::StorageFull.into()),
            Some(Fault::ShortWrite) | None => {}
        }
        self.announce(path.parent());
        Ok(&mut self.tree)
    }

    pub(super) fn announce(&self, folder: Option<&Path>) {
        if self.watches.is_empty() {
            return;
        }
        let Some(Ok(folder)) = folder.map(|folder| self.tree.folder(folder)) else {
            return;
        };
        if let Some(changes) = self.watches.get(&folder) {
            changes.send_modify(|count| *count += 1);
        }
    }

    pub(super) fn metadata(&mut self, node: Node) -> FileMetadata {
        match node {
            Node::File(inode) => {
                let contents = self.tree.contents(inode);
                let (len, links) = (contents.bytes.len() as u64, contents.links);
                FileMetadata {
                    inode,
                    len,
                    links,
                    is_folder: false,
                    created_ns: None,
                }
            }
            Node::Folder(inode) => FileMetadata {
                inode,
                len: 0,
                links: 1,
                is_folder: true,
                created_ns: None,
            },
        }
    }

    pub(super) fn process(&self) -> ProcessIdentity {
        let boot_id = format!("simulated boot {:06}", self.boot);
        ProcessIdentity {
            pid: 1000,
            start_time: 1000,
            boot_id,
        }
    }
}

pub(super) fn io_error() -> io::Error {
    io::Error::other("simulated failure of the medium")
}
