//! What a command line does, as far as reading it can tell.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

/// A command line, read without running it. What is not understood is a [`Does::Hides`]. A reading
/// can make a verdict stricter and a card clearer; nothing is allowed because of it, but for a line
/// that is `plain`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CommandReading {
    /// Every simple command in it, in the order written; those in substitutions, subshells and
    /// the texts of nested shells, too.
    pub commands: Vec<SimpleCommand>,
    /// What it seems to do.
    pub facts: Vec<CommandFact>,
    /// It is one program of those that only read, with literal words, and no more: whatever it does
    /// stands in `facts`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub plain: bool,
    /// What its words may stand for, where rules of the policy ask about paths.
    #[serde(default, skip_serializing_if = "NamedPaths::is_empty")]
    pub named: NamedPaths,
    /// Variables to set when it is run, so that its programs do no more than was read.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
}

impl CommandReading {
    /// Whether it seems to do nothing but read.
    pub fn only_reads(&self) -> bool {
        self.facts
            .iter()
            .all(|fact| matches!(fact.does, Does::Reads { .. }))
    }
}

/// Paths that the words of a line may stand for, as far as rules of the policy are about them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NamedPaths {
    /// Real paths.
    pub paths: Vec<PathBuf>,
    /// A word is known only when the line runs, so it may stand for any path.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub any: bool,
}

impl NamedPaths {
    /// Whether no rule needs to know of anything.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty() && !self.any
    }
}

/// A program with its arguments, quotes and escapes removed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SimpleCommand {
    /// The program first.
    pub words: Vec<CommandWord>,
}

/// One word of a command.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum CommandWord {
    /// Exactly this text, whatever happens.
    Literal(String),
    /// Known only when it runs: a variable, a glob, a substitution.
    Open {
        /// As it is written.
        open: String,
    },
}

impl CommandWord {
    /// The text, if it is known.
    pub fn literal(&self) -> Option<&str> {
        match self {
            CommandWord::Literal(text) => Some(text),
            CommandWord::Open { .. } => None,
        }
    }
}

/// One thing that a command line does.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CommandFact {
    /// What it does.
    pub does: Does,
    /// The part of the line that does it, shortened.
    pub part: String,
    /// Why this is so, for a person; without the part itself.
    pub why: String,
}

/// What a part of a command line does. Paths are absolute and free of `.` and `..`; links in them
/// are not followed yet.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Does {
    /// Reads this file, or this folder with all below it.
    Reads {
        /// Which.
        path: PathBuf,
    },
    /// Creates or changes this file or folder, plainly.
    Writes {
        /// Which.
        path: PathBuf,
    },
    /// Deletes it, or moves it away.
    Removes {
        /// Which.
        path: PathBuf,
    },
    /// Changes the repository through its version control, whose hooks may run.
    ChangesRepository,
    /// Runs a program whose text lies in the workspace or in the line itself: builds, tests,
    /// scripts, interpreters.
    RunsCode,
    /// Gets packages from a package registry.
    GetsPackages,
    /// Connects to these hosts; none is named if they are not known.
    Connects {
        /// Which, in lower case.
        hosts: Vec<String>,
    },
    /// Reads or uses keys, passwords or tokens.
    UsesCredentials,
    /// Acts in a person's name where others see it: pushes, publishes, sends.
    Publishes,
    /// Destroys beyond recall.
    Destroys,
    /// Changes the machine: packages, services, users, other processes.
    ChangesSystem,
    /// Hides what it does, or is not understood.
    Hides,
}

/// A program and its arguments on one line, for a person: what is not plainly one word stands in
/// quotation marks, and characters that are not seen as they are stand there as their numbers.
pub fn quoted_words(program: &Path, arguments: &[String]) -> String {
    let program = program.to_string_lossy();
    let words = std::iter::once(&*program).chain(arguments.iter().map(String::as_str));
    let quoted: Vec<String> = words.map(quoted_word).collect();
    quoted.join(" ")
}

/// One of the words of [`quoted_words`].
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

/// Letters that are shown as nothing: the fillers of Hangul, and blanks of hieroglyphs.
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
