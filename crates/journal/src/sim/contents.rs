//! What is in a simulated file, and what a power cut makes of it.
//!
//! Files are written at their end only. What was not synced may survive, vanish, be torn at any
//! byte, survive in blocks out of order, or leave zeros or rubbish in its place. A sync that fails
//! drops what it should have written, and later ones succeed as if nothing had happened.

use fastrand::Rng;

/// What survives or vanishes as a whole, in bytes.
const BLOCK: usize = 512;

/// The contents of a file.
#[derive(Debug, Clone, Default)]
pub(super) struct Contents {
    /// As they are read now.
    pub(super) bytes: Vec<u8>,
    /// As many of them need not be synced any more.
    synced: usize,
    /// Parts of those that were dropped by a failing sync.
    lost: Vec<(usize, usize)>,
    pub(super) links: u64,
}

impl Contents {
    /// Puts everything on disk.
    pub(super) fn sync(&mut self) {
        self.synced = self.bytes.len();
    }

    /// What a sync that fails leaves: nothing more to be synced, and nothing written.
    pub(super) fn lose(&mut self) {
        let end = self.bytes.len();
        if self.synced < end {
            self.lost.push((self.synced, end));
            self.synced = end;
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self {
            links: self.links,
            ..Self::default()
        };
    }

    /// What is there when the power comes back.
    pub(super) fn crash(&self, random: &mut Rng) -> Self {
        let mut bytes = self.bytes.clone();
        for (start, end) in &self.lost {
            bytes[*start..*end].fill(0);
        }
        if let Some((start, end)) = self.lost.last()
            && *end == bytes.len()
            && random.bool()
        {
            bytes.truncate(*start);
        }
        let synced = self.synced.min(bytes.len());
        let pending = bytes.len() - synced;
        let cut = synced + random.usize(..=pending);
        match random.u64(..6) {
            _ if pending == 0 => {}
            0 => {}
            1 => bytes.truncate(synced),
            2 => bytes.truncate(cut),
            3 => bytes[cut..].fill(0),
            4 => {
                let rubbish = random.u64(..).to_le_bytes();
                for (byte, rubbish) in bytes[cut..].iter_mut().zip(rubbish.iter().cycle()) {
                    *byte = *rubbish;
                }
            }
            _ => {
                let mut start = synced;
                while start < bytes.len() {
                    let end = (start / BLOCK + 1).saturating_mul(BLOCK).min(bytes.len());
                    if random.bool() {
                        bytes[start..end].fill(0);
                    }
                    start = end;
                }
                bytes.truncate(if random.bool() { cut } else { usize::MAX });
            }
        }
        Self {
            synced: bytes.len(),
            bytes,
            lost: Vec::new(),
            links: 0,
        }
    }
}
