//! Commands with holes.

use std::fmt;

use gyrus_text::is_unseen;
use serde::{Deserialize, Serialize};

use crate::{
    shape,
    slot::{Slot, SlotValues},
};

/// A text with slots, by their number from 0.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotTemplate(pub Vec<TemplatePart>);

/// A part of a [`SlotTemplate`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum TemplatePart {
    /// The value of a slot.
    Slot(usize),
    /// Constant words.
    Words(String),
}

/// Maximum length in bytes of a command that is compared.
const LONGEST: usize = 10_000;

/// Maximum number of slots' ends that are tried for one command.
const TRIES: usize = 200_000;

impl SlotTemplate {
    /// Creates a template without slots.
    pub fn fixed(words: impl Into<String>) -> Self {
        Self(vec![TemplatePart::Words(words.into())])
    }

    /// Returns the values of the slots if `command` fits this template in exactly one way.
    pub fn values(&self, slots: &[Slot], command: &str) -> Option<SlotValues> {
        if command.len() > LONGEST || command.chars().any(is_unseen) {
            return None;
        }
        // Spaces between words do not matter, but those of a quoted text do.
        let mut quoted = command.split(shape::is_quotation).skip(1).step_by(2);
        if quoted.any(|text| one_spaced(text) != text.trim()) {
            return None;
        }
        let command = one_spaced(command);
        let mut reading = TemplateMatcher {
            slots,
            values: vec![None; slots.len()],
            found: Vec::new(),
            tries: 0,
        };
        reading.read(&self.0, &command);
        match &reading.found[..] {
            [values] if reading.tries <= TRIES => Some(SlotValues(values.clone())),
            _ => None,
        }
    }

    /// Returns the text with these values in the slots.
    pub fn filled(&self, values: &SlotValues) -> String {
        let parts = self.0.iter().map(|part| match part {
            TemplatePart::Words(words) => words.as_str(),
            TemplatePart::Slot(number) => values.0.get(*number).map_or("", String::as_str),
        });
        parts.collect()
    }

    /// Returns the numbers of the slots in the template.
    pub fn slots(&self) -> impl Iterator<Item = usize> {
        self.0.iter().filter_map(|part| match part {
            TemplatePart::Slot(number) => Some(*number),
            TemplatePart::Words(_) => None,
        })
    }

    pub(crate) fn fixed_words(&self) -> String {
        let parts = self.0.iter().map(|part| match part {
            TemplatePart::Words(words) => words.as_str(),
            TemplatePart::Slot(_) => " ",
        });
        parts.collect()
    }

    /// Returns a text as a template: wherever the learned value of one of the slots stands in it as
    /// words of its own, there is that slot. `used` are the slots to look for.
    pub(crate) fn of(text: &str, slots: &[Slot], used: impl Fn(usize) -> bool) -> Self {
        let mut wanted: Vec<_> = (0..slots.len()).filter(|number| used(*number)).collect();
        wanted.sort_by_key(|number| std::cmp::Reverse(slots[*number].learned.len()));
        let mut parts = vec![TemplatePart::Words(text.to_owned())];
        for number in wanted {
            let value = &slots[number].learned;
            let whole = std::mem::take(&mut parts);
            for part in whole {
                match part {
                    TemplatePart::Words(words) => split(&words, value, number, &mut parts),
                    slot @ TemplatePart::Slot(_) => parts.push(slot),
                }
            }
        }
        Self(parts)
    }
}

/// Writes slots as `{1}`, counted from 1, for people.
impl fmt::Display for SlotTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in &self.0 {
            match part {
                TemplatePart::Words(words) => f.write_str(words)?,
                TemplatePart::Slot(number) => write!(f, "{{{}}}", number + 1)?,
            }
        }
        Ok(())
    }
}

fn split(words: &str, value: &str, number: usize, parts: &mut Vec<TemplatePart>) {
    let mut from = 0;
    for at in places(words, value) {
        if at > from {
            parts.push(TemplatePart::Words(words[from..at].to_owned()));
        }
        parts.push(TemplatePart::Slot(number));
        from = at + value.len();
    }
    if from < words.len() {
        parts.push(TemplatePart::Words(words[from..].to_owned()));
    }
}

/// Returns the positions at which a value occurs in a text as whole words, without overlaps.
pub(crate) fn places(text: &str, value: &str) -> Vec<usize> {
    let mut found = Vec::new();
    if value.is_empty() {
        return found;
    }
    let is_word = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
    let mut from = 0;
    while let Some(at) = text[from..].find(value).map(|at| from + at) {
        let end = at + value.len();
        let cut_before = is_word(text[..at].chars().next_back()) && is_word(value.chars().next());
        let cut_after = is_word(text[end..].chars().next()) && is_word(value.chars().next_back());
        if cut_before || cut_after {
            from = at + text[at..].chars().next().map_or(1, char::len_utf8);
        } else {
            found.push(at);
            from = end;
        }
    }
    found
}

pub(crate) fn one_spaced(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The search for the ways to read a command.
struct TemplateMatcher<'a> {
    slots: &'a [Slot],
    values: Vec<Option<String>>,
    found: Vec<Vec<String>>,
    tries: usize,
}

impl TemplateMatcher<'_> {
    fn read(&mut self, parts: &[TemplatePart], text: &str) {
        if self.found.len() > 1 || self.tries > TRIES {
            return;
        }
        match parts {
            [] if text.is_empty() => {
                self.found
                    .extend(self.values.iter().cloned().collect::<Option<Vec<_>>>());
            }
            [] => {}
            [TemplatePart::Words(words), rest @ ..] => {
                if let Some(after) = text.strip_prefix(words.as_str()) {
                    self.read(rest, after);
                }
            }
            [TemplatePart::Slot(number), rest @ ..] => self.slot(*number, rest, text),
        }
    }

    fn slot(&mut self, number: usize, rest: &[TemplatePart], text: &str) {
        let Some(slot) = self.slots.get(number) else {
            return;
        };
        for end in text.char_indices().map(|(at, c)| at + c.len_utf8()) {
            self.tries += 1;
            if self.tries > TRIES {
                return;
            }
            let value = &text[..end];
            if !shape::has_shape(value, slot) {
                continue;
            }
            let before = self.values[number].replace(value.to_owned());
            if before.as_deref().is_none_or(|before| before == value) {
                self.read(rest, &text[end..]);
            }
            self.values[number] = before;
        }
    }
}

#[cfg(test)]
#[path = "template_tests.rs"]
mod tests;
