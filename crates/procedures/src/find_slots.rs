//! Finding out which values of a run come from its command.

use std::{collections::BTreeSet, ops::Range};

use crate::{
    NotLearned, Slot, SlotShape, SlotTemplate, TemplatePart, shape,
    template::{one_spaced, places},
    words,
};

pub(crate) struct UsedValue {
    pub(crate) value: String,
    pub(crate) label: String,
}

pub(crate) struct FoundSlots {
    pub(crate) command: SlotTemplate,
    pub(crate) slots: Vec<Slot>,
    text: String,
}

impl FoundSlots {
    /// Finds the slots of a command: the values that stand in it once, as words of their own. Of two
    /// that overlap, the longer one counts.
    pub(crate) fn of(command: &str, used: &[UsedValue]) -> Self {
        let text = one_spaced(command);
        let mut found: Vec<(Range<usize>, SlotShape, &UsedValue)> = Vec::new();
        let mut by_length: Vec<_> = used.iter().collect();
        by_length.sort_by_key(|used| std::cmp::Reverse(used.value.len()));
        for used in by_length {
            let value = used.value.as_str();
            let [at] = places(&text, value)[..] else {
                continue;
            };
            let span = at..at + value.len();
            let overlaps = |(other, ..): &(Range<usize>, SlotShape, &UsedValue)| {
                other.start < span.end && span.start < other.end
            };
            if found.iter().any(overlaps) {
                continue;
            }
            let shape = if is_quoted(&text, &span) {
                SlotShape::Quoted
            } else {
                shape::shape_of(value)
            };
            let slot = Slot {
                name: String::new(),
                learned: value.to_owned(),
                shape,
            };
            // A command begins with what is to be done.
            let is_verb = span.start == 0 && shape == SlotShape::Words;
            if shape::has_shape(value, &slot) && !is_verb {
                found.push((span, shape, used));
            }
        }
        found.sort_by_key(|(span, ..)| span.start);
        let mut parts = Vec::new();
        let mut slots: Vec<Slot> = Vec::new();
        let mut from = 0;
        let mut names = BTreeSet::new();
        for (number, (span, shape, used)) in found.into_iter().enumerate() {
            if span.start > from {
                parts.push(TemplatePart::Words(text[from..span.start].to_owned()));
            }
            parts.push(TemplatePart::Slot(number));
            from = span.end;
            slots.push(Slot {
                name: free_name(&used.label, shape, &mut names),
                learned: used.value.clone(),
                shape,
            });
        }
        if from < text.len() {
            parts.push(TemplatePart::Words(text[from..].to_owned()));
        }
        Self {
            command: SlotTemplate(parts),
            slots,
            text,
        }
    }

    /// Returns the slot of a value; `None` if the value is a fixed part of the command.
    ///
    /// # Errors
    /// The value does not come from the command.
    pub(crate) fn slot_of(&self, value: &str) -> Result<Option<usize>, NotLearned> {
        if let Some(number) = self.slots.iter().position(|slot| slot.learned == value) {
            return Ok(Some(number));
        }
        let fixed = self.command.0.iter().any(|part| match part {
            TemplatePart::Words(words) => !places(words, value).is_empty(),
            TemplatePart::Slot(_) => false,
        });
        if fixed && !places(&self.text, value).is_empty() {
            Ok(None)
        } else {
            Err(NotLearned::derived(value))
        }
    }
}

impl FoundSlots {
    /// Whether a label consists of words of the command outside of its slots, in their order: *Add
    /// group* for *Add the group "…"*.
    pub(crate) fn says(&self, label: &str) -> bool {
        let plain = |text: &str| words::plain(text);
        let fixed = plain(&self.command.fixed_words());
        let mut fixed = fixed.split(' ');
        let label = plain(label);
        !label.is_empty() && label.split(' ').all(|word| fixed.any(|said| said == word))
    }
}

/// Whether a part of a text is inside quotation marks.
fn is_quoted(text: &str, span: &Range<usize>) -> bool {
    let before = text[..span.start].chars().next_back();
    let after = text[span.end..].chars().next();
    before.is_some_and(shape::is_quotation) && after.is_some_and(shape::is_quotation)
}

fn free_name(label: &str, shape: SlotShape, names: &mut BTreeSet<String>) -> String {
    let label = label.to_lowercase();
    let words = label.split(|c: char| !c.is_alphanumeric());
    let words: Vec<_> = words.filter(|word| !word.is_empty()).take(3).collect();
    let base = match (words.is_empty(), shape) {
        (false, _) => words.join("_"),
        (true, SlotShape::Number) => "number".to_owned(),
        (true, SlotShape::Date) => "date".to_owned(),
        (true, SlotShape::Time) => "time".to_owned(),
        (true, SlotShape::Email) => "address".to_owned(),
        (true, SlotShape::Quoted) => "text".to_owned(),
        (true, SlotShape::Words) => "item".to_owned(),
    };
    let mut name = base.clone();
    let mut number = 2;
    while !names.insert(name.clone()) {
        name = format!("{base}_{number}");
        number += 1;
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_of_the_commands_own_words_is_no_value() {
        let used = UsedValue {
            value: "Readers".to_owned(),
            label: "Name".to_owned(),
        };
        let found = FoundSlots::of("Add the group \"Readers\" to the shop.", &[used]);
        let check =
            |label: &str, expected: bool| assert_eq!(found.says(label), expected, "{label}");
        check("Add group", true);
        check("ADD GROUP…", true);
        check("Group add", false);
        check("Add group Readers", false);
        check("Add user", false);
        check("", false);
    }
}
