//! The messages of a run's log.
//!
//! A message is a line of JSON that says who wrote it and why, and after it the blobs and the lines of
//! the journal that it carries, byte for byte. The lines are chained by hash, so that a hole in the
//! middle is seen wherever they are read.

use std::{fmt, sync::Arc};

use gyrus_contract::{BlobId, Digest};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The unique id of one claim of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct WriterId(pub u128);

impl fmt::Display for WriterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// A message of a run's log.
#[derive(Debug, Clone, PartialEq)]
pub struct RunMessage {
    pub writer: WriterId,
    /// The number of the claim under which it is written, from 1.
    pub epoch: u64,
    /// The number of the message among those of its writer: the claim has 0.
    pub index: u64,
    pub kind: RunMessageKind,
}

/// The content of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum RunMessageKind {
    /// A worker drives the run from here on.
    Claimed(ClaimWords),
    /// Entries of the run's journal.
    Entries(EntryLines),
    /// Small blobs that later entries may name.
    Blobs(Vec<Arc<[u8]>>),
    /// The worker is alive.
    Renewed,
    /// The worker releases the run, which is parked or at its end, with none of its processes
    /// alive.
    Released,
}

/// The words of a claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimWords {
    /// The name of the worker.
    pub worker: String,
    /// Length of the worker's lease, in milliseconds.
    pub lease_ms: u64,
    /// The build of gyrus that drives the run from here on.
    pub build: String,
}

/// Lines of a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryLines {
    /// The number of the first of these entries.
    pub first: u64,
    /// The number of the last entry.
    pub last: u64,
    /// The hash of the entry before the first.
    pub previous: Digest,
    /// The hash of the last entry.
    pub head: Digest,
    /// The lines, each with its newline.
    pub lines: Arc<[u8]>,
    /// Small blobs that the entries may name, and that are new in the journal.
    pub blobs: Vec<Arc<[u8]>>,
    /// Other new blobs, which have logs of their own.
    pub large_blobs: Vec<BlobId>,
    /// Blob with the lines, if they are too many for a message. `lines` is empty then.
    pub lines_in: Option<BlobId>,
}

/// The message cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a message of the shared log cannot be read: {why}")]
pub struct BadMessage {
    pub why: String,
}

#[derive(Serialize, Deserialize)]
struct MessageHeader {
    /// The version of this format.
    v: u16,
    writer: String,
    epoch: u64,
    index: u64,
    #[serde(flatten)]
    kind: HeaderKind,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum HeaderKind {
    Claimed(ClaimWords),
    Entries {
        first: u64,
        last: u64,
        previous: Digest,
        head: Digest,
        /// The lengths of the blobs.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        blobs: Vec<usize>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        large_blobs: Vec<BlobId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lines_in: Option<BlobId>,
    },
    Blobs {
        lengths: Vec<usize>,
    },
    Renewed,
    Released,
}

/// The version of the format that this program writes.
const VERSION: u16 = 1;

/// Whether no gyrus wrote a message: its first line names no version. Every reader passes over it, so
/// that something that was published by mistake is in nobody's way.
pub(crate) fn is_foreign(bytes: &[u8]) -> bool {
    let line = bytes
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    let value: Value = serde_json::from_slice(line).unwrap_or_default();
    !value.get("v").is_some_and(Value::is_u64)
}

impl RunMessage {
    /// Returns the bytes of the message.
    pub fn encode(&self) -> Arc<[u8]> {
        let (kind, carried): (_, Vec<&[u8]>) = match &self.kind {
            RunMessageKind::Claimed(claimed) => (HeaderKind::Claimed(claimed.clone()), vec![]),
            RunMessageKind::Entries(entries) => {
                let kind = HeaderKind::Entries {
                    first: entries.first,
                    last: entries.last,
                    previous: entries.previous,
                    head: entries.head,
                    blobs: entries.blobs.iter().map(|blob| blob.len()).collect(),
                    large_blobs: entries.large_blobs.clone(),
                    lines_in: entries.lines_in,
                };
                let blobs = entries.blobs.iter().map(|blob| &**blob);
                (kind, blobs.chain([&*entries.lines]).collect())
            }
            RunMessageKind::Blobs(blobs) => {
                let lengths = blobs.iter().map(|blob| blob.len()).collect();
                let carried = blobs.iter().map(|blob| &**blob).collect();
                (HeaderKind::Blobs { lengths }, carried)
            }
            RunMessageKind::Renewed => (HeaderKind::Renewed, vec![]),
            RunMessageKind::Released => (HeaderKind::Released, vec![]),
        };
        let header = MessageHeader {
            v: VERSION,
            writer: self.writer.to_string(),
            epoch: self.epoch,
            index: self.index,
            kind,
        };
        let mut bytes = serde_json::to_vec(&header).expect("it has string keys only");
        bytes.push(b'\n');
        carried
            .iter()
            .for_each(|part| bytes.extend_from_slice(part));
        bytes.into()
    }

