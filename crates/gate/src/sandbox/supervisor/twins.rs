//! Sockets that the supervisor has made for a command, where a filter around both keeps it from
//! taking them from the command when they are needed.
//!
//! What a thread calls by a number is known by the number of the file behind it. A twin is released
//! once its socket is connected or listens: else whoever is at the other end would not see it
//! closed.

use std::{collections::VecDeque, os::fd::OwnedFd};

use parking_lot::Mutex;
use rustix::{fs::fstat, io::Errno};

/// Maximum number of kept twins; the oldest is dropped first.
const TWINS: usize = 256;

/// Twins by the inode numbers of their files.
#[derive(Debug, Default)]
pub(super) struct Twins(Mutex<VecDeque<(u64, OwnedFd)>>);

impl Twins {
    pub(super) fn keep(&self, socket: OwnedFd) -> Result<(), Errno> {
        let number = fstat(&socket)?.st_ino;
        let mut twins = self.0.lock();
        if twins.len() >= TWINS {
            twins.pop_front();
        }
        twins.push_back((number, socket));
        Ok(())
    }

    pub(super) fn take(&self, number: u64) -> Option<OwnedFd> {
        let mut twins = self.0.lock();
        let at = twins.iter().position(|(known, _)| *known == number)?;
        twins.remove(at).map(|(_, socket)| socket)
    }
}
