//! A disk in memory with planned faults.

use std::{
    collections::BTreeMap,
    io,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use fastrand::Rng;
use gyrus_process::ProcessIdentity;
use tokio::sync::watch;

use super::{
    file::SimFile,
    tree::{Node, Tree},
};
use crate::{Disk, DiskFile, Holder, LockMode, Metadata, Now, Watch};

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

/// A disk in memory. Clones are the same disk.
#[derive(Debug, Clone)]
pub struct SimDisk {
    machine: Arc<Mutex<Machine>>,
}

#[derive(Debug)]
pub(super) struct Machine {
    pub(super) tree: Tree,
    clock_us: u64,
    calls: u64,
    faults: BTreeMap<u64, Fault>,
    /// Number of faults that happened.
    fired: u64,
    off: bool,
    boot: u64,
    /// The locks: file, handle and mode.
    pub(super) locks: Vec<(u64, u64, LockMode)>,
    handles: u64,
    watches: BTreeMap<u64, watch::Sender<u64>>,
}

impl Default for SimDisk {
    fn default() -> Self {
        Self::new()
    }
}

impl SimDisk {
    /// Creates an empty disk without faults.
    pub fn new() -> Self {
        Self::boot(Tree::new(), 0, 1)
    }

    fn boot(tree: Tree, clock_us: u64, boot: u64) -> Self {
        let machine = Machine {
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
        };
        Self {
            machine: Arc::new(Mutex::new(machine)),
        }
    }

    pub(super) fn machine(&self) -> MutexGuard<'_, Machine> {
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the disk as a power cut at this moment leaves it. Locks and planned faults are gone.
    pub fn crash(&self, seed: u64) -> SimDisk {
        let machine = self.machine();
        let tree = machine.tree.crash(&mut Rng::with_seed(seed));
        Self::boot(tree, machine.clock_us, machine.boot + 1)
    }

    /// Returns the disk as the end of the process at this moment leaves it: nothing is lost, and
    /// what was not synced still is not. Locks and planned faults are gone.
    pub fn kill(&self) -> SimDisk {
        let machine = self.machine();
        Self::boot(machine.tree.clone(), machine.clock_us, machine.boot + 1)
    }

    /// Returns the number of calls so far.
    pub fn calls(&self) -> u64 {
        self.machine().calls
    }

    /// Plans a fault for a call, counted from 1 as [`SimDisk::calls`] does.
    pub fn fail_at(&self, call: u64, fault: Fault) {
        self.machine().faults.insert(call, fault);
    }

    /// Returns the number of faults that have happened.
    pub fn fired(&self) -> u64 {
        self.machine().fired
    }

    /// Removes planned faults that have not happened yet.
    pub fn no_more_faults(&self) {
        self.machine().faults.clear();
    }

    /// Whether the power was cut.
    pub fn is_off(&self) -> bool {
        self.machine().off
    }

    /// Flips one bit of a file, as if the medium had: on disk and in memory.
    pub fn flip(&self, path: &Path, bit: u64) -> io::Result<()> {
        let mut machine = self.machine();
        let id = machine.tree.file(path)?;
        let byte = usize::try_from(bit / 8).unwrap_or(usize::MAX);
        match machine.tree.contents(id).bytes.get_mut(byte) {
            Some(byte) => *byte ^= 1 << (bit % 8),
            None => return Err(io::ErrorKind::UnexpectedEof.into()),
        }
        Ok(())
    }
}

impl Machine {
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
    fn naming(&mut self, path: &Path) -> io::Result<&mut Tree> {
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

    pub(super) fn metadata(&mut self, node: Node) -> Metadata {
        match node {
            Node::File(inode) => {
                let contents = self.tree.contents(inode);
                let (len, links) = (contents.bytes.len() as u64, contents.links);
                Metadata {
                    inode,
                    len,
                    links,
                    is_folder: false,
                }
            }
            Node::Folder(inode) => Metadata {
                inode,
                len: 0,
                links: 1,
                is_folder: true,
            },
        }
    }

    fn process(&self) -> ProcessIdentity {
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

impl SimDisk {
    fn handle(&self, machine: &mut Machine, id: u64, path: &Path) -> Box<dyn DiskFile> {
        machine.handles += 1;
        let folder = path.parent().map(Path::to_owned);
        Box::new(SimFile::new(self.clone(), machine.handles, id, folder))
    }
}

impl Disk for SimDisk {
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let mut machine = self.machine();
        let id = machine.naming(path)?.create(path, false)?;
        Ok(self.handle(&mut machine, id, path))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let mut machine = self.machine();
        let id = machine.reading()?.file(path)?;
        Ok(self.handle(&mut machine, id, path))
    }

    fn open_lock(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let mut machine = self.machine();
        let tree = machine.naming(path)?;
        let id = tree.file(path).or_else(|_| tree.create(path, false))?;
        Ok(self.handle(&mut machine, id, path))
    }

    fn create_folder(&self, path: &Path) -> io::Result<()> {
        self.machine().naming(path)?.create(path, true).map(drop)
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        self.machine().reading()?.sync_folder(path)
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<String>> {
        self.machine().reading()?.names(folder)
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        let mut machine = self.machine();
        let node = machine.reading()?.find(path)?;
        Ok(machine.metadata(node))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut machine = self.machine();
        machine.naming(to)?.rename(from, to)?;
        machine.announce(from.parent());
        Ok(())
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.machine().naming(to)?.link(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let mut machine = self.machine();
        machine.tree.file(path)?;
        machine.naming(path)?.remove(path)
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        let mut machine = self.machine();
        machine.tree.folder(path)?;
        machine.naming(path)?.remove(path)
    }

    fn watch(&self, folder: &Path) -> io::Result<Watch> {
        let mut machine = self.machine();
        let id = machine.reading()?.folder(folder)?;
        let changes = machine
            .watches
            .entry(id)
            .or_insert_with(|| watch::Sender::new(0));
        Ok(Watch::new(changes.subscribe(), ()))
    }

    fn now(&self) -> Now {
        let mut machine = self.machine();
        machine.clock_us += 100;
        let passed_ms = i64::try_from(machine.clock_us / 1000).unwrap_or(i64::MAX);
        Now {
            unix_ms: 1_700_000_000_000 + passed_ms,
            mono_us: machine.clock_us,
        }
    }

    fn holder(&self) -> io::Result<Holder> {
        let since_ms = self.now().unix_ms;
        let process = self.machine().process();
        Ok(Holder {
            process,
            since_ms,
            host: "simulated".to_owned(),
        })
    }

    fn lives(&self, holder: &Holder) -> bool {
        holder.process == self.machine().process()
    }
}
