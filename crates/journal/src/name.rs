//! Names of logs.

use std::{fmt, str::FromStr};

/// Maximum length of a part of a name in bytes, far below the limits of file systems.
const PART_LIMIT: usize = 100;

/// Names that the store itself uses.
const RESERVED: [&str; 2] = ["blobs", "format"];

/// A text is not a valid name of a log.
#[derive(Debug, thiserror::Error)]
#[error("`{given}` cannot name a log; both parts of `kind/id` are of a-z, 0-9 and `-`")]
pub struct BadLogName {
    /// The invalid text, cut.
    pub given: String,
}

/// The name of a log: the kind of log and the id in that kind. Also the log's folder below the
/// store's root.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogName {
    kind: String,
    id: String,
}

impl LogName {
    /// Creates the name of the log `id` among those of `kind`. Both are of `[a-z0-9-]`, 1 to 100
    /// characters.
    pub fn new(kind: &str, id: &str) -> Result<Self, BadLogName> {
        let name = Self {
            kind: kind.to_owned(),
            id: id.to_owned(),
        };
        if is_part(kind) && is_part(id) && !RESERVED.contains(&kind) {
            Ok(name)
        } else {
            Err(BadLogName {
                given: name.to_string().chars().take(PART_LIMIT).collect(),
            })
        }
    }

    /// Returns the kind of the log: `runs`, `sessions`, …
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Returns the id of the log in its kind.
    pub fn id(&self) -> &str {
        &self.id
    }
}

fn is_part(part: &str) -> bool {
    (1..=PART_LIMIT).contains(&part.len())
        && part
            .bytes()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
}

impl fmt::Display for LogName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.id)
    }
}

impl FromStr for LogName {
    type Err = BadLogName;
    fn from_str(s: &str) -> Result<Self, BadLogName> {
        let (kind, id) = s.split_once('/').unwrap_or((s, ""));
        Self::new(kind, id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_names_are_names() {
        for good in ["runs/0198-abc", "agents/a", "t-1/0"] {
            assert_eq!(good.parse::<LogName>().unwrap().to_string(), good);
        }
        for bad in [
            "", "runs", "runs/", "/x", "runs/..", "runs/a/b", "Runs/a", "blobs/a", "a/é",
        ] {
            assert!(bad.parse::<LogName>().is_err(), "{bad}");
        }
        assert!(LogName::new("runs", &"a".repeat(101)).is_err());
    }
}
