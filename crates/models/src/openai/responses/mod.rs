//! A client of the Responses protocol, without the provider keeping anything: each request
//! carries the whole conversation, and reasoning comes back as what the provider encrypted.
//!
//! `request` makes the body and `stream` reads the reply; both are pure.

mod request;
mod screen;
mod stream;

use std::sync::atomic::{AtomicBool, Ordering};

use gyrus_contract::{Boxed, Delta, Image, Model, ModelError, Price, Prompt, Reply, Shown};
use reqwest::header::HeaderMap;
use serde_json::json;

use super::errors;
use crate::{
    Connection,
    http::{Endpoint, KeyHeader, Protocol},
    screen::{offered, told},
};
use stream::Reader;

/// A model that is reached by the Responses protocol.
pub struct ResponsesModel {
    endpoint: Endpoint,
    connection: Connection,
    name: String,
    /// Whether the model refused to return reasoning, because it does none.
    is_plain: AtomicBool,
}

impl ResponsesModel {
    /// Creates a client of the model at `connection`, whose base URL has no `/responses`. Nothing
    /// is sent yet.
    ///
    /// # Errors
    /// [`ModelError::Network`] if the address is invalid, [`ModelError::Auth`] if the key has
    /// invalid characters.
    pub fn new(connection: Connection) -> Result<Self, ModelError> {
        let protocol = Protocol {
            path: "/responses".to_owned(),
            key: KeyHeader::BEARER,
            headers: HeaderMap::new(),
            content_type: "text/event-stream",
            classify: errors::from_refusal,
        };
        Ok(Self {
            endpoint: Endpoint::new(&connection, protocol)?,
            name: connection.name(),
            connection,
            is_plain: AtomicBool::new(false),
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
            screen::keep_pixels(&mut body);
        }
        if !self.is_plain.load(Ordering::Relaxed) {
            request::include_reasoning(&mut body);
            match self.send(body.to_string(), shown, deltas).await {
                // It is unknown which models reason. The provider refuses before any work is done,
                // so asking again costs nothing and is not a retry.
                Err(error) if errors::is_about_reasoning(&error) => {
                    self.is_plain.store(true, Ordering::Relaxed);
                    request::exclude_reasoning(&mut body);
                }
                came => return came,
            }
        }
        self.send(body.to_string(), shown, deltas).await
    }

    async fn send(
        &self,
        body: String,
        shown: Option<Shown>,
        deltas: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Reply, ModelError> {
        let reader = Reader::new(shown);
        self.endpoint
            .ask(body, HeaderMap::new(), reader, deltas)
            .await
    }
}

impl Model for ResponsesModel {
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

/// Describes the protocol for the sweep of broken streams.
#[cfg(any(test, feature = "sim"))]
pub(crate) const SPECIMEN: crate::sim::Specimen = crate::sim::Specimen {
    name: "responses",
    stream: include_str!("canonical.sse"),
    closing: &["response.completed", "response.incomplete", "response.done"],
    read: crate::sim::read::<Reader>,
};
