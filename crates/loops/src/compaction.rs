//! Compaction: a shorter memory of the same conversation, for runs that outgrow their model's
//! context window.
//!
//! It happens between two steps. First, results that are no longer needed literally are cut,
//! pictures first, without asking a model. Only if this is not enough, a model summarises the older
//! part. A result that is not clearly shorter is refused: compaction would be repeated after every
//! step. The goal, its amendments and its material stand before memory and are never changed; open
//! steps and constraints become state (`kept_work`); and the journal keeps every word.

use std::sync::Arc;

use gyrus_contract::{MemoryBuffer, Message, Origin, Part, Prompt, Role, Text, ToolResult};

/// Size of a prompt, in percent of the model's window, at which compaction begins.
pub(crate) const BEGIN_AT_PERCENT: u64 = 70;

/// Intended size after compaction, in percent of the window.
const AIM_PERCENT: u64 = 40;

/// Number of newest messages that stay unchanged, as far as they fit.
const KEPT_MESSAGES: usize = 8;

/// Size in bytes up to which a result is not cut.
const SHORT_RESULT: usize = 600;

/// Number of bytes that remain of a result that is cut.
const LEFT_OF_RESULT: usize = 200;

/// Size of the new memory, in percent of the old, from which it does not count as shorter.
const MUST_SHRINK_BELOW_PERCENT: u64 = 80;

/// The intended size of memory, as measured by [`size`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CompactionTarget(u64);

impl CompactionTarget {
    /// Returns the intended size for a prompt of `tokens` in a window of `window` tokens; `None` if
    /// no compaction is needed.
    pub(crate) fn within(window: u64, tokens: u64, memory: &MemoryBuffer) -> Option<Self> {
        if u128::from(tokens) * 100 < u128::from(window) * u128::from(BEGIN_AT_PERCENT) {
            return None;
        }
        // The measure differs from the model's; their ratio is known from the last prompt.
        let wanted = u128::from(window) * u128::from(AIM_PERCENT) / 100;
        let scaled = u128::from(size(memory)) * wanted / u128::from(tokens.max(1));
        Some(Self(u64::try_from(scaled).unwrap_or(u64::MAX)))
    }

    /// Returns the target for a summary alone.
    pub(crate) fn summary() -> Self {
        Self(0)
    }

    /// Returns half of the present size, the target for a prompt that the model found too long
    /// without giving a limit.
    pub(crate) fn half(memory: &MemoryBuffer) -> Self {
        Self(size(memory) / 2)
    }
}

/// Returns the size of memory in bytes of text; a picture counts as much as a long page.
pub(crate) fn size(memory: &MemoryBuffer) -> u64 {
    memory
        .recent(usize::MAX)
        .map(|message| weight(message))
        .sum()
}

fn weight(message: &Message) -> u64 {
    message.parts.iter().map(part_weight).sum()
}

const IMAGE_WEIGHT: u64 = 6_000;

fn part_weight(part: &Part) -> u64 {
    match part {
        Part::Text(text) => text.text.len() as u64,
        Part::Image(_) => IMAGE_WEIGHT,
        Part::Thinking(block) => block.to_string().len() as u64,
        Part::ToolCall(call) => call.arguments.to_string().len() as u64 + 40,
        Part::ToolResult(result) => {
            result.text.text.len() as u64 + 40 + IMAGE_WEIGHT * result.images.len() as u64
        }
    }
}

/// Cuts older results. Returns `None` if that does not make memory clearly shorter.
pub(crate) fn cut_results(memory: &MemoryBuffer) -> Option<Vec<Arc<Message>>> {
    let messages: Vec<_> = memory.recent(usize::MAX).cloned().collect();
    let kept_from = messages.len().saturating_sub(KEPT_MESSAGES);
    let cut: Vec<_> = messages
        .iter()
        .enumerate()
        .map(|(number, message)| {
            if number < kept_from {
                Arc::new(cut_message(message))
            } else {
                message.clone()
            }
        })
        .collect();
    is_shorter(&messages, &cut, 0).then_some(cut)
}

