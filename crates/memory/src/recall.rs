//! Recall: the pieces of notes that have words of a question, the best first, each with its source.

use std::{cmp::Reverse, mem, time::Instant};

use gyrus_search::{Index, NoteHit, QueryWords};
use parking_lot::MutexGuard;
use serde::Serialize;

use crate::{
    kept::WarmIndex,
    note::{Note, NotePiece},
    vault::{Vault, VaultError},
    watch::VaultWatch,
};

/// Maximum length of a returned piece in characters.
const MAX_PIECE_CHARS: usize = 1_500;

const PIECES_OF_A_NOTE: usize = 2;

/// Share of the best note's coverage of a query that another note must reach, or it is about
/// something else: another hive, another office.
const LEAST_OF_BEST: f64 = 0.5;

/// Share of the best note's score that another note must reach: where all notes have most of the
/// words, the rest decides.
const LEAST_OF_SCORE: f64 = 0.1;

/// A part of a note that matches a query.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NoteExcerpt {
    /// Path of the note below the vault.
    pub note: String,
    /// The heading above the part; empty before the first one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub heading: String,
    /// Number of the part's first line, counted from 1.
    pub line: usize,
    /// The text, cut if it is long.
    pub text: String,
    /// Whether a run wrote the part after it had read untrusted text.
    pub is_untrusted: bool,
    /// The run that wrote the part; empty for a person.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// Score of the note; higher is better.
    pub score: f64,
}

impl NoteExcerpt {
    /// Returns the place and the origin of the part, in one line.
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
    ) -> Result<Vec<NoteExcerpt>, VaultError> {
        if !self.exists() {
            return Ok(Vec::new());
        }
        self.searcher()?.recall(query, most, now_ms)
    }

    /// Returns the memory opened for several searches, as the notes are now. What is opened stays
    /// open for the next one; it waits for one that another thread holds.
    ///
    /// # Errors
    /// The notes or the index cannot be read.
    pub fn searcher(&self) -> Result<Searcher<'_>, VaultError> {
        let mut kept = self.kept.lock();
        // What could not be followed is found by looking.
        if !self.follow(&mut kept).unwrap_or(false) {
            self.look(&mut kept)?;
        }
        let WarmIndex { index, vectors, .. } = &mut *kept;
        let embedded = match (&self.embedder, index) {
            (Some(embedder), Some(index)) => {
                let content = |path: &str| self.bytes(path).ok().flatten();
                let notes = index.stamps().collect();
                vectors.refresh(&self.state, &**embedder, notes, content)
            }
            _ => Ok(()),
        };
        Ok(Searcher {
            vault: self,
            kept,
            words_alone: embedded.err(),
        })
    }

    /// Updates the index with the changes that the watch reports. Returns whether that was
    /// possible.
    fn follow(&self, kept: &mut WarmIndex) -> Result<bool, VaultError> {
        if kept.is_old() || self.identity() != kept.identity {
            return Ok(false);
        }
        let (Some(index), Some(changed)) = (
            kept.index.as_mut(),
            kept.watch.as_ref().and_then(VaultWatch::changed),
        ) else {
            return Ok(false);
        };
        if changed.is_empty() {
            return Ok(true);
        }
        let states = self.states(&changed, &mut kept.watch)?;
        index
            .refresh_some(&states, |path| self.for_index(path))
            .map_err(|error| self.state_error(error))?;
        Ok(true)
    }

    /// Compares all notes with the index, and starts to watch them.
    fn look(&self, kept: &mut WarmIndex) -> Result<(), VaultError> {
        let before = mem::take(kept);
        let opened = match before.index {
            Some(index) => Ok(index),
            None => Index::open(&self.state.join("index")),
        };
        let mut index = opened.map_err(|error| self.state_error(error))?;
        let (identity, since) = (self.identity(), Instant::now());
        let mut watch = VaultWatch::new();
        let notes = self.notes(&mut watch)?;
        index
            .refresh(&notes, |path| self.for_index(path))
            .map_err(|error| self.state_error(error))?;
        *kept = WarmIndex {
            index: Some(index),
            watch,
            identity,
            since: Some(since),
            vectors: before.vectors,
        };
        Ok(())
    }
}

/// The memory, opened for several searches.
pub struct Searcher<'a> {
    pub(crate) vault: &'a Vault,
    kept: MutexGuard<'a, WarmIndex>,
    /// Reason why notes are found only by words in spite of an embedder.
    pub words_alone: Option<String>,
}

impl Searcher<'_> {
    /// Does the same as [`Vault::recall`], without a check for changed notes.
    pub fn recall(
        &self,
        query: &str,
        most: usize,
        now_ms: i64,
    ) -> Result<Vec<NoteExcerpt>, VaultError> {
        let hits = self.hits(query, most, now_ms)?;
        let wanted = QueryWords::new(query);
        let mut recalled = Vec::new();
        for hit in hits {
            // It may be gone since.
            if let Ok(Some(content)) = self.vault.bytes(&hit.path) {
                recalled.extend(best_pieces(
                    &Note::new(&hit.path, &content),
                    &wanted,
                    hit.score,
                ));
            }
        }
        Ok(recalled)
    }

    /// Returns the notes with words of the query, the best first.
    pub(crate) fn hits(
        &self,
        query: &str,
        most: usize,
        now_ms: i64,
    ) -> Result<Vec<NoteHit>, VaultError> {
        let found = self.kept.index.as_ref();
        let found = found.map(|index| index.search(query, most, now_ms));
        let found = found.transpose();
        let found = found.map_err(|error| self.vault.state_error(error))?;
        let mut hits = found.unwrap_or_default();
        if let Some(embedder) = &self.vault.embedder
            && let Ok(fused) = self.kept.vectors.fuse(&**embedder, query, hits.clone())
        {
            hits = fused;
            hits.truncate(most);
        }
        let most = |of: fn(&NoteHit) -> f64| hits.iter().map(of).fold(0.0, f64::max);
        let coverage = LEAST_OF_BEST * most(|hit| hit.coverage);
        let score = LEAST_OF_SCORE * most(|hit| hit.score);
        hits.retain(|hit| hit.coverage >= coverage && hit.score >= score);
        Ok(hits)
    }
}

fn best_pieces(note: &Note, wanted: &QueryWords, score: f64) -> Vec<NoteExcerpt> {
    let mut pieces = pieces_with(note, wanted);
    pieces.truncate(PIECES_OF_A_NOTE);
    let recalled = pieces.into_iter().map(|piece| NoteExcerpt {
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

/// Returns the pieces of a note with these words, those with most of them first. If only the title
/// has them, the beginning of the note is returned.
pub(crate) fn pieces_with<'n>(note: &'n Note, wanted: &QueryWords) -> Vec<NotePiece<'n>> {
    let counted = note.pieces().into_iter().map(|piece| {
        (
            wanted.count_in(&format!("{}\n{}", piece.heading, piece.text)),
            piece,
        )
    });
    let mut pieces: Vec<_> = counted.collect();
    pieces.sort_by_key(|(found, _)| Reverse(*found));
    if pieces.first().is_some_and(|(found, _)| *found > 0) {
        pieces.retain(|(found, _)| *found > 0);
    } else {
        pieces.truncate(1);
    }
    pieces.into_iter().map(|(_, piece)| piece).collect()
}
