//! A client of Ollama's own protocol: one request to `/api/chat`, one reply in lines of JSON.
//!
//! `request` makes the body, `stream` reads the reply, `errors` reads refusals; all three are pure.
//! `models` lists the models. The shapes are those of server version 0.33 (August 2026); features
//! of 0.12 and later are required: calls with ids, and that a prompt which is too long is refused
//! instead of silently cut.
//!
//! The server's other protocol, Chat Completions, has its own client; this one can set the size of
//! the window.

mod errors;
mod lines;
mod models;
mod request;
mod stream;

use gyrus_contract::{Boxed, Delta, Image, Model, ModelError, Price, Prompt, Reply};
use reqwest::header::HeaderMap;

use crate::{
    Connection,
    http::{Endpoint, KeyHeader, Protocol},
};
pub use models::{LocalModel, local_models};
use stream::Reader;

/// A model that an Ollama server runs.
pub struct OllamaModel {
    endpoint: Endpoint,
    connection: Connection,
    name: String,
}

impl OllamaModel {
    /// Creates a client of the model at `connection`, whose base URL has no `/api`. Nothing is sent
    /// yet.
    ///
    /// # Errors
    /// [`ModelError::Network`] if the address is invalid, [`ModelError::Auth`] if the key has
    /// invalid characters.
    pub fn new(connection: Connection) -> Result<Self, ModelError> {
        Ok(Self {
            endpoint: Endpoint::new(&connection, protocol())?,
            name: connection.name(),
            connection,
        })
    }

    async fn ask(
        &self,
        prompt: &Prompt,
        deltas: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Reply, ModelError> {
        let body = request::body(prompt, &self.connection)?.to_string();
        let reader = Reader::new(&self.connection.model);
        self.endpoint
            .ask(body, HeaderMap::new(), reader, deltas)
            .await
            .map_err(errors::with_advice)
    }
}

/// Describes the protocol. A server on this machine requires no key; a hosted one, or one behind a
/// gateway, may.
fn protocol() -> Protocol {
    Protocol {
        path: "/api/chat".to_owned(),
        key: KeyHeader::BEARER,
        headers: HeaderMap::new(),
        content_type: "application/x-ndjson",
        classify: errors::from_refusal,
    }
}

impl Model for OllamaModel {
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
    name: "ollama",
    stream: include_str!("canonical.ndjson"),
    closing: &["done_reason"],
    read: crate::sim::read::<Reader>,
};