fn cut_message(message: &Message) -> Message {
    let cut = |part: &Part| match part {
        Part::ToolResult(result) => Part::ToolResult(cut_result(result)),
        Part::Image(_) => Part::Text(Text::new(
            "[a picture stood here; it was left out to save room]",
            Origin::Kernel,
        )),
        other => other.clone(),
    };
    Message {
        role: message.role,
        parts: message.parts.iter().map(cut).collect(),
    }
}

fn cut_result(result: &ToolResult) -> ToolResult {
    let mut cut = result.clone();
    let text = &result.text.text;
    if text.len() > SHORT_RESULT {
        let left = gyrus_text::first_bytes(text, LEFT_OF_RESULT);
        cut.text.text = format!(
            "{left}\n[{} more bytes were left out to save room; call the tool again if you need them]",
            text.len() - left.len()
        );
    }
    if !cut.images.is_empty() {
        cut.images.clear();
        cut.text
            .text
            .push_str("\n[a picture was left out to save room; look again if you need it]");
    }
    cut
}

/// Cuts the middle out of results larger than the target size, each to half of its size, the newest
/// ones too: a single result can be larger than a small model's window. `None` if there are none,
/// or if a summary alone is to be left: it is written from all of them.
pub(crate) fn cut_large_results(
    memory: &MemoryBuffer,
    aim: CompactionTarget,
) -> Option<Vec<Arc<Message>>> {
    let size = usize::try_from(aim.0).unwrap_or(usize::MAX);
    let most = (size / 2).max(2 * SHORT_RESULT);
    let mut is_cut = false;
    let mut cut = |part: &Part| match part {
        Part::ToolResult(result) if size > 0 && result.text.text.len() > size.max(most) => {
            is_cut = true;
            let mut shorter = result.clone();
            shorter.text.text = without_middle(&result.text.text, most);
            Part::ToolResult(shorter)
        }
        other => other.clone(),
    };
    let messages: Vec<_> = (memory.recent(usize::MAX))
        .map(|message| {
            let parts = message.parts.iter().map(&mut cut).collect();
            let role = message.role;
            Arc::new(Message { role, parts })
        })
        .collect();
    is_cut.then_some(messages)
}

/// Keeps `most` bytes from the beginning and the end of a text, with a note on the omission.
fn without_middle(text: &str, most: usize) -> String {
    let head = gyrus_text::first_bytes(text, most / 2);
    let from = text.ceil_char_boundary(text.len().saturating_sub(most / 2));
    let tail = &text[from..];
    let missing = text.len().saturating_sub(head.len() + tail.len());
    format!(
        "{head}\n[{missing} bytes were left out here, since the result is too large to be read at once; \
         ask for less, or search in it]\n{tail}"
    )
}

fn is_shorter(before: &[Arc<Message>], after: &[Arc<Message>], kept: u64) -> bool {
    let weigh =
        |messages: &[Arc<Message>]| -> u64 { messages.iter().map(|message| weight(message)).sum() };
    u128::from(weigh(after) + kept) * 100
        < u128::from(weigh(before)) * u128::from(MUST_SHRINK_BELOW_PERCENT)
}

/// Whether the memory is within the intended size.
pub(crate) fn fits(memory: &MemoryBuffer, aim: CompactionTarget) -> bool {
    size(memory) <= aim.0
}

/// Returns memory with `summary` in place of its older part; `None` if that is not clearly shorter,
/// together with `kept` bytes that are kept beside it from now on.
pub(crate) fn summarised(
    memory: &MemoryBuffer,
    summary: &str,
    kept: u64,
    aim: CompactionTarget,
) -> Option<Vec<Arc<Message>>> {
    let messages: Vec<_> = memory.recent(usize::MAX).cloned().collect();
    let newest = newest(&messages, aim.0.saturating_sub(summary.len() as u64 + kept));
    let older = &messages[..messages.len() - newest.len()];
    let mut after = vec![Arc::new(in_place_of(older, summary))];
    after.extend_from_slice(newest);
    is_shorter(&messages, &after, kept).then_some(after)
}

