//! Chooses among several models: by the needs of a question, its cost, and the models' health.
//!
//! The one idea: the choice itself is a pure function (`choose`) of the candidates, their health
//! and the question. The state that changes over time is in `health`: consecutive failures, and
//! times of replies. The router sends no requests and repeats none: only the run does.

mod choose;
mod health;
mod timed;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
    time::Instant,
};

use gyrus_contract::{
    Choice, Model, ModelError, Purpose, RouteQuery, Router, Simplification, ThinkingEffort,
};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::{ModelFacts, Tier, learned::LearnedModels};
use choose::{choose, may_be_chosen};
use health::ModelHealth;
use timed::TimedModel;

/// A model that a router may choose.
#[derive(Clone)]
pub struct Candidate {
    /// The model's client.
    pub model: Arc<dyn Model>,
    /// Strength of the model.
    pub tier: Tier,
    /// Price, limits and abilities.
    pub facts: ModelFacts,
    /// Whether the model runs on this machine, so that no data leaves it.
    pub is_local: bool,
    /// Whether tool calls are prompted, so that the model has them whatever its facts say.
    pub is_prompted: bool,
    /// Last measured time of a reply, in milliseconds.
    pub latency_ms: Option<u64>,
    /// The effort of thinking, by purpose; the model's default where none is set.
    pub efforts: BTreeMap<Purpose, ThinkingEffort>,
    /// The properties of requests that the model's server is known not to accept.
    pub refuses: BTreeSet<Simplification>,
}

impl Candidate {
    /// Returns the candidate with the properties learned about its model in earlier runs.
    #[must_use]
    pub fn with_learned(mut self, learned: &LearnedModels) -> Self {
        let name = self.model.name();
        self.latency_ms = learned.latency_ms(name).or(self.latency_ms);
        self.refuses.extend(learned.refuses(name));
        if self.refuses.contains(&Simplification::NoPictures) {
            self.facts.images = Some(false);
        }
        self
    }
}

/// Preference among models of the same tier.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RoutingPolicy {
    /// The order in which the candidates were given.
    #[default]
    Order,
    /// The cheapest known price.
    Cost,
    /// The model with the lowest median time of its last replies.
    Latency,
    /// Like `Order`, but never a model on another machine, even if no other is left.
    LocalOnly,
}

/// Function that returns the time; in tests, the test's.
type RouterClock = Arc<dyn Fn() -> Instant + Send + Sync>;

/// A router that chooses among candidates.
pub struct ModelRouter {
    name: String,
    candidates: Vec<Candidate>,
    policy: RoutingPolicy,
    steps: Tier,
    health: Arc<Mutex<Vec<ModelHealth>>>,
    clock: RouterClock,
    /// The properties that the models' servers do not accept, by candidate.
    learned: Mutex<Vec<BTreeSet<Simplification>>>,
    /// The folder in which these are stored for later runs.
    kept_in: Option<PathBuf>,
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

    /// Stores what the router learns about models in this folder, where [`LearnedModels`] finds it.
    #[must_use]
    pub fn with_learned_in(mut self, folder: PathBuf) -> Self {
        self.kept_in = Some(folder);
        self
    }

    fn index_of(&self, model: &str) -> Option<usize> {
        let mut candidates = self.candidates.iter();
        candidates.position(|candidate| candidate.model.name() == model)
    }

    fn with_clock(candidates: Vec<Candidate>, policy: RoutingPolicy, clock: RouterClock) -> Self {
        let mut unique: Vec<Candidate> = Vec::with_capacity(candidates.len());
        for candidate in candidates {
            let name = candidate.model.name();
            if unique.iter().all(|before| before.model.name() != name) {
                unique.push(candidate);
            }
        }
        let names: Vec<_> = unique.iter().map(|it| it.model.name()).collect();
        let healths = unique
            .iter()
            .map(|it| ModelHealth::new(it.latency_ms))
            .collect();
        let learned = unique.iter().map(|it| it.refuses.clone()).collect();
        Self {
            name: names.join(", "),
            candidates: unique,
            policy,
            steps: Tier::Medium,
            health: Arc::new(Mutex::new(healths)),
            clock,
            learned: Mutex::new(learned),
            kept_in: None,
        }
    }
}

impl Router for ModelRouter {
    fn name(&self) -> &str {
        &self.name
    }

    fn choose(&self, wanted: &RouteQuery<'_>) -> Result<Choice, ModelError> {
        let now = (self.clock)();
        let mut healths = self.health.lock();
        let standings: Vec<_> = healths.iter().map(|health| health.at(now)).collect();
        let (index, why) = choose(
            &self.candidates,
            &standings,
            self.policy,
            self.steps,
            wanted,
        )?;
        healths[index].chosen(now);
        let candidate = &self.candidates[index];
        let mut refuses = self.learned.lock()[index].clone();
        let is_bound = refuses.contains(&Simplification::OneObject);
        if candidate.facts.is_small() || is_bound && candidate.facts.few_tools.is_none() {
            refuses.insert(Simplification::FewTools);
        }
        if candidate.facts.images == Some(false) {
            refuses.insert(Simplification::NoPictures);
        }
        Ok(Choice {
            model: Arc::new(TimedModel {
                model: candidate.model.clone(),
                index,
                effort: candidate.efforts.get(&wanted.purpose).copied(),
                may_be_bound: candidate.is_local && candidate.facts.is_small() && !is_bound,
                takes_schemas: candidate.facts.schema != Some(false),
                health: self.health.clone(),
                kept_in: self.kept_in.clone(),
                clock: self.clock.clone(),
            }),
            why,
            refuses,
        })
    }

    fn learned(&self, model: &str, step: Simplification) {
        let Some(index) = self.index_of(model) else {
            return;
        };
        let is_new = self.learned.lock()[index].insert(step);
        if let Some(folder) = self.kept_in.as_ref().filter(|_| is_new) {
            // Without it, a later run learns it again, for one request.
            let _ = LearnedModels::add_refusal(folder, model, step);
        }
    }

    fn heard(&self, model: &str, came: Result<(), &ModelError>) {
        let index = self.index_of(model);
        let mut healths = self.health.lock();
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
