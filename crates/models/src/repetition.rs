//! Notices that a reply repeats itself without end, as small models do when they are lost.

/// Length in bytes of the repetitive end that makes a reply count as endless.
const SPAN: usize = 1_200;

/// Maximum length of a repeated part, in bytes; [`SPAN`] holds it at least six times.
const LONGEST_PERIOD: usize = 200;

/// Growth in bytes between two checks.
const LOOK_EVERY: usize = 64;

/// Line feeds at the end of a text after which no more words are expected. A server that binds a reply
/// to a call lets a model write these without end after a call in its text.
const BLANK_LINES: usize = 48;

/// The form of an endless reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Endless {
    /// The reply repeats the same text again and again.
    Repeats,
    /// The reply is complete, and only blank lines follow.
    Blank,
}

/// Detects endless repetition in one text as it grows.
#[derive(Debug, Default)]
pub(crate) struct TextRepetition {
    looked_at: usize,
}

impl TextRepetition {
    /// Returns the endless form of the text, which has grown since the last call, if it has one.
    pub(crate) fn seen_in(&mut self, text: &str) -> Option<Endless> {
        if text.len() < self.looked_at {
            // Another text, as that of the next call.
            self.looked_at = 0;
        }
        if text.len() < self.looked_at + LOOK_EVERY {
            return None;
        }
        self.looked_at = text.len();
        let bytes = text.as_bytes();
        let blank = bytes
            .iter()
            .rev()
            .take_while(|byte| byte.is_ascii_whitespace());
        if blank.filter(|byte| **byte == b'\n').count() >= BLANK_LINES {
            return Some(Endless::Blank);
        }
        let end = &bytes[bytes.len().checked_sub(SPAN)?..];
        let repeats = (1..=LONGEST_PERIOD).any(|period| end[period..] == end[..SPAN - period]);
        repeats.then_some(Endless::Repeats)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds a text in small pieces; returns the length at which it was noticed.
    fn noticed(text: &str) -> Option<usize> {
        let mut repetition = TextRepetition::default();
        let ends = (0..=text.len()).filter(|end| text.is_char_boundary(*end));
        ends.step_by(7)
            .find(|end| repetition.seen_in(&text[..*end]).is_some())
    }

    #[test]
    fn endless_repetition_is_noticed_and_other_texts_are_not() {
        let lost = format!("I think so. {}", "I will read the file again. ".repeat(200));
        assert!(noticed(&lost).is_some_and(|length| length < 2_000));
        let over = format!("{{\"tool\": \"read\"}}{}", "\n".repeat(5_000));
        assert!(noticed(&over).is_some_and(|length| length < 200));
        assert!(noticed(&" ".repeat(5_000)).is_some_and(|length| length < 2_000));
        let table: String = (0..400)
            .map(|row| format!("| {row} | row {row} |\n"))
            .collect();
        assert_eq!(noticed(&table), None);
        assert_eq!(noticed(&"-".repeat(1_000)), None);
        let list = "let value = compute(&input)?;\n".repeat(20);
        assert_eq!(noticed(&list), None);
    }
}