/// The introduction of a summary that replaces a conversation.
const SUMMARY_LEAD: &str =
    "The conversation up to here was put away to save room. Your own summary of it:\n";

/// Returns the message that replaces these messages: a summary, and what the person said.
pub(crate) fn in_place_of(messages: &[Arc<Message>], summary: &str) -> Message {
    // The origin is the model, however it is worded: the summary was written from untrusted text.
    let words = Text::new(format!("{SUMMARY_LEAD}{summary}"), Origin::Model);
    let mut message = Message::user(words);
    message.parts.extend(said_by_the_person(messages));
    message
}

/// Returns the newest summary in a request that replaces earlier conversation.
pub fn summary_in(prompt: &Prompt) -> Option<&str> {
    let parts = prompt.messages.iter().flat_map(|message| &message.parts);
    parts.rev().find_map(|part| match part {
        Part::Text(text) if text.origin == Origin::Model => text.text.strip_prefix(SUMMARY_LEAD),
        _ => None,
    })
}

/// Returns the person's words in these messages, verbatim, since no summary replaces them.
fn said_by_the_person(messages: &[Arc<Message>]) -> Vec<Part> {
    let parts = messages.iter().flat_map(|message| &message.parts);
    let said =
        parts.filter(|part| matches!(part, Part::Text(text) if text.origin == Origin::Person));
    let said: Vec<Part> = said.cloned().collect();
    if said.is_empty() {
        return said;
    }
    let lead = "What the person said in it, in their words:";
    let lead = Part::Text(Text::new(lead, Origin::Kernel));
    std::iter::once(lead).chain(said).collect()
}

/// Returns the newest messages with a total size of at most `room`. They begin with the model's own
/// turn, because providers refuse a result without its call.
fn newest(messages: &[Arc<Message>], room: u64) -> &[Arc<Message>] {
    let mut from = messages.len();
    let mut weighs = 0;
    let oldest = messages.len().saturating_sub(KEPT_MESSAGES);
    for number in (oldest..messages.len()).rev() {
        weighs += weight(&messages[number]);
        if weighs > room {
            break;
        }
        if messages[number].role == Role::Assistant {
            from = number;
        }
    }
    &messages[from..]
}

#[cfg(test)]
mod tests {
    use gyrus_contract::{Image, ToolCall};
    use serde_json::json;

    use super::*;

    #[test]
    fn a_result_that_is_larger_than_the_window_loses_its_middle() {
        let mut memory = MemoryBuffer::new(usize::MAX);
        let text = format!("first {}ä last", "é".repeat(20_000));
        for message in step(1, &text).into_iter().chain(step(2, "short")) {
            memory.add(message);
        }
        let aim = CompactionTarget::half(&memory);
        let cut = cut_large_results(&memory, aim).unwrap();
        let words = cut[1].text();
        assert!(words.starts_with("first é") && words.ends_with("éä last"));
        assert!(words.contains("bytes were left out here"));
        assert!(words.len() < 12_000, "{}", words.len());
        assert_eq!(cut[3].text(), "short");
        let mut shorter = MemoryBuffer::new(usize::MAX);
        cut.iter()
            .for_each(|message| shorter.add((**message).clone()));
        assert!(fits(&shorter, aim));
        assert!(cut_large_results(&shorter, aim).is_none());
        assert!(cut_large_results(&memory, CompactionTarget::summary()).is_none());
    }

    fn step(number: usize, result: &str) -> [Message; 2] {
        let id = format!("c{number}");
        let call = Part::ToolCall(ToolCall {
            id: id.clone(),
            tool: "read".into(),
            arguments: json!({ "path": number }),
            repairs: Vec::new(),
        });
        let result = Part::ToolResult(ToolResult {
            call_id: id,
            text: Text::new(
                result,
                Origin::Tool {
                    name: "read".into(),
                },
            ),
            images: Vec::new(),
            is_error: false,
        });
        [
            Message {
                role: Role::Assistant,
                parts: vec![call],
            },
            Message {
                role: Role::User,
                parts: vec![result],
            },
        ]
    }

