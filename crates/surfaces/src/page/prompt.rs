//! The prompt of one request to a model as it was really sent, and its place among the others.

use gyrus_contract::{Message, Origin, Part, Prompt, Purpose, Role, RunId, ToolSpec};
use gyrus_journal::LogReader;
use gyrus_kernel::{Entry, ModelCall};
use gyrus_text::{counted, grouped};
use maud::{Markup, html};

use super::{picture::PagePictures, rows::whole_text, step::layout};

/// Maximum number of entries searched for the request before and after, in each direction.
const SEARCHED: u64 = 2_000;

/// A request to a model, and the ones beside it.
#[derive(Debug)]
pub struct AskedModel {
    /// Number of the request's entry.
    pub seq: u64,
    pub call: ModelCall,
    /// Number of the entry of the request before it, if that is not far.
    pub before: Option<u64>,
    /// Number of the entry of the request after it, if that is not far.
    pub after: Option<u64>,
}

/// Returns the request of the entry `seq`, or the newest one; `None` if there is no such request.
pub fn asked_model(
    reader: &LogReader,
    seq: Option<u64>,
    end: u64,
) -> Result<Option<AskedModel>, gyrus_journal::Error> {
    let entry = match seq {
        Some(seq) => reader.entry(seq)?,
        None => reader.last("model.call")?,
    };
    let Some(entry) = entry.filter(|entry| entry.seq <= end) else {
        return Ok(None);
    };
    let Ok(Entry::ModelCall(call)) = gyrus_kernel::parse(&entry) else {
        return Ok(None);
    };
    let seq = entry.seq;
    let is_call = |entry: &gyrus_journal::LogEntry| entry.kind == "model.call";
    let from = seq.saturating_sub(SEARCHED).max(1);
    let near = |from: u64, to: u64| -> Result<Vec<u64>, gyrus_journal::Error> {
        let mut found = Vec::new();
        for entry in reader.entries(from)? {
            let entry = entry?;
            if entry.seq > to {
                break;
            }
            if is_call(&entry) {
                found.push(entry.seq);
                if from > seq {
                    break;
                }
            }
        }
        Ok(found)
    };
    Ok(Some(AskedModel {
        seq,
        call,
        before: near(from, seq - 1)?.pop(),
        after: near(seq + 1, end.min(seq + SEARCHED))?.first().copied(),
    }))
}

/// Draws a prompt whole, in the order in which the model reads it.
pub fn prompt(prompt: &Prompt, reader: &LogReader, run: RunId) -> Markup {
    let mut pictures = PagePictures::served(run);
    html! {
        div.sent {
            @for part in &prompt.system {
                section.message.system {
                    p.label { b { "system" } @if part.cacheable { span { "the same in every step" } } }
                    (whole_text(&part.text))
                }
            }
            @if !prompt.tools.is_empty() {
                section.message.tools-sent {
                    p.label { b { "tools" } span { (counted(prompt.tools.len(), "tool")) } }
                    @for tool in &prompt.tools { (tool_sent(tool)) }
                }
            }
            @for message in &prompt.messages { (message_sent(message, reader, &mut pictures)) }
            @if let Some(schema) = &prompt.output_schema {
                section.message.system {
                    p.label { b { "the form that the reply must have" } }
                    (whole_text(&layout(schema)))
                }
            }
            p.aside { "At most " (grouped(prompt.max_output_tokens)) " tokens in reply." }
        }
    }
}

fn tool_sent(tool: &ToolSpec) -> Markup {
    html! {
        details.more {
            summary { code { (tool.name) } }
            (whole_text(&tool.description))
            (whole_text(&layout(&tool.parameters)))
        }
    }
}

fn message_sent(message: &Message, reader: &LogReader, pictures: &mut PagePictures) -> Markup {
    let role = match message.role {
        Role::User => "to the model",
        Role::Assistant => "from the model",
    };
    html! {
        section class={ "message " (if message.role == Role::User { "to" } else { "from" }) } {
            p.label { b { (role) } }
            @for part in &message.parts { (part_sent(part, reader, pictures)) }
        }
    }
}

fn part_sent(part: &Part, reader: &LogReader, pictures: &mut PagePictures) -> Markup {
    match part {
        Part::Text(text) => html! {
            p.label { span { (author(&text.origin)) } }
            (whole_text(&text.text))
        },
        Part::Image(image) => pictures.figure(image, reader),
        Part::Thinking(block) => html! {
            details.more { summary { "a block of the provider's own" } (whole_text(&layout(block))) }
        },
        Part::ToolCall(call) => html! {
            p.label { span { "calls" } b { (call.tool) } }
            (whole_text(&layout(&call.arguments)))
        },
        Part::ToolResult(result) => html! {
            p.label { span { (author(&result.text.origin)) } @if result.is_error { b { "an error" } } }
            (whole_text(&result.text.text))
            @for image in &result.images { (pictures.figure(image, reader)) }
        },
    }
}

fn author(origin: &Origin) -> String {
    let value = serde_json::to_value(origin).unwrap_or_default();
    let word = |name: &str| value[name].as_str().unwrap_or_default();
    let words = [word("from"), word("name"), word("path")];
    let words = words.into_iter().filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

pub(super) fn purpose(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Agent => "next step",
        Purpose::Plan => "plan",
        Purpose::Mandate => "state the mandate",
        Purpose::Reflect => "look back",
        Purpose::Verify => "verify",
        Purpose::Safety => "judge a call",
        Purpose::Summarise => "summarise",
        Purpose::Sampling => "answer a server",
    }
}
