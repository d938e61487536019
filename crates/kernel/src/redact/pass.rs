//! The pieces of a text that passes read, and the secrets that they find in them.

use std::{fmt, ops::Range};

/// Minimum length of a configured value in bytes: a shorter one would be found in ordinary words.
pub const MIN_VALUE_BYTES: usize = 6;
/// The start of a marker. It ends with `⟧`; the name between has letters, digits, `_`, `.` and `-`.
pub(super) const MARKER_START: &str = "⟦secret:";

/// A secret that is known by configuration.
#[derive(Clone)]
pub struct Secret {
    /// The name for the marker; characters other than letters, digits, `_`, `.` and `-` become `_`.
    pub name: String,
    /// The value that must not be seen. A value under 6 bytes is ignored.
    pub value: String,
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secret")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// A finding of one pass: its range, and its name or kind.
pub(super) struct SecretHit {
    pub(super) at: Range<usize>,
    pub(super) name: HitName,
}

pub(super) enum HitName {
    /// The complete name.
    Known(String),
    /// The kind of secret; the name consists of the kind and a fingerprint of the value.
    Found(&'static str),
}

/// A part of the text that no marker covers.
pub(super) struct FreeText<'a> {
    pub(super) text: &'a str,
    pub(super) before: TextBefore,
    /// Whether the part ends the text; otherwise a marker follows.
    pub(super) ends_text: bool,
}

/// The text before a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextBefore {
    /// The start of the text.
    Nothing,
    /// The end of a line that was redacted separately.
    LineEnd,
    /// A marker, or the beginning of the line.
    Text,
}
