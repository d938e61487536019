//! Conditions on a page, before and after an action.

use std::{collections::BTreeSet, fmt};

use gyrus_contract::Element;
use serde::{Deserialize, Serialize};

use crate::{
    Anchor, ReplaySight, SlotTemplate, SlotValues, address,
    desktop::{self, SeenWindow},
    page::{self, PlacedView},
    template::one_spaced,
};

/// A condition on a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "that", rename_all = "snake_case")]
pub enum Expectation {
    /// The page's address, relative to the folder of the start address (an address outside is
    /// whole), has this form. Slots stand for their value as such addresses write it: as it is,
    /// lower case with hyphens, or percent-encoded.
    Address { is: SlotTemplate },
    /// The address is the learned one, where slots without a value stand for ids that the
    /// application gave to the result of the last step.
    NewAddress { is: SlotTemplate },
    /// The desktop has exactly these windows, in any order.
    Windows { are: Vec<LearnedWindow> },
    /// The page shows this text as the whole name of an element.
    Shows { text: SlotTemplate },
    /// The page shows at least one of these texts as the complete name of an element.
    ShowsAny { texts: Vec<SlotTemplate> },
    /// The element of the anchor has this value.
    Value { of: Box<Anchor>, is: SlotTemplate },
    /// The element of the anchor is checked, selected or pressed.
    Chosen { of: Box<Anchor> },
    /// The page has exactly these fields, with their values, in any order and under any name.
    Fields { are: Vec<LearnedField> },
    /// The shown amounts of money are the learned ones if these slots have the learned values; with
    /// other values the page shows at most as many different ones.
    Amounts {
        /// The different amounts, as written on the page.
        shown: Vec<String>,
        /// The slots on which the amounts depend.
        slots: Vec<usize>,
        /// The element whose row contains the amounts; without it they are those of the page.
        of: Option<Box<Anchor>>,
        /// Whether amounts in rows of lists and tables are ignored.
        #[serde(default)]
        without_rows: bool,
    },
    /// The browser shows a dialog with this message, which blocks the page.
    Asks { message: SlotTemplate },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LearnedWindow {
    /// The name (class) that the window's program gives it.
    pub program: String,
    pub title: SlotTemplate,
    /// Whether the window has the keyboard.
    #[serde(default)]
    pub is_active: bool,
}

/// A field at the time when something was sent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LearnedField {
    pub role: String,
    pub value: FieldValue,
    /// Whether the field is checked or selected.
    #[serde(default)]
    pub on: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FieldValue {
    Slot(usize),
    /// A constant value.
    Fixed(String),
    /// Any value that the program sets by itself.
    Any,
}

impl Expectation {
    /// Checks the condition on a page.
    ///
    /// # Errors
    /// A sentence on what was expected and what was found.
    pub fn check(&self, sight: &ReplaySight<'_>) -> Result<(), String> {
        let hold = |holds: bool, found: String| {
            if holds {
                Ok(())
            } else {
                Err(format!(
                    "expected {}, but {found}",
                    self.in_words(sight.values)
                ))
            }
        };
        match self {
            Self::Address { is } => {
                let found = address::relative(&sight.view.address, sight.start);
                hold(
                    address::is(&found, is, sight.values),
                    format!("the page is `{}`", sight.view.address),
                )
            }
            Self::NewAddress { is } => {
                let found = address::relative(&sight.view.address, sight.start);
                hold(
                    address::ids_in(&found, is, sight.values).is_some(),
                    format!("the page is `{}`", sight.view.address),
                )
            }
            Self::Windows { are } => {
                let found = desktop::windows(sight.view);
                hold(
                    is_same_windows(are, &found, sight.values),
                    named(found.iter().map(|it| (it.title.as_str(), it.is_active))),
                )
            }
            Self::Shows { text } => hold(sight.shows(text), "the page does not show it".to_owned()),
            Self::ShowsAny { texts } => hold(
                texts.iter().any(|text| sight.shows(text)),
                "the page does not show it".to_owned(),
            ),
            Self::Value { of, is } => {
                let found = of.element(sight).map_err(|miss| miss.to_string())?;
                let value = found.value.as_deref().unwrap_or_default();
                hold(
                    one_spaced(value) == one_spaced(&is.filled(sight.values)),
                    format!("its value is `{value}`"),
                )
            }
            Self::Chosen { of } => {
                let found = of.element(sight).map_err(|miss| miss.to_string())?;
                hold(page::is_on(found), "it is not".to_owned())
            }
            Self::Fields { are } => check_fields(are, sight),
            Self::Amounts { shown, slots, .. } => check_amounts(
                shown,
                &self.amounts(sight)?,
                sight.has_learned_values(slots),
            ),
            Self::Asks { message } => {
                let asked = sight.view.dialog.as_ref().map(|it| one_spaced(&it.message));
                hold(
                    asked.as_deref() == Some(one_spaced(&message.filled(sight.values)).as_str()),
                    match asked {
                        Some(asked) => format!("it asks “{asked}”"),
                        None => "it asks nothing".to_owned(),
                    },
                )
            }
        }
    }

    fn amounts(&self, sight: &ReplaySight<'_>) -> Result<BTreeSet<String>, String> {
        let Self::Amounts {
            of, without_rows, ..
        } = self
        else {
            return Ok(BTreeSet::new());
        };
        let page = PlacedView::new(sight.view);
        let Some(of) = of else {
            return Ok(page::amounts_of_page(&page, *without_rows));
        };
        let id = of.find(sight).map_err(|miss| miss.to_string())?;
        let row = page.index(id).map(|index| page.row(index));
        let row = row.into_iter().flatten();
        Ok(page::amounts_of(row.map(|at| page.element(at))))
    }

