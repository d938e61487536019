//! What the journal already holds of the cycle that is being run again.

use std::collections::BTreeMap;

use gyrus_contract::EffectId;

use crate::{Divergence, Entry};

/// The recorded entries of one cycle, by effect. Effects consume theirs as the loop, run again,
/// comes to them; what is left at the cycle's end was not asked for, and that is a divergence.
#[derive(Debug, Default)]
pub(crate) struct Recorded {
    effects: BTreeMap<EffectId, Vec<Entry>>,
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
        Self { effects, complete }
    }

    /// The entries of `effect`, now consumed. Empty when it never happened.
    pub(crate) fn take(&mut self, effect: &EffectId) -> Vec<Entry> {
        self.effects.remove(effect).unwrap_or_default()
    }

    /// Forgets what happened inside `outer`: the branches that lost a race.
    pub(crate) fn forget_within(&mut self, outer: &EffectId) {
        self.effects.retain(|effect, _| !effect.is_within(outer));
    }

    /// `now` is about to go live in the branch `prefix`, whose next effect is `effect`. That is
    /// wrong while the branch has recorded effects left, or the cycle is known to have ended.
    pub(crate) fn may_go_live(
        &self,
        prefix: &EffectId,
        effect: &EffectId,
        now: impl FnOnce() -> String,
    ) -> Result<(), Divergence> {
        if let Some((left, entries)) = self.effects.iter().find(|(id, _)| id.is_within(prefix)) {
            return Err(Divergence {
                effect: left.clone(),
                recorded: entries.first().map(describe).unwrap_or_default(),
                now: format!("something before it that was never recorded: {}", now()),
            });
        }
        if self.complete {
            return Err(Divergence {
                effect: effect.clone(),
                recorded: "the end of the cycle".to_owned(),
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

/// How many characters of an entry a divergence shows.
const SHOWN: usize = 240;

/// An entry in few words, for showing two sides of a divergence.
pub(crate) fn describe(entry: &Entry) -> String {
    let payload = entry
        .payload()
        .map(|json| json.get().to_owned())
        .unwrap_or_default();
    let shown: String = payload.chars().take(SHOWN).collect();
    let dots = if payload.chars().nth(SHOWN).is_some() {
        " …"
    } else {
        ""
    };
    format!("`{}` {shown}{dots}", entry.kind())
}
