//! Describing an element so that it can be found again on a page that has changed since.
//!
//! An element is found by the strongest evidence there is, and only if no other element has the
//! same: its name with the values of slots; a name that pages use for the same thing; the choices
//! that it offers; being the one that is left in its form when all others are recognised. Where a
//! weaker kind of evidence decides, a name that is known for something else rules it out.

use std::collections::BTreeSet;

use gyrus_contract::{Element, ElementId};
use serde::{Deserialize, Serialize};

use crate::{
    ReplaySight, Slot, SlotTemplate, SlotValues, address, desktop,
    page::{self, PlacedView},
    template::one_spaced,
    words,
};

/// The description of an element.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Anchor {
    pub role: String,
    /// The name, with slots.
    pub name: SlotTemplate,
    /// The target of a link relative to the start, if it has slots.
    pub address: Option<SlotTemplate>,
    /// A text in the row or group around the element that the others of its name lack.
    pub within: Option<SlotTemplate>,
    /// The role of the group around the element; empty for the page.
    #[serde(default)]
    pub group: String,
    /// The names of the other elements of the same role in the group.
    #[serde(default)]
    pub others: Vec<String>,
    /// The roles of the fields in the group.
    #[serde(default)]
    pub fields: Vec<String>,
    /// The choices that the element offers, if no other element of the page offers the same.
    #[serde(default)]
    pub choices: Vec<String>,
    /// The position of a window's field, if the field has no name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unnamed: Option<UnnamedField>,
}

/// The place of a field without a name among others of its role, in a window of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnnamedField {
    /// The number, from 0.
    pub number: usize,
    /// The number of all these fields.
    pub of: usize,
    /// The text before or above the field.
    pub label: Option<SlotTemplate>,
}

impl UnnamedField {
    /// Describes a field that is among these.
    fn of(
        page: &PlacedView<'_>,
        index: usize,
        same: &[usize],
        learned: RunKnowledge<'_>,
    ) -> Option<Self> {
        let label = page.label(index).map(|label| {
            SlotTemplate::of(&label, learned.slots, |slot| learned.used.contains(&slot))
        });
        Some(Self {
            number: same.iter().position(|other| *other == index)?,
            of: same.len(),
            label,
        })
    }

    /// Returns the field among those of a page with the same role and without a name.
    fn among(&self, page: &PlacedView<'_>, all: &[usize], values: &SlotValues) -> Option<usize> {
        let own = all.get(self.number).filter(|_| all.len() == self.of)?;
        let label = self.label.as_ref().map(|label| label.filled(values));
        (page.label(*own) == label).then_some(*own)
    }
}

/// The reason why an anchor fits no element, or more than one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnchorMiss {
    /// No element fits well enough.
    #[error("{wanted} is not there")]
    Missing {
        /// Description of the element.
        wanted: String,
    },
    /// Several fit about equally well.
    #[error("{wanted} could be any of {count} elements")]
    Ambiguous {
        /// Description of the element.
        wanted: String,
        /// Number of fitting elements.
        count: usize,
    },
}

#[derive(Clone, Copy)]
pub(crate) struct RunKnowledge<'a> {
    pub(crate) slots: &'a [Slot],
    pub(crate) start: &'a str,
    /// The slots whose values the page may show.
    pub(crate) used: &'a BTreeSet<usize>,
}