    /// Describes the condition in words.
    pub fn in_words(&self, values: &SlotValues) -> String {
        match self {
            Self::Address { is } | Self::NewAddress { is } => {
                format!("the address `{}`", is.filled(values))
            }
            Self::Windows { are } => {
                let are = are.iter().map(|it| (it.title.filled(values), it.is_active));
                let are: Vec<_> = are.collect();
                let windows = named(are.iter().map(|(title, active)| (title.as_str(), *active)));
                format!("that {windows}")
            }
            Self::Shows { text } => format!("the text “{}”", text.filled(values)),
            Self::ShowsAny { texts } => {
                let texts = texts
                    .iter()
                    .map(|text| format!("“{}”", text.filled(values)));
                format!("one of the texts {}", texts.collect::<Vec<_>>().join(", "))
            }
            Self::Value { of, is } => {
                format!("“{}” in {}", is.filled(values), of.in_words(values))
            }
            Self::Chosen { of } => format!("{} to be chosen", of.in_words(values)),
            Self::Fields { .. } => "the fields that it was learned with".to_owned(),
            Self::Amounts { shown, .. } => format!("the amounts {}", shown.join(", ")),
            Self::Asks { message } => format!("the question “{}”", message.filled(values)),
        }
    }
}

/// Writes slots as `{1}`, counted from 1, for people.
impl fmt::Display for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = (1..=99).map(|number| format!("{{{number}}}"));
        f.write_str(&self.in_words(&SlotValues(names.collect())))
    }
}

fn is_same_windows(are: &[LearnedWindow], found: &[SeenWindow], values: &SlotValues) -> bool {
    let expected = are.iter().map(|it| {
        let title = one_spaced(&it.title.filled(values));
        (it.program.as_str(), title, it.is_active)
    });
    let found = found
        .iter()
        .map(|it| (it.program.as_str(), one_spaced(&it.title), it.is_active));
    let (mut expected, mut found): (Vec<_>, Vec<_>) = (expected.collect(), found.collect());
    expected.sort();
    found.sort();
    expected == found
}

fn named<'t>(windows: impl Iterator<Item = (&'t str, bool)>) -> String {
    let named = windows.map(|(title, is_active)| {
        let title = gyrus_text::shorten(title, 100);
        let has = if is_active { " with the keyboard" } else { "" };
        format!("“{title}”{has}")
    });
    match &named.collect::<Vec<_>>()[..] {
        [] => "there is no window".to_owned(),
        [one] => format!("the window is {one}"),
        several => format!("the windows are {}", several.join(", ")),
    }
}

/// Returns the fields of a page in a form that can be compared.
pub(crate) fn fields_of(
    page: &PlacedView<'_>,
    value: impl Fn(&Element) -> FieldValue,
) -> Vec<LearnedField> {
    let fields = page.fields().map(|element| {
        let value = value(element);
        LearnedField {
            role: element.role.clone(),
            on: value != FieldValue::Any && page::is_on(element),
            value,
        }
    });
    let mut fields: Vec<_> = fields.collect();
    fields.sort();
    fields
}

fn check_fields(are: &[LearnedField], sight: &ReplaySight<'_>) -> Result<(), String> {
    let expected = are.iter().filter_map(|field| {
        let value = match &field.value {
            FieldValue::Slot(number) => sight.values.0.get(*number).cloned().unwrap_or_default(),
            FieldValue::Fixed(text) => text.clone(),
            FieldValue::Any => return None,
        };
        Some(LearnedField {
            value: FieldValue::Fixed(value),
            ..field.clone()
        })
    });
    let mut left = fields_of(&PlacedView::new(sight.view), |element| {
        FieldValue::Fixed(element.value.clone().unwrap_or_default())
    });
    let found = left.len();
    let mut missing = 0;
    for field in expected {
        match left.iter().position(|one| *one == field) {
            Some(at) => drop(left.remove(at)),
            None => missing += 1,
        }
    }
    // What is left must be the fields whose values do not matter.
    let any = are.iter().filter(|field| field.value == FieldValue::Any);
    for field in any {
        match left.iter().position(|one| one.role == field.role) {
            Some(at) => drop(left.remove(at)),
            None => missing += 1,
        }
    }
    if missing == 0 && left.is_empty() {
        return Ok(());
    }
    let differs = left.first().map(|field| match &field.value {
        FieldValue::Fixed(text) if !text.is_empty() => {
            format!("a {} has the value `{text}`", field.role)
        }
        _ => format!("there is another {}", field.role),
    });
    Err(format!(
        "expected the fields that it was learned with, but {}",
        differs.unwrap_or_else(|| format!("there are {found} of {}", are.len()))
    ))
}

fn check_amounts(
    shown: &[String],
    found: &BTreeSet<String>,
    as_learned: bool,
) -> Result<(), String> {
    let expected: BTreeSet<String> = shown.iter().cloned().collect();
    if *found == expected || (!as_learned && found.len() <= expected.len()) {
        return Ok(());
    }
    let listed = |amounts: &BTreeSet<String>| {
        let listed = amounts.iter().take(8).cloned().collect::<Vec<_>>();
        listed.join(", ")
    };
    Err(format!(
        "expected the amounts {}, but the page shows {}",
        listed(&expected),
        listed(found)
    ))
}

impl Anchor {
    fn element<'v>(&self, sight: &ReplaySight<'v>) -> Result<&'v Element, crate::AnchorMiss> {
        let id = self.find_shown(sight)?;
        let elements = &sight.view.elements;
        elements
            .iter()
            .find(|element| element.id == id)
            .ok_or_else(|| self.missing(sight.values))
    }
}
