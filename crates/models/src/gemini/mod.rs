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

use gyrus_contract::{Boxed, Delta, Image, Model, ModelError, Price, Prompt, Reply};
use reqwest::header::HeaderMap;
use serde_json::json;

use crate::{
    Connection,
    http::{Endpoint, KeyHeader, Protocol},
    screen::{offered, told},
};
use stream::Reader;

/// A model that is reached by the Gemini API.
pub struct GeminiModel {
    endpoint: Endpoint,
    connection: Connection,
    name: String,
}

impl GeminiModel {
    /// Creates a client of the model at `connection`, whose base URL has no `/v1beta`. Nothing is
    /// sent yet.
    ///
    /// # Errors
    /// [`ModelError::Network`] if the address is invalid, [`ModelError::Auth`] if the key has
    /// invalid characters, [`ModelError::Refused`] if the model's name has characters that would
    /// lead to another address.
    pub fn new(mut connection: Connection) -> Result<Self, ModelError> {
        // The provider lists its models with this word in front.
        if let Some(short) = connection.model.strip_prefix("models/") {
            connection.model = short.to_owned();
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let model = &connection.model;
        if !model.starts_with(char::is_alphanumeric) || !model.chars().all(is_plain) {
            return Err(ModelError::Refused {
                message: format!("`{model}` is no name of a model; it has letters, digits and -_."),
            });
        }
        // The key goes into a header, never into the address, which servers write into logs.
        let protocol = Protocol {
            path: format!("/v1beta/models/{model}:streamGenerateContent?alt=sse"),
            key: KeyHeader {
                name: "x-goog-api-key",
                prefix: "",
            },
            headers: HeaderMap::new(),
            content_type: "text/event-stream",
            classify: errors::from_refusal,
        };
        Ok(Self {
            endpoint: Endpoint::new(&connection, protocol)?,
            name: connection.name(),
            connection,
        })
    }

    async fn ask(
        &self,
        prompt: &Prompt,
        deltas: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Reply, ModelError> {
        let shown = offered(prompt, &self.connection.facts);
        let mut body = request::body(&told(prompt, shown), &self.connection)?;
        if shown.is_some() {
            body["tools"] = json!([screen::tool()]);
        }
        let reader = Reader::new(&self.connection.model, shown);
        self.endpoint
            .ask(body.to_string(), HeaderMap::new(), reader, deltas)
            .await
    }
}

impl Model for GeminiModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn price(&self) -> Option<Price> {
        self.connection.facts.price
    }

    fn window(&self) -> Option<u64> {
        self.connection.facts.window
    }

    fn image_tokens(&self, image: &Image) -> u64 {
        self.connection.facts.image_tokens(image)
    }

    fn reply<'a>(
        &'a self,
        prompt: &'a Prompt,
        deltas: &'a mut (dyn FnMut(Delta) + Send),
    ) -> Boxed<'a, Result<Reply, ModelError>> {
        Box::pin(self.ask(prompt, deltas))
    }
}

#[cfg(any(test, feature = "sim"))]
pub(crate) const SPECIMEN: crate::sim::Specimen = crate::sim::Specimen {
    name: "gemini",
    stream: include_str!("canonical.sse"),
    closing: &["finishReason"],
    read: crate::sim::read::<Reader>,
};
