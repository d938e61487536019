//! Context: what a run is given of the memory when it starts.
//!
//! Some notes are always given; the others are those about the goal, the best first, until the
//! budget is full or nothing else is about it. Only text that is not untrusted is given unasked:
//! the rest is counted, and `recall` returns it.

use gyrus_search::QueryWords;
use gyrus_text::{one_line, tokens};

use crate::{
    note::{Note, NotePiece},
    recall::{Searcher, pieces_with},
    run_notes::is_own,
    vault::{Vault, VaultError},
};

/// Maximum tokens of the memory in a run's attachments, including the introduction.
pub const MAX_CONTEXT_TOKENS: usize = 15_000;

/// Maximum tokens of the memory's digest, including the introduction.
pub const MAX_DIGEST_TOKENS: usize = 300;

/// Tokens reserved for the introduction and a remark about further notes.
const INTRODUCTION: usize = 120;

/// Notes that every run is given: who the person is, and what they are at.
const CORE: [&str; 3] = [
    "Identity/user-profile.md",
    "Current Status.md",
    "Active Tasks.md",
];

/// Maximum tokens of one such note.
const MAX_CORE_TOKENS: usize = 2_000;

/// Maximum number of other notes that are considered.
const CANDIDATES: usize = 400;

/// Share of the goal's information that a note's words must cover, or it is not about the goal.
const LEAST_COVERAGE: f64 = 0.2;

/// Maximum number of pieces of one note, and maximum tokens of a piece.
const PIECES_OF_A_NOTE: usize = 3;
const MAX_PIECE_TOKENS: usize = 1_000;

/// Fewest tokens for which a piece is cut to fit; less would tell nothing.
const LEAST_CUT: usize = 24;

/// Maximum characters of a piece in the digest.
const DIGEST_CHARS: usize = 160;

/// Mark at the end of a text that was cut.
const CUT: &str = " […]";

/// The part of the memory for a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemoryContext {
    /// The pieces, each with its source; empty if there is none.
    pub text: String,
    /// The pieces in a few lines.
    pub digest: String,
    /// Number of notes with these pieces.
    pub notes: u32,
}

impl Vault {
    /// Returns the part of the memory for a run with this goal, within `most` tokens and
    /// [`MAX_CONTEXT_TOKENS`]; `None` if that is nothing.
    ///
    /// # Errors
    /// The notes or the index cannot be read.
    pub fn context(
        &self,
        goal: &str,
        most: usize,
        now_ms: i64,
    ) -> Result<Option<MemoryContext>, VaultError> {
        if !self.exists() {
            return Ok(None);
        }
        let context = self.searcher()?.context(goal, most, now_ms)?;
        Ok((context.notes > 0).then_some(context))
    }
}

impl Searcher<'_> {
    /// Does the same as [`Vault::context`], without a check for changed notes.
    pub fn context(
        &self,
        goal: &str,
        most: usize,
        now_ms: i64,
    ) -> Result<MemoryContext, VaultError> {
        let mut filling = ContextBuilder {
            left: most.min(MAX_CONTEXT_TOKENS).saturating_sub(INTRODUCTION),
            ..ContextBuilder::default()
        };
        for path in CORE {
            // What cannot be read now is found by nothing else either.
            if let Ok(Some(content)) = self.vault.bytes(path) {
                let note = Note::new(path, &content);
                filling.note(&note, &note.pieces(), MAX_CORE_TOKENS);
            }
        }
        let wanted = QueryWords::new(goal);
        for hit in self.hits(goal, CANDIDATES, now_ms)? {
            if filling.is_full() {
                break;
            }
            if hit.coverage < LEAST_COVERAGE || CORE.contains(&hit.path.as_str()) {
                continue;
            }
            if let Ok(Some(content)) = self.vault.bytes(&hit.path) {
                let note = Note::new(&hit.path, &content);
                let pieces = pieces_with(&note, &wanted);
                let pieces = &pieces[..pieces.len().min(PIECES_OF_A_NOTE)];
                filling.note(&note, pieces, MAX_PIECE_TOKENS);
            }
        }
        Ok(filling.ended())
    }
}

