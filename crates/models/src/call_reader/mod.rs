//! Reads the calls of a reply, as models really write them.
//!
//! One reader stands before every model. A model that has tool calls on its wire writes them as text
//! now and then; for one that has none, tools are described in the prompt (`write`) and calls arrive
//! as text only. `read` finds calls in text, names are matched with the tools that are offered, and
//! arguments are repaired against the tool's schema. No other module notices. A result cannot forge a
//! call, since only the model's own reply is read.
//!
//! Not here: whether a call may be made. Like every call it is checked and judged where tools are
//! called.

mod commands;
mod one_object;
mod read;
mod write;

use std::sync::Arc;

use gyrus_contract::{
    BoxedFuture, Delta, Model, ModelError, Origin, Part, Prompt, Reply, Simplification, StopReason,
    Text, ToolCall, ToolSpec, Touch,
};
use serde_json::Value;

use crate::reading::unique_id;
use read::ReplyPart;
use read::offered;
pub use write::CallStyle;

/// The description of a call that was read from text although the model was offered native tools.
pub(crate) const READ_FROM_TEXT: &str = "it was read from the text of the reply";

/// A model whose calls are parsed tolerantly.
pub struct CallReader {
    model: Arc<dyn Model>,
    style: CallStyle,
}

impl CallReader {
    /// Creates a reader for a model that is offered tools in this form.
    pub fn new(model: Arc<dyn Model>, style: CallStyle) -> Self {
        Self { model, style }
    }

    /// Creates a reader for a model with native tool calls.
    pub fn native(model: Arc<dyn Model>) -> Self {
        Self::new(model, CallStyle::Native)
    }

    /// Creates a reader for a model without native tool calls, which writes calls as text.
    pub fn prompted(model: Arc<dyn Model>) -> Self {
        Self::new(model, CallStyle::Prompted)
    }

    /// Returns the form in which a prompt offers its tools.
    fn style_for(&self, prompt: &Prompt) -> CallStyle {
        let has = |step| prompt.plainer.contains(&step);
        match self.style {
            _ if has(Simplification::OneObject) => CallStyle::Bound,
            CallStyle::Native if has(Simplification::CallsInText) => CallStyle::Prompted,
            style => style,
        }
    }

    async fn ask(
        &self,
        prompt: &Prompt,
        deltas: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Reply, ModelError> {
        let style = self.style_for(prompt);
        let is_prompted = style != CallStyle::Native;
        let may_bind = !prompt.plainer.contains(&Simplification::UnboundReply);
        let written = is_prompted.then(|| write::as_text(prompt, style, may_bind));
        let mut shown = LiveText {
            only_at_first: !is_prompted,
            ..LiveText::default()
        };
        let mut show = |delta| shown.hear(delta, deltas);
        let wants_words = prompt.purpose.wants_words();
        // A provider that has both may read a schema before everything else, and then all of it anew.
        let without_schema = (wants_words && !prompt.tools.is_empty()).then(|| Prompt {
            output_schema: None,
            ..prompt.clone()
        });
        let sent = written.as_ref().or(without_schema.as_ref());
        let reply = self.model.reply(sent.unwrap_or(prompt), &mut show).await?;
        if wants_words {
            shown.release(deltas);
            return Ok(reply);
        }
        if style == CallStyle::Bound
            && let Some(words) = one_object::answer(&reply.text())
        {
            deltas(Delta::Text(words.clone()));
            let parts = vec![Part::Text(Text::new(words, Origin::Model))];
            return Ok(Reply { parts, ..reply });
        }
        let was_native = reply.tool_calls().next().is_some();
        let mut reply = with_calls(reply, &prompt.tools);
        if !was_native && !is_prompted {
            for part in &mut reply.parts {
                if let Part::ToolCall(call) = part {
                    call.repairs.insert(0, READ_FROM_TEXT.to_owned());
                }
            }
        }
        match reply.tool_calls().next() {
            Some(_) if !was_native => reply
                .tool_calls()
                .for_each(|call| deltas(Delta::Tool(call.tool.clone()))),
            _ => shown.release(deltas),
        }
        Ok(reply)
    }
}

impl Model for CallReader {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn inner(&self) -> Option<&dyn Model> {
        Some(&*self.model)
    }

    fn reply<'a>(
        &'a self,
        prompt: &'a Prompt,
        deltas: &'a mut (dyn FnMut(Delta) + Send),
    ) -> BoxedFuture<'a, Result<Reply, ModelError>> {
        // A reply that must fit a schema has no calls.
        let has_calls = !prompt.tools.is_empty() && prompt.output_schema.is_none();
        let is_plain = if self.style_for(prompt) != CallStyle::Native {
            write::is_plain(prompt)
        } else {
            !has_calls
        };
        if is_plain {
            self.model.reply(prompt, deltas)
        } else {
            Box::pin(self.ask(prompt, deltas))
        }
    }
}

/// Returns the reply with the calls in its texts, unless it has native ones; and with all calls as
/// the offered tools take them.
fn with_calls(reply: Reply, tools: &[Arc<ToolSpec>]) -> Reply {
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    let is_native = reply.tool_calls().next().is_some();
    let is_whole = reply.stop != StopReason::MaxTokens;
    let mut parts: Vec<Part> = Vec::with_capacity(reply.parts.len());
    for part in reply.parts {
        match part {
            Part::Text(text) if !is_native => {
                for piece in read::pieces(&text.text, &names, is_whole) {
                    let part = match piece {
                        ReplyPart::Text(text) => Part::Text(Text::new(text, Origin::Model)),
                        ReplyPart::Call(written) => Part::ToolCall(as_offered(
                            ToolCall {
                                id: unique_id("", &parts),
                                ..ToolCall::new(written.tool, written.arguments)
                            },
                            tools,
                        )),
                    };
                    parts.push(part);
                }
            }
            Part::ToolCall(call) => parts.push(Part::ToolCall(as_offered(call, tools))),
            other => parts.push(other),
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

/// Corrects a call's name and arguments to those of an offered tool, where the match is clear.
fn as_offered(mut call: ToolCall, tools: &[Arc<ToolSpec>]) -> ToolCall {
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    let Some(name) = offered(&call.tool, &names) else {
        return call;
    };
    if name != call.tool {
        name.clone_into(&mut call.tool);
    }
    if let Some(tool) = tools.iter().find(|tool| tool.name == name) {
        (call.arguments, call.repairs) = tool.repair(call.arguments);
        for touch in &tool.touches {
            if let Touch::Starts(argument) = touch
                && let Some(Value::String(command)) = call.arguments.get_mut(argument)
                && let Some((meant, repair)) = commands::mended(command)
            {
                *command = meant;
                call.repairs.push(repair.to_owned());
            }
        }
    }
    call
}

/// The text shown live: it stops at anything that may be the start of a call, which is held back
/// until it is known.
#[derive(Default)]
struct LiveText {
    /// Whether only the beginning of a reply is checked for calls.
    only_at_first: bool,
    /// Whether any text was shown.
    has_begun: bool,
    held_back: String,
    /// Whether the text so far ends inside a line.
    is_inside_line: bool,
}

impl LiveText {
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
            let may_begin = !(self.is_inside_line || self.only_at_first && self.has_begun);
            let begins = may_begin && matches!(c, '{' | '[' | '`' | '<');
            self.has_begun |= !c.is_whitespace();
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
