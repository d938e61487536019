//! An open file on a simulated disk.

use std::{io, path::PathBuf, sync::Arc};

use gyrus_journal::{DiskFile, FileMetadata, LockMode};
use parking_lot::Mutex;

use super::{
    machine::{self, Fault, Machine, io_error},
    tree::Node,
};

/// A handle. Its locks are released with it.
#[derive(Debug)]
pub(super) struct SimFile {
    pub(super) machine: Arc<Mutex<Machine>>,
    pub(super) handle: u64,
    pub(super) id: u64,
    pub(super) folder: Option<PathBuf>,
}

impl Drop for SimFile {
    fn drop(&mut self) {
        machine::lock(&self.machine)
            .locks
            .retain(|(_, handle, _)| *handle != self.handle);
    }
}

impl DiskFile for SimFile {
    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut machine = machine::lock(&self.machine);
        let fault = machine.call()?;
        let taken = match fault {
            Some(Fault::NoSpace | Fault::ShortWrite) => bytes.len() / 2,
            Some(Fault::Io) => 0,
            Some(Fault::PowerCut) | None => bytes.len(),
        };
        machine
            .tree
            .contents(self.id)
            .bytes
            .extend_from_slice(&bytes[..taken]);
        machine.announce(self.folder.as_deref());
        match fault {
            Some(Fault::NoSpace) => Err(io::ErrorKind::StorageFull.into()),
            Some(Fault::Io | Fault::PowerCut) => Err(io_error()),
            Some(Fault::ShortWrite) if taken == 0 => Err(io::ErrorKind::Interrupted.into()),
            Some(Fault::ShortWrite) | None => Ok(taken),
        }
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut machine = machine::lock(&self.machine);
        let bytes = &machine.reading()?.contents(self.id).bytes;
        let start = usize::try_from(offset)
            .unwrap_or(usize::MAX)
            .min(bytes.len());
        let length = buffer.len().min(bytes.len() - start);
        buffer[..length].copy_from_slice(&bytes[start..start + length]);
        Ok(length)
    }

    fn sync(&self) -> io::Result<()> {
        let mut machine = machine::lock(&self.machine);
        match machine.call()? {
            Some(Fault::Io | Fault::NoSpace) => {
                machine.tree.contents(self.id).lose();
                Err(io_error())
            }
            Some(Fault::PowerCut) => Err(io_error()),
            Some(Fault::ShortWrite) | None => {
                machine.tree.contents(self.id).sync();
                Ok(())
            }
        }
    }

    fn metadata(&self) -> io::Result<FileMetadata> {
        let mut machine = machine::lock(&self.machine);
        machine.reading()?;
        Ok(machine.metadata(Node::File(self.id)))
    }

    fn clear(&self) -> io::Result<()> {
        machine::lock(&self.machine)
            .reading()?
            .contents(self.id)
            .clear();
        Ok(())
    }

    fn try_lock(&self, mode: LockMode) -> io::Result<bool> {
        let mut machine = machine::lock(&self.machine);
        machine.reading()?;
        let free = machine.locks.iter().all(|(id, handle, held)| {
            let both_share = mode == LockMode::Shared && *held == LockMode::Shared;
            *id != self.id || *handle == self.handle || both_share
        });
        if free {
            machine.locks.push((self.id, self.handle, mode));
        }
        Ok(free)
    }
}
