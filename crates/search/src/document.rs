//! A text as the index takes it: the words of its fields, and what it links to.

use std::collections::HashMap;

use crate::words::{TermKind, terms};

/// Number of fields of a text with separate weights: title, headings, tags and body.
pub(crate) const FIELDS: usize = 4;

/// Prefix of the words that represent links; no word of a text has it.
const LINK: char = '\0';

/// IndexField of a text, weighted separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexField {
    Title,
    Heading,
    /// A tag of the text.
    Tag,
    /// All other text.
    Body,
}

/// The words of a text.
#[derive(Debug, Clone, Default)]
pub struct IndexDocument {
    pub(crate) counts: HashMap<String, [u32; FIELDS]>,
    pub(crate) lengths: [u32; FIELDS],
}

impl IndexDocument {
    /// Adds the words of a part of the document.
    pub fn add(&mut self, field: IndexField, text: &str) {
        let field = field as usize;
        terms(text, |word, kind| {
            self.lengths[field] += u32::from(kind == TermKind::Word);
            match self.counts.get_mut(word) {
                Some(count) => count[field] += 1,
                None => {
                    let mut count = [0; FIELDS];
                    count[field] = 1;
                    self.counts.insert(word.to_owned(), count);
                }
            }
        });
    }

    /// Adds a link to a name, or another feature that texts can share. Case does not count.
    pub fn link(&mut self, name: &str) {
        let counts = self.counts.entry(link_word(name)).or_default();
        counts[IndexField::Body as usize] = 1;
    }
}

/// Returns the word that represents a link to a name.
pub(crate) fn link_word(name: &str) -> String {
    format!("{LINK}{}", name.to_lowercase())
}

/// Returns the name by which others link to the text at a path: its last part, without the ending
/// of notes.
pub fn name_of(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.strip_suffix(".md").unwrap_or(name)
}
