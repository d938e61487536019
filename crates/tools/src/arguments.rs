//! From a model's JSON to typed arguments, with an error that a model can act on.

use serde::de::DeserializeOwned;
use serde_json::Value;

/// The arguments as a `T`, which should deny unknown fields. Some models send the object as a
/// string that contains it: that is taken as meant. `example` is shown with an error.
pub(crate) fn parse<T: DeserializeOwned>(
    tool: &str,
    arguments: &Value,
    example: &str,
) -> Result<T, String> {
    let parsed = match arguments {
        Value::String(text) => serde_json::from_str(text),
        other => T::deserialize(other),
    };
    parsed.map_err(|error| {
        format!("the arguments of `{tool}` are wrong: {error}. Expected an object like {example}")
    })
}
