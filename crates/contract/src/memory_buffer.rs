//! The bounded memory of a run: what was said and seen, newest last.
//!
//! It only grows at the end and forgets at the start. Items are numbered for life, so a journal
//! stores each of them once, and n steps cost O(n) bytes however long the window is.

use std::{collections::VecDeque, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{Digest, Message, Observation, Origin, Part, Reply, Role, Text, ToolResult};

/// A message in the memory of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MemoryItem {
    /// The message. Typed and told text is a single user text.
    pub message: Arc<Message>,
    /// The digest of the message, if it has been computed.
    #[serde(skip, default = "unset")]
    digest: Option<Digest>,
}

fn unset() -> Option<Digest> {
    None
}

impl MemoryItem {
    /// Creates an item and computes its digest.
    pub fn new(message: Message) -> Self {
        let digest = Some(Digest::of_json(&message));
        Self {
            message: Arc::new(message),
            digest,
        }
    }

    /// Returns the digest of the message.
    pub fn digest(&self) -> Digest {
        self.digest
            .unwrap_or_else(|| Digest::of_json(&*self.message))
    }
}

/// A window on the last `capacity` messages.
///
/// ```
/// use gyrus_contract::MemoryBuffer;
///
/// let mut buffer = MemoryBuffer::new(50);
/// buffer.add_user_message("Hello");
/// buffer.add_agent_response("Hi there!");
/// buffer.add_observation("weather", "Sunny, 22 °C");
/// assert_eq!(buffer.recent(2).count(), 2);
/// assert!(buffer.to_context_string().contains("weather: Sunny"));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryBuffer {
    items: VecDeque<MemoryItem>,
    /// Number of the first item in `items`.
    first: u64,
    /// Number before which items were archived by [`rewrite`](Self::rewrite).
    put_away: u64,
    capacity: usize,
}

impl MemoryBuffer {
    /// Creates an empty buffer for the last `capacity` messages (at least one).
    pub fn new(capacity: usize) -> Self {
        Self {
            items: VecDeque::new(),
            first: 0,
            put_away: 0,
            capacity: capacity.max(1),
        }
    }

    /// Restores a buffer from items, the first of which has the number `first`; those before
    /// `put_away` were archived.
    pub fn restore(
        capacity: usize,
        first: u64,
        put_away: u64,
        items: impl IntoIterator<Item = MemoryItem>,
    ) -> Self {
        let mut buffer = Self::new(capacity);
        buffer.first = first;
        buffer.put_away = put_away;
        for item in items {
            buffer.push(item);
        }
        buffer
    }

    /// Returns the maximum number of messages in the buffer.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns the number of the next item, which is the number of items ever added.
    pub fn next_number(&self) -> u64 {
        self.first + self.items.len() as u64
    }

    /// Returns the number of the oldest item in the buffer.
    pub fn first_number(&self) -> u64 {
        self.first
    }

    /// Adds a message, and drops the oldest when there are too many.
    pub fn add(&mut self, message: Message) {
        self.push(MemoryItem::new(message));
    }

    fn push(&mut self, item: MemoryItem) {
        self.items.push_back(item);
        if self.items.len() > self.capacity {
            self.items.pop_front();
            self.first += 1;
        }
    }

    /// Adds a message of a person.
    pub fn add_user_message(&mut self, text: impl Into<String>) {
        self.add(Message::user(Text::new(text, Origin::Person)));
    }

    /// Adds a plain text of the agent.
    pub fn add_agent_response(&mut self, text: impl Into<String>) {
        let text = Part::Text(Text::new(text, Origin::Model));
        self.add(Message {
            role: Role::Assistant,
            parts: vec![text],
        });
    }

    /// Adds an observation that is not the result of a model's tool call.
    pub fn add_observation(&mut self, source: &str, text: impl AsRef<str>) {
        let origin = Origin::Tool {
            name: source.to_owned(),
        };
        self.add(Message::user(Text::new(
            format!("{source}: {}", text.as_ref()),
            origin,
        )));
    }

