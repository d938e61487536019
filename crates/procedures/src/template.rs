//! Commands with holes.

use serde::{Deserialize, Serialize};

/// A text with slots, by their number from 0.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Template(pub Vec<TemplatePart>);

/// A part of a [`Template`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum TemplatePart {
    /// The value of a slot.
    Slot(usize),
    /// Fixed words.
    Words(String),
}

/// A hole in a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slot {
    /// A name for people: `quantity`, `name`, from the label of the field that it went into.
    pub name: String,
    /// The value of the learned run.
    pub learned: String,
    /// The form that every value must have.
    pub shape: SlotShape,
}

/// The form of a slot's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SlotShape {
    /// Digits.
    Number,
    /// A date: `2031-06-24`.
    Date,
    /// A time: `09:40`.
    Time,
    /// An e-mail address.
    Email,
    /// Any text between quotation marks of the command.
    Quoted,
    /// A few words without quotation marks.
    Words,
}

/// The values of a command's slots, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotValues(pub Vec<String>);

impl Template {
    /// Returns the values of the slots if `command` equals this template outside of them and can be
    /// read in one way only.
    pub fn values(&self, slots: &[Slot], command: &str) -> Option<SlotValues> {
        let _ = (slots, command);
        None
    }

    /// Returns the text with these values in the slots.
    pub fn filled(&self, values: &SlotValues) -> String {
        let parts = self.0.iter().map(|part| match part {
            TemplatePart::Words(words) => words.as_str(),
            TemplatePart::Slot(number) => values.0.get(*number).map_or("", String::as_str),
        });
        parts.collect()
    }
}
