//! A page as a replay sees it, with the values of its command.

use gyrus_contract::View;

use crate::{
    page,
    slot::{Slot, SlotValues},
    template::{SlotTemplate, one_spaced},
};

/// Knowledge with which a replay reads a page.
#[derive(Debug, Clone, Copy)]
pub struct ReplaySight<'a> {
    pub view: &'a View,
    /// The address at which the run began.
    pub start: &'a str,
    pub slots: &'a [Slot],
    pub values: &'a SlotValues,
}

impl ReplaySight<'_> {
    pub(crate) fn has_learned_values(&self, slots: &[usize]) -> bool {
        slots.iter().all(|number| {
            let learned = self.slots.get(*number).map(|slot| &slot.learned);
            learned.is_some() && learned == self.values.0.get(*number)
        })
    }

    pub(crate) fn shows(&self, text: &SlotTemplate) -> bool {
        let wanted = one_spaced(&text.filled(self.values));
        let shown = self.view.elements.iter().filter(|it| page::is_shown(it));
        shown
            .into_iter()
            .any(|element| page::name_of(element) == wanted)
    }
}
