//! Recall: the pieces of notes that have words of a question, the best first, each with its source.

use std::{cmp::Reverse, collections::HashSet};

use serde::Serialize;

use crate::{
    index::{Index, query_words},
    note::Note,
    vault::{Vault, VaultError},
};

/// Maximum characters of a piece that are returned.
const MAX_PIECE_CHARS: usize = 1_500;

/// Maximum number of pieces of one note.
const PIECES_OF_A_NOTE: usize = 2;

/// A part of a note that was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Recalled {
    /// Path of the note below the vault.
    pub note: String,
    /// The heading above the part; empty before the first one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub heading: String,
    /// Number of its first line, counted from 1.
    pub line: usize,
    /// The text, cut if it is long.
    pub text: String,
    /// Whether a run wrote it that had read untrusted text.
    pub is_untrusted: bool,
    /// The run that wrote it; empty if a person did.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// Score of the note; higher is better.
    pub score: f64,
}

impl Recalled {
    /// Returns where it stands and where it came from, in one line.
    pub fn place(&self) -> String {
        let mut place = format!("{}, line {}", self.note, self.line);
        if !self.heading.is_empty() {
            place.push_str(&format!(", under `{}`", self.heading));
        }
        if self.is_untrusted {
            place.push_str(", untrusted");
        }
        if !self.source.is_empty() {
            place.push_str(&format!(" ({})", self.source));
        }
        place
    }
}

impl Vault {
    /// Returns the parts of at most `most` notes that have words of `query`, the best notes first.
    /// Changes of notes since the last time are taken into the index first.
    ///
    /// # Errors
    /// The notes or the index cannot be read.
    pub fn recall(
        &self,
        query: &str,
        most: usize,
        now_ms: i64,
    ) -> Result<Vec<Recalled>, VaultError> {
        if !self.exists() {
            return Ok(Vec::new());
        }
        self.searcher()?.recall(query, most, now_ms)
    }

    /// Returns the memory opened for several searches, as the notes are now.
    ///
    /// # Errors
    /// The notes or the index cannot be read.
    pub fn searcher(&self) -> Result<Searcher<'_>, VaultError> {
        let folder = self.state.join("index");
        let mut index = Index::open(&folder).map_err(|error| self.state_error(error))?;
        let notes = self.notes()?;
        index
            .refresh(&notes, |path| self.for_index(path))
            .map_err(|error| self.index_error(error))?;
        Ok(Searcher { vault: self, index })
    }
}

/// The memory, opened for several searches.
pub struct Searcher<'a> {
    vault: &'a Vault,
    index: Index,
}

impl Searcher<'_> {
    /// Returns the same as [`Vault::recall`], but does not look for changes of notes.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn recall(
        &self,
        query: &str,
        most: usize,
        now_ms: i64,
    ) -> Result<Vec<Recalled>, VaultError> {
        let hits = self
            .index
            .search(query, most, now_ms)
            .map_err(|error| self.vault.index_error(error))?;
        let words: HashSet<String> = query_words(query).into_iter().collect();
        let mut recalled = Vec::new();
        for hit in hits {
            // It may be gone since.
            if let Ok(Some(content)) = self.vault.bytes(&hit.path) {
                recalled.extend(best_pieces(
                    &Note::new(&hit.path, &content),
                    &words,
                    hit.score,
                ));
            }
        }
        Ok(recalled)
    }
}

fn best_pieces(note: &Note, words: &HashSet<String>, score: f64) -> Vec<Recalled> {
    let mut pieces: Vec<_> = note
        .pieces()
        .into_iter()
        .map(|piece| {
            let mut found = HashSet::new();
            for text in [piece.heading, piece.text] {
                crate::index::words(text, |word| {
                    if words.contains(word) {
                        found.insert(word.to_owned());
                    }
                });
            }
            (found.len(), piece)
        })
        .collect();
    // Where only the title has the words, the note's beginning stands for it.
    pieces.sort_by_key(|(found, _)| Reverse(*found));
    if pieces.first().is_some_and(|(found, _)| *found > 0) {
        pieces.retain(|(found, _)| *found > 0);
    } else {
        pieces.truncate(1);
    }
    pieces.truncate(PIECES_OF_A_NOTE);
    let recalled = pieces.into_iter().map(|(_, piece)| Recalled {
        note: note.path.clone(),
        heading: piece.heading.to_owned(),
        line: piece.line,
        text: gyrus_text::shorten(piece.text.trim_end(), MAX_PIECE_CHARS).into_owned(),
        is_untrusted: piece.is_untrusted,
        source: piece.source.to_owned(),
        score,
    });
    recalled.collect()
}
