//! What the journal already holds of the cycle that is being run again.

use std::collections::BTreeMap;

use gyrus_contract::EffectId;

use crate::{Divergence, Entry};

/// The recorded entries of one cycle, by effect. Effects consume theirs as the loop, run again,
/// comes to them; what is left at the cycle's end was not asked for, and that is a divergence.
#[derive(Debug, Default)]
pub(crate) struct Recorded {
    effects: BTreeMap<EffectId, Vec<Entry>>,
    /// Branches that are known to have ended.
    ended: Vec<EffectId>,
    /// The cycle is known to have ended after these: nothing may go beyond them.
    pub(crate) complete: bool,
}

impl Recorded {
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

    /// The entries of `effect`, now consumed. Empty when it never happened.
    pub(crate) fn take(&mut self, effect: &EffectId) -> Vec<Entry> {
        self.effects.remove(effect).unwrap_or_default()
    }

    /// Hands out what happened inside `outer` and will not be asked for: in the branches that
    /// lost a race.
    pub(crate) fn take_within(&mut self, outer: &EffectId) -> Vec<Entry> {
        let all = std::mem::take(&mut self.effects);
        let (within, others): (BTreeMap<_, _>, _) =
            all.into_iter().partition(|(id, _)| id.is_within(outer));
        self.effects = others;
        within.into_values().flatten().collect()
    }

    /// `branch` is known to have ended: nothing in it may go beyond what is recorded.
    pub(crate) fn ends(&mut self, branch: EffectId) {
        self.ended.push(branch);
    }

    /// `now` is about to go live in the branch `prefix`, whose next effect is `effect`. That is
    /// wrong while something is recorded that came after it, or its branch or cycle is known to
    /// have ended.
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

    /// The cycle is over: nothing may be left.
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

/// Whether `id` can only have begun when `effect` had ended. Numbers of cycles and branches stand
/// at even places, those of effects, which follow each other, at odd ones.
fn comes_after(id: &EffectId, effect: &EffectId) -> bool {
    let (id, effect) = (id.path(), effect.path());
    let differ = id.iter().zip(effect).position(|(one, other)| one != other);
    differ.is_some_and(|place| place % 2 == 1 && id[place] > effect[place])
}

/// How many characters of an entry a divergence shows.
const SHOWN: usize = 240;

/// An entry in few words, for showing two sides of a divergence.
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
