//! Failure of a call, on its way to the model.

use gyrus_contract::ToolOutput;

/// Message for a model: what went wrong and what to do differently. Any typed error becomes one by
/// `?`, with what it says.
pub struct ToolFailure(String);

impl ToolFailure {
    pub(crate) fn new(words: impl Into<String>) -> Self {
        Self(words.into())
    }

    /// Appends words to the message.
    pub(crate) fn and(self, words: &str) -> Self {
        Self(self.0 + words)
    }
}

impl<E: std::error::Error> From<E> for ToolFailure {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

impl From<ToolFailure> for ToolOutput {
    fn from(ToolFailure(words): ToolFailure) -> Self {
        Self::error(words)
    }
}