    /// Adds a model's reply with its tool calls.
    pub fn add_reply(&mut self, reply: &Reply) {
        self.add(Message {
            role: Role::Assistant,
            parts: reply.parts.clone(),
        });
    }

    /// Adds the results of a reply's tool calls, as one turn.
    pub fn add_results<'a>(&mut self, observations: impl IntoIterator<Item = &'a Observation>) {
        let parts: Vec<_> = observations
            .into_iter()
            .map(|seen| {
                Part::ToolResult(ToolResult {
                    call_id: seen.call_id.clone(),
                    text: seen.text.clone(),
                    images: seen.images.clone(),
                    is_error: seen.is_error,
                })
            })
            .collect();
        if !parts.is_empty() {
            self.add(Message {
                role: Role::User,
                parts,
            });
        }
    }

    /// Returns the items from number `from` on, oldest first, without those that were dropped.
    pub fn since(&self, from: u64) -> impl Iterator<Item = &MemoryItem> {
        let skip = usize::try_from(from.saturating_sub(self.first)).unwrap_or(usize::MAX);
        self.items.iter().skip(skip)
    }

    /// Archives all items and adds `messages` under new numbers, as a shorter memory of the same
    /// conversation. The archived items stay in the journal.
    pub fn rewrite(&mut self, messages: impl IntoIterator<Item = Arc<Message>>) {
        self.first = self.next_number();
        self.put_away = self.first;
        self.items.clear();
        for message in messages {
            let digest = Some(Digest::of_json(&*message));
            self.push(MemoryItem { message, digest });
        }
    }

    /// Returns the number before which all items were archived; 0 if none were.
    pub fn put_away_before(&self) -> u64 {
        self.put_away
    }

    /// Returns the last `n` messages, oldest first.
    pub fn recent(&self, n: usize) -> impl Iterator<Item = &Arc<Message>> {
        self.items
            .iter()
            .skip(self.items.len().saturating_sub(n))
            .map(|item| &item.message)
    }

    /// Returns the number of the first item with which a prompt may start: providers refuse a tool
    /// result whose call is no longer in the conversation.
    pub fn prompt_start(&self) -> u64 {
        let orphans = self.items.iter().take_while(|item| {
            item.message
                .parts
                .iter()
                .any(|part| matches!(part, Part::ToolResult(_)))
        });
        self.first + orphans.count() as u64
    }

    /// Returns the window as plain text, for prompts without a conversation.
    pub fn to_context_string(&self) -> String {
        let lines: Vec<_> = self
            .items
            .iter()
            .map(|item| {
                let who = match item.message.role {
                    Role::User => "user",
                    Role::Assistant => "agent",
                };
                format!("{who}: {}", item.message.text())
            })
            .collect();
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ActionVerdict, EffectId};

    #[test]
    fn forgets_the_oldest_and_keeps_the_numbers() {
        let mut buffer = MemoryBuffer::new(3);
        for n in 0..5 {
            buffer.add_user_message(format!("message {n}"));
        }
        assert_eq!((buffer.first_number(), buffer.next_number()), (2, 5));
        assert_eq!(buffer.since(4).count(), 1);
        assert_eq!(buffer.since(0).count(), 3);

        let items: Vec<_> = buffer.since(2).cloned().collect();
        let restored = MemoryBuffer::restore(3, 2, 0, items);
        assert_eq!(restored, buffer);
    }

    #[test]
    fn a_prompt_never_starts_with_a_result_whose_call_is_forgotten() {
        let mut buffer = MemoryBuffer::new(2);
        buffer.add_agent_response("I call a tool");
        let seen = Observation {
            effect: EffectId::cycle(1).then(2),
            call_id: "c1".into(),
            tool: "read".into(),
            text: Text::new(
                "content",
                Origin::Tool {
                    name: "read".into(),
                },
            ),
            value: None,
            images: Vec::new(),
            is_error: false,
            verdict: ActionVerdict::NoEffect,
            artifacts: Vec::new(),
            claim: None,
        };
        buffer.add_results([&seen]);
        assert_eq!(buffer.prompt_start(), 0);
        buffer.add_agent_response("I saw it");
        assert_eq!(buffer.prompt_start(), 2);
    }
}
