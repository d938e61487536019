//! Messages of JSON-RPC, one a line: reading them from whatever arrives, and writing them.

use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::{Value, json, value::RawValue};

/// Maximum size of a message that is read, in bytes: a picture of 5 MB as text, and what is around
/// it.
pub(crate) const MAX_MESSAGE: usize = 16 << 20;

#[derive(Debug)]
pub(crate) enum EditorMessage {
    Request {
        /// The id, to be named in the answer.
        id: Value,
        method: String,
        params: Params,
    },
    Notification {
        method: String,
        params: Params,
    },
    Answer {
        id: u64,
        outcome: Result<Value, Value>,
    },
    /// An invalid message, with the error to answer.
    Wrong(RpcError),
    /// A message without meaning that needs no answer: an empty line, an answer to nothing.
    Nothing,
}

#[derive(Debug)]
pub(crate) struct Params(Option<Box<RawValue>>);

impl Params {
    /// Parses the parameters.
    ///
    /// # Errors
    /// The parameters do not have this form.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, RpcError> {
        let text = self.0.as_ref().map_or("{}", |raw| raw.get());
        serde_json::from_str(text).map_err(|error| RpcError::params(error.to_string()))
    }
}

/// The reason why a request is not carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RpcError {
    code: i32,
    message: String,
}

impl RpcError {
    /// The line is not JSON.
    fn parse(why: impl Into<String>) -> Self {
        Self::new(-32_700, why)
    }

    pub(crate) fn request(why: impl Into<String>) -> Self {
        Self::new(-32_600, why)
    }

    /// Creates the error for a method that does not exist.
    pub(crate) fn method(method: &str) -> Self {
        let method = gyrus_text::quote(method, 60);
        Self::new(-32_601, format!("there is no method {method}"))
    }

    /// The parameters cannot be taken.
    pub(crate) fn params(why: impl Into<String>) -> Self {
        Self::new(-32_602, why)
    }

    pub(crate) fn internal(why: impl Into<String>) -> Self {
        Self::new(-32_603, why)
    }

    /// Creates an error for something that does not exist.
    pub(crate) fn not_found(why: impl Into<String>) -> Self {
        Self::new(-32_002, why)
    }

    fn new(code: i32, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { code, message }
    }

    pub(crate) fn answer(&self, id: &Value) -> Value {
        let Self { code, message } = self;
        json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
    }
}

#[derive(Deserialize)]
struct Envelope {
    jsonrpc: String,
    #[serde(default, deserialize_with = "present")]
    id: Option<Value>,
    method: Option<String>,
    params: Option<Box<RawValue>>,
    #[serde(default, deserialize_with = "present_raw")]
    result: Option<Box<RawValue>>,
    error: Option<Value>,
}

/// Reads a value that is present, even if it is `null`.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

fn present_raw<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(d).map(Some)
}

pub(crate) fn read(line: &[u8]) -> EditorMessage {
    if line.trim_ascii().is_empty() {
        return EditorMessage::Nothing;
    }
    let Ok(text) = std::str::from_utf8(line) else {
        return EditorMessage::Wrong(RpcError::parse("the message is not valid UTF-8"));
    };
    let envelope: Envelope = match serde_json::from_str(text) {
        Ok(envelope) => envelope,
        Err(error) if error.is_data() => {
            return EditorMessage::Wrong(RpcError::request(error.to_string()));
        }
        Err(error) => return EditorMessage::Wrong(RpcError::parse(error.to_string())),
    };
    if envelope.jsonrpc != "2.0" {
        return EditorMessage::Wrong(RpcError::request("`jsonrpc` is not \"2.0\""));
    }
    let params = Params(envelope.params);
    match (envelope.method, envelope.id) {
        (Some(method), None) => EditorMessage::Notification { method, params },
        (Some(method), Some(id)) if is_id(&id) => EditorMessage::Request { id, method, params },
        (Some(_), Some(_)) => {
            EditorMessage::Wrong(RpcError::request("`id` is neither a number nor a text"))
        }
        (None, Some(id)) => answer(&id, envelope.result, envelope.error),
        (None, None) => EditorMessage::Wrong(RpcError::request("there is no `method`")),
    }
}

fn is_id(id: &Value) -> bool {
    id.is_i64() || id.is_u64() || id.is_string() || id.is_null()
}

fn answer(id: &Value, result: Option<Box<RawValue>>, error: Option<Value>) -> EditorMessage {
    // Our own ids are such numbers.
    let Some(id) = id.as_u64() else {
        return EditorMessage::Nothing;
    };
    let outcome = match (result, error) {
        (_, Some(error)) => Err(error),
        (Some(result), None) => match serde_json::from_str(result.get()) {
            Ok(result) => Ok(result),
            Err(error) => Err(json!({"message": error.to_string()})),
        },
        (None, None) => return EditorMessage::Nothing,
    };
    EditorMessage::Answer { id, outcome }
}

pub(crate) fn too_long() -> RpcError {
    RpcError::parse(format!("the message is longer than {MAX_MESSAGE} bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(line: &str) -> i64 {
        match read(line.as_bytes()) {
            EditorMessage::Wrong(error) => error.code.into(),
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn what_is_no_message_is_answered_by_its_kind() {
        for (line, wrong) in [
            ("{", -32_700),
            ("nonsense", -32_700),
            ("[]", -32_600),
            ("[{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"id\":1}]", -32_600),
            ("{}", -32_600),
            ("3", -32_600),
            ("{\"jsonrpc\":\"1.0\",\"method\":\"a\",\"id\":1}", -32_600),
            ("{\"jsonrpc\":\"2.0\",\"method\":7,\"id\":1}", -32_600),
            ("{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"id\":{}}", -32_600),
            ("{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"id\":1.5}", -32_600),
            ("{\"jsonrpc\":\"2.0\"}", -32_600),
        ] {
            assert_eq!(code(line), wrong, "{line}");
        }
        let deep = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{}1{},\"method\":\"a\"}}",
            "[".repeat(100_000),
            "]".repeat(100_000)
        );
        assert_eq!(code(&deep), -32_700);
        assert!(matches!(read(b"\xff\xfe{}"), EditorMessage::Wrong(_)));
    }

    #[test]
    fn parameters_are_read_when_they_are_needed() {
        let deep = format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"params\":{}{}}}",
            "[".repeat(120),
            "]".repeat(120)
        );
        let EditorMessage::Notification { params, .. } = read(deep.as_bytes()) else {
            panic!("it is a notification");
        };
        assert!(
            params
                .read::<std::collections::BTreeMap<String, u8>>()
                .is_err()
        );
        assert!(matches!(
            read(b"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"a\"}"),
            EditorMessage::Request {
                id: Value::Null,
                ..
            }
        ));
        assert!(matches!(
            read(b"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":null}"),
            EditorMessage::Answer {
                id: 7,
                outcome: Ok(Value::Null)
            }
        ));
        assert!(matches!(
            read(b"{\"jsonrpc\":\"2.0\",\"id\":\"7\",\"result\":{}}"),
            EditorMessage::Nothing
        ));
    }
}
