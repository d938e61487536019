//! One entry as one line of text, and the hash that chains it to the one before.
//!
//! The parser is written by hand and strict: it accepts exactly the bytes that [`encode`] writes,
//! because a line is hashed as it stands. It scans the payload only for its end; that the payload
//! is JSON was checked when it was appended.
//!
//! Which lines count is decided in `scan`.

use std::io::Write;

use gyrus_contract::Digest;
use serde_json::value::RawValue;

use crate::{LogEntry, Payload};

/// Maximum length of a payload in bytes.
pub(crate) const PAYLOAD_LIMIT: usize = 8 << 20;

/// Maximum length of a line in bytes; a longer one is damage.
pub(crate) const LINE_LIMIT: usize = 16 << 20;

/// Maximum length of a kind in bytes.
pub(crate) const KIND_LIMIT: usize = 64;

/// Maximum length of a header in bytes: literals, six numbers, a kind and a hash are shorter.
const HEADER_LIMIT: usize = 320;

/// Length of `,"hash":"<32 digits>"}`.
const HASH_LENGTH: usize = 43;

/// The start of every line.
pub(crate) const START: &[u8] = b"{\"seq\":";

/// The key that binds hashes to a log, so that a line of another log never verifies in this one:
/// the BLAKE3 hash of the log's name, used as BLAKE3's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogKey([u8; 32]);

impl LogKey {
    pub(crate) fn of(name: &crate::LogName) -> Self {
        Self(*blake3::hash(name.to_string().as_bytes()).as_bytes())
    }

    /// Returns the hash of a text outside of the chain: a segment's header.
    pub(crate) fn hash(&self, bytes: &[u8]) -> Digest {
        Digest::from_hash(blake3::keyed_hash(&self.0, bytes))
    }

    /// Returns the hash of an entry.
    fn chain(&self, previous: &Digest, header: &[u8], payload: &Digest) -> Digest {
        let mut text = [0; HEADER_LIMIT + 32];
        let end = 16 + header.len();
        text[..16].copy_from_slice(previous.as_bytes());
        text[16..end].copy_from_slice(header);
        text[end..end + 16].copy_from_slice(payload.as_bytes());
        self.hash(&text[..end + 16])
    }
}

/// Returns the predecessor's hash for the first entry of a log.
pub(crate) fn genesis() -> Digest {
    "00000000000000000000000000000000"
        .parse()
        .expect("32 digits are a digest")
}

/// The fields in the first line of a batch by which it can be verified without earlier lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BatchStart {
    /// The entry up to which everything was on disk when the batch was formed.
    pub(crate) synced: u64,
    /// The hash of the previous entry.
    pub(crate) previous: Digest,
}

/// The part of a line before its payload.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EntryHeader<'a> {
    pub(crate) seq: u64,
    pub(crate) at_ms: i64,
    pub(crate) mono_us: u64,
    pub(crate) kind: &'a str,
    pub(crate) version: u16,
    pub(crate) batch: Option<BatchStart>,
}

/// A parsed line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogLine<'a> {
    /// The whole line without its newline.
    pub(crate) text: &'a [u8],
    pub(crate) header: EntryHeader<'a>,
    header_text: &'a [u8],
    pub(crate) body: Body<'a>,
    pub(crate) hash: Digest,
}

/// The part of a line between header and hash.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Body<'a> {
    Payload(&'a [u8]),
    Erased(Digest),
}

impl Body<'_> {
    fn hash(&self) -> Digest {
        match self {
            Body::Payload(bytes) => Digest::of(bytes),
            Body::Erased(hash) => *hash,
        }
    }
}

pub(crate) fn is_kind(kind: &str) -> bool {
    (1..=KIND_LIMIT).contains(&kind.len()) && kind.bytes().all(is_kind_byte)
}

fn is_kind_byte(byte: u8) -> bool {
    matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-')
}

