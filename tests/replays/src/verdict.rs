//! The judgement on a replay, by the site's ledger.

use gyrus_lab::sites::SiteEvent;

use crate::{LearnedTask, Values};

/// What a replay came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It did exactly what the command says, without a model.
    Replayed,
    /// It stopped before anything binding had happened, or after exactly what was asked for had.
    HandedOver,
    /// Something else happened, or it claims what did not happen.
    Wrong(String),
}

/// A price that was learned, and the price that the site asks now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Prices {
    /// Whether the thing that the command names costs something else than when it was learned.
    pub(crate) has_changed: bool,
}

/// Judges a replay. `claims` is whether the run says that the goal is reached.
pub(crate) fn judge(
    task: &LearnedTask,
    values: &Values,
    events: &[SiteEvent],
    prices: Prices,
    claims: bool,
) -> Verdict {
    let site = task.start.trim_end_matches('/');
    let binding = events
        .iter()
        .filter(|event| event.site == site && event.kind == task.kind);
    let binding: Vec<_> = binding.collect();
    match binding[..] {
        [] if claims => Verdict::Wrong("it claims what did not happen".to_owned()),
        [] => Verdict::HandedOver,
        [one] if !task.is_meant(one, values) => {
            Verdict::Wrong(format!("it did {:?} for {:?}", one.data, values.0))
        }
        [_] if prices.has_changed => {
            Verdict::Wrong("it paid another price than the one that was learned".to_owned())
        }
        [_] if claims => Verdict::Replayed,
        [_] => Verdict::HandedOver,
        _ => Verdict::Wrong(format!("it did it {} times", binding.len())),
    }
}
