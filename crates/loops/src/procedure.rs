//! The loop that replays a learned procedure.

use crate::LoopKind;

/// The loop, as the journal names it.
pub(crate) const KIND: LoopKind = LoopKind {
    name: "procedure",
    prompts: &[],
    max_iterations: None,
    max_output_tokens: 2_048,
    build: |_| Err("replaying is not implemented yet".to_owned()),
};
