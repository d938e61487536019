//! Holes of commands, and their values.

use serde::{Deserialize, Serialize};

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
