//! Attributes of spans, logs and metrics, and the names of those that the conventions define.

use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, KeyValue, any_value::Value};

/// The names of attributes that the semantic conventions for generative AI define.
pub(crate) mod gen_ai {
    pub(crate) const OPERATION: &str = "gen_ai.operation.name";
    pub(crate) const PROVIDER: &str = "gen_ai.provider.name";
    pub(crate) const AGENT: &str = "gen_ai.agent.name";
    pub(crate) const REQUEST_MODEL: &str = "gen_ai.request.model";
    pub(crate) const MAX_TOKENS: &str = "gen_ai.request.max_tokens";
    pub(crate) const RESPONSE_MODEL: &str = "gen_ai.response.model";
    pub(crate) const FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
    pub(crate) const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
    pub(crate) const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
    pub(crate) const CACHE_READ: &str = "gen_ai.usage.cache_read.input_tokens";
    pub(crate) const CACHE_WRITTEN: &str = "gen_ai.usage.cache_creation.input_tokens";
    pub(crate) const TOKEN_TYPE: &str = "gen_ai.token.type";
    pub(crate) const TOOL: &str = "gen_ai.tool.name";
    pub(crate) const TOOL_CALL: &str = "gen_ai.tool.call.id";
    pub(crate) const TOOL_ARGUMENTS: &str = "gen_ai.tool.call.arguments";
    pub(crate) const TOOL_RESULT: &str = "gen_ai.tool.call.result";
    pub(crate) const INPUT_MESSAGES: &str = "gen_ai.input.messages";
    pub(crate) const OUTPUT_MESSAGES: &str = "gen_ai.output.messages";
}

/// A class of error, of few values.
pub(crate) const ERROR_TYPE: &str = "error.type";

/// Maximum characters of an attribute with a name.
const NAME_LIMIT: usize = 200;

/// Maximum bytes of an attribute with content.
const CONTENT_LIMIT: usize = 16 << 10;

pub(crate) fn text(key: &str, value: impl AsRef<str>) -> KeyValue {
    let value = value.as_ref().chars().take(NAME_LIMIT).collect();
    attribute(key, Value::StringValue(value))
}

/// Returns an attribute with content, which is cut to a limit.
pub(crate) fn content(key: &str, value: impl Into<String>) -> KeyValue {
    attribute(key, Value::StringValue(cut(value.into())))
}

/// Returns an attribute with a number. Numbers beyond the format's range become its largest.
pub(crate) fn number(key: &str, value: impl TryInto<i64>) -> KeyValue {
    attribute(key, Value::IntValue(value.try_into().unwrap_or(i64::MAX)))
}

pub(crate) fn decimal(key: &str, value: f64) -> KeyValue {
    attribute(key, Value::DoubleValue(value))
}

pub(crate) fn flag(key: &str, value: bool) -> KeyValue {
    attribute(key, Value::BoolValue(value))
}

pub(crate) fn one_of_list(key: &str, value: &str) -> KeyValue {
    let values = vec![any(Value::StringValue(value.to_owned()))];
    attribute(key, Value::ArrayValue(ArrayValue { values }))
}

/// Returns a text as the body of a log record, cut to a limit.
pub(crate) fn body(value: impl Into<String>) -> AnyValue {
    any(Value::StringValue(cut(value.into())))
}

fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(any(value)),
        ..KeyValue::default()
    }
}

fn any(value: Value) -> AnyValue {
    AnyValue { value: Some(value) }
}

fn cut(text: String) -> String {
    let first = gyrus_text::first_bytes(&text, CONTENT_LIMIT);
    if first.len() == text.len() {
        return text;
    }
    format!("{first}…")
}
