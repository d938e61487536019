//! What a protocol brings to the cases.
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
use gyrus_models::Connection;
use serde_json::Value;

/// A protocol as its provider speaks it.
pub(crate) trait Dialect: Sync {
    /// What it is called in messages.
    fn name(&self) -> &'static str;

    /// The client, for `connection`.
    fn model(&self, connection: Connection) -> Arc<dyn Model>;

    /// What the base URL has behind the host: `/v1`, or nothing.
    fn base_path(&self) -> &'static str {
        ""
    }

    /// Where prompts for the model `m` go, the query included.
    fn path(&self) -> &'static str;

    /// The header with the key, and what stands before the key in it.
    fn key_header(&self) -> (&'static str, &'static str);

    /// The headers that the provider wants beside the key, with their values.
    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// What the real provider would refuse about a request: required fields, unknown fields,
    /// order of roles, calls without results, ids that do not match, pictures that are none.
    fn check(&self, request: &Value) -> Result<(), String>;

    /// The content type of a stream.
    fn content_type(&self) -> &'static str {
        "text/event-stream; charset=utf-8"
    }

    /// The canonical stream, lines ended by LF.
    fn canonical(&self) -> &'static str;

    /// The canonical stream's thinking comes back as a part, for it must be returned.
    fn returns_thinking(&self) -> bool;

    /// How many cached tokens the canonical stream reports: 0 where the protocol has no count.
    fn cached_tokens(&self) -> u64 {
        100
    }

    /// Whether the beginning of a stream may end there by itself and be a whole reply.
    fn may_end(&self, _beginning: &str) -> bool {
        false
    }

    /// What ends an event: a blank line, or a line.
    fn event_end(&self) -> &'static str {
        "\n\n"
    }

    /// A line that keeps the connection alive and says nothing, if there is such a thing.
    fn keep_alive(&self) -> Option<&'static str> {
        Some(": keep-alive\n\n")
    }

    /// Arguments travel as text, so that they can be anything.
    fn arguments_are_text(&self) -> bool {
        true
    }

    /// A second call with the id of the first is no reply (else it gets an id of its own).
    fn refuses_same_ids(&self) -> bool {
        false
    }

    /// The stream of a reply, as the provider would send it.
    fn stream(&self, script: &Script<'_>) -> String;

    /// An event that says that there is no capacity, with [`ERROR_WORDS`].
    fn error_event(&self) -> String;

    /// The status with which the provider says that there is no money.
    fn no_money_status(&self) -> u16 {
        402
    }

    /// The body that goes with a refusal, with `words` as its words.
    fn refusal(&self, refusal: Refusal, words: &str) -> String;
}

/// The words of [`Dialect::error_event`].
pub(crate) const ERROR_WORDS: &str = "no capacity at the moment";

/// A reply to stream.
pub(crate) struct Script<'a> {
    /// Pieces of text.
    pub(crate) text: &'a [&'a str],
    /// Calls.
    pub(crate) calls: &'a [ScriptedCall<'a>],
    /// Counts of tokens; `Null` for one that is not reported.
    pub(crate) input_tokens: Value,
    /// As `input_tokens`.
    pub(crate) output_tokens: Value,
}

/// A call to stream.
pub(crate) struct ScriptedCall<'a> {
    pub(crate) id: &'a str,
    pub(crate) tool: &'a str,
    /// What the model wrote; an object where arguments are no text.
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

/// Why a provider refuses. The status is the case's, so that the body must fit it.
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
    /// What the provider sends when there is no money: see [`Dialect::no_money_status`].
    NoMoney,
    /// 404.
    NoSuchModel,
}
