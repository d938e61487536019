//! The stream of a reply: bytes in, one [`Reply`] or [`ModelError`] out.
//!
//! Pure, so that any stream can be tried without a network. The protocol is the Messages streaming
//! format: `message_start`, then blocks one after the other (start, deltas, stop), then
//! `message_delta` with the stop reason and the usage, then `message_stop`. Unknown event types are
//! skipped, as the protocol asks. A stream that ends before is read as it stands: inside a block it
//! was cut off, as at the limit of its length; after one it is done.
//!
//! One error is the model's and not the wire's: tool arguments that are not JSON. They are
//! delivered as a string with the raw text, so that the loop can tell the model.

use gyrus_contract::{Delta, ModelError, Origin, Part, Reply, ScreenSize, StopReason, Text, Usage};
use serde_json::{Map, Value};

use super::{
    errors,
    events::{AnthropicEvent, BlockDelta, MessageDelta, MessageStart},
    screen::{self, TOOLSET},
};
use crate::{
    arguments,
    errors::{bad, bounded_line},
    reading::{self, ContentAmount, MAX_PARTS, grow_arguments, parse_event, tokens},
    stream::{self, ReplyReader},
};

/// The block being received.
enum Block {
    Text(String),
    /// A block of thinking, kept as the provider's own object; only its texts grow.
    Thinking(Map<String, Value>),
    Tool {
        id: String,
        tool: String,
        /// The picture on which the call acts, if it is one of the provider's own tool.
        on: Option<ScreenSize>,
        /// The input in the start of the block.
        begun_with: Value,
        raw: String,
    },
}

/// Reads the stream of one reply.
#[derive(Default)]
pub(crate) struct AnthropicReader {
    shown: Option<ScreenSize>,
    model: Option<String>,
    parts: Vec<Part>,
    open: Option<Block>,
    blocks: u64,
    content: ContentAmount,
    stop: Option<StopReason>,
    usage_at_start: Value,
    usage_at_end: Value,
}

impl ReplyReader for AnthropicReader {
    fn new(_model: &str, shown: Option<ScreenSize>) -> Self {
        Self {
            shown,
            ..Self::default()
        }
    }

