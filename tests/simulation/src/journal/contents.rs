//! The contents of a simulated file, and the effect of a power cut on them.
//!
//! Files are written at their end only. Bytes that were not synced may survive, vanish, be torn at
//! any byte, survive in blocks out of order, or be replaced by zeros or garbage. A sync that fails
//! drops what it should have written, and later ones succeed as if nothing had happened.

use fastrand::Rng;

/// Size in bytes of the blocks that survive or vanish as a whole.
const BLOCK: usize = 512;

/// The contents of a file.
#[derive(Debug, Clone, Default)]
pub(super) struct Contents {
    /// The bytes as they are read now.
    pub(super) bytes: Vec<u8>,
    /// Number of bytes from the start that need no sync any more.
    synced: usize,
    /// Ranges of those bytes that were dropped by a failing sync.
    lost: Vec<(usize, usize)>,
    pub(super) links: u64,
}

impl Contents {
    /// Puts everything on disk.
    pub(super) fn sync(&mut self) {
        self.synced = self.bytes.len();
    }

    /// Drops the unsynced bytes as a failing sync does: nothing is left to be synced, and nothing
    /// was written.
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

    /// Returns the contents after a power cut.
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