impl Anchor {
    /// Describes an element of a page; `None` if it could not be told from others there.
    pub(crate) fn of(
        page: &PlacedView<'_>,
        index: usize,
        learned: RunKnowledge<'_>,
    ) -> Option<Self> {
        let element = page.element(index);
        let own_name = page::name_of(element);
        let name = SlotTemplate::of(&own_name, learned.slots, |slot| {
            learned.used.contains(&slot)
        });
        let has_slot = address::has_slot(&name);
        // A field without a name is told by what it holds, if it is the only one.
        let holds = element.value.as_deref().unwrap_or_default().trim();
        let on_desktop = desktop::is_desktop(page.view);
        let is_unnamed = page::is_field(element) && own_name.is_empty();
        let is_told = is_unnamed && (!holds.is_empty() || on_desktop);
        if words::plain(&own_name).is_empty() && !has_slot && !is_told {
            return None;
        }
        let group = page.group(index);
        let address = element.address.as_deref().map(|to| {
            let to = address::relative(to, learned.start);
            address::template_of(&to, learned.slots, |slot| learned.used.contains(&slot))
        });
        let mut anchor = Self {
            role: element.role.clone(),
            name,
            address: address.filter(|to| has_slot && address::has_slot(to)),
            within: None,
            group: role_of(page, group),
            others: Vec::new(),
            fields: fields_in(page, group),
            choices: choices(page, index),
            unnamed: None,
        };
        let beside = page.in_group(group, &element.role);
        let beside = beside.into_iter().filter(|other| *other != index);
        anchor.others = beside
            .map(|other| page::name_of(page.element(other)))
            .collect();
        anchor.others.sort();
        // A list of many things is no form.
        anchor.others.truncate(MOST_OTHERS + 1);
        let same_choices = (0..page.view.elements.len()).filter(|other| {
            page.element(*other).role == element.role && choices(page, *other) == anchor.choices
        });
        if same_choices.count() > 1 {
            anchor.choices.clear();
        }
        let values = SlotValues(
            learned
                .slots
                .iter()
                .map(|slot| slot.learned.clone())
                .collect(),
        );
        let sight = ReplaySight {
            view: page.view,
            start: learned.start,
            slots: learned.slots,
            values: &values,
        };
        let same = anchor.named(page, &sight, &|element| page::is_shown(element));
        if is_unnamed && on_desktop {
            anchor.unnamed = Some(UnnamedField::of(page, index, &same, learned)?);
        } else if same.len() > 1 {
            anchor.within = Some(told_apart(page, index, &same, learned)?);
        }
        (anchor.find_shown(&sight) == Ok(element.id)).then_some(anchor)
    }

    /// Lets the element only be found by its name, or by another one known for the same thing: a
    /// step that binds somebody does not rest on the shape of a form.
    pub(crate) fn rely_on_name(&mut self) {
        self.others.clear();
        self.fields.clear();
        self.choices.clear();
    }

    /// Returns the only usable element of a view that fits.
    ///
    /// # Errors
    /// No element fits well enough, or the best is not clearly better than the next.
    pub fn find(&self, sight: &ReplaySight<'_>) -> Result<ElementId, AnchorMiss> {
        self.one(sight, &page::is_usable)
    }

    /// Returns the only element of a view that fits, even if it accepts no input now.
    pub(crate) fn find_shown(&self, sight: &ReplaySight<'_>) -> Result<ElementId, AnchorMiss> {
        self.one(sight, &page::is_shown)
    }

    fn one(
        &self,
        sight: &ReplaySight<'_>,
        fits: &dyn Fn(&Element) -> bool,
    ) -> Result<ElementId, AnchorMiss> {
        let page = PlacedView::new(sight.view);
        let mut found = match &self.unnamed {
            None => self.named(&page, sight, fits),
            Some(unnamed) => {
                let all = self.named(&page, sight, &page::is_shown);
                let own = unnamed.among(&page, &all, sight.values);
                let own = own.filter(|index| fits(page.element(*index)));
                own.into_iter().collect()
            }
        };
        if let Some(within) = &self.within
            && found.len() > 1
        {
            let text = one_spaced(&within.filled(sight.values));
            let all = found.clone();
            found.retain(|index| surrounds(&page, *index, &all, &text));
        }
        let may_be_renamed = !desktop::is_desktop(sight.view);
        if found.is_empty()
            && may_be_renamed
            && !address::has_slot(&self.name)
            && self.within.is_none()
        {
            found = self.renamed(&page, fits);
        }
        match found[..] {
            [one] => Ok(page.element(one).id),
            [] => Err(self.missing(sight.values)),
            _ => Err(AnchorMiss::Ambiguous {
                wanted: self.in_words(sight.values),
                count: found.len(),
            }),
        }
    }

