//! The parts of a prompt that loops share. Each text is a file beside the loop that sends it.

use std::borrow::Cow;

use gyrus_contract::{MemoryBuffer, Perception, Purpose, SystemPart};
use gyrus_kernel::{ModelQuestion, Run, ToolOffer};

use crate::{CognitiveConfig, goal};

/// Returns the system prompt: the person's own instructions, then the loop's. All of it stays the
/// same during a run, so all of it can be cached.
pub(crate) fn system(config: &CognitiveConfig, words: &str) -> Vec<SystemPart> {
    let own = config.system_prompt.as_deref().map(str::to_owned);
    own.into_iter()
        .chain([words.trim_end().to_owned()])
        .map(SystemPart::cacheable)
        .collect()
}

/// Returns a question about the goal with the conversation so far, without tools.
pub(crate) fn question<'a>(
    run: &Run,
    config: &CognitiveConfig,
    words: &str,
    purpose: Purpose,
    perception: &Perception,
    memory: &'a MemoryBuffer,
) -> ModelQuestion<'a> {
    let perception = not_given_before(run, perception, memory);
    ModelQuestion {
        purpose,
        system: system(config, words),
        lead: goal::goal(&perception),
        lead_at: run.memory_start(),
        memory: Some(memory),
        tail: Vec::new(),
        tools: ToolOffer::Withheld,
        output_schema: None,
        max_output_tokens: config.max_output_tokens,
    }
}

/// Returns the perception without the attachments of the previous run's goal that are still in
/// memory: guidelines and the like are not repeated in every turn of a session.
pub(crate) fn not_given_before<'a>(
    run: &Run,
    perception: &'a Perception,
    memory: &MemoryBuffer,
) -> Cow<'a, Perception> {
    let inherited = run.memory_start().saturating_sub(memory.first_number());
    let inherited = usize::try_from(inherited).unwrap_or(usize::MAX);
    let items = memory.since(0).take(inherited);
    let known: Vec<_> = items.flat_map(|item| &item.message.parts).collect();
    if !perception.context.iter().any(|part| known.contains(&part)) {
        return Cow::Borrowed(perception);
    }
    let mut perception = perception.clone();
    perception.context.retain(|part| !known.contains(&part));
    Cow::Owned(perception)
}
