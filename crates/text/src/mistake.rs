//! Describes an error in a file that a person wrote.

use std::{error::Error, fmt, ops::Range};

use crate::meant::closest_in;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileMistake {
    /// The line, from 1.
    pub line: usize,
    /// The error, in one line.
    pub message: String,
    /// The known word that is nearest to an unknown one in the error.
    pub nearest: Option<String>,
}

/// Formats the mistake in one line, without the name of the file.
impl fmt::Display for FileMistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)?;
        match &self.nearest {
            Some(word) => write!(f, "; did you mean `{word}`?"),
            None => Ok(()),
        }
    }
}

impl Error for FileMistake {}

/// Returns the mistake that a parser of `text` reports in `message`, at the bytes `at`; without
/// them, it is in the first line. Words in backquotes after `unknown …` are the unknown one and
/// those that are known.
pub fn file_mistake(text: &str, at: Option<Range<usize>>, message: &str) -> FileMistake {
    let told = message
        .replacen("unknown field", "unknown key", 1)
        .replacen("unknown variant", "unknown word", 1)
        .replacen("missing field", "missing key", 1);
    FileMistake {
        line: line_of(text, at.map_or(0, |at| at.start)),
        message: told.trim().replace('\n', "; "),
        nearest: closest_in(&told).map(str::to_owned),
    }
}

/// The line that contains the byte, from 1.
pub fn line_of(text: &str, byte: usize) -> usize {
    let before = text.bytes().take(byte);
    1 + before.filter(|byte| *byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_has_its_line_and_the_nearest_word() {
        let message = "unknown field `modle`, expected one of `model`, `limits`";
        assert_eq!(
            file_mistake("a = 1\nmodle = 2\n", Some(6..11), message),
            FileMistake {
                line: 2,
                message: "unknown key `modle`, expected one of `model`, `limits`".to_owned(),
                nearest: Some("model".to_owned()),
            }
        );
        let far = file_mistake(
            "",
            Some(99..100),
            "unknown field `x`, expected `model`\nor none",
        );
        assert_eq!((far.line, far.nearest), (1, None));
        assert!(far.message.ends_with("`model`; or none"), "{}", far.message);
        assert_eq!(file_mistake("", None, "expected `=`").nearest, None);
        let word = file_mistake("", None, "unknown variant `agnet`, expected `agent`");
        assert_eq!(
            word.to_string(),
            "line 1: unknown word `agnet`, expected `agent`; did you mean `agent`?"
        );
    }
}
