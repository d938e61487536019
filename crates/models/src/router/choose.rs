//! Chooses a model: a pure function of the candidates, their health, and the question.
//!
//! First, models that cannot answer this question are excluded. The others are ordered by: no pause
//! after failures; fewer failed attempts at this question; distance of its tier from the wanted
//! one; support for schemas, if the question has one; the policy; the order in which they were
//! given.
//!
//! A paused model is not excluded: if it is the only one that could answer, the run still asks it,
//! and waits between attempts.

use gyrus_contract::{ModelError, Purpose, RouteQuery};

use super::{Candidate, RoutingPolicy, health::HealthSummary};
use crate::Tier;

/// Tokens reserved for a reply where no smaller limit is known.
const REPLY_TOKENS: u64 = 4_096;

/// Returns the index of the model to ask, and the reason in a few words. `steps` is the strength for
/// the steps of a run.
///
/// # Errors
/// When no model can answer: the last error of this question with the reasons why each was
/// excluded, or only the reasons.
pub(super) fn choose(
    candidates: &[Candidate],
    standings: &[HealthSummary],
    policy: RoutingPolicy,
    steps: Tier,
    wanted: &RouteQuery<'_>,
) -> Result<(usize, String), ModelError> {
    let tier = tier_for(wanted.purpose, steps);
    let unfit: Vec<Option<Unfit>> = candidates
        .iter()
        .map(|candidate| why_not(candidate, candidates, policy, wanted))
        .collect();
    let best = (0..candidates.len())
        .filter(|&index| unfit[index].is_none())
        .min_by_key(|&index| {
            let (candidate, standing) = (&candidates[index], &standings[index]);
            (
                standing.rests_for,
                failures(candidate, wanted).count(),
                nearness(candidate.tier, tier),
                // Pictures and a schema are preferences: for a model without support, pictures are
                // left out and the form is described in the prompt.
                wanted.images && candidate.facts.images == Some(false),
                wanted.schema && candidate.facts.schema == Some(false),
                by_policy(candidate, standing, policy, wanted),
                index,
            )
        });
    match best {
        Some(index) => Ok((
            index,
            why(index, candidates, standings, policy, tier, wanted),
        )),
        None => Err(nobody(candidates, &unfit, wanted)),
    }
}

pub(super) fn may_be_chosen(candidate: &Candidate, policy: RoutingPolicy) -> bool {
    policy != RoutingPolicy::LocalOnly || candidate.is_local
}

/// Returns the strength for a question; `steps` is that for the steps of a run.
fn tier_for(purpose: Purpose, steps: Tier) -> Tier {
    match purpose {
        Purpose::Agent | Purpose::Sampling => steps,
        Purpose::Plan | Purpose::Mandate => Tier::Large,
        Purpose::Reflect | Purpose::Verify | Purpose::Safety | Purpose::Summarise => Tier::Small,
    }
}

fn nearness(tier: Tier, wanted: Tier) -> usize {
    let order = wanted.or_nearest();
    order
        .iter()
        .position(|&it| it == tier)
        .unwrap_or(order.len())
}

/// Returns a sort key by the policy, smaller is better. Unknown values come last, except that a model
/// of unknown speed is tried once.
fn by_policy(
    candidate: &Candidate,
    standing: &HealthSummary,
    policy: RoutingPolicy,
    wanted: &RouteQuery<'_>,
) -> u64 {
    match policy {
        RoutingPolicy::Order | RoutingPolicy::LocalOnly => 0,
        RoutingPolicy::Cost => {
            let price = candidate.model.price();
            price.map_or(u64::MAX, |price| {
                price
                    .at_most(wanted.input_tokens, reply_tokens(candidate))
                    .0
            })
        }
        RoutingPolicy::Latency if standing.is_untried => 0,
        RoutingPolicy::Latency => standing.median.map_or(u64::MAX, |median| {
            u64::try_from(median.as_micros()).unwrap_or(u64::MAX)
        }),
    }
}

fn reply_tokens(candidate: &Candidate) -> u64 {
    let facts = &candidate.facts;
    let most = facts.max_output_tokens.unwrap_or(REPLY_TOKENS);
    // Short replies are better than none from a model with a small window.
    let quarter = facts.window.map_or(REPLY_TOKENS, |window| window / 4);
    most.min(REPLY_TOKENS).min(quarter)
}

/// Returns the failures of this question with this model so far.
fn failures<'a>(
    candidate: &'a Candidate,
    wanted: &RouteQuery<'a>,
) -> impl Iterator<Item = &'a ModelError> {
    let failed = wanted.failed.iter();
    failed
        .filter(|(name, _)| *name == candidate.model.name())
        .map(|(_, error)| error)
}

/// Reason why a model cannot answer a question.
enum Unfit {
    /// The question is too long for the model.
    TooLong(String),
    /// Another reason.
    Other(String),
}

impl Unfit {
    fn words(&self) -> &str {
        match self {
            Unfit::TooLong(words) | Unfit::Other(words) => words,
        }
    }
}

