//! A client of the Messages protocol: one request, one streamed reply.
//!
//! `request` makes the body, `stream` reads the reply, `errors` reads refusals; all three are
//! pure. The wire itself is the one that all providers share.

mod errors;
mod events;
mod request;
mod screen;
mod stream;

use gyrus_contract::{Boxed, Delta, Image, Model, ModelError, Price, Prompt, Reply};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::json;

use crate::{
    Connection,
    http::{Endpoint, KeyHeader, Protocol},
    screen::{offered, told},
};
use stream::Reader;

/// Version of the protocol, sent with each request.
const PROTOCOL_VERSION: (HeaderName, HeaderValue) = (
    HeaderName::from_static("anthropic-version"),
    HeaderValue::from_static("2023-06-01"),
);

/// A model that is reached by the Messages protocol.
pub struct AnthropicModel {
    endpoint: Endpoint,
    connection: Connection,
    name: String,
}

impl AnthropicModel {
    /// Creates a client of the model at `connection`, whose base URL has no `/v1/messages`. Nothing
    /// is sent yet.
    ///
    /// # Errors
    /// [`ModelError::Network`] if the address is invalid, [`ModelError::Auth`] if the key has
    /// invalid characters.
    pub fn new(connection: Connection) -> Result<Self, ModelError> {
        let protocol = Protocol {
            path: "/v1/messages".to_owned(),
            key: KeyHeader {
                name: "x-api-key",
                prefix: "",
            },
            headers: HeaderMap::from_iter([PROTOCOL_VERSION]),
            content_type: "text/event-stream",
            classify: errors::from_refusal,
        };
        Ok(Self {
            endpoint: Endpoint::new(&connection, protocol)?,
            name: connection.name(),
            connection,
        })
    }

    /// Sends one request, with `extra` headers.
    pub(crate) async fn ask(
        &self,
        prompt: &Prompt,
        extra: HeaderMap,
        deltas: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Reply, ModelError> {
        let shown = offered(prompt, &self.connection.facts);
        let mut body = request::body(&told(prompt, shown), &self.connection)?;
        if shown.is_some() {
            body["tools"] = json!([screen::tool()]);
        }
        let reader = Reader::new(shown);
        self.endpoint
            .ask(body.to_string(), extra, reader, deltas)
            .await
    }
}

impl Model for AnthropicModel {
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
        Box::pin(self.ask(prompt, HeaderMap::new(), deltas))
    }
}

/// Describes the protocol for the sweep of broken streams.
#[cfg(any(test, feature = "sim"))]
pub(crate) const SPECIMEN: crate::sim::Specimen = crate::sim::Specimen {
    name: "messages",
    stream: include_str!("canonical.sse"),
    closing: &["message_stop"],
    read: crate::sim::read::<Reader>,
};
