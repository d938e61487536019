//! A disk in memory with planned faults.

use std::{io, path::Path, sync::Arc};

use fastrand::Rng;
use gyrus_journal::{Disk, DiskFile, FileMetadata, FolderWatch, Holder, TimeReading};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

use super::{
    file::SimFile,
    machine::{self, Fault, Machine},
    tree::Tree,
};

/// A disk in memory. Clones are the same disk.
#[derive(Debug, Clone)]
pub struct SimDisk {
    machine: Arc<Mutex<Machine>>,
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
        let machine = Machine::new(tree, clock_us, boot);
        Self {
            machine: Arc::new(Mutex::new(machine)),
        }
    }

    fn machine(&self) -> MutexGuard<'_, Machine> {
        machine::lock(&self.machine)
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

    fn handle(&self, machine: &mut Machine, id: u64, path: &Path) -> Box<dyn DiskFile> {
        machine.handles += 1;
        Box::new(SimFile {
            machine: Arc::clone(&self.machine),
            handle: machine.handles,
            id,
            folder: path.parent().map(Path::to_owned),
        })
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

    fn metadata(&self, path: &Path) -> io::Result<FileMetadata> {
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

    fn watch(&self, folder: &Path) -> io::Result<FolderWatch> {
        let mut machine = self.machine();
        let id = machine.reading()?.folder(folder)?;
        let changes = machine
            .watches
            .entry(id)
            .or_insert_with(|| watch::Sender::new(0));
        Ok(FolderWatch::new(changes.subscribe(), ()))
    }

    fn now(&self) -> TimeReading {
        let mut machine = self.machine();
        machine.clock_us += 100;
        let passed_ms = i64::try_from(machine.clock_us / 1000).unwrap_or(i64::MAX);
        TimeReading {
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

/// Reads a whole file.
pub(super) fn read_whole(file: &dyn DiskFile) -> io::Result<Vec<u8>> {
    let length = usize::try_from(file.metadata()?.len).unwrap_or(usize::MAX);
    let mut bytes = vec![0; length];
    let mut filled = 0;
    while filled < length {
        match file.read_at(&mut bytes[filled..], filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}
