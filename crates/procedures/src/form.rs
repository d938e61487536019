//! The form that a binding step sends: what is compared at the press itself.
//!
//! A page may have got another form since, or change it between the look and the press. The
//! address, the words and the controls must be those that were learned, with the values of the
//! command; numbers that are no amounts of money may differ, as they count what was done before.

use gyrus_contract::{Form, SentControl, SentForm};
use serde::{Deserialize, Serialize};

use crate::{Slot, SlotTemplate, SlotValues, address, page, template::one_spaced, words};

/// A form at the time when a step of a run sent it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedForm {
    /// The address to which the form is sent, relative to the start.
    pub action: SlotTemplate,
    /// The method in lower case; empty if it is not a real form.
    pub method: String,
    /// The heading, which may be empty, and the words and placeholders.
    pub words: Vec<SlotTemplate>,
    /// The controls that a person sees and whose values are sent; `None` if they are unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controls: Option<Vec<LearnedControl>>,
}

/// A control of such a form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LearnedControl {
    /// The technical name of the control.
    pub name: String,
    pub kind: String,
    /// The text that a person reads at the control, if its value is sent.
    pub reads: Option<SlotTemplate>,
    /// The value of a choice, for which these words stood.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// The knowledge of a replay at a press.
#[derive(Debug, Clone, Copy)]
pub struct AtPress<'a> {
    /// The address at which the run began.
    pub start: &'a str,
    /// The slots of the command.
    pub slots: &'a [Slot],
    /// The values of the slots, and the ids found since.
    pub values: &'a SlotValues,
}

impl RecordedForm {
    /// Describes a form, with slots for the values that `template` finds in a text.
    pub(crate) fn of(
        form: &Form,
        action: SlotTemplate,
        template: impl Fn(&str) -> SlotTemplate,
    ) -> Self {
        let controls = form.sends.as_ref().map(|sends| {
            let seen = seen(sends).map(|control| LearnedControl {
                name: control.name.clone(),
                kind: control.kind.clone(),
                reads: control.read().map(&template),
                value: control.value.clone().filter(|_| is_chosen(control)),
            });
            seen.collect()
        });
        Self {
            action,
            method: form.method.clone(),
            words: form.words.iter().map(|words| template(words)).collect(),
            controls,
        }
    }

    /// Checks that a form equals the learned one, with these values.
    ///
    /// # Errors
    /// A sentence on what was expected and what was found.
    pub fn check(&self, form: Option<&Form>, at: AtPress<'_>) -> Result<(), String> {
        let form = form.ok_or("expected the form that it was learned with, but there is none")?;
        let action = address::relative(&form.action, at.start);
        if !address::is(&action, &self.action, at.values) || form.method != self.method {
            return Err(format!(
                "expected a form that is sent to `{}`, but it is sent to `{}`",
                self.action.filled(at.values),
                form.action
            ));
        }
        check_words(&self.words, &form.words, at)?;
        match (&self.controls, &form.sends) {
            (None, _) => Ok(()),
            (Some(controls), Some(sends)) => check_controls(controls, sends, at),
            (Some(_), None) => Err("nothing tells any more what the form sends".to_owned()),
        }
    }
}

/// Checks that the form shows exactly these texts, in any order.
fn check_words(words: &[SlotTemplate], found: &[String], at: AtPress<'_>) -> Result<(), String> {
    let mut left: Vec<_> = found.iter().collect();
    let mut missing = None;
    for expected in words {
        match left.iter().position(|found| at.reads(expected, found)) {
            Some(place) => drop(left.remove(place)),
            None => missing = missing.or(Some(expected)),
        }
    }
    if missing.is_none() && left.is_empty() {
        return Ok(());
    }
    Err(format!(
        "expected {} over or in the form, but there is {}",
        quoted(missing.map(|text| text.filled(at.values)).as_deref()),
        quoted(left.first().map(|text| text.as_str()))
    ))
}

