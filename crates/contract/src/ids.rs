//! Identifiers of runs, effects and content.

use std::{
    fmt,
    str::FromStr,
    sync::Mutex,
    time::{SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};
use uuid::{ContextV7, Timestamp, Uuid};

/// The error for a string that is not a valid id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not {expected}")]
pub struct ParseIdError {
    /// The invalid string, cut to 80 characters.
    pub given: String,
    /// The form that was expected, as the end of a sentence.
    pub expected: &'static str,
}

pub(crate) fn not(given: &str, expected: &'static str) -> ParseIdError {
    ParseIdError {
        given: given.chars().take(80).collect(),
        expected,
    }
}

/// Returns a new version 7 UUID; such ids sort by the time at which they were made. A clock before
/// 1970, which they cannot express, counts as 1970.
pub fn time_ordered_uuid() -> Uuid {
    uuid_at(SystemTime::now())
}

fn uuid_at(time: SystemTime) -> Uuid {
    /// Keeps the order of ids created within a millisecond, or while the clock stands still.
    static ORDER: Mutex<ContextV7> = Mutex::new(ContextV7::new());
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (seconds, nanoseconds) = (since.as_secs(), since.subsec_nanos());
    Uuid::new_v7(Timestamp::from_unix(&ORDER, seconds, nanoseconds))
}

/// The id of a run, which is one attempt at one goal. A version 7 UUID, so ids sort by the time of
/// their creation; a child run's id is derived from its parent's and is the same after every crash.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(uuid::Uuid);

impl RunId {
    /// Creates an id from the present time and randomness. Only for the start of a run: inside a
    /// loop it would differ on replay.
    pub fn new() -> Self {
        Self(time_ordered_uuid())
    }

    /// Returns the id of the child run that `effect` of `parent` starts.
    pub fn child(parent: RunId, effect: &EffectId) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(parent.0.as_bytes());
        hasher.update(effect.to_string().as_bytes());
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        Self(uuid::Builder::from_custom_bytes(bytes).into_uuid())
    }

    /// Returns the name of the run for people: the last 8 characters of its id. The start of an id
    /// is the time, which runs of the same minute share.
    pub fn short(self) -> String {
        let id = self.0.to_string();
        id[id.len() - 8..].to_owned()
    }

    /// Whether a person started the run: ids of children are not made from the time.
    pub fn is_root(self) -> bool {
        self.0.get_version_num() == 7
    }
}

impl Default for RunId {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for RunId {
    type Err = ParseIdError;
    fn from_str(s: &str) -> Result<Self, ParseIdError> {
        s.parse()
            .map(Self)
            .map_err(|_| not(s, "a run id (a UUID, as `gyrus runs list` prints)"))
    }
}

/// Identifies an effect of a run. Effects are numbered in program order: cycle, then effect, and
/// inside a concurrent form branch and effect again. `12.2.1.3` is the third effect of the first
/// branch of the second effect of cycle 12.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EffectId(Vec<u32>);

impl EffectId {
    /// Returns the prefix that all effects of a cycle share.
    pub fn cycle(number: u32) -> Self {
        Self(vec![number])
    }

    /// Returns this id with one number appended.
    pub fn then(&self, number: u32) -> Self {
        let mut path = Vec::with_capacity(self.0.len() + 1);
        path.extend_from_slice(&self.0);
        path.push(number);
        Self(path)
    }

    /// Returns the cycle that the effect belongs to.
    pub fn cycle_number(&self) -> u32 {
        self.0.first().copied().unwrap_or(0)
    }

    /// Returns the numbers of the id, outermost first.
    pub fn path(&self) -> &[u32] {
        &self.0
    }

    /// Whether this effect happened inside `outer`, at any depth.
    pub fn is_within(&self, outer: &EffectId) -> bool {
        self.0.len() > outer.0.len() && self.0.starts_with(&outer.0)
    }
}

impl fmt::Display for EffectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, number) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(".")?;
            }
            number.fmt(f)?;
        }
        Ok(())
    }
}

impl FromStr for EffectId {
    type Err = ParseIdError;
    fn from_str(s: &str) -> Result<Self, ParseIdError> {
        s.split('.')
            .map(str::parse)
            .collect::<Result<_, _>>()
            .map(Self)
            .map_err(|_| not(s, "an effect id (numbers joined by dots, like `12.2.1`)"))
    }
}

/// Implements serialisation of types as text, by `Display` and `FromStr`.
#[macro_export]
macro_rules! stored_as_text {
    ($($name:ty),+) => {$(
        impl ::serde::Serialize for $name {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $name {
            fn deserialize<D: ::serde::Deserializer<'de>>(de: D) -> Result<Self, D::Error> {
                let text: ::std::borrow::Cow<'_, str> = ::serde::Deserialize::deserialize(de)?;
                text.parse().map_err(::serde::de::Error::custom)
            }
        }
    )+};
}

