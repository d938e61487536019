//! A client of Chat Completions, the provider's own or a compatible server's.
//!
//! `request` makes the body and `stream` reads the reply; both are pure.

mod request;
mod stream;

use gyrus_contract::{ModelError, Prompt, ScreenSize};
use reqwest::Url;
use serde_json::Value;

use super::errors;
use crate::{
    ModelConnection,
    client::{ModelProtocol, ProtocolClient},
    http::Wire,
};
use stream::ChatReader;

/// A client for Chat Completions. Its base URL has no `/chat/completions`.
pub type ChatModel = ProtocolClient<ChatCompletions>;

/// The Chat Completions protocol.
#[derive(Debug, Default)]
pub struct ChatCompletions;

impl ModelProtocol for ChatCompletions {
    type Reader = ChatReader;

    const OPTIONAL: &'static [&'static str] =
        &["stream_options", "max_tokens", "max_completion_tokens"];

    fn wire(_connection: &ModelConnection) -> Wire {
        Wire::new("/chat/completions", errors::from_refusal)
    }

    fn body(
        &self,
        prompt: &Prompt,
        connection: &ModelConnection,
        _shown: Option<ScreenSize>,
    ) -> Result<Value, ModelError> {
        // The provider refuses the old name for its newer models; compatible servers know only
        // the old one, and some ignore the new one in silence.
        let limit_field = if is_own(&connection.base_url) {
            "max_completion_tokens"
        } else {
            "max_tokens"
        };
        request::body(prompt, connection, limit_field)
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

/// Describes the protocol for the sweep of broken streams.
#[cfg(feature = "sim")]
pub(crate) const SPECIMEN: crate::Specimen = crate::Specimen {
    name: "chat",
    stream: include_str!("canonical.sse"),
    closing: &["\"finish_reason\":\""],
    read: crate::specimen::read::<ChatReader>,
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
