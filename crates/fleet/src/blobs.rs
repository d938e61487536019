//! Blobs in the shared log: each is a log of its own, named by its hash, of pieces that follow each
//! other. So one that was stored by half is gone on with by whoever has the same bytes, and two that
//! store it at once do not get in each other's way.

use std::sync::Arc;

use gyrus_contract::BlobId;

use crate::{
    AppendAnswer, LeaseTimes, LogSubject, LogUnreachable, Machine, MachineTime, MessageId,
    SharedLog, WriterId,
};

/// Size of a piece in bytes.
const PIECE: usize = 512 << 10;

/// A blob cannot be stored or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BlobError {
    /// The log does not answer.
    #[error(transparent)]
    Unreachable(#[from] LogUnreachable),
    #[error("the shared log does not take the blob {id}: {why}")]
    Impossible { id: BlobId, why: String },
    /// The blob is missing, incomplete, or has other content than its id requires.
    #[error("the blob {id} is not in the shared log as it should be")]
    Missing { id: BlobId },
}

fn subject(id: &BlobId) -> LogSubject {
    LogSubject::new(&format!("blobs.{id}")).expect("a hash is a word")
}

/// Stores a blob, unless the log already has it.
///
/// # Errors
/// The log does not answer by `until`, or does not take it.
pub async fn store_blob(
    log: &Arc<dyn SharedLog>,
    machine: &Arc<dyn Machine>,
    bytes: &[u8],
    until: MachineTime,
) -> Result<BlobId, BlobError> {
    let id = BlobId::of(bytes);
    let subject = subject(&id);
    let writer = WriterId(gyrus_contract::time_ordered_uuid().as_u128());
    // An empty blob is one empty piece.
    let pieces = bytes.len().div_ceil(PIECE).max(1);
    let (mut have, mut position) = have(log, &subject, until).await?;
    while have < pieces {
        let end = bytes.len().min((have + 1) * PIECE);
        let body: Arc<[u8]> = bytes[have * PIECE..end].into();
        let message = MessageId {
            subject: subject.clone(),
            writer,
            index: have as u64,
        };
        match log.append_if(&message, position, &body, until).await {
            AppendAnswer::Stored { position: stored } => {
                (have, position) = (have + 1, stored);
                continue;
            }
            AppendAnswer::Impossible { why } => return Err(BlobError::Impossible { id, why }),
            AppendAnswer::Unknown { why } if machine.now() >= until => {
                return Err(LogUnreachable { why }.into());
            }
            AppendAnswer::Unknown { .. } | AppendAnswer::Busy | AppendAnswer::Refused { .. } => {}
        }
        let pause = LeaseTimes::new(std::time::Duration::from_secs(2)).pause();
        machine.sleep_until(machine.now() + pause).await;
        if machine.now() >= until {
            let why = "others write the same blob".to_owned();
            return Err(LogUnreachable { why }.into());
        }
        // Somebody else may have stored this piece, or an earlier attempt did.
        (have, position) = self::have(log, &subject, until).await?;
    }
    Ok(id)
}

/// Returns the number of existing pieces, and the place of the last one.
async fn have(
    log: &Arc<dyn SharedLog>,
    subject: &LogSubject,
    until: MachineTime,
) -> Result<(usize, u64), LogUnreachable> {
    let (mut count, mut last) = (0, 0);
    loop {
        let pieces = log.read_from(subject, last, until).await?;
        let Some(newest) = pieces.last() else {
            return Ok((count, last));
        };
        (count, last) = (count + pieces.len(), newest.position);
    }
}

/// Reads a blob, and checks its content.
///
/// # Errors
/// The log does not answer by `until`, or does not have it.
pub async fn fetch_blob(
    log: &Arc<dyn SharedLog>,
    id: &BlobId,
    until: MachineTime,
) -> Result<Vec<u8>, BlobError> {
    let subject = subject(id);
    let (mut bytes, mut last) = (Vec::new(), 0);
    loop {
        let pieces = log.read_from(&subject, last, until).await?;
        let Some(newest) = pieces.last() else {
            break;
        };
        last = newest.position;
        for piece in &pieces {
            bytes.extend_from_slice(&piece.body);
        }
    }
    if last != 0 && BlobId::of(&bytes) == *id {
        Ok(bytes)
    } else {
        Err(BlobError::Missing { id: *id })
    }
}
