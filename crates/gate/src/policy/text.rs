//! Patterns of plain text: tool names, agents, values of arguments.

/// A text in which `*` stands for anything, `/` and line ends included. It is matched whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TextPattern(String);

impl TextPattern {
    pub(super) fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    pub(super) fn matches(&self, text: &str) -> bool {
        gyrus_text::fits(&self.0, text)
    }

    /// Returns the text, if it contains no star.
    pub(super) fn literal(&self) -> Option<&str> {
        (!self.0.contains('*')).then_some(self.0.as_str())
    }
}