    fn named(
        &self,
        page: &PlacedView<'_>,
        sight: &ReplaySight<'_>,
        fits: &dyn Fn(&Element) -> bool,
    ) -> Vec<usize> {
        let wanted = one_spaced(&self.name.filled(sight.values));
        let has_slot = address::has_slot(&self.name);
        let plain = words::plain(&wanted);
        let candidates = self.candidates(page, fits).filter(|index| {
            let element = page.element(*index);
            let name = page::name_of(element);
            if !has_slot {
                return words::plain(&name) == plain;
            }
            let leads = |form: &SlotTemplate| {
                let to = element.address.as_deref().unwrap_or_default();
                address::is(&address::relative(to, sight.start), form, sight.values)
            };
            name == wanted && self.address.as_ref().is_none_or(leads)
        });
        let learned = sight.slots.iter().map(|slot| slot.learned.clone());
        let learned = self.name.filled(&SlotValues(learned.collect()));
        if words::is_destructive(&wanted) && !words::is_destructive(&learned) {
            return Vec::new();
        }
        candidates.collect()
    }

    /// Returns the elements of the anchor's role in groups of the same role.
    fn candidates(
        &self,
        page: &PlacedView<'_>,
        fits: &dyn Fn(&Element) -> bool,
    ) -> impl Iterator<Item = usize> {
        (0..page.view.elements.len()).filter(move |index| {
            let element = page.element(*index);
            element.role == self.role
                && fits(element)
                && role_of(page, page.group(*index)) == self.group
        })
    }

    /// Returns the elements whose name may have changed since.
    fn renamed(&self, page: &PlacedView<'_>, fits: &dyn Fn(&Element) -> bool) -> Vec<usize> {
        let learned = self.name.fixed_words();
        let own = words::thing(&learned);
        let name = |index: usize| page::name_of(page.element(index));
        let is_allowed = |index: &usize| {
            !words::is_destructive(&name(*index)) || words::is_destructive(&learned)
        };
        let candidates: Vec<_> = self.candidates(page, fits).filter(is_allowed).collect();
        let same: Vec<_> = candidates
            .iter()
            .copied()
            .filter(|index| own.is_some() && words::thing(&name(*index)) == own)
            .collect();
        if !same.is_empty() {
            return same;
        }
        let mut left: Vec<_> = candidates
            .into_iter()
            .filter(|index| words::thing(&name(*index)).is_none())
            .collect();
        if !self.choices.is_empty() {
            left.retain(|index| choices(page, *index) == self.choices);
        } else if self.role == "button" {
            left.retain(|index| words::is_simple(&name(*index)) && self.is_left_over(page, *index));
        } else if page::is_field_role(&self.role) {
            let says = words::plain(&learned);
            left.retain(|index| {
                self.is_left_over(page, *index)
                    && self.others.is_empty()
                    && contains_words(&words::plain(&name(*index)), &says)
            });
        } else {
            left.clear();
        }
        left
    }

    /// Whether an element is the last one in a form after all others of its role there have been
    /// recognised by their names.
    fn is_left_over(&self, page: &PlacedView<'_>, index: usize) -> bool {
        let group = page.group(index);
        let beside = page.in_group(group, &self.role);
        if self.fields.is_empty()
            || fields_in(page, group) != self.fields
            || self.others.len() > MOST_OTHERS
            || beside.len() != self.others.len() + 1
        {
            return false;
        }
        let mut known = self.others.clone();
        for other in beside.into_iter().filter(|other| *other != index) {
            let name = page::name_of(page.element(other));
            let is_same = |known: &String| {
                let thing = words::thing(known);
                words::plain(known) == words::plain(&name)
                    || thing.is_some() && thing == words::thing(&name)
            };
            match known.iter().position(is_same) {
                Some(at) => drop(known.swap_remove(at)),
                None => return false,
            }
        }
        known.is_empty()
    }

