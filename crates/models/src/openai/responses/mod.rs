//! A client of the Responses protocol, without the provider keeping anything: each request
//! carries the whole conversation, and reasoning comes back as what the provider encrypted.
//!
//! `request` makes the body and `stream` reads the reply; both are pure.

mod request;
mod screen;
mod stream;

use std::sync::atomic::{AtomicBool, Ordering};

use gyrus_contract::{ModelError, Prompt, ScreenSize};
use serde_json::Value;

use super::errors;
use crate::{
    ModelConnection,
    client::{ModelProtocol, ProtocolClient},
    http::Wire,
};
use stream::ResponsesReader;

/// A client for the Responses protocol. Its base URL has no `/responses`.
pub type ResponsesModel = ProtocolClient<Responses>;

/// The Responses protocol.
#[derive(Debug, Default)]
pub struct Responses {
    /// Whether the server refused to return reasoning because the model does not reason.
    is_plain: AtomicBool,
}

impl ModelProtocol for Responses {
    type Reader = ResponsesReader;

    const OPTIONAL: &'static [&'static str] = &["include", "max_output_tokens"];

    fn wire(_connection: &ModelConnection) -> Wire {
        Wire::new("/responses", errors::from_refusal)
    }

    fn screen_tool() -> Option<Value> {
        Some(screen::tool())
    }

    fn body(
        &self,
        prompt: &Prompt,
        connection: &ModelConnection,
        shown: Option<ScreenSize>,
    ) -> Result<Value, ModelError> {
        let mut body = request::body(prompt, connection)?;
        if shown.is_some() {
            screen::keep_pixels(&mut body);
        }
        if !self.is_plain.load(Ordering::Relaxed) {
            request::include_reasoning(&mut body);
        }
        Ok(body)
    }

    /// Removes the request for reasoning after a refusal: it is unknown which models reason, so
    /// each is asked for its reasoning until it refuses.
    fn adapt(&self, body: &mut Value, error: &ModelError) -> bool {
        let is_about_reasoning = errors::is_about_reasoning(error);
        if is_about_reasoning {
            self.is_plain.store(true, Ordering::Relaxed);
            request::exclude_reasoning(body);
        }
        is_about_reasoning
    }
}

/// Describes the protocol for the sweep of broken streams.
#[cfg(feature = "sim")]
pub(crate) const SPECIMEN: crate::Specimen = crate::Specimen {
    name: "responses",
    stream: include_str!("canonical.sse"),
    closing: &["response.completed", "response.incomplete", "response.done"],
    read: crate::specimen::read::<ResponsesReader>,
};
