//! The problems of a policy file, all of them at once.

use std::{
    fmt,
    ops::Range,
    path::{Path, PathBuf},
};

use gyrus_text::counted;

/// Maximum number of problems reported for one file; the rest is counted.
const MAX_PROBLEMS: usize = 20;

/// A policy file that cannot be used. No part of it holds then: whoever loads it stops.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyError {
    pub file: PathBuf,
    /// The problems, in the order of the file; at most 20.
    pub problems: Vec<Problem>,
    /// Number of problems beyond these.
    pub more: usize,
}

/// A mistake in a policy file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The column, counted from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The key with the mistake; empty if it concerns no key.
    pub key: String,
    pub what: String,
    /// The correct form, if known.
    pub hint: Option<String>,
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.display();
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            write!(f, "{file}:{problem}")?;
        }
        if self.more > 0 {
            write!(f, "\n{file}: {}", counted(self.more, "more problem"))?;
        }
        Ok(())
    }
}

impl std::error::Error for PolicyError {}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.line, self.column)?;
        if !self.key.is_empty() {
            write!(f, "`{}`: ", self.key)?;
        }
        f.write_str(&self.what)?;
        match &self.hint {
            Some(hint) => write!(f, "; {hint}"),
            None => Ok(()),
        }
    }
}

/// Collects problems while a file is read.
pub(super) struct Problems<'t> {
    text: &'t str,
    /// Offsets of the line starts, so that a place is found without counting from the top again.
    lines: Vec<usize>,
    found: Vec<Problem>,
    more: usize,
}

impl<'t> Problems<'t> {
    pub(super) fn of(text: &'t str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Self {
            text,
            lines: std::iter::once(0)
                .chain(ends.map(|(at, _)| at + 1))
                .collect(),
            found: Vec::new(),
            more: 0,
        }
    }

    /// Returns the line of a byte, from 1.
    pub(super) fn line(&self, byte: usize) -> usize {
        self.lines.partition_point(|start| *start <= byte)
    }

    pub(super) fn add(&mut self, at: &Range<usize>, key: &str, what: impl Into<String>) {
        self.push(at, key, what.into(), None);
    }

    pub(super) fn add_with_hint(
        &mut self,
        at: &Range<usize>,
        key: &str,
        what: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.push(at, key, what.into(), Some(hint.into()));
    }

    fn push(&mut self, at: &Range<usize>, key: &str, what: String, hint: Option<String>) {
        if self.found.len() == MAX_PROBLEMS {
            self.more += 1;
            return;
        }
        let line = self.line(at.start);
        let before = self.text.get(self.lines[line - 1]..at.start);
        self.found.push(Problem {
            line,
            column: 1 + before.map_or(0, |before| before.chars().count()),
            key: shortened(key),
            what,
            hint,
        });
    }

    pub(super) fn count(&self) -> usize {
        self.found.len() + self.more
    }

    /// An error if anything was found.
    pub(super) fn into_result(mut self, file: &Path) -> Result<(), PolicyError> {
        if self.found.is_empty() {
            return Ok(());
        }
        self.found
            .sort_by_key(|problem| (problem.line, problem.column));
        Err(PolicyError {
            file: file.to_owned(),
            problems: self.found,
            more: self.more,
        })
    }
}

/// A text of the file as a message may show it: short, and with everything unseen named.
pub(super) fn shortened(text: &str) -> String {
    const MAX: usize = 80;
    gyrus_text::one_line(&gyrus_text::shorten(text, MAX)).into_owned()
}
