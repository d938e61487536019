//! A changeset that was compared with the files, and its text: a unified diff with the reasons
//! above the hunks, which a person reads and may edit.
//!
//! ```text
//! # why as a whole
//! diff src/a.rs 00112233445566778899aabbccddeeff
//! # why here
//! @@ -1,2 +1,2 @@
//!  stays
//! -goes
//! +comes
//! ```
//!
//! The digest is that of the file that the hunks were made for; `new` stands there if there must be
//! none. `executable`, `not executable` and `deleted` are lines of their own below the reason.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Digest;

/// A changeset.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proposal {
    /// The reason for the whole changeset.
    pub summary: String,
    /// The changes, one for each file.
    pub changes: Vec<FileDiff>,
}

/// The change of one file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileDiff {
    /// The path, relative to the workspace.
    pub path: String,
    /// The digest of the file before; `None` if it did not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Digest>,
    /// The reason for the change.
    pub reason: String,
    /// The new executable bit, if it changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executable: Option<bool>,
    /// Whether the file is deleted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
    /// The hunks, from the first `@@` on; those of a deleted file are only shown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hunks: String,
}

fn comment(f: &mut fmt::Formatter<'_>, words: &str) -> fmt::Result {
    let mut lines = words.trim().lines();
    lines.try_for_each(|line| writeln!(f, "# {}", line.trim_end()))
}

impl fmt::Display for Proposal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        comment(f, &self.summary)?;
        self.changes.iter().try_for_each(|change| change.fmt(f))
    }
}

impl fmt::Display for FileDiff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.before {
            Some(digest) => writeln!(f, "diff {} {digest}", self.path)?,
            None => writeln!(f, "diff {} new", self.path)?,
        }
        comment(f, &self.reason)?;
        f.write_str(match self.executable {
            Some(true) => "executable\n",
            Some(false) => "not executable\n",
            None => "",
        })?;
        f.write_str(if self.deleted { "deleted\n" } else { "" })?;
        f.write_str(&self.hunks)
    }
}
