//! The stream of a reply: bytes in, one [`Reply`] or [`ModelError`] out.
//!
//! Pure, so that any stream can be tried without a network. The protocol is the Messages streaming
//! format: `message_start`, then blocks one after the other (start, deltas, stop), then
//! `message_delta` with the stop reason and the usage, then `message_stop`. A stream that does
//! anything else, or ends before its `message_stop`, is [`ModelError::BadOutput`]: there are no
//! partial replies. Unknown event types are skipped, as the protocol asks.
//!
//! One error is the model's and not the wire's: tool arguments that are not JSON. They are
//! delivered as a string with the raw text, so that the loop can tell the model.

use gyrus_contract::{
    Delta, ModelError, Origin, Part, Reply, Shown, StopReason, Text, ToolCall, Usage,
};
use serde_json::{Map, Value};

use super::{
    errors,
    events::{Event, Piece},
    screen::{self, TOOLSET},
};
use crate::{
    arguments,
    errors::{bad, bounded_line},
    reading::{self, Content, MAX_PARTS, grow_arguments, parse_event, tokens},
    stream::{self, ReplyReader},
};

/// The block that is being received.
enum Block {
    Text(String),
    /// A block of thinking, kept as the provider's own object; only its texts grow.
    Thinking(Map<String, Value>),
    Tool {
        id: String,
        tool: String,
        /// The picture on which the call acts, if it is one of the provider's own tool.
        on: Option<Shown>,
        /// The input in the start of the block.
        begun_with: Value,
        raw: String,
    },
}

/// Reads one reply.
#[derive(Default)]
pub(crate) struct Reader {
    shown: Option<Shown>,
    model: Option<String>,
    parts: Vec<Part>,
    open: Option<Block>,
    blocks: u64,
    content: Content,
    stop: Option<StopReason>,
    usage_at_start: Value,
    usage_at_end: Value,
}

impl ReplyReader for Reader {
    fn new(_model: &str, shown: Option<Shown>) -> Self {
        Self {
            shown,
            ..Self::default()
        }
    }

    fn event(
        &mut self,
        event: &stream::Event,
        deltas: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Option<Reply>, ModelError> {
        let size = event.data.len();
        let event: Event = parse_event(&event.name, &event.data)?;
        match event {
            Event::MessageStart { message } if self.model.is_none() => {
                self.model = Some(message.model);
                self.usage_at_start = message.usage.unwrap_or_default();
            }
            Event::MessageStart { .. } => return Err(bad("a second message began in the stream")),
            Event::Error(body) => return Err(errors::from_event(body)),
            Event::Other => {}
            _ if self.model.is_none() => {
                return Err(bad("the stream did not begin with a message"));
            }
            Event::ContentBlockStart {
                index,
                content_block,
            } => {
                self.content.grow(size)?;
                self.start_block(index, content_block, deltas)?;
            }
            Event::ContentBlockDelta { index, delta } => self.grow_block(index, delta, deltas)?,
            Event::ContentBlockStop { index } => self.end_block(index)?,
            Event::MessageDelta { delta, usage } => {
                self.usage_at_end = usage.unwrap_or_default();
                if let Some(word) = &delta.stop_reason {
                    self.stop = Some(stop_reason(word, delta.stop_details.as_ref())?);
                }
            }
            Event::MessageStop => return self.finish().map(Some),
        }
        Ok(None)
    }

    fn position(&self) -> &'static str {
        match (&self.model, &self.open) {
            (None, _) => "before it began",
            (Some(_), Some(Block::Tool { .. })) => "inside the arguments of a tool call",
            (Some(_), Some(_)) => "inside a block",
            (Some(_), None) => "before its end",
        }
    }
}

impl Reader {
    fn start_block(
        &mut self,
        index: u64,
        mut block: Map<String, Value>,
        deltas: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<(), ModelError> {
        if self.open.is_some() || index != self.blocks {
            return Err(bad(format!(
                "block {index} began where block {} was due",
                self.blocks
            )));
        }
        if self.blocks == MAX_PARTS as u64 {
            return Err(bad(format!("the reply has more than {MAX_PARTS} blocks")));
        }
        self.blocks += 1;
        let text = |block: &mut Map<String, Value>, name| match block.remove(name) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        };
        let open = match block
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default()
        {
            "text" => Block::Text(text(&mut block, "text").unwrap_or_default()),
            "thinking" | "redacted_thinking" => Block::Thinking(block),
            "tool_use" => {
                let id = text(&mut block, "id").filter(|id| !id.is_empty());
                let tool = text(&mut block, "name").filter(|name| !name.is_empty());
                let (Some(id), Some(tool)) = (id, tool) else {
                    return Err(bad("a tool call has no id or no name"));
                };
                let repeats = |part: &Part| matches!(part, Part::ToolCall(c) if c.id == id);
                if self.parts.iter().any(repeats) {
                    return Err(bad(format!(
                        "two tool calls have the id `{}`",
                        bounded_line(&id)
                    )));
                }
                deltas(Delta::Tool(tool.clone()));
                let begun_with = block.remove("input").unwrap_or_default();
                let of_screen = block.get("toolset_name").and_then(Value::as_str) == Some(TOOLSET);
                Block::Tool {
                    id,
                    tool,
                    on: self.shown.filter(|_| of_screen),
                    begun_with,
                    raw: String::new(),
                }
            }
            other => {
                return Err(bad(format!(
                    "a block has the type `{}`",
                    bounded_line(other)
                )));
            }
        };
        self.open = Some(open);
        Ok(())
    }

