//! Reading the keys of a table, with every problem noted where it stands.

use std::ops::Range;

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use gyrus_text::is_unseen;

use super::{error::Problems, error::shortened};

/// Maximum number of entries of one list.
const MAX_LIST: usize = 1_000;
/// Maximum number of characters of one text.
const MAX_TEXT: usize = 1_024;

pub(super) struct PolicyTable<'t> {
    pub(super) table: &'t DeTable<'t>,
    pub(super) span: Range<usize>,
    /// Name of the table in messages: `rule`.
    pub(super) name: String,
}

#[derive(Clone)]
pub(super) struct PlacedText<'t> {
    pub(super) text: &'t str,
    pub(super) span: Range<usize>,
}

impl<'t> PolicyTable<'t> {
    /// A table, or a problem.
    pub(super) fn of(
        problems: &mut Problems,
        name: &str,
        value: &'t Spanned<DeValue<'t>>,
    ) -> Option<Self> {
        let Some(table) = value.get_ref().as_table() else {
            problems.add(&value.span(), name, "must be a table");
            return None;
        };
        Some(Self {
            table,
            span: value.span(),
            name: name.to_owned(),
        })
    }

    /// Reports unknown keys.
    pub(super) fn check(&self, problems: &mut Problems, known: &[&str]) {
        for (key, _) in self.table {
            let given = key.get_ref().as_ref();
            if known.contains(&given) {
                continue;
            }
            let what = format!("is not a key of `{}`", self.name);
            match gyrus_text::closest(given, known.iter().copied()) {
                Some(near) => {
                    let hint = format!("did you mean `{near}`?");
                    problems.add_with_hint(&key.span(), given, what, hint);
                }
                None => {
                    let hint = format!("there are {}", known.join(", "));
                    problems.add_with_hint(&key.span(), given, what, hint);
                }
            }
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<&'t Spanned<DeValue<'t>>> {
        self.table.get(key)
    }

    /// Returns a text; `None` also after a problem.
    pub(super) fn text(&self, problems: &mut Problems, key: &str) -> Option<PlacedText<'t>> {
        text(problems, key, self.get(key)?)
    }

    pub(super) fn truth(&self, problems: &mut Problems, key: &str) -> Option<bool> {
        let value = self.get(key)?;
        let truth = value.get_ref().as_bool();
        if truth.is_none() {
            problems.add(&value.span(), key, "must be true or false");
        }
        truth
    }

    /// A text or a list of some.
    pub(super) fn texts(&self, problems: &mut Problems, key: &str) -> Vec<PlacedText<'t>> {
        let Some(value) = self.get(key) else {
            return Vec::new();
        };
        if value.get_ref().is_str() {
            return text(problems, key, value).into_iter().collect();
        }
        list(problems, key, value)
            .into_iter()
            .filter_map(|value| text(problems, key, value))
            .collect()
    }
}

/// Returns the values of a list that is not empty.
pub(super) fn list<'t>(
    problems: &mut Problems,
    key: &str,
    value: &'t Spanned<DeValue<'t>>,
) -> Vec<&'t Spanned<DeValue<'t>>> {
    let Some(values) = value.get_ref().as_array() else {
        problems.add(&value.span(), key, "must be a text or a list of texts");
        return Vec::new();
    };
    if values.is_empty() {
        let hint = "leave it out if it should not matter";
        problems.add_with_hint(&value.span(), key, "is an empty list", hint);
    }
    if values.len() > MAX_LIST {
        let what = format!("has {} entries; at most {MAX_LIST} fit", values.len());
        problems.add(&value.span(), key, what);
        return Vec::new();
    }
    values.iter().collect()
}

/// Returns a text that is neither empty nor contains unprintable characters.
pub(super) fn text<'t>(
    problems: &mut Problems,
    key: &str,
    value: &'t Spanned<DeValue<'t>>,
) -> Option<PlacedText<'t>> {
    let span = value.span();
    let Some(text) = value.get_ref().as_str() else {
        let what = format!("must be a text, not {}", kind(value.get_ref()));
        problems.add(&span, key, what);
        return None;
    };
    if text.trim().is_empty() {
        problems.add(&span, key, "is empty");
    } else if text.len() > MAX_TEXT {
        let what = format!("is longer than {MAX_TEXT} bytes");
        problems.add(&span, key, what);
    } else if let Some(unseen) = text.chars().find(|c| is_unseen(*c)) {
        let what = format!(
            "has a character that is not seen: U+{:04X}",
            u32::from(unseen)
        );
        problems.add(&span, key, what);
    } else {
        return Some(PlacedText { text, span });
    }
    None
}

fn kind(value: &DeValue) -> &'static str {
    match value {
        DeValue::Boolean(_) => "true or false",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Datetime(_) => "a date",
        DeValue::String(_) => "a text",
    }
}

/// Returns a word of a closed list, or reports a problem.
pub(super) fn word<T: Copy>(
    problems: &mut Problems,
    key: &str,
    given: &PlacedText,
    known: &[(&str, T)],
) -> Option<T> {
    if let Some((_, meant)) = known.iter().find(|(word, _)| *word == given.text) {
        return Some(*meant);
    }
    let words: Vec<&str> = known.iter().map(|(word, _)| *word).collect();
    let what = format!(
        "`{}` is none of {}",
        shortened(given.text),
        words.join(", ")
    );
    match gyrus_text::closest(given.text, words.iter().copied()) {
        Some(near) => {
            let hint = format!("did you mean `{near}`?");
            problems.add_with_hint(&given.span, key, what, hint);
        }
        None => problems.add(&given.span, key, what),
    }
    None
}
