//! Calls that travel whole, with their arguments as JSON and not as text: reading, sending back,
//! answering.
//!
//! A result goes to the call that it names, if that call is in the turn before. A call without a
//! result is answered with a note, and a result without its call (its message may have been folded
//! away) is left to the protocol as one of the other parts.

use gyrus_contract::{ModelError, Part, ToolCall, ToolResult};
use serde_json::{Map, Value, json};

use crate::{
    arguments,
    conversation::{CallIds, called_name},
    errors::bad,
    reading::{self, ContentAmount, MAX_ARGUMENT_BYTES},
};

/// A call as received, not validated yet.
#[derive(Debug, Default)]
pub(crate) struct RawCall {
    /// The provider's own id, if there is one.
    pub(crate) id: Option<String>,
    /// The tool's name.
    pub(crate) name: Option<String>,
    /// The arguments, as an object or, from some servers, as its text; `None` if there are none.
    pub(crate) arguments: Option<Value>,
}

impl RawCall {
    /// Returns the call in the form in which `parts` take it, counted as `content`.
    pub(crate) fn join(
        self,
        parts: &[Part],
        content: &mut ContentAmount,
    ) -> Result<ToolCall, ModelError> {
        let Some(tool) = self.name.filter(|name| !name.is_empty()) else {
            return Err(bad("a tool call has no name"));
        };
        let arguments = self.arguments.unwrap_or_default();
        let size = tool.len() + arguments.to_string().len();
        if size > MAX_ARGUMENT_BYTES {
            return Err(bad(format!(
                "tool arguments exceed {MAX_ARGUMENT_BYTES} bytes"
            )));
        }
        content.grow(size)?;
        let arguments = match arguments {
            Value::Null => Value::Object(Map::new()),
            Value::String(raw) => arguments::parse(raw, Value::Null),
            whole => whole,
        };
        Ok(ToolCall {
            id: reading::unique_id(&self.id.unwrap_or_default(), parts),
            tool,
            arguments,
            repairs: Vec::new(),
        })
    }
}

/// Returns the arguments to send back: providers take objects only, and arguments that were none
/// are shown to the model as what they were.
pub(crate) fn object(call: &ToolCall) -> Value {
    match &call.arguments {
        Value::Object(_) => call.arguments.clone(),
        other => json!({"invalid_arguments": other}),
    }
}

/// Text in place of a missing result of a call.
pub(crate) const NO_RESULT: &str =
    "There is no result: the call was not carried out, or its result is not kept.";

/// A call as sent, with its result.
#[derive(Debug)]
pub(crate) struct CallWithResult<'a> {
    /// The call's id on the wire.
    pub(crate) id: String,
    /// The tool's name on the wire.
    pub(crate) tool: String,
    /// The result of the call; `None` if the conversation has none.
    pub(crate) result: Option<&'a ToolResult>,
}

impl CallWithResult<'_> {
    pub(crate) fn text(&self) -> &str {
        self.result.map_or(NO_RESULT, |result| &result.text.text)
    }

    /// Whether the call failed; a call without a result did.
    pub(crate) fn is_error(&self) -> bool {
        self.result.is_none_or(|result| result.is_error)
    }
}

/// The state of converting the calls of a conversation to a protocol, turn by turn.
pub(crate) struct CallConversion {
    ids: CallIds,
    /// Ids and names of the calls of the turn before.
    open: Vec<(String, String)>,
}

impl CallConversion {
    /// Creates the state for the beginning of a conversation; any id is accepted.
    pub(crate) fn new() -> Self {
        Self {
            ids: CallIds::new(|_| true),
            open: Vec::new(),
        }
    }

    /// Returns the id and the name under which the next call is sent.
    pub(crate) fn call(&mut self, call: &ToolCall) -> (String, String) {
        let sent = (
            self.ids.call(&call.id),
            called_name(&call.tool).into_owned(),
        );
        self.open.push(sent.clone());
        sent
    }

    /// Returns the calls of the turn before, in their order, with their results from `parts`; and
    /// the parts that are not such results.
    pub(crate) fn answer<'a>(
        &mut self,
        parts: &[&'a Part],
    ) -> (Vec<CallWithResult<'a>>, Vec<&'a Part>) {
        let answered = std::mem::take(&mut self.open).into_iter();
        let mut answered: Vec<_> = answered
            .map(|(id, tool)| CallWithResult {
                id,
                tool,
                result: None,
            })
            .collect();
        let mut rest = Vec::new();
        for &part in parts {
            let result = match part {
                Part::ToolResult(result) => Some(result),
                _ => None,
            };
            let id = result.and_then(|result| self.ids.result(&result.call_id));
            match answered
                .iter_mut()
                .find(|call| Some(&call.id) == id.as_ref())
            {
                Some(call) => call.result = result,
                None => rest.push(part),
            }
        }
        self.ids.give_up();
        (answered, rest)
    }
}

#[cfg(test)]
mod tests {
    use gyrus_contract::{Origin, Text};
    use serde_json::json;

    use super::*;

    #[test]
    fn results_find_their_calls() {
        let call = |id: &str, tool: &str| ToolCall {
            id: id.into(),
            tool: tool.into(),
            arguments: json!({}),
            repairs: Vec::new(),
        };
        let result = |id: &str| {
            Part::ToolResult(ToolResult {
                call_id: id.into(),
                text: Text::new(format!("of {id}"), Origin::Kernel),
                images: Vec::new(),
                is_error: false,
            })
        };
        let mut calls = CallConversion::new();
        for (id, tool) in [("1", "a"), ("2", "b c"), ("3", "a")] {
            calls.call(&call(id, tool));
        }
        let parts = [result("3"), result("gone"), result("1"), result("1")];
        let parts: Vec<_> = parts.iter().collect();
        let (answered, rest) = calls.answer(&parts);
        let told: Vec<_> = answered
            .iter()
            .map(|call| (call.tool.as_str(), call.text(), call.is_error()))
            .collect();
        assert_eq!(
            told,
            [
                ("a", "of 1", false),
                ("b_c", NO_RESULT, true),
                ("a", "of 3", false)
            ]
        );
        assert_eq!(rest, [parts[1], parts[3]]);
        let (answered, rest) = calls.answer(&parts[..1]);
        assert!(answered.is_empty());
        assert_eq!(rest, parts[..1]);
    }
}
