//! A client of the Messages protocol: one request, one streamed reply.
//!
//! `request` makes the body, `stream` reads the reply, `errors` reads refusals; all three are
//! pure. The wire itself is the one that all providers share.

mod errors;
mod events;
mod request;
mod screen;
mod stream;

use gyrus_contract::{ModelError, Prompt, ScreenSize};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use crate::{
    ModelConnection,
    client::{ModelProtocol, ProtocolClient},
    http::{KeyHeader, Wire},
};
use stream::AnthropicReader;

/// Version of the protocol, sent with each request.
const PROTOCOL_VERSION: (HeaderName, HeaderValue) = (
    HeaderName::from_static("anthropic-version"),
    HeaderValue::from_static("2023-06-01"),
);

/// A client for the Messages protocol. Its base URL has no `/v1/messages`.
pub type AnthropicModel = ProtocolClient<Messages>;

/// The Messages protocol.
#[derive(Debug, Default)]
pub struct Messages;

impl ModelProtocol for Messages {
    type Reader = AnthropicReader;

    fn wire(_connection: &ModelConnection) -> Wire {
        Wire {
            key: KeyHeader::plain("x-api-key"),
            headers: HeaderMap::from_iter([PROTOCOL_VERSION]),
            ..Wire::new("/v1/messages", errors::from_refusal)
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

/// Describes the protocol for the sweep of broken streams.
#[cfg(feature = "sim")]
pub(crate) const SPECIMEN: crate::Specimen = crate::Specimen {
    name: "messages",
    stream: include_str!("canonical.sse"),
    closing: &["message_stop"],
    read: crate::specimen::read::<AnthropicReader>,
};
