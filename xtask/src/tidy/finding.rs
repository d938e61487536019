//! A finding of a rule.

use std::fmt;

/// A broken rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Finding {
    /// Relative to the repository.
    pub(super) path: String,
    /// Counted from 1; `None` where the whole file is meant.
    pub(super) line: Option<usize>,
    pub(super) message: String,
}

impl Finding {
    pub(super) fn new(
        path: &str,
        line: impl Into<Option<usize>>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            path: path.to_owned(),
            line: line.into(),
            message: message.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.path, self.message),
            None => write!(f, "{}: {}", self.path, self.message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_names_file_and_line() {
        assert_eq!(
            Finding::new("a/b.rs", 3, "is wrong").to_string(),
            "a/b.rs:3: is wrong"
        );
        assert_eq!(
            Finding::new("a/b.rs", None, "is wrong").to_string(),
            "a/b.rs: is wrong"
        );
    }
}
