//! Use of models by purpose and model: each attempt is counted once.

use std::collections::BTreeMap;

use gyrus_contract::{EffectId, Microdollars, Purpose};
use gyrus_journal::LogReader;
use gyrus_kernel::{AttemptResult, Charge, Entry};

use crate::projection::stored;

/// Requests, tokens and money of one purpose with one model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelUsage {
    /// Number of requests, including repeated ones.
    pub requests: u64,
    /// Number of requests that got no reply.
    pub failed: u64,
    /// Tokens of prompts, cached ones included, as providers reported them.
    pub input: u64,
    /// Tokens of prompts that came from a provider's cache.
    pub cached: u64,
    /// Tokens of replies, as providers reported them.
    pub output: u64,
    /// The charge that was settled by a reported usage.
    pub settled: Charge,
    /// The charge that was settled at the reservation, because no usage was reported.
    pub estimated: Charge,
    /// The charge that is reserved for requests in flight.
    pub reserved: Charge,
    /// Milliseconds of waiting for replies.
    pub took_ms: u64,
}

impl ModelUsage {
    /// Returns the sum of all charges.
    pub fn cost(&self) -> Microdollars {
        self.settled.cost + self.estimated.cost + self.reserved.cost
    }
}

/// Folds the entries of a run into its use of models.
#[derive(Debug, Default)]
pub struct RunUsage {
    rows: BTreeMap<(Purpose, String), ModelUsage>,
    open: BTreeMap<EffectId, ((Purpose, String), Charge)>,
    /// The charges of child runs.
    pub children: Charge,
}

impl RunUsage {
    /// Adds the next entry.
    pub fn take(&mut self, entry: &Entry, reader: &LogReader) {
        if let Entry::ModelCall(call) = entry {
            let key = (call.purpose, call.model.clone());
            let row = self.rows.entry(key.clone()).or_default();
            row.requests += 1;
            row.reserved += call.reserved;
            self.open.insert(call.effect.clone(), (key, call.reserved));
        } else if let Entry::ModelReply(reply) = entry {
            let Some((key, reserved)) = self.open.remove(&reply.effect) else {
                return;
            };
            let row = self.rows.entry(key).or_default();
            row.reserved -= reserved;
            row.took_ms += reply.took_ms;
            if reply.estimated {
                row.estimated += reply.charged;
            } else {
                row.settled += reply.charged;
            }
            match &reply.came {
                AttemptResult::Reply { reply } => {
                    let usage = stored(reply, reader).ok().and_then(|reply| reply.usage);
                    let usage = usage.unwrap_or_default();
                    row.input += usage.input_tokens;
                    row.cached += usage.cached_tokens;
                    row.output += usage.output_tokens;
                }
                AttemptResult::Error { .. } | AttemptResult::CutOff => row.failed += 1,
            }
        } else if let Entry::ChildEnded(child) = entry {
            self.children += Charge {
                tokens: child.spent.tokens,
                cost: child.spent.cost,
            };
        }
    }

    /// Returns the rows, by purpose and model.
    pub fn rows(&self) -> impl Iterator<Item = (Purpose, &str, &ModelUsage)> {
        let rows = self.rows.iter();
        rows.map(|((purpose, model), row)| (*purpose, model.as_str(), row))
    }

    /// Whether no request was sent to a model.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}