fn check_controls(
    controls: &[LearnedControl],
    sends: &SentForm,
    at: AtPress<'_>,
) -> Result<(), String> {
    let mut left: Vec<_> = seen(sends).collect();
    for expected in controls {
        let reads = expected.reads.as_ref().map(|text| text.filled(at.values));
        let reads = reads.as_deref().map(one_spaced);
        let is_own =
            |found: &&SentControl| found.name == expected.name && found.kind == expected.kind;
        let is_same = |found: &&SentControl| is_own(found) && found.read().map(one_spaced) == reads;
        let Some(place) = left.iter().position(is_same) else {
            let found = left.iter().find(|found| is_own(found));
            return Err(format!(
                "expected that the form sends {} as `{}`, but it sends {}",
                quoted(reads.as_deref()),
                expected.name,
                quoted(found.and_then(|found| found.read()))
            ));
        };
        let found = left.remove(place);
        let is_as_learned = expected
            .reads
            .as_ref()
            .is_some_and(|reads| at.is_learned(reads));
        if expected.value.is_some() && is_as_learned && expected.value != found.value {
            return Err(format!(
                "{} means another value than when it was learned: {} and not {}",
                quoted(reads.as_deref()),
                quoted(found.value.as_deref()),
                quoted(expected.value.as_deref())
            ));
        }
    }
    match left.first() {
        None => Ok(()),
        Some(more) => Err(format!("expected no field `{}` in the form", more.name)),
    }
}

fn seen(sends: &SentForm) -> impl Iterator<Item = &SentControl> {
    let mut controls = sends.controls.iter();
    std::iter::from_fn(move || controls.find(|control| control.kind != "hidden"))
}

/// Whether a control's value represents a person's choice.
fn is_chosen(control: &SentControl) -> bool {
    control.kind.starts_with("select") || control.kind == "radio"
}

fn quoted(text: Option<&str>) -> String {
    match text {
        Some(text) => format!("“{}”", gyrus_text::shorten(text, 100)),
        None => "nothing".to_owned(),
    }
}

impl AtPress<'_> {
    fn is_learned(self, text: &SlotTemplate) -> bool {
        text.slots().all(|number| {
            let learned = self.slots.get(number).map(|slot| &slot.learned);
            learned == self.values.0.get(number)
        })
    }

    /// Whether a text equals the learned one. Amounts may differ where a command has other values,
    /// in the same currency.
    fn reads(self, expected: &SlotTemplate, found: &str) -> bool {
        let filled = expected.filled(self.values);
        let of_command = |number: usize| self.slots.get(number).map(|slot| &slot.learned);
        let count = self.slots.len();
        let as_learned = (0..count).all(|number| of_command(number) == self.values.0.get(number));
        let has_values = expected.slots().all(|number| {
            let value = self.values.0.get(number);
            value.is_some_and(|value| one_spaced(found).contains(&one_spaced(value)))
        });
        let thing = words::thing(&filled);
        let is_renamed = thing.is_some() && thing == words::thing(found);
        is_renamed || (has_values && masked(&filled, as_learned) == masked(found, as_learned))
    }
}

/// Replaces the numbers in a text by `#`, except amounts of money if `keeps_amounts`.
fn masked(text: &str, keeps_amounts: bool) -> String {
    let text = one_spaced(text);
    let mut masked = String::new();
    let mut end = 0;
    for number in page::numbers(&text) {
        masked.push_str(&text[end..number.at.start]);
        let is_kept = keeps_amounts && number.amount.is_some();
        masked.push_str(if is_kept {
            &text[number.at.clone()]
        } else {
            "#"
        });
        end = number.at.end;
    }
    masked.push_str(&text[end..]);
    masked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_kept_and_other_numbers_are_not() {
        for (text, kept, bare) in [
            (
                "Total €54.00, 3 left",
                "Total €54.00, # left",
                "Total €#, # left",
            ),
            ("at most 500 EUR", "at most 500 EUR", "at most # EUR"),
            ("Order no. 17", "Order no. #", "Order no. #"),
            ("no number", "no number", "no number"),
        ] {
            assert_eq!(masked(text, true), kept);
            assert_eq!(masked(text, false), bare);
        }
    }
}