/// Appends the line of an entry, with its newline, and returns its hash.
pub(crate) fn encode(
    out: &mut Vec<u8>,
    key: &LogKey,
    previous: &Digest,
    header: &EntryHeader<'_>,
    payload: &[u8],
) -> Digest {
    let start = out.len();
    let EntryHeader {
        seq,
        at_ms,
        mono_us,
        kind,
        version,
        batch,
    } = header;
    let infallible = "writing to memory cannot fail";
    write!(
        out,
        r#"{{"seq":{seq},"at":{at_ms},"mono":{mono_us},"kind":"{kind}","v":{version}"#
    )
    .expect(infallible);
    if let Some(BatchStart { synced, previous }) = batch {
        write!(out, r#","synced":{synced},"prev":"{previous}""#).expect(infallible);
    }
    let hash = key.chain(previous, &out[start..], &Digest::of(payload));
    out.extend_from_slice(b",\"payload\":");
    out.extend_from_slice(payload);
    writeln!(out, r#","hash":"{hash}"}}"#).expect(infallible);
    hash
}

impl<'a> LogLine<'a> {
    /// Parses a line without its newline.
    pub(crate) fn parse(line: &'a [u8]) -> Option<Self> {
        let (rest, end) = line.split_at_checked(line.len().checked_sub(HASH_LENGTH)?)?;
        let mut end = UnparsedText(end);
        end.literal(b",\"hash\":\"")?;
        let hash = end.digest()?;
        end.literal(b"\"}")?;

        let mut text = UnparsedText(rest);
        let header = text.header()?;
        let header_text = &rest[..rest.len() - text.0.len()];
        if header_text.len() > HEADER_LIMIT {
            return None;
        }
        let body = if text.literal(b",\"payload\":").is_some() {
            Body::Payload(text.0)
        } else {
            text.literal(b",\"erased\":\"")?;
            let hash = text.digest()?;
            text.literal(b"\"")?;
            if !text.0.is_empty() {
                return None;
            }
            Body::Erased(hash)
        };
        Some(Self {
            text: line,
            header,
            header_text,
            body,
            hash,
        })
    }

    /// Whether this line follows an entry with the hash `previous`.
    pub(crate) fn follows(&self, key: &LogKey, previous: &Digest) -> bool {
        self.header
            .batch
            .is_none_or(|batch| batch.previous == *previous)
            && key.chain(previous, self.header_text, &self.body.hash()) == self.hash
    }

    /// Returns the fields about the start of a batch, if the line verifies alone.
    pub(crate) fn stands_alone(&self, key: &LogKey) -> Option<BatchStart> {
        self.header
            .batch
            .filter(|batch| self.follows(key, &batch.previous))
    }

    /// Returns the length of the payload; 0 if it was erased.
    pub(crate) fn payload_bytes(&self) -> usize {
        match self.body {
            Body::Payload(bytes) => bytes.len(),
            Body::Erased(_) => 0,
        }
    }

    pub(crate) fn is_erased(&self) -> bool {
        matches!(self.body, Body::Erased(_))
    }

    /// Returns the line with its payload erased.
    pub(crate) fn tombstone(&self) -> Vec<u8> {
        let mut out = self.header_text.to_vec();
        write!(
            out,
            r#","erased":"{}","hash":"{}"}}"#,
            self.body.hash(),
            self.hash
        )
        .expect("writing to memory cannot fail");
        out
    }

    /// Whether the payload is or was JSON, as in every line that was appended here.
    pub(crate) fn is_json(&self) -> bool {
        match self.body {
            Body::Payload(bytes) => serde_json::from_slice::<&RawValue>(bytes).is_ok(),
            Body::Erased(_) => true,
        }
    }

    /// Converts the line to an entry; returns `None` if its payload is not JSON.
    pub(crate) fn to_entry(self) -> Option<LogEntry> {
        let payload = match self.body {
            Body::Payload(bytes) => Payload::Json(serde_json::from_slice(bytes).ok()?),
            Body::Erased(hash) => Payload::Erased(hash),
        };
        Some(LogEntry {
            seq: self.header.seq,
            at_ms: self.header.at_ms,
            mono_us: self.header.mono_us,
            kind: self.header.kind.to_owned(),
            version: self.header.version,
            payload,
            hash: self.hash,
        })
    }
}

/// The unparsed rest of a line.
struct UnparsedText<'a>(&'a [u8]);

impl<'a> UnparsedText<'a> {
    fn literal(&mut self, literal: &[u8]) -> Option<()> {
        self.0 = self.0.strip_prefix(literal)?;
        Some(())
    }

    fn take_while(&mut self, accept: impl Fn(u8) -> bool) -> &'a str {
        let end = self
            .0
            .iter()
            .position(|byte| !accept(*byte))
            .unwrap_or(self.0.len());
        let (taken, rest) = self.0.split_at(end);
        self.0 = rest;
        // Callers accept ASCII only, so this is never empty for another reason than no match.
        std::str::from_utf8(taken).unwrap_or_default()
    }

    fn number<T: std::str::FromStr>(&mut self) -> Option<T> {
        self.take_while(|byte| byte.is_ascii_digit() || byte == b'-')
            .parse()
            .ok()
    }

    fn digest(&mut self) -> Option<Digest> {
        let (digits, rest) = self.0.split_at_checked(32)?;
        self.0 = rest;
        std::str::from_utf8(digits).ok()?.parse().ok()
    }

    fn header(&mut self) -> Option<EntryHeader<'a>> {
        self.literal(START)?;
        let seq = self.number()?;
        self.literal(b",\"at\":")?;
        let at_ms = self.number()?;
        self.literal(b",\"mono\":")?;
        let mono_us = self.number()?;
        self.literal(b",\"kind\":\"")?;
        let kind = self.take_while(is_kind_byte);
        self.literal(b"\",\"v\":")?;
        let version = self.number()?;
        let mut batch = None;
        if self.literal(b",\"synced\":").is_some() {
            let synced = self.number()?;
            self.literal(b",\"prev\":\"")?;
            let previous = self.digest()?;
            self.literal(b"\"")?;
            batch = Some(BatchStart { synced, previous });
        }
        Some(EntryHeader {
            seq,
            at_ms,
            mono_us,
            kind,
            version,
            batch,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(batch: Option<BatchStart>, payload: &str) -> (LogKey, Vec<u8>) {
        let key = LogKey::of(&crate::LogName::new("runs", "1").unwrap());
        let header = EntryHeader {
            seq: 7,
            at_ms: -5,
            mono_us: 9,
            kind: "tool.call",
            version: 3,
            batch,
        };
        let mut out = Vec::new();
        encode(&mut out, &key, &genesis(), &header, payload.as_bytes());
        assert_eq!(out.pop(), Some(b'\n'));
        (key, out)
    }

    #[test]
    fn a_line_survives_and_every_flipped_bit_shows() {
        let batch = Some(BatchStart {
            synced: 4,
            previous: genesis(),
        });
        for (batch, payload) in [(None, r#"{"a":"é\n"}"#), (batch, "[1,2]"), (batch, "null")] {
            let (key, mut text) = sample(batch, payload);
            let line = LogLine::parse(&text).unwrap();
            assert!(line.follows(&key, &genesis()));
            assert_eq!(line.stands_alone(&key), batch);
            let tombstone = line.tombstone();
            let erased = LogLine::parse(&tombstone).unwrap();
            assert!(
                erased.follows(&key, &genesis()),
                "the chain holds over a tombstone"
            );
            assert_eq!(erased.stands_alone(&key), batch);
            let entry = line.to_entry().unwrap();
            assert_eq!((entry.seq, entry.at_ms, entry.version), (7, -5, 3));
            assert!(matches!(&entry.payload, Payload::Json(json) if json.get() == payload));

            let other = LogKey::of(&crate::LogName::new("runs", "2").unwrap());
            assert!(
                !line.follows(&other, &genesis()),
                "a line of another log never verifies"
            );
            for bit in 0..text.len() * 8 {
                text[bit / 8] ^= 1 << (bit % 8);
                let damaged = LogLine::parse(&text);
                assert!(
                    damaged.is_none_or(|line| !line.follows(&key, &genesis())),
                    "bit {bit} of {}",
                    String::from_utf8_lossy(&text)
                );
                text[bit / 8] ^= 1 << (bit % 8);
            }
            for length in 0..text.len() {
                let torn = LogLine::parse(&text[..length]);
                assert!(torn.is_none_or(|line| !line.follows(&key, &genesis())));
            }
        }
    }
}
