//! Arguments: their schema for a model, and parsing its JSON into a type.

use gyrus_contract::ResolvedCall;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The arguments of a call do not fit its tool; the message is for a model.
#[derive(Debug, thiserror::Error)]
#[error("the arguments of `{tool}` are wrong: {error}. Expected an object like {example}")]
pub(crate) struct WrongArguments {
    tool: String,
    error: serde_json::Error,
    example: &'static str,
}

/// Parses the arguments as a `T`, which should deny unknown fields. Some models send the object as
/// a string that contains it: that is taken as meant. `example` is shown with an error.
pub(crate) fn parse<T: DeserializeOwned>(
    call: &ResolvedCall,
    example: &'static str,
) -> Result<T, WrongArguments> {
    let parsed = match &call.arguments {
        Value::String(text) => serde_json::from_str(text),
        other => T::deserialize(other),
    };
    parsed.map_err(|error| WrongArguments {
        tool: call.tool.clone(),
        error,
        example,
    })
}

/// Returns the schema of an object with these properties and no others.
pub(crate) fn schema(properties: Value, required: &[&str]) -> Value {
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false
    })
}
