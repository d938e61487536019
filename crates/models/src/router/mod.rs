//! Chooses among several models: by the needs of a question, its cost, and the models' health.
//!
//! The one idea: the choice itself is a pure function (`choose`) of the candidates, their health
//! and the question. The state that changes over time is in `health`: consecutive failures, and
//! times of replies. The router sends no requests and repeats none: only the run does.

mod choose;
mod health;
mod timed;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use gyrus_contract::{Choice, Model, ModelError, Router, Wanted};
use serde::{Deserialize, Serialize};

use crate::{Facts, Tier};
use choose::{choose, may_be_chosen};
use health::Health;
use timed::Timed;

/// A model that a router may choose.
#[derive(Clone)]
pub struct Candidate {
    /// The model's client.
    pub model: Arc<dyn Model>,
    /// Strength of the model.
    pub tier: Tier,
    /// Price, limits and abilities.
    pub facts: Facts,
    /// Whether it runs on this machine, so that no data leaves it.
    pub is_local: bool,
    /// Whether its tool calls are prompted, so that it has them whatever its facts say.
    pub is_prompted: bool,
    /// Time of a reply when it was last measured, in milliseconds.
    pub latency_ms: Option<u64>,
}

/// Preference among models of the same tier.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RoutingPolicy {
    /// The order in which they were given.
    #[default]
    Order,
    /// The cheapest known price.
    Cost,
    /// The fastest, by the median of its last replies.
    Latency,
    /// Like `Order`, but never a model on another machine, even if no other is left.
    LocalOnly,
}

/// Function that returns the time; in tests, the test's.
type Clock = Arc<dyn Fn() -> Instant + Send + Sync>;

/// Chooses among candidates.
pub struct ModelRouter {
    name: String,
    candidates: Vec<Candidate>,
    policy: RoutingPolicy,
    steps: Tier,
    health: Arc<Mutex<Vec<Health>>>,
    clock: Clock,
}

impl ModelRouter {
    /// Creates a router over `candidates`, best first. Of two with the same name the first counts.
    pub fn new(candidates: Vec<Candidate>, policy: RoutingPolicy) -> Self {
        Self::with_clock(candidates, policy, Arc::new(Instant::now))
    }

    /// Sets the strength for the steps of a run, which is medium otherwise.
    #[must_use]
    pub fn with_steps(mut self, steps: Tier) -> Self {
        self.steps = steps;
        self
    }

    fn with_clock(candidates: Vec<Candidate>, policy: RoutingPolicy, clock: Clock) -> Self {
        let mut unique: Vec<Candidate> = Vec::with_capacity(candidates.len());
        for candidate in candidates {
            let name = candidate.model.name();
            if unique.iter().all(|before| before.model.name() != name) {
                unique.push(candidate);
            }
        }
        let names: Vec<_> = unique.iter().map(|it| it.model.name()).collect();
        let healths = unique.iter().map(|it| Health::new(it.latency_ms)).collect();
        Self {
            name: names.join(", "),
            candidates: unique,
            policy,
            steps: Tier::Medium,
            health: Arc::new(Mutex::new(healths)),
            clock,
        }
    }
}

impl Router for ModelRouter {
    fn name(&self) -> &str {
        &self.name
    }

    fn choose(&self, wanted: &Wanted<'_>) -> Result<Choice, ModelError> {
        let now = (self.clock)();
        let mut healths = self.health.lock().unwrap_or_else(PoisonError::into_inner);
        let standings: Vec<_> = healths.iter().map(|health| health.at(now)).collect();
        let (index, why) = choose(
            &self.candidates,
            &standings,
            self.policy,
            self.steps,
            wanted,
        )?;
        healths[index].chosen(now);
        Ok(Choice {
            model: Arc::new(Timed {
                model: self.candidates[index].model.clone(),
                index,
                takes_schemas: self.candidates[index].facts.schema != Some(false),
                health: self.health.clone(),
                clock: self.clock.clone(),
            }),
            why,
        })
    }

    fn heard(&self, model: &str, came: Result<(), &ModelError>) {
        let index = self
            .candidates
            .iter()
            .position(|it| it.model.name() == model);
        let mut healths = self.health.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(health) = index.and_then(|index| healths.get_mut(index)) {
            health.heard(came, (self.clock)());
        }
    }

    fn sees_pictures(&self) -> bool {
        let mut candidates = self.candidates.iter();
        candidates.any(|candidate| {
            may_be_chosen(candidate, self.policy) && candidate.facts.images != Some(false)
        })
    }

    fn unpriced(&self) -> Option<String> {
        let mut candidates = self.candidates.iter();
        let unknown = candidates.find(|candidate| {
            may_be_chosen(candidate, self.policy) && candidate.model.price().is_none()
        });
        unknown.map(|candidate| candidate.model.name().to_owned())
    }
}

#[cfg(test)]
mod tests;
