//! The tool `finish`: the model claims that it is done.

use gyrus_contract::{
    Arguments, Claim, Evidence, FINISH, Repeat, ResolvedCall, Site, ToolOutput, Touch, TypedTool,
};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::failure::ToolFailure;

/// Ends a run with a claim.
pub struct Finish;

/// Ends the work: the goal is reached and you saw that it is or, with `reached` false, it
/// cannot be.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FinishArguments {
    reached: bool,
    /// For the person.
    answer: String,
    #[serde(default)]
    evidence: Vec<EvidenceArgument>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EvidenceArgument {
    what: String,
    /// A path, a command, a quotation.
    #[serde(default)]
    at: String,
}

impl Arguments for FinishArguments {
    const TOOL: &'static str = FINISH;
    const EXAMPLE: &'static str = r#"{"reached": true, "answer": "The tests pass now.", "evidence": [{"what": "all 12 tests pass", "at": "output of `cargo test`"}]}"#;
}

impl TypedTool for Finish {
    type Arguments = FinishArguments;
    type Failure = ToolFailure;
    const REPEAT: Repeat = Repeat::Freely;

    fn touches(&self) -> Vec<Touch> {
        Vec::new()
    }

    async fn run(
        &self,
        arguments: FinishArguments,
        _call: &ResolvedCall,
        _site: &dyn Site,
    ) -> Result<ToolOutput, ToolFailure> {
        let FinishArguments {
            reached,
            answer,
            evidence,
        } = arguments;
        if answer.trim().is_empty() {
            let words = "`answer` is empty: say what the result is, or why there is none";
            return Err(ToolFailure::new(words));
        }
        let evidence = evidence.into_iter();
        let claim = Claim {
            reached,
            answer,
            evidence: evidence
                .map(|EvidenceArgument { what, at }| Evidence { what, at })
                .collect(),
            shortfalls: Vec::new(),
        };
        Ok(ToolOutput {
            claim: Some(claim),
            ..ToolOutput::read("the claim is recorded")
        })
    }
}