stored_as_text!(EffectId, BlobId, Digest);

macro_rules! hash_id {
    ($name:ident, $bytes:literal, $expected:literal, $doc:literal) => {
        #[doc = $doc]
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name([u8; $bytes]);

        impl $name {
            /// Returns the hash of `bytes`.
            pub fn of(bytes: &[u8]) -> Self {
                Self::from_hash(blake3::hash(bytes))
            }

            /// Creates an id from a finished BLAKE3 hash, cut to this id's length.
            pub fn from_hash(hash: blake3::Hash) -> Self {
                let mut id = [0; $bytes];
                id.copy_from_slice(&hash.as_bytes()[..$bytes]);
                Self(id)
            }

            /// Returns the raw bytes.
            pub fn as_bytes(&self) -> &[u8; $bytes] {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut text = [0; $bytes * 2];
                for (i, byte) in self.0.iter().enumerate() {
                    text[2 * i] = HEX[usize::from(byte >> 4)];
                    text[2 * i + 1] = HEX[usize::from(byte & 15)];
                }
                f.pad(std::str::from_utf8(&text).expect("hexadecimal digits are ASCII"))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{self}")
            }
        }

        impl FromStr for $name {
            type Err = ParseIdError;
            fn from_str(s: &str) -> Result<Self, ParseIdError> {
                let digits = s.as_bytes();
                let mut id = [0; $bytes];
                if digits.len() != id.len() * 2 {
                    return Err(not(s, $expected));
                }
                for (i, pair) in digits.chunks_exact(2).enumerate() {
                    let (Some(high), Some(low)) = (nibble(pair[0]), nibble(pair[1])) else {
                        return Err(not(s, $expected));
                    };
                    id[i] = high << 4 | low;
                }
                Ok(Self(id))
            }
        }
    };
}

const HEX: &[u8; 16] = b"0123456789abcdef";

fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

hash_id!(
    BlobId,
    32,
    "a blob id (64 hexadecimal digits)",
    "Content stored outside the journal, by its BLAKE3 hash."
);
hash_id!(
    Digest,
    16,
    "a digest (32 hexadecimal digits)",
    "A short fingerprint (BLAKE3, 128 bits): of arguments, prompts, entries. It detects accidents \
     and divergence; it does not protect from a person with the user's rights."
);

impl Digest {
    /// Returns the digest of a value's JSON. Object keys are sorted by `serde_json`'s map, so equal
    /// values have equal digests.
    pub fn of_json<T: Serialize + ?Sized>(value: &T) -> Self {
        struct HashWriter(blake3::Hasher);
        impl std::io::Write for HashWriter {
            fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
                self.0.update(bytes);
                Ok(bytes.len())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let mut hashing = HashWriter(blake3::Hasher::new());
        // Writing into a hasher cannot fail, and our types have string keys only.
        serde_json::to_writer(&mut hashing, value).expect("contract types are valid JSON");
        Self::from_hash(hashing.0.finalize())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_before_1970_makes_ids_in_order() {
        let before = UNIX_EPOCH - std::time::Duration::from_secs(1);
        let (first, second) = (uuid_at(before), uuid_at(before));
        assert_eq!(first.get_version_num(), 7);
        assert!(first < second && second < time_ordered_uuid());
    }

    #[test]
    fn ids_survive_text() {
        let id = EffectId::cycle(12).then(2).then(1);
        assert_eq!(id.to_string(), "12.2.1");
        assert_eq!("12.2.1".parse(), Ok(id.clone()));
        assert!(id.is_within(&EffectId::cycle(12).then(2)));
        assert!(!id.is_within(&EffectId::cycle(1)));
        assert!("12..1".parse::<EffectId>().is_err());

        let blob = BlobId::of(b"hello");
        assert_eq!(blob.to_string().parse(), Ok(blob));
        assert!("zz".parse::<BlobId>().is_err());

        let run = RunId::new();
        assert_eq!(run.to_string().parse(), Ok(run));
        assert_eq!(RunId::child(run, &id), RunId::child(run, &id));
        assert_ne!(RunId::child(run, &id), RunId::child(run, &id.then(1)));
    }

    #[test]
    fn equal_values_have_equal_digests() {
        let one: serde_json::Value = serde_json::from_str(r#"{"b":1,"a":[2]}"#).unwrap();
        let two: serde_json::Value = serde_json::from_str(r#"{"a":[2],"b":1}"#).unwrap();
        assert_eq!(Digest::of_json(&one), Digest::of_json(&two));
    }
}
