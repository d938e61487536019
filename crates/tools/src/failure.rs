//! Failure of a call, on its way to the model.

use gyrus_contract::ToolOutput;

/// Message for a model: what went wrong and what to do differently. Any typed error becomes one by
/// `?`, with what it says.
pub(crate) struct Failure(String);

impl Failure {
    pub(crate) fn new(words: impl Into<String>) -> Self {
        Self(words.into())
    }

    /// Appends words to the message.
    pub(crate) fn and(self, words: &str) -> Self {
        Self(self.0 + words)
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

/// Returns the output of the call, or an error output: the call failed and changed nothing.
pub(crate) fn output(result: Result<ToolOutput, Failure>) -> ToolOutput {
    result.unwrap_or_else(|Failure(words)| ToolOutput::error(words))
}
