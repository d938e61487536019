//! Describes an error in a file that a person wrote.

use crate::meant::closest_in;

/// A mistake in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileMistake {
    /// The line, from 1.
    pub line: usize,
    /// The error, in one line.
    pub message: String,
    /// The known word that is nearest to an unknown one.
    pub nearest: Option<String>,
}

/// The mistake that a parser of `text` complains of in `message`, at the byte `start`. Words in
/// backquotes after `unknown …` are the unknown one and those that are known.
pub fn file_mistake(text: &str, start: usize, message: &str) -> FileMistake {
    let before = text.bytes().take(start);
    let told = message.replacen("unknown field", "unknown key", 1);
    FileMistake {
        line: 1 + before.filter(|byte| *byte == b'\n').count(),
        message: told.trim().replace('\n', "; "),
        nearest: closest_in(&told).map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_has_its_line_and_the_nearest_word() {
        let message = "unknown field `modle`, expected one of `model`, `limits`";
        assert_eq!(
            file_mistake("a = 1\nmodle = 2\n", 6, message),
            FileMistake {
                line: 2,
                message: "unknown key `modle`, expected one of `model`, `limits`".to_owned(),
                nearest: Some("model".to_owned()),
            }
        );
        let far = file_mistake("", 99, "unknown field `x`, expected `model`\nor none");
        assert_eq!((far.line, far.nearest), (1, None));
        assert!(far.message.ends_with("`model`; or none"), "{}", far.message);
        assert_eq!(file_mistake("", 0, "expected `=`").nearest, None);
    }
}
