//! Classifies the server's refusals. Its errors are one sentence: `{"error": "…"}`, as the body of
//! a response or as a line in a stream that began well.

use gyrus_contract::ModelError;
use reqwest::StatusCode;
use serde_json::Value;

use crate::errors::{ErrorKind, ErrorResponse, bad, says, words_of};

/// Classifies a response with a status other than 200.
pub(super) fn from_refusal(refusal: &ErrorResponse<'_>) -> ModelError {
    let body = serde_json::from_str::<Value>(refusal.body).unwrap_or_default();
    let words = words_of(&body).unwrap_or_else(|| refusal.body.to_owned());
    if refusal.status == StatusCode::NOT_FOUND {
        return refusal.error(Some(ErrorKind::Refused), &missing(&words));
    }
    refusal.error(meaning(&words), &words)
}

/// Classifies the `error` of a line.
pub(super) fn from_line(error: &Value) -> ModelError {
    let Some(words) = words_of(error) else {
        return bad("the server reports an error without words");
    };
    let own = meaning(&words);
    ErrorKind::of_event(error, own, &words, ErrorKind::Overloaded).event_error(&words, error)
}

/// Adds advice for a person to the error of a server that is not running.
pub(super) fn with_advice(error: ModelError) -> ModelError {
    match error {
        ModelError::Network { message } if message.contains("onnection refused") => {
            let message = format!("{message}; is the server running? `ollama serve` starts it");
            ModelError::Network { message }
        }
        other => other,
    }
}

/// Returns the kind of error that the status does not determine: every internal failure is a 500,
/// or a line in the stream.
fn meaning(words: &str) -> Option<ErrorKind> {
    // Asking again for the same does not make room.
    let memory = ["more system memory", "out of memory", "not enough memory"];
    says(words, &memory).then_some(ErrorKind::Refused)
}

/// Returns the model's name in `model 'NAME' not found`, with either kind of quotes.
fn missing(words: &str) -> String {
    let name = words.split(['\'', '"']).nth(1).unwrap_or_default();
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-_./:".contains(c);
    if !name.is_empty() && name.chars().all(is_name) {
        format!("{words}; `ollama pull {name}` gets it")
    } else {
        format!("{words}; is the base URL that of the server, without a path?")
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use reqwest::header::{HeaderMap, RETRY_AFTER};
    use serde_json::json;

    use super::*;

    #[test]
    fn errors_have_meanings_and_say_what_to_do() {
        let refused = |status: u16, body: &str| {
            let error = from_refusal(&ErrorResponse {
                status: StatusCode::from_u16(status).unwrap(),
                headers: &HeaderMap::from_iter([(RETRY_AFTER, "2".parse().unwrap())]),
                body,
                now: Timestamp::UNIX_EPOCH,
            });
            format!("{error} {:?}", error.retry_after_ms())
        };
        insta::assert_snapshot!(refused(404, r#"{"error":"model 'qwen3:4b' not found"}"#), @"the model refused: model 'qwen3:4b' not found; `ollama pull qwen3:4b` gets it (HTTP 404) None");
        insta::assert_snapshot!(refused(404, r#"{"error":"model \"a/b\" not found, try pulling it first"}"#), @r#"the model refused: model "a/b" not found, try pulling it first; `ollama pull a/b` gets it (HTTP 404) None"#);
        insta::assert_snapshot!(refused(404, "404 page not found"), @"the model refused: 404 page not found; is the base URL that of the server, without a path? (HTTP 404) None");
        insta::assert_snapshot!(refused(404, r#"{"error":"model '`rm -r`' not found"}"#), @"the model refused: model '`rm -r`' not found; is the base URL that of the server, without a path? (HTTP 404) None");
        insta::assert_snapshot!(refused(400, r#"{"error":"registry.ollama.ai/library/x:latest does not support tools"}"#), @"the model refused: registry.ollama.ai/library/x:latest does not support tools (HTTP 400) None");
        insta::assert_snapshot!(refused(400, r#"{"error":"the prompt is longer than the context length currently available to the model"}"#), @"the prompt is too long for the model: the prompt is longer than the context length currently available to the model (HTTP 400) None");
        insta::assert_snapshot!(refused(500, r#"{"error":"model requires more system memory (9 GiB) than is available (3 GiB)"}"#), @"the model refused: model requires more system memory (9 GiB) than is available (3 GiB) (HTTP 500) None");
        insta::assert_snapshot!(refused(500, r#"{"error":"llama runner process has terminated"}"#), @"the model's provider is overloaded: llama runner process has terminated (HTTP 500) Some(2000)");
        insta::assert_snapshot!(refused(503, r#"{"error":"server busy, please try again.  maximum pending requests exceeded"}"#), @"the model's provider is overloaded: server busy, please try again.  maximum pending requests exceeded (HTTP 503) Some(2000)");
        insta::assert_snapshot!(refused(401, r#"{"error":{"message":"unauthorized"}}"#), @"the model's provider refused the key: unauthorized (HTTP 401) None");

        let line = |error: Value| from_line(&error).to_string();
        insta::assert_snapshot!(line(json!("an error was encountered while running the model")), @"the model's provider is overloaded: an error was encountered while running the model");
        insta::assert_snapshot!(line(json!("CUDA error: out of memory")), @"the model refused: CUDA error: out of memory");
        insta::assert_snapshot!(line(json!(7)), @"the model's reply could not be read: the server reports an error without words");
        let network = |message: &str| {
            with_advice(ModelError::Network {
                message: message.into(),
            })
            .to_string()
        };
        insta::assert_snapshot!(network("tcp: Connection refused (os error 111)"), @"the model could not be reached: tcp: Connection refused (os error 111); is the server running? `ollama serve` starts it");
        insta::assert_snapshot!(network("silence"), @"the model could not be reached: silence");
    }
}
