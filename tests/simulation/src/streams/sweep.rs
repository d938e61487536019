//! Streams, broken one after the other until enough bytes were read.

use std::{fmt, time::Instant};

use fastrand::Rng;
use gyrus_models::{SPECIMENS, Specimen};

use super::{mutate::mutate, oracle::judge};

/// Maximum number of attempts to shrink a failing stream.
const MAX_SHRINKS: usize = 4_000;

/// Results of a sweep.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StreamSweep {
    /// Bytes of the streams that were read.
    pub bytes: u64,
    /// Number of streams.
    pub streams: u64,
    /// Number of streams that were replies nevertheless.
    pub accepted: u64,
    /// Number of streams that were not.
    pub refused: u64,
    /// Duration in seconds.
    pub seconds: f64,
}

/// Formats the results in one line.
impl fmt::Display for StreamSweep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = self.bytes as f64 / 1e6 / self.seconds.max(1e-9);
        write!(
            f,
            "{} bytes in {} streams, {} accepted, {} refused, {rate:.1} MB/s",
            self.bytes, self.streams, self.accepted, self.refused
        )
    }
}

/// A stream that a reader handled wrongly.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{protocol}, seed {seed}: {why}\nthe smallest such stream found:\n{}", case.escape_ascii())]
pub struct MisreadStream {
    /// The protocol.
    pub protocol: &'static str,
    /// Seed from which [`sweep`] finds it again at once.
    pub seed: u64,
    /// Description of the violated property.
    pub why: String,
    /// The stream.
    pub case: Vec<u8>,
}

/// Mutates streams until `bytes` were read, and checks the results of the readers. The streams
/// follow from `seed`: the n-th from the seed `seed + n`.
///
/// # Errors
/// The first failure, made small.
pub fn sweep(bytes: u64, seed: u64) -> Result<StreamSweep, MisreadStream> {
    let start = Instant::now();
    let mut done = StreamSweep {
        bytes: 0,
        streams: 0,
        accepted: 0,
        refused: 0,
        seconds: 0.0,
    };
    while done.bytes < bytes {
        let seed = seed.wrapping_add(done.streams);
        let mut random = Rng::with_seed(seed);
        let specimen = &SPECIMENS[random.usize(..SPECIMENS.len())];
        let other = &SPECIMENS[random.usize(..SPECIMENS.len())];
        let mut stream = specimen.stream.as_bytes().to_vec();
        mutate(&mut stream, other.stream.as_bytes(), &mut random);
        let pieces: Vec<_> = (0..8).map(|_| 1 + random.usize(..400)).collect();
        match judge(specimen, &stream, &pieces) {
            Ok(true) => done.accepted += 1,
            Ok(false) => done.refused += 1,
            Err(why) => return Err(shrink(specimen, seed, why, stream, &pieces)),
        }
        done.streams += 1;
        done.bytes += stream.len() as u64;
    }
    done.seconds = start.elapsed().as_secs_f64();
    Ok(done)
}

/// Removes everything that the failure does not need.
fn shrink(
    specimen: &Specimen,
    seed: u64,
    mut why: String,
    mut case: Vec<u8>,
    pieces: &[usize],
) -> MisreadStream {
    let mut size = case.len() / 2;
    let mut tries = 0;
    while size > 0 {
        let mut at = 0;
        while at < case.len() && tries < MAX_SHRINKS {
            tries += 1;
            let mut smaller = case.clone();
            smaller.drain(at..(at + size).min(case.len()));
            match judge(specimen, &smaller, pieces) {
                Err(still) => (case, why) = (smaller, still),
                Ok(_) => at += size,
            }
        }
        size /= 2;
    }
    MisreadStream {
        protocol: specimen.name,
        seed,
        why,
        case,
    }
}
