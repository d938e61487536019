//! Asks the model that is measured, and records the times.

use std::{sync::Arc, time::Duration};

use gyrus_contract::{
    Image, Message, Model, ModelError, Origin, Part, Prompt, Purpose, Reply, Role, Simplification,
    Text, ToolSpec,
};
use serde_json::Value;
use tokio::time::Instant;

use super::measured::{Latency, ProbeFinding};
use crate::CallStyle;

/// Maximum tokens of a reply. Much for the short answers that are wanted: many models think first,
/// and that counts.
pub(super) const REPLY_TOKENS: u64 = 4_096;

#[derive(Default)]
pub(super) struct ProbeQuestion {
    pub(super) text: String,
    pub(super) image: Option<Image>,
    pub(super) tool: Option<ToolSpec>,
    pub(super) calls: CallStyle,
    pub(super) schema: Option<Value>,
}

/// The probed model with the measurements so far.
pub(super) struct ProbeDialogue<'a> {
    model: &'a dyn Model,
    pub(super) requests: u32,
    whole: Vec<Duration>,
    first: Vec<Duration>,
    /// Number of tokens in replies whose provider counts them, and the time of these replies.
    written: (u64, Duration),
}

impl<'a> ProbeDialogue<'a> {
    pub(super) fn new(model: &'a dyn Model) -> Self {
        Self {
            model,
            requests: 0,
            whole: Vec::new(),
            first: Vec::new(),
            written: (0, Duration::ZERO),
        }
    }

    /// Asks a question once, without retries.
    pub(super) async fn ask(&mut self, question: ProbeQuestion) -> Result<Reply, ModelError> {
        let mut parts = vec![Part::Text(Text::new(question.text, Origin::Kernel))];
        parts.extend(question.image.map(Part::Image));
        let role = Role::User;
        let plainer = match question.calls {
            CallStyle::Native => None,
            CallStyle::Prompted | CallStyle::Bound => Some(Simplification::CallsInText),
        };
        let prompt = Prompt {
            purpose: Purpose::Agent,
            ordinal: u64::from(self.requests),
            system: Vec::new(),
            messages: vec![Arc::new(Message { role, parts })],
            tools: question.tool.map(Arc::new).into_iter().collect(),
            must_call: question.calls == CallStyle::Bound,
            output_schema: question.schema,
            screen: None,
            effort: None,
            plainer: plainer.into_iter().collect(),
            max_output_tokens: REPLY_TOKENS,
        };
        self.requests += 1;
        let begun = Instant::now();
        let mut first = None;
        let mut hear = |_| {
            first.get_or_insert_with(|| begun.elapsed());
        };
        let reply = self.model.reply(&prompt, &mut hear).await?;
        let took = begun.elapsed();
        self.whole.push(took);
        self.first.push(first.unwrap_or(took));
        let tokens = reply.usage.map_or(0, |usage| usage.output_tokens);
        if tokens > 0 {
            let (written, time) = self.written;
            self.written = (written.saturating_add(tokens), time + took);
        }
        Ok(reply)
    }

    /// Returns the tokens of replies a second so far, the reading of the prompts included.
    pub(super) fn speed(&self) -> Option<f64> {
        let (tokens, time) = self.written;
        (tokens > 0 && !time.is_zero()).then(|| tokens as f64 / time.as_secs_f64())
    }

    /// Returns the medians of the questions so far.
    pub(super) fn latency(&self) -> Option<Latency> {
        Some(Latency {
            median_ms: median_ms(&self.whole)?,
            first_ms: median_ms(&self.first)?,
        })
    }
}

fn median_ms(times: &[Duration]) -> Option<u64> {
    let mut sorted = times.to_vec();
    sorted.sort();
    let median = sorted.get(sorted.len() / 2)?;
    Some(u64::try_from(median.as_millis()).unwrap_or(u64::MAX))
}

/// Returns the finding about an ability from an error: a refusal means that the model lacks it.
pub(super) fn finding(error: &ModelError) -> ProbeFinding {
    let why = error.to_string();
    match error {
        ModelError::Declined { .. } | ModelError::Refused { .. } => ProbeFinding::Fails { why },
        ModelError::RateLimited { .. }
        | ModelError::Overloaded { .. }
        | ModelError::ContextTooLong { .. }
        | ModelError::BadOutput { .. }
        | ModelError::Auth { .. }
        | ModelError::Network { .. } => ProbeFinding::Unknown { why },
    }
}
