//! Notices that a reply repeats itself without end, as small models do when they are lost.

/// Length of the end of a reply that has to consist of repetitions, in bytes.
const SPAN: usize = 1_200;

/// Maximum length of what is repeated, in bytes; [`SPAN`] holds it at least six times.
const LONGEST_PERIOD: usize = 200;

/// Growth between two looks, in bytes.
const LOOK_EVERY: usize = 200;

/// Watches one text while it grows.
#[derive(Debug, Default)]
pub(crate) struct Repetition {
    looked_at: usize,
}

impl Repetition {
    /// Whether the end of the text, which has grown since the last call, only repeats itself.
    pub(crate) fn is_in(&mut self, text: &str) -> bool {
        if text.len() < self.looked_at {
            // Another text, as that of the next call.
            self.looked_at = 0;
        }
        if text.len() < self.looked_at + LOOK_EVERY {
            return false;
        }
        self.looked_at = text.len();
        let bytes = text.as_bytes();
        let Some(end) = bytes.len().checked_sub(SPAN).map(|start| &bytes[start..]) else {
            return false;
        };
        (1..=LONGEST_PERIOD).any(|period| end[period..] == end[..SPAN - period])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds a text in small pieces; returns the length at which it was noticed.
    fn noticed(text: &str) -> Option<usize> {
        let mut repetition = Repetition::default();
        let ends = (0..=text.len()).filter(|end| text.is_char_boundary(*end));
        ends.step_by(7).find(|end| repetition.is_in(&text[..*end]))
    }

    #[test]
    fn endless_repetition_is_noticed_and_other_texts_are_not() {
        let lost = format!("I think so. {}", "I will read the file again. ".repeat(200));
        assert!(noticed(&lost).is_some_and(|length| length < 2_000));
        assert!(noticed(&"\n".repeat(5_000)).is_some_and(|length| length < 2_000));
        let table: String = (0..400)
            .map(|row| format!("| {row} | row {row} |\n"))
            .collect();
        assert_eq!(noticed(&table), None);
        assert_eq!(noticed(&"-".repeat(1_000)), None);
        let list = "let value = compute(&input)?;\n".repeat(20);
        assert_eq!(noticed(&list), None);
    }
}
