//! The previous run of a session, and what the next one remembers of it.

use gyrus_contract::{
    Grant, MemoryItem, Message, Origin, Part, Purpose, Role, RunId, Text, ToolResult,
};
use gyrus_journal::LogReader;

use crate::{
    Ending, Entry, Inline, Kernel, KernelError, KernelState, MessagesAppended, Stop,
    log::{RunLog, parse},
    position::{RunPosition, memory_at},
    prompt::PromptFrame,
    runs::{is_record, log_name},
};

/// The data carried from a run to the next: its goal, its memory, and its outcome.
pub(crate) struct PreviousRun {
    reader: LogReader,
    items: Vec<MemoryItem>,
    /// Whether the run had read untrusted text.
    pub(crate) exposed: bool,
    /// The grants that the person gave in the run.
    pub(crate) grants: Vec<Grant>,
}

impl PreviousRun {
    pub(crate) fn read(kernel: &Kernel, run: RunId) -> Result<Self, KernelError> {
        let reader = kernel.store().reader(&log_name(run))?;
        let position = RunPosition::read(run, &reader)?;
        let started = &position.started;
        let config = &started.loop_config;
        let capacity = kernel
            .make_loop(&started.cognitive_loop, config)?
            .memory()
            .capacity();
        let (first, remembered) = match &position.last {
            Some(last) => memory_at(&reader, last, capacity)?,
            None => (started.memory.first, started.memory_items(&reader)?),
        };
        // Items that the run inherited stand before its own goal.
        let inherited = started.memory_next();
        let own = usize::try_from(inherited.saturating_sub(first)).unwrap_or(usize::MAX);
        let mut items = remembered;
        let later = items.split_off(own.min(items.len()));
        match last_lead(&reader)? {
            Some(lead) => items.extend(lead.into_iter().map(MemoryItem::new)),
            None => {
                let goal = started
                    .goal
                    .read(|id| reader.blob(id).map_err(Stop::from))?;
                items.push(MemoryItem::new(asked(goal, &position)));
            }
        }
        items.extend(later);
        if let Some(said) = outcome(&position) {
            items.push(MemoryItem::new(said));
        }
        let KernelState {
            exposed, grants, ..
        } = position.kernel_state();
        let before = Self {
            reader,
            items,
            exposed,
            grants,
        };
        Ok(if is_record(kernel.store(), run) {
            before.of_record()
        } else {
            before
        })
    }

    /// The memory of a record: untrusted text and pictures, whoever it says wrote them, and no grant.
    fn of_record(self) -> Self {
        let items = self.items.into_iter().map(|item| {
            let Message { role, parts } = Message::clone(&item.message);
            let parts = parts.into_iter().filter_map(untrusted).collect();
            MemoryItem::new(Message { role, parts })
        });
        Self {
            items: items
                .filter(|item| !item.message.parts.is_empty())
                .collect(),
            exposed: true,
            grants: Vec::new(),
            ..self
        }
    }

    /// Stores the memory as the initial memory of another run, with its pictures.
    pub(crate) fn carry_into(&self, log: &RunLog) -> Result<MessagesAppended, Stop> {
        let mut items = Vec::with_capacity(self.items.len());
        for item in &self.items {
            carry_parts(&item.message.parts, &self.reader, log)?;
            items.push(Inline::store(item, log)?);
        }
        Ok(MessagesAppended { first: 0, items })
    }
}

/// Copies the pictures among `parts` from one run's store to another's.
pub(crate) fn carry_parts(parts: &[Part], from: &LogReader, to: &RunLog) -> Result<(), Stop> {
    let of_result = |part: &Part| match part {
        Part::ToolResult(result) => result.images.clone(),
        Part::Image(image) => vec![image.clone()],
        Part::Text(_) | Part::Thinking(_) | Part::ToolCall(_) => Vec::new(),
    };
    for image in parts.iter().flat_map(of_result) {
        to.put_blob(&from.blob(&image.blob)?)?;
    }
    Ok(())
}

/// Returns a part of a conversation as untrusted text; `None` for a part that only its provider
/// understands.
fn untrusted(part: Part) -> Option<Part> {
    match part {
        Part::Text(text) => Some(Part::Text(Text::new(text.text, Origin::Run))),
        Part::ToolResult(result) => Some(Part::ToolResult(ToolResult {
            text: Text::new(result.text.text, Origin::Run),
            ..result
        })),
        Part::Image(_) | Part::ToolCall(_) => Some(part),
        Part::Thinking(_) => None,
    }
}

/// Returns the goal as in the last question of the run, so that the next run's questions begin in
/// the same way, and the provider's cache stays useful; `None` if the run asked nothing.
fn last_lead(reader: &LogReader) -> Result<Option<Vec<Message>>, Stop> {
    for entry in reader.entries_back()? {
        let Entry::ModelCall(call) = parse(&entry?)? else {
            continue;
        };
        if call.purpose == Purpose::Agent {
            let frame = reader.blob(&call.frame)?;
            let frame = serde_json::from_slice::<PromptFrame<'_>>(&frame).ok();
            let lead = frame.map(|frame| frame.lead.into_owned());
            return Ok(lead.filter(|lead| !lead.is_empty()));
        }
    }
    Ok(None)
}

/// Returns the final goal as a message of the conversation.
fn asked(goal: Text, position: &RunPosition) -> Message {
    let mut parts = vec![Part::Text(goal)];
    parts.extend(
        position
            .kernel_state()
            .amendments
            .into_iter()
            .map(Part::Text),
    );
    Message {
        role: Role::User,
        parts,
    }
}

/// Returns the run's outcome as a message, unless the model itself said it.
fn outcome(position: &RunPosition) -> Option<Message> {
    let ending = position.ending()?;
    if matches!(ending, Ending::Reached { .. }) {
        return None;
    }
    let words = format!("[That run ended: {}.]", crate::summary(ending));
    Some(Message::user(Text::new(words, Origin::Kernel)))
}
