//! A client of Ollama's own protocol: one request to `/api/chat`, one reply in lines of JSON.
//!
//! `request` makes the body, `stream` reads the reply, `errors` reads refusals; all three are pure.
//! The shapes are those of server version 0.33 (August 2026); features of 0.12 and later are
//! required: calls with ids, and that a prompt which is too long is refused instead of silently cut.
//!
//! The server's other protocol, Chat Completions, has its own client; this one can set the size of
//! the window.

mod errors;
mod request;
mod stream;

use gyrus_contract::{ModelError, Prompt, ScreenSize};
use serde_json::Value;

use crate::{
    ModelConnection,
    client::{ModelProtocol, ProtocolClient},
    http::Wire,
};
use stream::OllamaReader;

/// A model that an Ollama server runs. Its base URL has no `/api`.
pub type OllamaModel = ProtocolClient<Ollama>;

/// Ollama's own protocol.
#[derive(Debug, Default)]
pub struct Ollama;

impl ModelProtocol for Ollama {
    type Reader = OllamaReader;

    /// A server on this machine requires no key; a hosted one, or one behind a gateway, may.
    fn wire(_connection: &ModelConnection) -> Wire {
        Wire::new("/api/chat", errors::from_refusal)
    }

    fn body(
        &self,
        prompt: &Prompt,
        connection: &ModelConnection,
        _shown: Option<ScreenSize>,
    ) -> Result<Value, ModelError> {
        request::body(prompt, connection)
    }

    fn advise(error: ModelError) -> ModelError {
        errors::with_advice(error)
    }
}

#[cfg(feature = "sim")]
pub(crate) const SPECIMEN: crate::Specimen = crate::Specimen {
    name: "ollama",
    stream: include_str!("canonical.ndjson"),
    closing: &["done_reason"],
    read: crate::specimen::read::<OllamaReader>,
};