    fn memory(steps: usize, result: &str) -> MemoryBuffer {
        let mut memory = MemoryBuffer::new(1_000);
        for message in (0..steps).flat_map(|number| step(number, result)) {
            memory.add(message);
        }
        memory
    }

    /// Asserts that the call of every result precedes it.
    fn assert_whole(messages: &[Arc<Message>]) {
        let mut called = Vec::new();
        for part in messages.iter().flat_map(|message| &message.parts) {
            match part {
                Part::ToolCall(call) => called.push(call.id.clone()),
                Part::ToolResult(result) => assert!(called.contains(&result.call_id)),
                _ => {}
            }
        }
    }

    #[test]
    fn begins_in_time_and_measures_by_the_last_prompt() {
        let memory = memory(10, &"x".repeat(1_000));
        assert_eq!(CompactionTarget::within(10_000, 6_999, &memory), None);
        let aim = CompactionTarget::within(10_000, 8_000, &memory).unwrap();
        assert_eq!(aim.0, size(&memory) / 2);
        assert!(!fits(&memory, aim));
    }

    #[test]
    fn older_results_are_cut_and_newer_stay() {
        let mut before = memory(20, &"ä".repeat(5_000));
        let messages = cut_results(&before).unwrap();
        assert_whole(&messages);
        assert_eq!(messages.len(), 40);
        assert_eq!(messages[39], *before.recent(1).next().unwrap());
        assert!(messages[1].text().contains("left out to save room"));
        before.rewrite(messages);
        assert_eq!((before.first_number(), before.next_number()), (40, 80));
        assert!(
            cut_results(&before).is_none(),
            "a second time gains nothing"
        );
    }

    #[test]
    fn pictures_go_first() {
        let mut memory = memory(8, "short");
        let [call, mut result] = step(99, "seen");
        if let Part::ToolResult(result) = &mut result.parts[0] {
            result.images.push(Image {
                blob: gyrus_contract::BlobId::of(b"x"),
                media_type: "image/png".into(),
                width: 10,
                height: 10,
            });
        }
        let later: Vec<_> = memory.recent(100).cloned().collect();
        memory.rewrite([Arc::new(call), Arc::new(result)].into_iter().chain(later));
        let messages = cut_results(&memory).unwrap();
        assert!(messages[1].text().contains("a picture was left out"));
        assert!(messages.iter().all(|message| {
            message
                .parts
                .iter()
                .all(|part| !matches!(part, Part::ToolResult(result) if !result.images.is_empty()))
        }));
    }

    #[test]
    fn a_summary_replaces_the_older_part_or_is_refused() {
        let memory = memory(50, &"x".repeat(500));
        let aim = CompactionTarget(4_000);
        let messages = summarised(&memory, "fifty files were read", 100, aim).unwrap();
        assert_whole(&messages);
        assert!(messages[0].text().contains("fifty files were read"));
        assert_eq!(messages[1].role, Role::Assistant);
        assert!(messages.len() <= 1 + KEPT_MESSAGES);
        assert!(messages.iter().map(|message| weight(message)).sum::<u64>() <= aim.0);
        let mut talk = self::memory(25, &"x".repeat(500));
        talk.add_user_message("always answer in French");
        let later: Vec<_> = (0..25)
            .flat_map(|number| step(number, &"x".repeat(500)))
            .collect();
        later.into_iter().for_each(|message| talk.add(message));
        let messages = summarised(&talk, "fifty files were read", 100, aim).unwrap();
        assert!(messages[0].text().contains("always answer in French"));
        let rambling = "x".repeat(30_000);
        assert_eq!(summarised(&memory, &rambling, 0, aim), None);
        assert_eq!(summarised(&memory, "short", 30_000, aim), None);
    }
}
