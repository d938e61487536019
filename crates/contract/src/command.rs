//! The effects of a command line, as far as they can be told by reading it.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

/// The analysis of a command line, without running it. Parts that are not understood become
/// [`Does::Hides`]. A reading can make a verdict stricter and an approval card clearer; it never
/// allows anything, except for a line that is `plain`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CommandReading {
    /// The simple commands in the line, in the order written, including those in substitutions,
    /// subshells and the texts of nested shells.
    pub commands: Vec<SimpleCommand>,
    /// The apparent effects of the line.
    pub facts: Vec<CommandFact>,
    /// Whether the line is a single read-only program with literal words and nothing else, so that
    /// `facts` lists everything it does.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub plain: bool,
    /// The paths that the line's words may stand for, if rules of the policy are about paths.
    #[serde(default, skip_serializing_if = "NamedPaths::is_empty")]
    pub named: NamedPaths,
    /// Variables to set when the line runs, so that its programs do no more than was read.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
}

impl CommandReading {
    /// Whether the line seems to do nothing but read.
    pub fn only_reads(&self) -> bool {
        self.facts
            .iter()
            .all(|fact| matches!(fact.does, Does::Reads { .. }))
    }
}

/// Paths that the words of a line may stand for, for rules of the policy about paths.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NamedPaths {
    /// Real paths.
    pub paths: Vec<PathBuf>,
    /// Whether some word is known only when the line runs, so that it may mean any path.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub any: bool,
}

impl NamedPaths {
    /// Whether the words mean no path that a rule is about.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty() && !self.any
    }
}

/// A program with its arguments, quotes and escapes removed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SimpleCommand {
    /// The words, the program first.
    pub words: Vec<CommandWord>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum CommandWord {
    /// A text that is known exactly.
    Literal(String),
    /// A text that is known only at run time: a variable, a glob, a substitution.
    Open {
        /// The word as written.
        open: String,
    },
}

impl CommandWord {
    /// Returns the text, if it is known.
    pub fn literal(&self) -> Option<&str> {
        match self {
            CommandWord::Literal(text) => Some(text),
            CommandWord::Open { .. } => None,
        }
    }
}

/// An effect of a part of a command line.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CommandFact {
    pub does: Does,
    /// The part of the line with this effect, shortened.
    pub part: String,
    /// The reason for a person, without the part itself.
    pub why: String,
}

/// The effect of a part of a command line. Paths are absolute and free of `.` and `..`; links in
/// them are not followed yet.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Does {
    /// Reads this file, or this folder with everything below.
    Reads {
        /// The file or folder.
        path: PathBuf,
    },
    /// Creates or changes this file or folder.
    Writes {
        /// The file or folder.
        path: PathBuf,
    },
    /// Deletes this file or folder, or moves it away.
    Removes {
        /// The file or folder.
        path: PathBuf,
    },
    /// Changes the repository through its version control, whose hooks may run.
    ChangesRepository,
    /// Runs a program whose text lies in the workspace or in the line itself: builds, tests,
    /// scripts, interpreters.
    RunsCode,
    /// Gets packages from a package registry.
    GetsPackages,
    /// Connects to hosts.
    Connects {
        /// The hosts in lower case; empty if they are not known.
        hosts: Vec<String>,
    },
    /// Reads or uses keys, passwords or tokens.
    UsesCredentials,
    /// Acts in a person's name where others see it: pushes, publishes, sends.
    Publishes,
    /// Destroys data that cannot be restored.
    Destroys,
    /// Changes the machine: packages, services, users, other processes.
    ChangesSystem,
    /// Hides the effect, or could not be understood.
    Hides,
}

/// Formats a program and its arguments on one line for a person. Anything but a plain word is
/// quoted, and characters that are not visible are written as their numbers.
pub fn quoted_words(program: &Path, arguments: &[String]) -> String {
    let program = program.to_string_lossy();
    let words = std::iter::once(&*program).chain(arguments.iter().map(String::as_str));
    let quoted: Vec<String> = words.map(quoted_word).collect();
    quoted.join(" ")
}

/// Formats one word for [`quoted_words`].
pub fn quoted_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,~^".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    let mut quoted = String::from("\"");
    for c in word.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            ' '..='~' => quoted.push(c),
            // Letters are seen; marks, joiners, spaces of other widths and the like may not be.
            c if c.is_alphanumeric() && !is_blank_letter(c) => quoted.push(c),
            c => quoted.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
        }
    }
    quoted.push('"');
    quoted
}

/// Whether a letter is invisible, as the fillers of Hangul are.
fn is_blank_letter(c: char) -> bool {
    matches!(
        c,
        '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' | '\u{13441}' | '\u{13442}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_shown_as_they_are() {
        for (word, shown) in [
            ("push", "push"),
            ("--upload-pack=./evil", "--upload-pack=./evil"),
            ("", "\"\""),
            ("a b", "\"a b\""),
            ("$(touch x); `y` 'z'", "\"$(touch x); `y` 'z'\""),
            ("say \"no\" \\", "\"say \\\"no\\\" \\\\\""),
            ("a\nb\tc\r\u{1b}[2J", "\"a\\nb\\tc\\u{d}\\u{1b}[2J\""),
            (
                "x\u{202e}y\u{200b}\u{3164}\u{fe0f}\u{e0100}",
                "\"x\\u{202e}y\\u{200b}\\u{3164}\\u{fe0f}\\u{e0100}\"",
            ),
            ("größe 日本", "\"größe 日本\""),
            ("\u{a0}", "\"\\u{a0}\""),
        ] {
            assert_eq!(quoted_word(word), shown);
        }
        let arguments = ["a b".to_owned()];
        let words = quoted_words(Path::new("/usr/bin/git"), &arguments);
        assert_eq!(words, "/usr/bin/git \"a b\"");
    }
}
