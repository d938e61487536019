//! The properties of requests that servers of models refuse.

use serde::{Deserialize, Serialize};

/// A part or a property of requests that is omitted for a model. The order is the one in which they
/// are tried where the server's words do not tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Simplification {
    /// Only the few tools that most work needs, with instructions that each reply is one call: for
    /// models with a small window. No server asks for it.
    FewTools,
    /// Each reply is one JSON object, a call or the answer: for small models that write their calls
    /// as text. No server asks for it.
    OneObject,
    /// Pictures are half as wide and high.
    SmallerPictures,
    NoPictures,
    /// No thinking of earlier replies.
    NoThinking,
    /// Schemas of tools have types, names and descriptions only.
    PlainSchemas,
    /// The reply is not bound to a schema or to a call.
    UnboundReply,
    /// Only the parameters that every server of the protocol accepts.
    FewParameters,
    /// Tools are described in the prompt, and their calls are read from text.
    CallsInText,
}

impl Simplification {
    /// Simplifications that a refusal may require, in the order in which they are tried.
    pub const REMEDIES: [Self; 7] = [
        Self::SmallerPictures,
        Self::NoPictures,
        Self::NoThinking,
        Self::PlainSchemas,
        Self::UnboundReply,
        Self::FewParameters,
        Self::CallsInText,
    ];

    /// Returns a description of the simplification, for a person.
    pub fn words(self) -> &'static str {
        match self {
            Self::FewTools => "few tools",
            Self::OneObject => "replies of one object each",
            Self::SmallerPictures => "smaller pictures",
            Self::NoPictures => "no pictures",
            Self::NoThinking => "no earlier thinking",
            Self::PlainSchemas => "plain schemas of tools",
            Self::UnboundReply => "replies that are not bound",
            Self::FewParameters => "few parameters",
            Self::CallsInText => "calls in text",
        }
    }
}
