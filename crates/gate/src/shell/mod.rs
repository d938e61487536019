//! Reading command lines: what a line would do, told without running it.
//!
//! Two rules keep it honest. What is not positively understood is [`Does::Hides`]; and a program
//! only reads if every one of its options, as written, is listed as harmless in a table. The
//! parser gives the line's structure; where words begin and end is checked a second time
//! ([`scan`]), so that a line on which the parser and the shell might disagree is not understood.
//!
//! It looks at nothing but the configuration of the repository that a `git` command would use,
//! whether folders exist, and which paths are links.
//!
//! [`Does::Hides`]: gyrus_contract::Does::Hides

mod arithmetic;
mod paths;
mod programs;
mod reader;
mod scan;
mod variables;
mod walk;
mod words;

use std::path::{Path, PathBuf};

use gyrus_contract::{CommandReading, Does};

/// Longer lines are not read.
const MAX_LINE_BYTES: usize = 64 * 1024;

/// Where a command line would run: what reading it may look at.
#[derive(Debug, Clone)]
pub struct Place {
    /// The folder it starts in, absolute and real.
    pub folder: PathBuf,
    /// The person's home folder, which `~` and `$HOME` mean.
    pub home: Option<PathBuf>,
}

/// Why a line removes a folder, where it is a part of what the folder holds and never the
/// repository's history: git takes files of a working tree back or away, `find` removes files with
/// certain names.
pub(crate) const PARTLY: [&str; 2] = [
    "git takes back, moves or removes files of the working tree",
    "it removes what has a certain name",
];

/// Why a line uses credentials or destroys, where that takes the person's own rights: an account, a
/// key, an agent, or what others have. Secrets that stand in files or in the line are another matter.
pub(crate) const BY_ACCOUNT: [&str; 6] = [
    "it logs in",
    "it logs in with a key or a password",
    "it may log in at the remote",
    "it acts with a person's account",
    "it uses keys",
    "it overwrites or deletes what others have",
];

/// Whether nothing but git changes anything when the line runs, and what git runs.
pub(crate) fn only_git_changes(reading: &CommandReading) -> bool {
    reading.facts.iter().all(|fact| match fact.does {
        Does::Reads { .. } => true,
        // A written folder may be the repository's.
        Does::Hides | Does::Writes { .. } => false,
        _ => fact.part.starts_with("git ") || fact.part.starts_with("/usr/bin/git "),
    })
}

/// Reads a command line without running it. Total: whatever the text is, there is a reading.
pub fn read(line: &str, place: &Place) -> CommandReading {
    let mut reader = reader::Reader::new(line, place);
    if line.len() > MAX_LINE_BYTES {
        reader.hides(line, "the line is too long to be read");
    } else {
        reader.text(line);
    }
    reader.finish()
}

/// Whether the path is one of the system's that anybody may read.
pub fn is_system_path(path: &Path) -> bool {
    paths::is_system(path)
}

/// Whether keys, passwords or tokens are usually kept there. `home` is the person's.
pub fn is_secret(path: &Path, home: Option<&Path>) -> bool {
    paths::is_secret(path, home)
}