    fn event(
        &mut self,
        event: &stream::StreamEvent,
        deltas: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Option<Reply>, ModelError> {
        let size = event.data.len();
        let event: AnthropicEvent = parse_event(&event.name, &event.data)?;
        match event {
            AnthropicEvent::MessageStart { message } if self.model.is_none() => self.start(message),
            AnthropicEvent::Message(whole) if self.model.is_none() => {
                self.content.grow(size)?;
                self.start(whole.start);
                self.usage_at_end.clone_from(&self.usage_at_start);
                for block in whole.content.into_iter().flatten() {
                    self.start_block(None, block, deltas)?;
                    self.end_block(None)?;
                }
                self.stop(&whole.end)?;
                return self.end();
            }
            AnthropicEvent::MessageStart { .. } | AnthropicEvent::Message(_) => {
                return Err(bad("a second message began in the stream"));
            }
            AnthropicEvent::Other => {}
            _ if self.model.is_none() => {
                return Err(bad("the stream did not begin with a message"));
            }
            AnthropicEvent::ContentBlockStart {
                index,
                content_block,
            } => {
                self.content.grow(size)?;
                self.start_block(index, content_block, deltas)?;
            }
            AnthropicEvent::ContentBlockDelta { index, delta } => {
                self.grow_block(index, delta, deltas)?
            }
            AnthropicEvent::ContentBlockStop { index } => self.end_block(index)?,
            AnthropicEvent::MessageDelta { delta, usage } => {
                self.usage_at_end = usage.unwrap_or_default();
                self.stop(&delta)?;
            }
            AnthropicEvent::MessageStop => {
                let reply = self.end()?;
                let empty = || bad("the message ended without content and without a stop reason");
                return reply.ok_or_else(empty).map(Some);
            }
        }
        Ok(None)
    }

    fn error(error: &Value) -> ModelError {
        errors::from_event(error)
    }

    fn end(&mut self) -> Result<Option<Reply>, ModelError> {
        let is_cut = match &self.open {
            None => false,
            Some(Block::Tool { raw, .. }) => !reading::is_whole(raw),
            Some(Block::Text(_)) => true,
            // It is not signed yet, so it cannot go back.
            Some(Block::Thinking(_)) => {
                self.open = None;
                true
            }
        };
        if self.open.is_some() {
            self.end_block(None)?;
        }
        let stop = match (self.stop, is_cut) {
            (Some(stop), _) => stop,
            (None, _) if !reading::has_content(&self.parts) => return Ok(None),
            (None, true) => StopReason::MaxTokens,
            (None, false) => StopReason::EndOfTurn,
        };
        let parts = std::mem::take(&mut self.parts);
        let model = self.model.take().unwrap_or_default();
        Ok(Some(reading::finished(parts, stop, self.usage(), model)))
    }

    fn has_ended(&self) -> bool {
        self.stop.is_some()
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

impl AnthropicReader {
    fn start(&mut self, message: MessageStart) {
        self.model = Some(message.model.unwrap_or_default());
        self.usage_at_start = message.usage.unwrap_or_default();
    }

    fn stop(&mut self, end: &MessageDelta) -> Result<(), ModelError> {
        if let Some(word) = &end.stop_reason {
            self.stop = Some(stop_reason(word, end.stop_details.as_ref())?);
        }
        Ok(())
    }

    fn start_block(
        &mut self,
        index: Option<u64>,
        mut block: Map<String, Value>,
        deltas: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<(), ModelError> {
        let index = index.unwrap_or(self.blocks);
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
            "text" => {
                let begun_with = text(&mut block, "text").unwrap_or_default();
                if !begun_with.is_empty() {
                    deltas(Delta::Text(begun_with.clone()));
                }
                Block::Text(begun_with)
            }
            "thinking" | "redacted_thinking" => {
                let thought = block.get("thinking").and_then(Value::as_str);
                if let Some(thought) = thought.filter(|thought| !thought.is_empty()) {
                    deltas(Delta::Thinking(thought.to_owned()));
                }
                Block::Thinking(block)
            }
            "tool_use" => {
                let id = text(&mut block, "id").unwrap_or_default();
                let tool = text(&mut block, "name").filter(|name| !name.is_empty());
                let Some(tool) = tool else {
                    return Err(bad("a tool call has no name"));
                };
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
        index: Option<u64>,
        delta: BlockDelta,
        deltas: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<(), ModelError> {
        self.content.grow(match &delta {
            BlockDelta::Text { text: more }
            | BlockDelta::Thinking { thinking: more }
            | BlockDelta::Signature { signature: more }
            | BlockDelta::InputJson { partial_json: more } => more.len(),
            BlockDelta::Other => return Ok(()),
        })?;
        let open = open_block(&mut self.open, self.blocks, index)?;
        match (open, delta) {
            (Block::Text(text), BlockDelta::Text { text: more }) => {
                text.push_str(&more);
                deltas(Delta::Text(more));
            }
            (Block::Thinking(block), BlockDelta::Thinking { thinking }) => {
                grow(block, "thinking", &thinking);
                deltas(Delta::Thinking(thinking));
            }
            (Block::Thinking(block), BlockDelta::Signature { signature }) => {
                grow(block, "signature", &signature);
            }
            (Block::Tool { raw, .. }, BlockDelta::InputJson { partial_json }) => {
                grow_arguments(raw, &partial_json)?;
            }
            (Block::Text(_) | Block::Thinking(_) | Block::Tool { .. }, _) => {
                let number = self.blocks - 1;
                return Err(bad(format!("block {number} got a piece of another type")));
            }
        }
        Ok(())
    }

    fn end_block(&mut self, index: Option<u64>) -> Result<(), ModelError> {
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
                    None => {
                        let call = reading::call(&id, tool, arguments, &self.parts);
                        self.parts.push(call);
                    }
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

/// Returns the open block; without an index it is meant.
fn open_block(
    open: &mut Option<Block>,
    blocks: u64,
    index: Option<u64>,
) -> Result<&mut Block, ModelError> {
    let index = index.unwrap_or(blocks.saturating_sub(1));
    match open {
        Some(block) if index.checked_add(1) == Some(blocks) => Ok(block),
        _ => Err(bad(format!(
            "block {index} goes on or ends without having begun"
        ))),
    }
}

fn stop_reason(word: &str, details: Option<&Value>) -> Result<StopReason, ModelError> {
    match word {
        "end_turn" | "stop_sequence" | "stop" => Ok(StopReason::EndOfTurn),
        "tool_use" | "tool_calls" => Ok(StopReason::ToolCalls),
        "max_tokens" | "model_context_window_exceeded" | "length" => Ok(StopReason::MaxTokens),
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
