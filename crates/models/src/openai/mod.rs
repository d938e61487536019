//! Clients of two protocols: Chat Completions, which most compatible servers support too, and
//! Responses, which carries reasoning from step to step.
//!
//! Shapes: the provider's API reference of 2026, and known deviations of compatible servers (each
//! is marked). Base URLs end before `/chat/completions` and `/responses`, so most end with `/v1`.

mod chat;
mod errors;
mod responses;
mod schema;

use gyrus_contract::{Image, ModelError, Prompt, SystemPart, ThinkingEffort, ToolCall, Usage};
use serde_json::Value;

pub use chat::ChatModel;
#[cfg(feature = "sim")]
pub(crate) use chat::SPECIMEN as CHAT_SPECIMEN;
pub use responses::ResponsesModel;
#[cfg(feature = "sim")]
pub(crate) use responses::SPECIMEN as RESPONSES_SPECIMEN;

use crate::{
    PictureSource,
    calls::{CallWithResult, object},
    conversation::base64,
    reading::tokens,
};

fn system(prompt: &Prompt) -> String {
    let says_something = |part: &&SystemPart| !part.text.trim().is_empty();
    let parts = prompt.system.iter().filter(says_something);
    let texts: Vec<_> = parts.map(|part| part.text.as_str()).collect();
    texts.join("\n\n")
}

/// Returns the word of an effort in both protocols.
fn effort_word(effort: ThinkingEffort) -> &'static str {
    match effort {
        ThinkingEffort::Max => "xhigh",
        other => other.word(),
    }
}

/// Returns the text of a result. The protocols have no field for failure, so the text says it.
fn answer_text(answered: &CallWithResult<'_>) -> String {
    if answered.is_error() {
        format!("The call failed: {}", answered.text())
    } else {
        answered.text().to_owned()
    }
}

/// Returns the arguments of a call as the text of an object. Servers parse it and fail on anything
/// else, so arguments that were none are shown as what they were.
fn argument_text(call: &ToolCall) -> String {
    object(call).to_string()
}

/// Returns a picture as a data URL (RFC 2397).
fn data_url(image: &Image, blobs: &dyn PictureSource) -> Result<String, ModelError> {
    let data = base64(image, blobs)?;
    Ok(format!("data:{};base64,{data}", image.media_type))
}

/// Text before a result whose call is not in the conversation any more.
const ORPHAN: &str = "The result of an earlier call:";

/// Returns the usage by a protocol's names: those of the prompt, its details, and the reply, whose
/// count includes reasoning.
fn usage(counts: &Value, input: &str, details: &str, output: &str) -> Option<Usage> {
    let input_tokens = tokens(counts, input)?;
    let detail = |name| counts.get(details).and_then(|counts| tokens(counts, name));
    let cached_tokens = detail("cached_tokens").unwrap_or(0).min(input_tokens);
    let written = detail("cache_write_tokens").unwrap_or(0);
    Some(Usage {
        input_tokens,
        output_tokens: tokens(counts, output)?,
        cached_tokens,
        cache_written_tokens: written.min(input_tokens - cached_tokens),
    })
}

#[cfg(test)]
mod tests;
