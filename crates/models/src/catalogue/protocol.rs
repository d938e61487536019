//! The protocols of providers, each with its client.

use std::sync::Arc;

use gyrus_contract::{Model, ModelError};
use serde::Deserialize;

use crate::{AnthropicModel, ChatModel, GeminiModel, ModelConnection, OllamaModel, ResponsesModel};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ProviderProtocol {
    /// Anthropic's Messages protocol.
    Messages,
    /// OpenAI's Responses protocol.
    Responses,
    /// OpenAI's Chat Completions protocol, and compatible ones.
    Chat,
    /// Google's Gemini API.
    Gemini,
    /// Ollama's own chat protocol.
    Ollama,
}

/// Returns a client of the model at `connection`. No request is sent yet.
pub(super) fn make(
    protocol: ProviderProtocol,
    connection: ModelConnection,
) -> Result<Arc<dyn Model>, ModelError> {
    Ok(match protocol {
        ProviderProtocol::Messages => Arc::new(AnthropicModel::new(connection)?),
        ProviderProtocol::Responses => Arc::new(ResponsesModel::new(connection)?),
        ProviderProtocol::Chat => Arc::new(ChatModel::new(connection)?),
        ProviderProtocol::Gemini => Arc::new(GeminiModel::new(connection)?),
        ProviderProtocol::Ollama => Arc::new(OllamaModel::new(connection)?),
    })
}