    fn grow_block(
        &mut self,
        index: u64,
        delta: Piece,
        deltas: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<(), ModelError> {
        self.content.grow(match &delta {
            Piece::Text { text: more }
            | Piece::Thinking { thinking: more }
            | Piece::Signature { signature: more }
            | Piece::InputJson { partial_json: more } => more.len(),
        })?;
        let open = open_block(&mut self.open, self.blocks, index)?;
        match (open, delta) {
            (Block::Text(text), Piece::Text { text: more }) => {
                text.push_str(&more);
                deltas(Delta::Text(more));
            }
            (Block::Thinking(block), Piece::Thinking { thinking }) => {
                grow(block, "thinking", &thinking);
                deltas(Delta::Thinking(thinking));
            }
            (Block::Thinking(block), Piece::Signature { signature }) => {
                grow(block, "signature", &signature);
            }
            (Block::Tool { raw, .. }, Piece::InputJson { partial_json }) => {
                grow_arguments(raw, &partial_json)?;
            }
            (Block::Text(_) | Block::Thinking(_) | Block::Tool { .. }, _) => {
                return Err(bad(format!("block {index} got a piece of another type")));
            }
        }
        Ok(())
    }

    fn end_block(&mut self, index: u64) -> Result<(), ModelError> {
        open_block(&mut self.open, self.blocks, index)?;
        match self.open.take() {
            // An empty text has no content, and the provider does not accept it back.
            Some(Block::Text(text)) if text.is_empty() => {}
            Some(Block::Text(text)) => self.parts.push(Part::Text(Text::new(text, Origin::Model))),
            Some(Block::Thinking(block)) => self.parts.push(Part::Thinking(block.into())),
            Some(Block::Tool {
                id,
                tool,
                on,
                begun_with,
                raw,
            }) => {
                let arguments = arguments::parse(raw, begun_with);
                match on {
                    None => self.parts.push(Part::ToolCall(ToolCall {
                        id,
                        tool,
                        arguments,
                        repairs: Vec::new(),
                    })),
                    Some(shown) => {
                        let acts = screen::acts(&tool, &arguments, shown);
                        reading::act(&id, acts, &mut self.parts)?;
                    }
                }
            }
            None => {}
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<Reply, ModelError> {
        if self.open.is_some() {
            return Err(bad("the message ended inside a block"));
        }
        let Some(stop) = self.stop else {
            return Err(bad("the message ended without a stop reason"));
        };
        let parts = std::mem::take(&mut self.parts);
        let model = self.model.take().unwrap_or_default();
        Ok(reading::finished(parts, stop, self.usage(), model))
    }

    /// Returns the usage. Counts at the end are cumulative and replace those of the start. The
    /// start's count of output tokens covers only what had been written by then, so it is not used.
    fn usage(&self) -> Option<Usage> {
        let input = |name| tokens(&self.usage_at_end, name).or(tokens(&self.usage_at_start, name));
        let cached_tokens = input("cache_read_input_tokens").unwrap_or(0);
        let written = input("cache_creation_input_tokens").unwrap_or(0);
        Some(Usage {
            input_tokens: input("input_tokens")? + cached_tokens + written,
            output_tokens: tokens(&self.usage_at_end, "output_tokens")?,
            cached_tokens,
            cache_written_tokens: written,
        })
    }
}

fn open_block(open: &mut Option<Block>, blocks: u64, index: u64) -> Result<&mut Block, ModelError> {
    match open {
        Some(block) if index.checked_add(1) == Some(blocks) => Ok(block),
        _ => Err(bad(format!(
            "block {index} goes on or ends without having begun"
        ))),
    }
}

fn stop_reason(word: &str, details: Option<&Value>) -> Result<StopReason, ModelError> {
    match word {
        "end_turn" | "stop_sequence" => Ok(StopReason::EndOfTurn),
        "tool_use" => Ok(StopReason::ToolCalls),
        "max_tokens" | "model_context_window_exceeded" => Ok(StopReason::MaxTokens),
        "refusal" => {
            let why = details.and_then(|details| details.get("explanation")?.as_str());
            let message = bounded_line(why.unwrap_or("it gave no reason"));
            Err(ModelError::Declined { message })
        }
        other => Err(bad(format!(
            "the reply stopped for the reason `{}`",
            bounded_line(other)
        ))),
    }
}

fn grow(block: &mut Map<String, Value>, field: &str, more: &str) {
    match block.get_mut(field) {
        Some(Value::String(text)) => text.push_str(more),
        _ => _ = block.insert(field.to_owned(), more.into()),
    }
}

#[cfg(test)]
mod tests;
