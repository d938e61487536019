//! A mistake in an agent file.

use std::fmt;

use gyrus_text::FileMistake;

use crate::failure::Failure;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Mistake {
    /// The line, counted from 1.
    pub(crate) line: usize,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl Mistake {
    pub(super) fn new(line: usize, message: String) -> Self {
        Self {
            line,
            message,
            hint: None,
        }
    }

    pub(super) fn of(line: usize, failure: Failure) -> Self {
        let causes = failure.causes.iter().map(|cause| format!(": {cause}"));
        Self {
            line,
            message: std::iter::once(failure.message).chain(causes).collect(),
            hint: failure.hint,
        }
    }
}

impl From<FileMistake> for Mistake {
    fn from(mistake: FileMistake) -> Self {
        Self::new(mistake.line, mistake.message)
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)?;
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}
