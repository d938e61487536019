//! The protocols of providers, each with its client.

use std::sync::Arc;

use gyrus_contract::{Model, ModelError};
use serde::Deserialize;

use crate::{AnthropicModel, ChatModel, Connection, GeminiModel, OllamaModel, ResponsesModel};

/// Protocol of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Protocol {
    /// Anthropic's Messages.
    Messages,
    /// OpenAI's Responses.
    Responses,
    /// OpenAI's Chat Completions, and what is compatible with it.
    Chat,
    /// Google's Gemini API.
    Gemini,
    /// Ollama's own chat.
    Ollama,
}

/// Returns a client of the model at `connection`. No request is sent yet.
///
/// # Errors
/// Those of the client's `new`.
pub(super) fn make(
    protocol: Protocol,
    connection: Connection,
) -> Result<Arc<dyn Model>, ModelError> {
    Ok(match protocol {
        Protocol::Messages => Arc::new(AnthropicModel::new(connection)?),
        Protocol::Responses => Arc::new(ResponsesModel::new(connection)?),
        Protocol::Chat => Arc::new(ChatModel::new(connection)?),
        Protocol::Gemini => Arc::new(GeminiModel::new(connection)?),
        Protocol::Ollama => Arc::new(OllamaModel::new(connection)?),
    })
}
