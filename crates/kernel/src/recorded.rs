//! The recorded entries of the cycle that is being run again.

use std::collections::BTreeMap;

use gyrus_contract::EffectId;

use crate::{Divergence, Entry, Stop};

/// The recorded entries of one cycle, by effect. Effects consume theirs as the loop, run again,
/// reaches them; entries that are left at the cycle's end are a divergence.
#[derive(Debug, Default)]
pub(crate) struct RecordedCycle {
    effects: BTreeMap<EffectId, Vec<Entry>>,
    /// Branches whose end is recorded.
    ended: Vec<EffectId>,
    /// Whether the cycle is known to have ended after these entries: no effect may follow them.
    pub(crate) complete: bool,
}

impl RecordedCycle {
    pub(crate) fn new(entries: impl IntoIterator<Item = Entry>, complete: bool) -> Self {
        let mut effects: BTreeMap<EffectId, Vec<Entry>> = BTreeMap::new();
        for entry in entries {
            if let Some(effect) = entry.effect() {
                effects.entry(effect.clone()).or_default().push(entry);
            }
        }
        Self {
            effects,
            ended: Vec::new(),
            complete,
        }
    }

    /// Returns the entries of `effect`, which are consumed. Empty when it never happened.
    pub(crate) fn take(&mut self, effect: &EffectId) -> Vec<Entry> {
        self.effects.remove(effect).unwrap_or_default()
    }

    /// Returns the entries inside `outer` that no effect will consume, because their branches lost
    /// a race.
    pub(crate) fn take_within(&mut self, outer: &EffectId) -> Vec<Entry> {
        let all = std::mem::take(&mut self.effects);
        let (within, others): (BTreeMap<_, _>, _) =
            all.into_iter().partition(|(id, _)| id.is_within(outer));
        self.effects = others;
        within.into_values().flatten().collect()
    }

    /// Records that `branch` is known to have ended: it may not go beyond its recorded entries.
    pub(crate) fn ends(&mut self, branch: EffectId) {
        self.ended.push(branch);
    }

    /// Checks that the effect `now` may go live in the branch `prefix`, whose next effect is
    /// `effect`. It must not if an entry of a later effect is recorded, or if its branch or cycle
    /// is known to have ended.
    pub(crate) fn may_go_live(
        &self,
        prefix: &EffectId,
        effect: &EffectId,
        now: impl FnOnce() -> String,
    ) -> Result<(), Divergence> {
        let later = |id: &EffectId| id.is_within(prefix) || comes_after(id, effect);
        if let Some((left, entries)) = self.effects.iter().find(|(id, _)| later(id)) {
            return Err(Divergence {
                effect: left.clone(),
                recorded: entries.first().map(describe).unwrap_or_default(),
                now: format!("something before it that was never recorded: {}", now()),
            });
        }
        let ended = self.ended.iter().any(|branch| effect.is_within(branch));
        if ended || self.complete {
            let what = if ended { "branch" } else { "cycle" };
            return Err(Divergence {
                effect: effect.clone(),
                recorded: format!("the end of the {what}"),
                now: now(),
            });
        }
        Ok(())
    }

    /// Checks that no entry is unused at the end of the cycle.
    pub(crate) fn is_used_up(&self) -> Result<(), Divergence> {
        match self.effects.first_key_value() {
            None => Ok(()),
            Some((effect, entries)) => Err(Divergence {
                effect: effect.clone(),
                recorded: entries.first().map(describe).unwrap_or_default(),
                now: "the cycle ends without it".to_owned(),
            }),
        }
    }
}

/// Whether `id` can only have begun after `effect` had ended. The numbers of cycles and branches
/// are at even positions, those of effects, which follow each other, at odd ones.
fn comes_after(id: &EffectId, effect: &EffectId) -> bool {
    let (id, effect) = (id.path(), effect.path());
    let differ = id.iter().zip(effect).position(|(one, other)| one != other);
    differ.is_some_and(|place| place % 2 == 1 && id[place] > effect[place])
}

/// Number of characters of an entry that a divergence shows.
const SHOWN: usize = 240;

/// Describes an entry in a few words, for showing two sides of a divergence.
pub(crate) fn describe(entry: &Entry) -> String {
    let payload = entry
        .payload()
        .map(|json| json.get().to_owned())
        .unwrap_or_default();
    format!(
        "`{}` {}",
        entry.kind(),
        gyrus_text::shorten(&payload, SHOWN)
    )
}

/// Creates the error for an effect whose recorded entries differ from what the loop does now.
pub(crate) fn diverges(effect: &EffectId, recorded: &Entry, now: impl Into<String>) -> Stop {
    Divergence {
        effect: effect.clone(),
        recorded: describe(recorded),
        now: now.into(),
    }
    .into()
}
