//! The properties of a protocol that the cases need.
//!
//! To add one: a file with a unit struct that implements [`Dialect`], a line in
//! [`crate::dialects`], and a canonical stream beside the client's sources. The canonical stream
//! is what the provider would send for this reply, in as many pieces as it would:
//!
//! - thinking "The notes come first.", in whatever form the protocol has for it;
//! - the text "I will look 🦀";
//! - the call `read` with `{"path": "notes.txt"}` and the id `call_1`; where arguments travel as
//!   text, the second of their pieces begins with `tes.txt`;
//! - the call `list` with `{}` and the id `call_2`;
//! - 1110 input tokens, 100 of them from a cache, and 47 output tokens; the model `m-1-2026`.

use std::sync::Arc;

use gyrus_contract::Model;
use gyrus_models::ModelConnection;
use serde_json::Value;

/// A protocol with the behaviour of its provider.
pub(crate) trait Dialect: Sync {
    /// Returns its name in messages.
    fn name(&self) -> &'static str;

    /// Creates the client for `connection`.
    fn model(&self, connection: ModelConnection) -> Arc<dyn Model>;

    /// Returns the part of the base URL after the host: `/v1`, or nothing.
    fn base_path(&self) -> &'static str {
        ""
    }

    /// Returns the path of prompts for the model `m`, query included.
    fn path(&self) -> &'static str;

    /// Returns the header with the key, and the prefix of the key in it.
    fn key_header(&self) -> (&'static str, &'static str);

    /// Returns the required headers beside the key, with their values.
    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// Checks a request like the real provider: required fields, unknown fields, order of roles,
    /// calls without results, ids that do not match, invalid pictures.
    fn check(&self, request: &Value) -> Result<(), String>;

    /// Returns the content type of a stream.
    fn content_type(&self) -> &'static str {
        "text/event-stream; charset=utf-8"
    }

    /// Returns the canonical stream, with LF as line end.
    fn canonical(&self) -> &'static str;

    /// Whether the canonical stream's thinking becomes a part, because it must be sent back.
    fn returns_thinking(&self) -> bool;

    /// Returns the number of cached tokens in the canonical stream: 0 where the protocol has no
    /// count.
    fn cached_tokens(&self) -> u64 {
        100
    }

    /// Whether the beginning of a stream says why the reply ended, so that the rest may be missing.
    fn may_end(&self, _beginning: &str) -> bool {
        false
    }

    /// Returns the end of an event: a blank line, or a line end.
    fn event_end(&self) -> &'static str {
        "\n\n"
    }

    /// Returns a line that keeps the connection alive and has no content, if there is such a thing.
    fn keep_alive(&self) -> Option<&'static str> {
        Some(": keep-alive\n\n")
    }

    /// Whether arguments travel as text, and so can be invalid JSON.
    fn arguments_are_text(&self) -> bool {
        true
    }

    /// Returns the provider's stream of a reply.
    fn stream(&self, script: &Script<'_>) -> String;

    /// Returns an event that reports no capacity, with [`ERROR_WORDS`].
    fn error_event(&self) -> String;

    /// Returns the provider's status for an account without money.
    fn no_money_status(&self) -> u16 {
        402
    }

    /// Returns the body of a refusal, with `words` as its message.
    fn refusal(&self, refusal: Refusal, words: &str) -> String;
}

/// Message of [`Dialect::error_event`].
pub(crate) const ERROR_WORDS: &str = "no capacity at the moment";

/// A reply to stream.
pub(crate) struct Script<'a> {
    /// Pieces of text.
    pub(crate) text: &'a [&'a str],
    /// Calls.
    pub(crate) calls: &'a [ScriptedCall<'a>],
    /// Counts of tokens; `Null` for one that is not reported.
    pub(crate) input_tokens: Value,
    /// Output tokens, like `input_tokens`.
    pub(crate) output_tokens: Value,
}

/// A call to stream.
pub(crate) struct ScriptedCall<'a> {
    pub(crate) id: &'a str,
    pub(crate) tool: &'a str,
    /// The model's text; an object where arguments are not text.
    pub(crate) arguments: &'a str,
}

impl Default for Script<'_> {
    fn default() -> Self {
        Self {
            text: &[],
            calls: &[],
            input_tokens: 3.into(),
            output_tokens: 4.into(),
        }
    }
}

/// Reason of a refusal. The case sets the status, so that the body must fit it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// 429.
    RateLimited,
    /// 503 or 529.
    Overloaded,
    /// 400.
    ContextTooLong,
    /// 401.
    BadKey,
    /// An account without money: see [`Dialect::no_money_status`].
    NoMoney,
    /// 404.
    NoSuchModel,
}
