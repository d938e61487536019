//! The tool `finish`: the model claims that it is done.

use gyrus_contract::{
    Boxed, Claim, Cleared, Evidence, Repeat, ResolvedCall, Site, Tool, ToolOutput, ToolSpec,
};
use serde::Deserialize;
use serde_json::json;

use crate::{
    arguments,
    failure::{self, Failure},
};

const EXAMPLE: &str = r#"{"reached": true, "answer": "The tests pass now.", "evidence": [{"what": "all 12 tests pass", "at": "output of `cargo test`"}]}"#;

/// Ends a run with a claim.
pub struct Finish {
    spec: ToolSpec,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    reached: bool,
    answer: String,
    #[serde(default)]
    evidence: Vec<EvidenceArgument>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EvidenceArgument {
    what: String,
    #[serde(default)]
    at: String,
}

impl Finish {
    /// Creates the tool.
    #[expect(clippy::new_without_default, reason = "tools are made in one way")]
    pub fn new() -> Self {
        let spec = ToolSpec {
            name: "finish".to_owned(),
            description: "Ends the run with your answer. Call it once the goal is reached and you \
                          have looked at the result, or, with `reached` false, when it cannot be \
                          reached; an honest failure is worth more than a guess. Name evidence \
                          that somebody can look up."
                .to_owned(),
            parameters: arguments::schema(
                json!({
                    "reached": {
                        "type": "boolean",
                        "description": "Whether the goal is reached, all of it."
                    },
                    "answer": {
                        "type": "string",
                        "description": "For the person: the answer, or what was done, and what \
                                        was not."
                    },
                    "evidence": {
                        "type": "array",
                        "description": "What supports it.",
                        "items": arguments::schema(
                            json!({
                                "what": {
                                    "type": "string",
                                    "description": "What it shows."
                                },
                                "at": {
                                    "type": "string",
                                    "description": "Where to look: a path in the workspace, a \
                                                    command, a quotation."
                                }
                            }),
                            &["what"],
                        )
                    }
                }),
                &["reached", "answer"],
            ),
            touches: Vec::new(),
            repeat: Repeat::Freely,
        };
        Self { spec }
    }
}

impl Tool for Finish {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        call: Cleared<ResolvedCall>,
        _site: &'a dyn Site,
    ) -> Boxed<'a, ToolOutput> {
        Box::pin(async move { failure::output(claim(&call)) })
    }
}

fn claim(call: &ResolvedCall) -> Result<ToolOutput, Failure> {
    let Arguments {
        reached,
        answer,
        evidence,
    } = arguments::parse(call, EXAMPLE)?;
    if answer.trim().is_empty() {
        let words = "`answer` is empty: say what the result is, or why there is none";
        return Err(Failure::new(words));
    }
    let evidence = evidence.into_iter();
    let claim = Claim {
        reached,
        answer,
        evidence: evidence
            .map(|EvidenceArgument { what, at }| Evidence { what, at })
            .collect(),
    };
    Ok(ToolOutput {
        claim: Some(claim),
        ..ToolOutput::read("the claim is recorded")
    })
}
