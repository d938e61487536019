//! A client of the Gemini API: one request to `streamGenerateContent`, one streamed reply.
//!
//! `request` makes the body, `stream` reads the reply, `errors` reads refusals, `signature` knows
//! what goes back to the provider byte for byte; all are pure. The shapes are those of version
//! `v1beta` as documented at <https://ai.google.dev/api/generate-content> and typed in version
//! 1.69 of the provider's own Go library (August 2026).
//!
//! Not here: explicit caches. The provider caches the beginnings of prompts by itself.

mod errors;
mod request;
mod screen;
mod signature;
mod stream;

use gyrus_contract::{ModelError, Prompt, ScreenSize};
use serde_json::Value;

use crate::{
    ModelConnection,
    client::{ModelProtocol, ProtocolClient},
    http::{KeyHeader, Wire},
};
use stream::GeminiReader;

/// A client for the Gemini API. Its base URL has no `/v1beta`.
pub type GeminiModel = ProtocolClient<Gemini>;

/// The Gemini API.
#[derive(Debug, Default)]
pub struct Gemini;

impl ModelProtocol for Gemini {
    type Reader = GeminiReader;

    const OPTIONAL: &'static [&'static str] = &["generationConfig"];

    fn prepare(connection: &mut ModelConnection) -> Result<(), ModelError> {
        // The provider lists its models with this word in front.
        if let Some(short) = connection.model.strip_prefix("models/") {
            connection.model = short.to_owned();
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let model = &connection.model;
        if !model.starts_with(char::is_alphanumeric) || !model.chars().all(is_plain) {
            return Err(ModelError::Refused {
                message: format!(
                    "invalid model name `{model}`: a name has letters, digits and -_."
                ),
            });
        }
        Ok(())
    }

    fn wire(connection: &ModelConnection) -> Wire {
        let model = &connection.model;
        let path = format!("/v1beta/models/{model}:streamGenerateContent?alt=sse");
        Wire {
            // Never in the address, which servers write into logs.
            key: KeyHeader::plain("x-goog-api-key"),
            ..Wire::new(path, errors::from_refusal)
        }
    }

    fn screen_tool() -> Option<Value> {
        Some(screen::tool())
    }

    fn body(
        &self,
        prompt: &Prompt,
        connection: &ModelConnection,
        _shown: Option<ScreenSize>,
    ) -> Result<Value, ModelError> {
        request::body(prompt, connection)
    }
}

#[cfg(feature = "sim")]
pub(crate) const SPECIMEN: crate::Specimen = crate::Specimen {
    name: "gemini",
    stream: include_str!("canonical.sse"),
    closing: &["finishReason"],
    read: crate::specimen::read::<GeminiReader>,
};
