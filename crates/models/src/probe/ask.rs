//! Asks the model that is measured, and records the times.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use gyrus_contract::{
    Image, Message, Model, ModelError, Origin, Part, Prompt, Purpose, Reply, Role, Text, ToolSpec,
};
use serde_json::Value;
use tokio::time::timeout;

use super::measured::{Latency, ProbeFinding};

/// Maximum tokens of a reply. Much for the short answers that are wanted: many models think first,
/// and that counts.
pub(super) const REPLY_TOKENS: u64 = 4_096;

/// Reason why a question has no answer.
#[derive(Debug)]
pub(super) enum Trouble {
    /// No answer came in time.
    Silent(Duration),
    /// An error came.
    Error(ModelError),
}

/// A question.
#[derive(Default)]
pub(super) struct Question {
    pub(super) text: String,
    pub(super) image: Option<Image>,
    pub(super) tool: Option<ToolSpec>,
    pub(super) schema: Option<Value>,
}

/// The model with the measurements so far.
pub(super) struct Asked<'a> {
    model: &'a dyn Model,
    limit: Duration,
    pub(super) requests: u32,
    whole: Vec<Duration>,
    first: Vec<Duration>,
}

impl<'a> Asked<'a> {
    pub(super) fn new(model: &'a dyn Model, limit: Duration) -> Self {
        Self {
            model,
            limit,
            requests: 0,
            whole: Vec::new(),
            first: Vec::new(),
        }
    }

    /// Asks once.
    pub(super) async fn ask(&mut self, question: Question) -> Result<Reply, Trouble> {
        let mut parts = vec![Part::Text(Text::new(question.text, Origin::Kernel))];
        parts.extend(question.image.map(Part::Image));
        let role = Role::User;
        let prompt = Prompt {
            purpose: Purpose::Agent,
            ordinal: u64::from(self.requests),
            system: Vec::new(),
            messages: vec![Arc::new(Message { role, parts })],
            tools: question.tool.map(Arc::new).into_iter().collect(),
            must_call: false,
            output_schema: question.schema,
            screen: None,
            effort: None,
            plainer: Default::default(),
            max_output_tokens: REPLY_TOKENS,
        };
        self.requests += 1;
        let begun = Instant::now();
        let mut first = None;
        let mut hear = |_| {
            first.get_or_insert_with(|| begun.elapsed());
        };
        let reply = timeout(self.limit, self.model.reply(&prompt, &mut hear)).await;
        let reply = match reply {
            Err(_) => return Err(Trouble::Silent(self.limit)),
            Ok(reply) => reply.map_err(Trouble::Error)?,
        };
        self.whole.push(begun.elapsed());
        self.first.push(first.unwrap_or_else(|| begun.elapsed()));
        Ok(reply)
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

impl Trouble {
    /// Returns the finding about an ability: a refusal means that the model does not have it.
    pub(super) fn finding(&self) -> ProbeFinding {
        let why = self.words();
        match self {
            Trouble::Error(ModelError::Declined { .. } | ModelError::Refused { .. }) => {
                ProbeFinding::Fails { why }
            }
            Trouble::Error(_) | Trouble::Silent(_) => ProbeFinding::Unknown { why },
        }
    }

    /// Describes the trouble.
    pub(super) fn words(&self) -> String {
        match self {
            Trouble::Silent(limit) => {
                format!("it did not answer within {} seconds", limit.as_secs_f64())
            }
            Trouble::Error(error) => error.to_string(),
        }
    }
}
