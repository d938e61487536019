//! Checks a text that a person edited before it is sent to the run, as far as that is possible
//! without the run: its form, and the arguments of the calls in it. The run checks all of it again.

use gyrus_contract::{ToolCall, ToolSpec, TypedCall as _};

use crate::{changeset, plan};

/// Returns the calls that an edited text describes, for judgement. `before` is the text as it was
/// shown; of a list of files there is nothing to check.
///
/// # Errors
/// Returns all mistakes if there are any.
pub fn edited_calls(
    before: &str,
    edited: &str,
    tools: &[ToolSpec],
) -> Result<Vec<ToolCall>, Vec<String>> {
    if before.trim_start().starts_with('{') {
        plan::edited_calls(edited, tools)
    } else if before.lines().any(|line| line.starts_with("diff ")) {
        Ok(vec![changeset::edited(edited)?.to_call()])
    } else {
        Ok(Vec::new())
    }
}