#[derive(Default)]
struct ContextBuilder {
    context: MemoryContext,
    left: usize,
    used_by_digest: usize,
    /// Number of pieces that were left out because they are untrusted.
    untrusted: usize,
}

impl ContextBuilder {
    fn is_full(&self) -> bool {
        self.left < LEAST_CUT
    }

    fn note(&mut self, note: &Note, pieces: &[NotePiece<'_>], most: usize) {
        let before = self.left;
        for piece in pieces {
            if piece.is_untrusted {
                self.untrusted += 1;
            } else {
                self.piece(note, piece, most);
            }
        }
        self.context.notes += u32::from(self.left < before);
    }

    fn piece(&mut self, note: &Note, piece: &NotePiece<'_>, most: usize) {
        let mut place = format!("[{}, line {}", one_line(&note.path), piece.line);
        if !piece.heading.is_empty() && !piece.text.trim_start().starts_with('#') {
            place.push_str(&format!(", under `{}`", one_line(piece.heading)));
        }
        place.push_str("]\n");
        let around = tokens(&place) + tokens("\n\n");
        let room = self.left.min(most).saturating_sub(around);
        // That a run like this one ended tells the next one nothing; `recall` finds it.
        let lines = piece.text.split_inclusive('\n');
        let text: String = lines.filter(|line| !is_own(line)).collect();
        let text = text.trim();
        let is_only_about_runs =
            text.len() < piece.text.trim().len() && text.lines().all(|line| line.starts_with('#'));
        let Some(text) = cut_to(text, room).filter(|_| !is_only_about_runs) else {
            return;
        };
        self.left = self.left.saturating_sub(around + tokens(&text));
        self.context.text.push_str(&format!("{place}{text}\n\n"));
        let beginning = gyrus_text::first_chars(&text, 2 * DIGEST_CHARS);
        let words: Vec<_> = beginning.split_whitespace().collect();
        let line = format!(
            "- {}: {}\n",
            one_line(note.name()),
            gyrus_text::shorten(&words.join(" "), DIGEST_CHARS)
        );
        let size = tokens(&line);
        if self.used_by_digest + size <= MAX_DIGEST_TOKENS - INTRODUCTION {
            self.used_by_digest += size;
            self.context.digest.push_str(&line);
        }
    }

    fn ended(mut self) -> MemoryContext {
        if self.untrusted > 0 && self.context.notes > 0 {
            let more = format!(
                "{} about this left out because untrusted; `recall` finds it.\n",
                gyrus_text::counted(self.untrusted, "part")
            );
            self.context.text.push_str(&more);
            self.context.digest.push_str(&more);
        }
        self.context
    }
}

/// Returns the text within this many tokens, cut at the end of a line or of a word; `None` if too
/// little would be left of it.
fn cut_to(text: &str, most: usize) -> Option<String> {
    if tokens(text) <= most {
        return Some(text.to_owned());
    }
    let room = most
        .checked_sub(tokens(CUT))
        .filter(|room| *room >= LEAST_CUT)?;
    let (mut end, mut used) = (0, 0);
    for line in text.split_inclusive('\n') {
        let size = tokens(line);
        if used + size > room {
            break;
        }
        used += size;
        end += line.len();
    }
    // A line of its own may be long; most of the room is not to be wasted on it.
    if used < room * 9 / 10 {
        for word in text[end..].split_inclusive(char::is_whitespace) {
            let size = tokens(word);
            if used + size > room {
                break;
            }
            used += size;
            end += word.len();
        }
    }
    let kept = text[..end].trim_end();
    (!kept.is_empty()).then(|| format!("{kept}{CUT}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_at_lines_or_words() {
        assert_eq!(cut_to("one two", 2).as_deref(), Some("one two"));
        assert_eq!(cut_to("one two", 1), None);
        let lines = "a line of words\n".repeat(40);
        let cut = cut_to(&lines, 60).unwrap();
        assert!(
            cut.ends_with("words […]") && tokens(&cut) <= 60 && tokens(&cut) >= 50,
            "{cut}"
        );
        let words = "word ".repeat(1_000);
        let cut = cut_to(&words, 100).unwrap();
        assert!(tokens(&cut) <= 100 && tokens(&cut) >= 95);
        assert_eq!(cut_to(&"x".repeat(10_000), 100), None);
    }
}
