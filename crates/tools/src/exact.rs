//! Replaces an exact text by another, in memory: the text must occur, and only once unless all
//! occurrences are meant.

use std::fmt::Write as _;

use memchr::memmem;

use crate::likeness;

/// Maximum size of a file that can be edited, in bytes.
pub(crate) const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;

/// Maximum bytes of the changed file.
const MAX_CHANGED_BYTES: usize = 64 * 1024 * 1024;

/// Maximum number of occurrences counted where only one may be: they can overlap and be very many.
const MAX_COUNTED: usize = 1_000;

/// Maximum number of occurrences whose lines are listed.
const MAX_NAMED: usize = 20;

pub(crate) struct Replacement {
    pub(crate) old: String,
    pub(crate) new: String,
    /// Whether every occurrence is replaced; otherwise there must be exactly one.
    pub(crate) all: bool,
}

pub(crate) struct AppliedReplacement {
    pub(crate) replacement: Replacement,
    /// Offsets in the old content.
    pub(crate) places: Vec<usize>,
    pub(crate) content: Vec<u8>,
}

/// Reason why no replacement was made; the message is for a model.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExactError {
    #[error("the old text is empty: quote what to replace")]
    Empty,
    #[error("the old text and the new one are the same; nothing was changed")]
    Same,
    #[error("the old text does not occur in `{name}`; nothing was changed. {near}")]
    Missing { name: String, near: String },
    #[error(
        "the old text occurs {count} times in `{name}`, in lines {lines}; nothing was changed. \
         Quote more lines around the one that is meant"
    )]
    Several {
        name: String,
        count: String,
        lines: String,
    },
    #[error("`{name}` would become larger than {} MB; nothing was changed", MAX_CHANGED_BYTES >> 20)]
    TooLarge { name: String },
}

impl Replacement {
    pub(crate) fn made_in(
        self,
        name: &str,
        content: &[u8],
    ) -> Result<AppliedReplacement, ExactError> {
        let name = || name.to_owned();
        if self.old.is_empty() {
            return Err(ExactError::Empty);
        }
        if self.old == self.new {
            return Err(ExactError::Same);
        }
        let replacement = self.fit(content);
        let places = replacement.places(content);
        match places.len() {
            0 => {
                return Err(ExactError::Missing {
                    name: name(),
                    near: near(content, &replacement.old),
                });
            }
            1 => {}
            _ if replacement.all => {}
            count => {
                let least = if count == MAX_COUNTED {
                    "at least "
                } else {
                    ""
                };
                return Err(ExactError::Several {
                    name: name(),
                    count: format!("{least}{count}"),
                    lines: line_list(content, &places),
                });
            }
        }
        match replacement.apply(content, &places) {
            None => Err(ExactError::TooLarge { name: name() }),
            Some(content) => Ok(AppliedReplacement {
                replacement,
                places,
                content,
            }),
        }
    }

    /// Fits the replacement to a file's line ends: models write `\n` where all of a file's lines
    /// end with `\r\n`.
    pub(crate) fn fit(self, content: &[u8]) -> Self {
        let has_crlf = memmem::find(content, b"\r\n").is_some();
        let is_crlf = |at| at > 0 && content[at - 1] == b'\r';
        if !has_crlf || !memchr::memchr_iter(b'\n', content).all(is_crlf) {
            return self;
        }
        let with_crlf = |text: &str| text.replace("\r\n", "\n").replace('\n', "\r\n");
        Self {
            old: with_crlf(&self.old),
            new: with_crlf(&self.new),
            all: self.all,
        }
    }

    /// Returns the offsets of the old text. For a single replacement they include overlapping ones,
    /// as either could be meant, up to a maximum number.
    pub(crate) fn places(&self, content: &[u8]) -> Vec<usize> {
        let finder = memmem::Finder::new(&self.old);
        if self.all {
            return finder.find_iter(content).collect();
        }
        let mut places = Vec::new();
        let mut from = 0;
        while places.len() < MAX_COUNTED
            && let Some(at) = finder.find(&content[from..])
        {
            places.push(from + at);
            from += at + 1;
        }
        places
    }

    /// Returns the new content; `None` if it would be too large.
    fn apply(&self, content: &[u8], places: &[usize]) -> Option<Vec<u8>> {
        let kept = content.len() - places.len() * self.old.len();
        let size = kept.checked_add(places.len().checked_mul(self.new.len())?)?;
        if size > MAX_CHANGED_BYTES {
            return None;
        }
        let mut changed = Vec::with_capacity(size);
        let mut from = 0;
        for &at in places {
            changed.extend_from_slice(&content[from..at]);
            changed.extend_from_slice(self.new.as_bytes());
            from = at + self.old.len();
        }
        changed.extend_from_slice(&content[from..]);
        Some(changed)
    }
}

/// Returns the lines of the content that are most similar to a text that does not occur.
fn near(content: &[u8], old: &str) -> String {
    let mut words = likeness::nearest(&String::from_utf8_lossy(content), old);
    if words.is_empty() {
        return "Nothing in it is like it: `read` the file, or `search` for where it is".to_owned();
    }
    words.push_str("Quote it exactly as it stands there");
    if old.contains('\n') && content.contains(&b'\r') {
        words.push_str("; some lines of the file end with \\r\\n");
    }
    words
}

/// Returns the numbers, from 1, of the lines that contain these offsets.
pub(crate) fn line_list(content: &[u8], places: &[usize]) -> String {
    let mut list = String::new();
    let (mut line, mut from) = (1, 0);
    for (index, &at) in places.iter().take(MAX_NAMED).enumerate() {
        line += memchr::memchr_iter(b'\n', &content[from..at]).count();
        from = at;
        let separator = if index == 0 { "" } else { ", " };
        let _ = write!(list, "{separator}{line}");
    }
    if places.len() > MAX_NAMED {
        let _ = write!(list, " and {} more", places.len() - MAX_NAMED);
    }
    list
}
