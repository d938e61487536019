//! Tool calls for models that have none: tools are described in the prompt, calls arrive as text.
//!
//! The one idea: such a model differs from others on this side of the wire only. `write` turns
//! tools, past calls and results into text, `read` finds the calls in the model's text, and no
//! other module notices. A result cannot forge a call, since only the model's own reply is read.
//!
//! Not here: validation of the arguments. Like those of every call they are checked where tools are
//! called.

mod read;
mod write;

use std::{sync::Arc, time::Duration};

use gyrus_contract::{
    Boxed, Delta, Image, Model, ModelError, Origin, Part, Price, Prompt, Reply, StopReason, Text,
    ToolCall,
};

use crate::reading::unique_id;
use read::Piece;

/// A model whose tool calls are prompted.
pub struct Prompted {
    model: Arc<dyn Model>,
}

impl Prompted {
    /// Wraps `model` so that it calls tools by text.
    pub fn new(model: Arc<dyn Model>) -> Self {
        Self { model }
    }

    async fn ask(
        &self,
        prompt: &Prompt,
        deltas: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Reply, ModelError> {
        let written = write::as_text(prompt);
        let mut shown = Shown::default();
        let mut show = |delta| shown.hear(delta, deltas);
        let reply = self.model.reply(&written, &mut show).await?;
        let names: Vec<&str> = prompt.tools.iter().map(|tool| tool.name.as_str()).collect();
        let reply = with_calls(reply, &names);
        match reply.tool_calls().next() {
            None => shown.release(deltas),
            Some(_) => reply
                .tool_calls()
                .for_each(|call| deltas(Delta::Tool(call.tool.clone()))),
        }
        Ok(reply)
    }
}

impl Model for Prompted {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn price(&self) -> Option<Price> {
        self.model.price()
    }

    fn window(&self) -> Option<u64> {
        self.model.window()
    }

    fn image_tokens(&self, image: &Image) -> u64 {
        self.model.image_tokens(image)
    }

    fn max_silence(&self) -> Duration {
        self.model.max_silence()
    }

    fn reply<'a>(
        &'a self,
        prompt: &'a Prompt,
        deltas: &'a mut (dyn FnMut(Delta) + Send),
    ) -> Boxed<'a, Result<Reply, ModelError>> {
        // A prompt without tools, calls and results needs no change.
        if write::is_plain(prompt) {
            self.model.reply(prompt, deltas)
        } else {
            Box::pin(self.ask(prompt, deltas))
        }
    }
}

/// Returns the reply with the calls of tools in `names` taken out of its texts.
fn with_calls(reply: Reply, names: &[&str]) -> Reply {
    let mut parts: Vec<Part> = Vec::with_capacity(reply.parts.len());
    for part in reply.parts {
        let Part::Text(text) = part else {
            parts.push(part);
            continue;
        };
        for piece in read::pieces(&text.text, names) {
            let part = match piece {
                Piece::Text(text) => Part::Text(Text::new(text, Origin::Model)),
                Piece::Call { tool, arguments } => Part::ToolCall(ToolCall {
                    id: unique_id("", &parts),
                    tool,
                    arguments,
                }),
            };
            parts.push(part);
        }
    }
    let has_calls = parts.iter().any(|part| matches!(part, Part::ToolCall(_)));
    let stop = match reply.stop {
        StopReason::MaxTokens => StopReason::MaxTokens,
        StopReason::EndOfTurn | StopReason::ToolCalls if has_calls => StopReason::ToolCalls,
        StopReason::EndOfTurn | StopReason::ToolCalls => StopReason::EndOfTurn,
    };
    Reply {
        parts,
        stop,
        ..reply
    }
}

/// The text shown live: it stops at anything that may be the start of a call, which is held back
/// until it is known.
#[derive(Default)]
struct Shown {
    held_back: String,
    /// Whether the text so far ends inside a line.
    is_inside_line: bool,
}

impl Shown {
    fn hear(&mut self, delta: Delta, deltas: &mut (dyn FnMut(Delta) + Send)) {
        let Delta::Text(text) = delta else {
            deltas(delta);
            return;
        };
        if !self.held_back.is_empty() {
            self.held_back.push_str(&text);
            return;
        }
        let start = text.char_indices().find(|&(_, c)| {
            let begins = !self.is_inside_line && matches!(c, '{' | '[' | '`');
            self.is_inside_line = match c {
                '\n' => false,
                c => self.is_inside_line || !c.is_whitespace(),
            };
            begins
        });
        let (now, later) = text.split_at(start.map_or(text.len(), |(at, _)| at));
        self.held_back.push_str(later);
        if !now.is_empty() {
            deltas(Delta::Text(now.to_owned()));
        }
    }

    fn release(self, deltas: &mut (dyn FnMut(Delta) + Send)) {
        if !self.held_back.is_empty() {
            deltas(Delta::Text(self.held_back));
        }
    }
}

#[cfg(test)]
mod tests;
