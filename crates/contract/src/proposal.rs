//! A changeset that was compared with the files, and its text: a patch that `git apply` takes, with
//! the reason for each file above its header, which a person reads and may edit.
//!
//! ```text
//! # why as a whole
//!
//! # why here
//! # made for 00112233445566778899aabbccddeeff
//! diff --git a/src/a.rs b/src/a.rs
//! --- a/src/a.rs
//! +++ b/src/a.rs
//! @@ -1,2 +1,2 @@
//!  stays
//! -goes
//! +comes
//! ```
//!
//! The digest is that of the file that the hunks were made for; a new file has none. A blank line
//! stands between the files, and between the first one and the reason for the whole.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{BINARY, Digest, EMPTY_BINARY, PatchHeader, git_mode};

/// A proposed changeset.
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
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
    /// Git's name of a deleted file's content if its text is not shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_id: Option<String>,
    /// The hunks, from the first `@@` on; those of a deleted file are only shown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hunks: String,
}

/// The beginning of the line above a header that names the digest of the file.
pub const MADE_FOR: &str = "# made for ";

/// Git's name for missing content.
pub const NO_GIT_ID: &str = "0000000000000000000000000000000000000000";

fn comment(f: &mut fmt::Formatter<'_>, words: &str) -> fmt::Result {
    let mut lines = words.trim().lines();
    lines.try_for_each(|line| writeln!(f, "# {}", line.trim_end()))
}

impl fmt::Display for Proposal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        comment(f, &self.summary)?;
        self.changes
            .iter()
            .try_for_each(|change| write!(f, "\n{change}"))
    }
}

impl fmt::Display for FileDiff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        comment(f, &self.reason)?;
        if let Some(digest) = self.before {
            writeln!(f, "{MADE_FOR}{digest}")?;
        }
        let executes = self.executable == Some(true);
        let before = self
            .before
            .map(|_| git_mode(self.executable == Some(false)));
        let header = PatchHeader {
            path: self.path.as_bytes(),
            before,
            after: (!self.deleted).then(|| git_mode(executes)),
            renamed_from: None,
            ids: self.git_id.as_deref().map(|id| (id, NO_GIT_ID)),
            has_hunks: !self.hunks.is_empty(),
        };
        f.write_str(&header.lines())?;
        if self.git_id.is_some() {
            return write!(f, "{BINARY}\n{EMPTY_BINARY}");
        }
        f.write_str(&self.hunks)
    }
}