    pub(crate) fn missing(&self, values: &SlotValues) -> AnchorMiss {
        AnchorMiss::Missing {
            wanted: self.in_words(values),
        }
    }

    /// Describes the element: `button “Send”`.
    pub fn in_words(&self, values: &SlotValues) -> String {
        let name = self.name.filled(values);
        match &self.unnamed {
            Some(UnnamedField {
                label: Some(label), ..
            }) => format!("{} beside “{}”", self.role, label.filled(values)),
            Some(UnnamedField { number, of, .. }) if *of > 1 => {
                format!("{} without a name ({} of {of})", self.role, number + 1)
            }
            Some(_) => format!("{} without a name", self.role),
            None => format!("{} “{name}”", self.role),
        }
    }
}

/// Maximum number of elements among which the last unrecognised one is accepted.
const MOST_OTHERS: usize = 5;

fn role_of(page: &PlacedView<'_>, group: Option<usize>) -> String {
    group.map_or(String::new(), |group| page.element(group).role.clone())
}

/// Returns the roles of the fields in a group, sorted.
fn fields_in(page: &PlacedView<'_>, group: Option<usize>) -> Vec<String> {
    let all = 0..page.view.elements.len();
    let fields = all.filter(|index| {
        let element = page.element(*index);
        page::is_field(element) && page::is_shown(element) && page.group(*index) == group
    });
    let mut roles: Vec<_> = fields
        .map(|index| page.element(index).role.clone())
        .collect();
    roles.sort();
    roles
}

/// Returns the names of the options of a list, sorted.
fn choices(page: &PlacedView<'_>, index: usize) -> Vec<String> {
    if !["combobox", "listbox"].contains(&page.element(index).role.as_str()) {
        return Vec::new();
    }
    let inner = page.subtree(index).map(|inner| page.element(inner));
    let options = inner.filter(|element| element.role == "option");
    let mut names: Vec<_> = options.map(page::name_of).collect();
    names.sort();
    names
}

/// Returns a text around an element that the others of its name lack.
fn told_apart(
    page: &PlacedView<'_>,
    index: usize,
    same: &[usize],
    learned: RunKnowledge<'_>,
) -> Option<SlotTemplate> {
    for above in page.ancestors(index) {
        let inner = page.subtree(above);
        if same
            .iter()
            .any(|other| *other != index && inner.contains(other))
        {
            return None;
        }
        let texts = inner.filter(|inner| *inner != index).filter_map(|inner| {
            let text = page::name_of(page.element(inner));
            let form = SlotTemplate::of(&text, learned.slots, |slot| learned.used.contains(&slot));
            // Amounts and counts change.
            let is_usable = !text.is_empty() && !address::has_other_digits(&form);
            let stands_once = same
                .iter()
                .filter(|other| surrounds(page, **other, same, &text))
                .count()
                == 1;
            (is_usable && stands_once).then_some(form)
        });
        let texts: Vec<_> = texts.collect();
        let with_slot = texts.iter().find(|form| address::has_slot(form));
        if let Some(text) = with_slot.or(texts.first()) {
            return Some(text.clone());
        }
    }
    None
}

/// Whether a text is in a container of this element that contains no other element of the same
/// name.
fn surrounds(page: &PlacedView<'_>, index: usize, same: &[usize], text: &str) -> bool {
    let alone = page.ancestors(index).take_while(|above| {
        let inner = page.subtree(*above);
        !same
            .iter()
            .any(|other| *other != index && inner.contains(other))
    });
    alone.into_iter().any(|above| {
        let mut inner = page.subtree(above).filter(|inner| *inner != index);
        inner.any(|inner| page::name_of(page.element(inner)) == text)
    })
}

fn contains_words(text: &str, wanted: &str) -> bool {
    let has: Vec<_> = text.split(' ').collect();
    !wanted.is_empty() && wanted.split(' ').all(|word| has.contains(&word))
}
