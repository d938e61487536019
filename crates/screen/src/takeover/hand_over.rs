//! The tool `hand_over`: a run asks a person to take its screen over.
//!
//! The kernel asks before it passes the call on. The output counts as said by the person, so none
//! of the model's words may be in it.

use gyrus_contract::{
    Boxed, Cleared, Repeat, ResolvedCall, Site, Tool, ToolOutput, ToolSpec, Touch,
};
use serde_json::json;

/// Name of the tool.
pub const HAND_OVER: &str = "hand_over";

/// Maximum bytes of a person's message.
const MAX_WORDS: usize = 4 * 1024;

/// Asks a person to take the screen over.
pub(crate) struct HandOver {
    spec: ToolSpec,
}

impl HandOver {
    pub(crate) fn new() -> Self {
        let spec = ToolSpec {
            name: HAND_OVER.to_owned(),
            description: "Asks the person to use the page themselves: to log in, to solve a \
                          captcha, to enter a code that only they get. Returns what they say when \
                          they give it back."
                .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "reason": {"type": "string", "description": "what they are to do there"},
                },
                "required": ["reason"],
                "additionalProperties": false,
            }),
            touches: vec![Touch::HandsOver("reason".to_owned())],
            repeat: Repeat::Freely,
        };
        Self { spec }
    }
}

impl Tool for HandOver {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        _call: Cleared<ResolvedCall>,
        site: &'a dyn Site,
    ) -> Boxed<'a, ToolOutput> {
        Box::pin(async move {
            let Some(words) = site.answer().map(str::trim) else {
                return ToolOutput::error(
                    "nobody took the page over; go on without it, and say what is open",
                );
            };
            ToolOutput::read(match words {
                "" => "The person gave the page back without a word; look at it.",
                words => gyrus_text::first_bytes(words, MAX_WORDS),
            })
        })
    }
}
