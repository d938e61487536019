//! The parts of a prompt that loops share. Each text is a file beside the loop that sends it.

use gyrus_contract::{MemoryBuffer, Message, Origin, Perception, Purpose, SystemPart, Text};
use gyrus_kernel::{Ask, Run, Stop, Tools};
use serde_json::Value;

use crate::{CognitiveConfig, goal};

/// Returns the system prompt: the person's own instructions, then the loop's. All of it stays the
/// same during a run, so all of it can be cached.
pub(crate) fn system(config: &CognitiveConfig, words: &str) -> Vec<SystemPart> {
    let own = config.system_prompt().map(str::to_owned);
    own.into_iter()
        .chain([words.trim_end().to_owned()])
        .map(SystemPart::cacheable)
        .collect()
}

/// Returns a question about the goal with the conversation so far, without tools.
pub(crate) fn question<'a>(
    config: &CognitiveConfig,
    words: &str,
    purpose: Purpose,
    perception: &Perception,
    memory: &'a MemoryBuffer,
) -> Ask<'a> {
    Ask {
        purpose,
        system: system(config, words),
        lead: goal::goal(perception),
        memory: Some(memory),
        tail: Vec::new(),
        tools: Tools::Withheld,
        output_schema: None,
        max_output_tokens: config.max_output_tokens(),
    }
}

/// The question that a loop asks when its work is over.
pub(crate) struct LastWords<'a> {
    /// The instructions.
    pub(crate) words: &'a str,
    /// The text that asks for the answer.
    pub(crate) now: &'a str,
    /// The schema that the answer must match.
    pub(crate) schema: Option<Value>,
}

impl LastWords<'_> {
    /// Asks and returns the answer; empty when the prompt is too long for every model, because the
    /// result of the work must not be lost for it.
    pub(crate) async fn ask(
        self,
        run: &mut Run,
        config: &CognitiveConfig,
        memory: &MemoryBuffer,
    ) -> Result<String, Stop> {
        let perception = run.perception();
        let question = Ask {
            tail: vec![Message::user(Text::new(self.now, Origin::Kernel))],
            output_schema: self.schema,
            ..question(config, self.words, Purpose::Reflect, &perception, memory)
        };
        let reply = run.ask_if_it_fits(question).await?;
        Ok(reply.map(|reply| reply.text()).unwrap_or_default())
    }
}
