//! Lists the models of a provider.

use gyrus_contract::ModelError;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use super::file::{KeyPlace, ListEntry};
use crate::{
    ModelConnection,
    errors::{ErrorResponse, bad},
    http::{KeyHeader, ProviderEndpoint, Wire},
};

/// Maximum number of models of a list that are read.
const MAX_MODELS: usize = 10_000;

const MAX_ID_BYTES: usize = 300;

/// Places of the window in an entry of a compatible list, by server: llama.cpp, LM Studio, vLLM, and
/// what others use. One that the server really has comes before one that the model could have.
const WINDOWS: [&str; 7] = [
    "/meta/n_ctx",
    "/loaded_context_length",
    "/max_model_len",
    "/context_length",
    "/context_window",
    "/max_context_length",
    "/n_ctx",
];

/// JSON pointer to the longest window for which a model was trained, which the server may have
/// reduced.
const LONGEST_WINDOW: &str = "/meta/n_ctx_train";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProviderModel {
    /// The provider's id of the model.
    pub(super) id: String,
    /// Size of the window in tokens, if the list contains it.
    pub(super) window: Option<u64>,
    /// Size of the longest possible window in tokens, if the list contains it.
    pub(super) longest_window: Option<u64>,
}

/// Requests the list of models from the provider at `connection`, whose model is ignored.
///
/// # Errors
/// As for every look-up; [`ModelError::BadOutput`] if the answer is not a list.
pub(super) async fn list(
    connection: &ModelConnection,
    entry: &ListEntry,
) -> Result<Vec<ProviderModel>, ModelError> {
    let wire = Wire {
        key: match entry.key {
            KeyPlace::Bearer => KeyHeader::BEARER,
            KeyPlace::XApiKey => KeyHeader::plain("x-api-key"),
            KeyPlace::XGoogApiKey => KeyHeader::plain("x-goog-api-key"),
        },
        headers: headers(entry)?,
        ..Wire::new(&entry.path, refusal)
    };
    let endpoint = ProviderEndpoint::new(connection, wire)?;
    let answer = endpoint.get_json(&entry.path).await?;
    read(&answer, entry)
}

fn headers(entry: &ListEntry) -> Result<HeaderMap, ModelError> {
    let header = |(name, value): (&String, &String)| {
        let name: HeaderName = name.parse().ok()?;
        Some((name, HeaderValue::from_str(value).ok()?))
    };
    let headers: Option<HeaderMap> = entry.headers.iter().map(header).collect();
    headers.ok_or_else(|| ModelError::Refused {
        message: "the catalogue's headers for listing models cannot be sent".to_owned(),
    })
}

/// Returns the error of a refusal, with the message from its usual place in the body, if any.
fn refusal(refusal: &ErrorResponse<'_>) -> ModelError {
    let body: Value = serde_json::from_str(refusal.body).unwrap_or_default();
    let words = body["error"]["message"]
        .as_str()
        .or_else(|| body["error"].as_str());
    refusal.error(None, words.unwrap_or(refusal.body))
}

/// Returns the number of tokens at this place of an answer, if there is one.
pub(super) fn tokens(answer: &Value, pointer: &str) -> Option<u64> {
    let tokens = answer.pointer(pointer)?.as_u64();
    tokens.filter(|&tokens| tokens > 0)
}

fn read(answer: &Value, entry: &ListEntry) -> Result<Vec<ProviderModel>, ModelError> {
    let models = answer.pointer(&entry.models).and_then(Value::as_array);
    let models = models.ok_or_else(|| bad("the provider's answer is not a list of models"))?;
    let listed = |model: &Value| {
        let id = model.pointer(&entry.id)?.as_str()?;
        let id = id.strip_prefix(&entry.id_prefix).unwrap_or(id);
        let is_plausible = !id.is_empty()
            && id.len() <= MAX_ID_BYTES
            && !id
                .chars()
                .any(|c| gyrus_text::is_unseen(c) || c.is_whitespace());
        let own = entry.window.as_deref();
        is_plausible.then(|| ProviderModel {
            id: id.to_owned(),
            window: if entry.is_compatible() {
                own.into_iter()
                    .chain(WINDOWS)
                    .find_map(|it| tokens(model, it))
            } else {
                own.and_then(|pointer| tokens(model, pointer))
            },
            longest_window: tokens(model, LONGEST_WINDOW),
        })
    };
    Ok(models.iter().take(MAX_MODELS).filter_map(listed).collect())
}
