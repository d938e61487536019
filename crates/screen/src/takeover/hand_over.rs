//! The tool `hand_over`: a run asks a person to take its screen over.
//!
//! The kernel asks before it passes the call on. The output counts as said by the person, so none
//! of the model's words may be in it.

use gyrus_contract::{
    Arguments as _, HandOverCall, Repeat, ResolvedCall, Site, ToolOutput, Touch, TypedTool,
    Unresolvable,
};
use serde_json::Value;

/// Maximum bytes of a person's message.
const MAX_WORDS: usize = 4 * 1024;

/// Asks a person to take the screen over.
pub(crate) struct HandOverTool;

impl TypedTool for HandOverTool {
    type Arguments = HandOverCall;
    type Failure = ToolOutput;
    const REPEAT: Repeat = Repeat::Freely;

    fn touches(&self) -> Vec<Touch> {
        vec![Touch::HandsOver("text".to_owned())]
    }

    /// Refuses wrong arguments before a person is asked, because the output counts as theirs.
    fn check(&self, arguments: &Value) -> Result<(), Unresolvable> {
        let parsed = HandOverCall::parse(arguments);
        parsed.map(drop).map_err(|wrong| Unresolvable {
            reason: wrong.to_string(),
        })
    }

    async fn run(
        &self,
        _: HandOverCall,
        _: &ResolvedCall,
        site: &dyn Site,
    ) -> Result<ToolOutput, ToolOutput> {
        let Some(words) = site.answer().map(str::trim) else {
            return Ok(ToolOutput::error(
                "nobody took the page over; go on without it, and say what is open",
            ));
        };
        Ok(ToolOutput::read(match words {
            "" => "The person gave the page back without a word; look at it.",
            words => gyrus_text::first_bytes(words, MAX_WORDS),
        }))
    }
}
