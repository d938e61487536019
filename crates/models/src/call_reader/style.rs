//! The forms in which models are offered tools.

use serde::{Deserialize, Serialize};

/// The form in which a model is offered tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallStyle {
    /// Tools go over the wire.
    #[default]
    Native,
    /// Tools are described in the prompt, and calls are read from text.
    Prompted,
    /// Like `Prompted`, with every reply bound to one call, or to the answer, by a JSON schema.
    Bound,
}
