//! A client of Chat Completions, the provider's own or a compatible server's.
//!
//! `request` makes the body and `stream` reads the reply; both are pure.

mod request;
mod stream;

use gyrus_contract::{Boxed, Delta, Image, Model, ModelError, Price, Prompt, Reply};
use reqwest::{Url, header::HeaderMap};

use super::errors;
use crate::{
    Connection,
    http::{Endpoint, KeyHeader, Protocol},
};
use stream::Reader;

/// A model that is reached by Chat Completions.
pub struct ChatModel {
    endpoint: Endpoint,
    connection: Connection,
    name: String,
    limit_field: &'static str,
}

impl ChatModel {
    /// Creates a client of the model at `connection`, whose base URL has no `/chat/completions`.
    /// Nothing is sent yet.
    ///
    /// # Errors
    /// [`ModelError::Network`] if the address is invalid, [`ModelError::Auth`] if the key has
    /// invalid characters.
    pub fn new(connection: Connection) -> Result<Self, ModelError> {
        let protocol = Protocol {
            path: "/chat/completions".to_owned(),
            key: KeyHeader::BEARER,
            headers: HeaderMap::new(),
            content_type: "text/event-stream",
            classify: errors::from_refusal,
        };
        // The provider refuses the old name for its newer models; compatible servers know only
        // the old one, and some ignore the new one in silence.
        let limit_field = match is_own(&connection.base_url) {
            true => "max_completion_tokens",
            false => "max_tokens",
        };
        Ok(Self {
            endpoint: Endpoint::new(&connection, protocol)?,
            name: connection.name(),
            connection,
            limit_field,
        })
    }

    async fn ask(
        &self,
        prompt: &Prompt,
        deltas: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Reply, ModelError> {
        let body = request::body(prompt, &self.connection, self.limit_field)?;
        let reader = Reader::default();
        self.endpoint
            .ask(body.to_string(), HeaderMap::new(), reader, deltas)
            .await
    }
}

/// Whether the address is the provider's own, also as rented from its partner's cloud.
fn is_own(base_url: &str) -> bool {
    let url = Url::parse(base_url).ok();
    let host = url.as_ref().and_then(Url::host_str).unwrap_or_default();
    ["openai.com", "openai.azure.com"]
        .iter()
        .any(|own| host == *own || host.ends_with(&format!(".{own}")))
}

impl Model for ChatModel {
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
    name: "chat",
    stream: include_str!("canonical.sse"),
    closing: &["\"finish_reason\":\""],
    read: crate::sim::read::<Reader>,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_providers_own_address_is_known() {
        let check = |url: &str, expected| assert_eq!(is_own(url), expected, "{url}");
        check("https://api.openai.com/v1", true);
        check("https://eu.api.openai.com/v1", true);
        check("https://mine.openai.azure.com/openai/v1", true);
        check("https://openai.com.example.net/v1", false);
        check("https://notopenai.com/v1", false);
        check("http://127.0.0.1:8080/v1?of=openai.com", false);
        check("openai.com", false);
    }
}