/// Returns the reason why a model cannot answer this question, if there is one.
fn why_not(
    candidate: &Candidate,
    candidates: &[Candidate],
    policy: RoutingPolicy,
    wanted: &RouteQuery<'_>,
) -> Option<Unfit> {
    let other = |words: &str| Some(Unfit::Other(words.to_owned()));
    if !may_be_chosen(candidate, policy) {
        return other("it is not on this machine");
    }
    let facts = &candidate.facts;
    if wanted.tools && facts.tools == Some(false) && !candidate.is_prompted {
        return other("it calls no tools");
    }
    let needed = wanted.input_tokens.saturating_add(reply_tokens(candidate));
    if let Some(window) = facts.window.filter(|&window| window < needed) {
        let words = format!("it takes {window} tokens, and about {needed} are needed");
        return Some(Unfit::TooLong(words));
    }
    if let Some(error) = failures(candidate, wanted).find(|error| !error.is_transient()) {
        return other(&format!("it {}", in_words(error)));
    }
    // Elsewhere it was too long: only a larger window is of use.
    let too_small = wanted.failed.iter().find_map(|(name, error)| {
        let other = candidates.iter().find(|it| it.model.name() == name)?;
        let is_no_larger = facts.window? <= other.facts.window?;
        (matches!(error, ModelError::ContextTooLong { .. }) && is_no_larger).then_some(name)
    })?;
    let words = format!("its window is no larger than that of {too_small}");
    Some(Unfit::TooLong(words))
}

/// Describes a failure of a model, to follow "it" or the model's name.
fn in_words(error: &ModelError) -> &'static str {
    match error {
        ModelError::RateLimited { .. } => "is limited",
        ModelError::Overloaded { .. } => "is overloaded",
        ModelError::ContextTooLong { .. } => "finds it too long",
        ModelError::Declined { .. } => "declined",
        ModelError::Refused { .. } => "refused",
        ModelError::BadOutput { .. } => "could not be understood",
        ModelError::Auth { .. } => "does not accept the key",
        ModelError::Network { .. } => "cannot be reached",
    }
}

/// Returns the reason of the choice, in a few words; empty if there was no alternative.
fn why(
    index: usize,
    candidates: &[Candidate],
    standings: &[HealthSummary],
    policy: RoutingPolicy,
    tier: Tier,
    wanted: &RouteQuery<'_>,
) -> String {
    if candidates.len() == 1 {
        return String::new();
    }
    let chosen = &candidates[index];
    let mut words = vec![if chosen.tier == tier {
        format!("{} tier", tier.word())
    } else {
        format!("{} tier in place of {}", chosen.tier.word(), tier.word())
    }];
    match policy {
        RoutingPolicy::Order => {}
        RoutingPolicy::Cost => words.push("cheapest".to_owned()),
        RoutingPolicy::Latency if standings[index].is_untried => {
            words.push("its speed is not known yet".to_owned());
        }
        RoutingPolicy::Latency => words.push("fastest".to_owned()),
        RoutingPolicy::LocalOnly => words.push("local".to_owned()),
    }
    if let Some((name, error)) = wanted.failed.last() {
        let which = match (wanted.failed.len(), name == chosen.model.name()) {
            (_, true) => "it".to_owned(),
            (1, false) => "the first choice".to_owned(),
            (_, false) => name.clone(),
        };
        let again = if which == "it" { "again, though " } else { "" };
        words.push(format!("{again}{which} {}", in_words(error)));
    } else if let Some(better) = resting_before(index, candidates, standings, tier) {
        words.push(format!(
            "{} is left alone after {} failures",
            candidates[better].model.name(),
            standings[better].failures
        ));
    }
    words.join("; ")
}

/// Returns the index of the paused model of the wanted tier that the chosen one replaces, if any.
fn resting_before(
    chosen: usize,
    candidates: &[Candidate],
    standings: &[HealthSummary],
    tier: Tier,
) -> Option<usize> {
    (0..candidates.len()).find(|&index| {
        let is_before = candidates[chosen].tier != tier || index < chosen;
        index != chosen
            && is_before
            && candidates[index].tier == tier
            && standings[index].rests_for.is_some()
    })
}

fn nobody(
    candidates: &[Candidate],
    unfit: &[Option<Unfit>],
    wanted: &RouteQuery<'_>,
) -> ModelError {
    let reasons: Vec<_> = candidates
        .iter()
        .zip(unfit)
        .filter_map(|(candidate, reason)| {
            let words = reason.as_ref()?.words();
            Some(format!("{}: {words}", candidate.model.name()))
        })
        .collect();
    let why = if reasons.is_empty() {
        "no model is configured".to_owned()
    } else {
        format!("no model can answer this ({})", reasons.join("; "))
    };
    let is_too_long = unfit
        .iter()
        .any(|reason| matches!(reason, Some(Unfit::TooLong(_))));
    let said = |message: &str| format!("{message}; {why}");
    let last = wanted.failed.last().map(|(_, error)| error);
    match last {
        Some(ModelError::ContextTooLong { message }) => ModelError::ContextTooLong {
            message: said(message),
        },
        Some(ModelError::Auth { message }) => ModelError::Auth {
            message: said(message),
        },
        Some(ModelError::Declined { message }) => ModelError::Declined {
            message: said(message),
        },
        Some(
            ModelError::Refused { message }
            | ModelError::RateLimited { message, .. }
            | ModelError::Overloaded { message, .. }
            | ModelError::BadOutput { message }
            | ModelError::Network { message },
        ) => ModelError::Refused {
            message: said(message),
        },
        None if is_too_long => ModelError::ContextTooLong { message: why },
        None => ModelError::Refused { message: why },
    }
}