    /// Parses a message.
    ///
    /// # Errors
    /// The bytes are no message, or one of a newer gyrus.
    pub fn decode(bytes: &[u8]) -> Result<Self, BadMessage> {
        let bad = |why: String| BadMessage { why };
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let end = end.ok_or_else(|| bad("its first line has no end".to_owned()))?;
        let (header, rest) = (&bytes[..end], &bytes[end + 1..]);
        let header: MessageHeader =
            serde_json::from_slice(header).map_err(|error| bad(error.to_string()))?;
        if header.v > VERSION {
            return Err(bad(format!(
                "it has version {}, and this gyrus knows {VERSION}; update it",
                header.v
            )));
        }
        let writer = u128::from_str_radix(&header.writer, 16)
            .map_err(|_| bad("its writer is not a number".to_owned()))?;
        let kind = match header.kind {
            HeaderKind::Claimed(claimed) => RunMessageKind::Claimed(claimed),
            HeaderKind::Entries {
                first,
                last,
                previous,
                head,
                blobs: lengths,
                large_blobs,
                lines_in,
            } => {
                let (blobs, rest) = split(rest, &lengths)?;
                RunMessageKind::Entries(EntryLines {
                    first,
                    last,
                    previous,
                    head,
                    lines: rest.into(),
                    blobs,
                    large_blobs,
                    lines_in,
                })
            }
            HeaderKind::Blobs { lengths } => RunMessageKind::Blobs(split(rest, &lengths)?.0),
            HeaderKind::Renewed => RunMessageKind::Renewed,
            HeaderKind::Released => RunMessageKind::Released,
        };
        Ok(Self {
            writer: WriterId(writer),
            epoch: header.epoch,
            index: header.index,
            kind,
        })
    }
}

type BlobContents = Vec<Arc<[u8]>>;

/// Splits bytes into blobs of these lengths and the rest.
fn split<'a>(
    mut bytes: &'a [u8],
    lengths: &[usize],
) -> Result<(BlobContents, &'a [u8]), BadMessage> {
    let mut blobs = Vec::new();
    for length in lengths {
        let (blob, after) = bytes.split_at_checked(*length).ok_or_else(|| BadMessage {
            why: "it is cut within a blob".to_owned(),
        })?;
        blobs.push(blob.into());
        bytes = after;
    }
    Ok((blobs, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_survives_and_damage_is_told() {
        let entries = EntryLines {
            first: 3,
            last: 4,
            previous: Digest::of(b"2"),
            head: Digest::of(b"4"),
            lines: b"{\"seq\":3}\n{\"seq\":4}\n".as_slice().into(),
            blobs: vec![b"\n\0one".as_slice().into(), b"".as_slice().into()],
            large_blobs: vec![BlobId::of(b"large")],
            lines_in: None,
        };
        let claimed = ClaimWords {
            worker: "a \"worker\"\n".to_owned(),
            lease_ms: u64::MAX,
            build: String::new(),
        };
        let kinds = [
            RunMessageKind::Entries(entries),
            RunMessageKind::Claimed(claimed),
            RunMessageKind::Blobs(vec![b"\n{".as_slice().into(), b"".as_slice().into()]),
            RunMessageKind::Renewed,
            RunMessageKind::Released,
        ];
        for kind in kinds {
            let message = RunMessage {
                writer: WriterId(u128::MAX),
                epoch: 7,
                index: 0,
                kind,
            };
            let bytes = message.encode();
            assert_eq!(RunMessage::decode(&bytes).unwrap(), message);
            let line = bytes.iter().position(|byte| *byte == b'\n').unwrap();
            for length in 0..line {
                assert!(RunMessage::decode(&bytes[..length]).is_err());
            }
        }
        let cut = br#"{"v":1,"writer":"1","epoch":1,"index":1,"kind":"entries","first":1,"last":1,"previous":"00000000000000000000000000000000","head":"00000000000000000000000000000000","blobs":[9]}
short"#;
        assert!(RunMessage::decode(cut).unwrap_err().why.contains("cut"));
        let newer = br#"{"v":2,"writer":"1","epoch":1,"index":1,"kind":"renewed"}
"#;
        assert!(
            RunMessage::decode(newer)
                .unwrap_err()
                .why
                .contains("update")
        );
        assert!(!is_foreign(cut) && !is_foreign(newer));
        for junk in [&b""[..], b"\n", b"{}\n", b"\xff\n", b"[1]\n", b"null\nx"] {
            assert!(RunMessage::decode(junk).is_err() && is_foreign(junk));
        }
    }
}
