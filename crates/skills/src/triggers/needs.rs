//! The words of which a text must contain at least one, that a regular expression can match it.

use regex_syntax::{
    ParserBuilder,
    hir::{Class, Hir, HirKind},
};

/// Maximum number of words that are searched for to find one trigger.
const MAX_WORDS: usize = 32;

/// Maximum depth of groups in a trigger.
pub(super) const MAX_NESTING: u32 = 40;

/// Minimum length of a word in bytes; shorter ones are in most goals.
const MIN_WORD: usize = 2;

/// Maximum number of characters of a class that may all be one letter.
const MAX_CLASS: usize = 8;

/// Returns a text in lower case. Characters that a regular expression takes for one letter of
/// either case are the same then.
pub(super) fn folded(text: &str) -> String {
    text.chars().flat_map(fold).collect()
}

fn fold(letter: char) -> impl Iterator<Item = char> {
    letter.to_uppercase().flat_map(char::to_lowercase)
}

/// Returns words in lower case of which each text that the trigger matches contains at least one;
/// `None` if there are none, or too many.
pub(super) fn needed_words(trigger: &str) -> Option<Vec<String>> {
    let hir = ParserBuilder::new()
        .nest_limit(MAX_NESTING)
        .build()
        .parse(trigger)
        .ok()?;
    let words = needed(&hir)?;
    (words.len() <= MAX_WORDS).then_some(words)
}

fn needed(hir: &Hir) -> Option<Vec<String>> {
    if let Some(word) = exactly(hir) {
        return (word.len() >= MIN_WORD).then(|| vec![word]);
    }
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) | HirKind::Class(_) | HirKind::Literal(_) => None,
        HirKind::Capture(capture) => needed(&capture.sub),
        HirKind::Repetition(repetition) if repetition.min > 0 => needed(&repetition.sub),
        HirKind::Repetition(_) => None,
        HirKind::Alternation(parts) => {
            let mut words = Vec::new();
            for part in parts {
                words.extend(needed(part)?);
            }
            Some(words)
        }
        HirKind::Concat(parts) => in_sequence(parts),
    }
}

/// Returns the best words of a sequence: parts that are one word each are joined.
fn in_sequence(parts: &[Hir]) -> Option<Vec<String>> {
    let mut best: Option<Vec<String>> = None;
    let shortest = |words: &Vec<String>| words.iter().map(String::len).min().unwrap_or(0);
    let mut offer = |words: Vec<String>| {
        if best
            .as_ref()
            .is_none_or(|best| shortest(&words) > shortest(best))
        {
            best = Some(words);
        }
    };
    let mut joined = String::new();
    for part in parts {
        match exactly(part) {
            Some(word) => joined.push_str(&word),
            None => {
                if joined.len() >= MIN_WORD {
                    offer(vec![std::mem::take(&mut joined)]);
                }
                joined.clear();
                if let Some(words) = needed(part) {
                    offer(words);
                }
            }
        }
    }
    if joined.len() >= MIN_WORD {
        offer(vec![joined]);
    }
    best
}

/// Returns the word without case that an expression matches, if it matches no other one. Bounds of
/// words match nothing and part nothing.
fn exactly(hir: &Hir) -> Option<String> {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => Some(String::new()),
        HirKind::Literal(literal) => std::str::from_utf8(&literal.0).ok().map(folded),
        HirKind::Class(Class::Unicode(class)) => {
            let letters = class.iter().flat_map(|range| range.start()..=range.end());
            let mut letters = letters
                .take(MAX_CLASS + 1)
                .map(|letter| fold(letter).collect::<String>());
            let first = letters.next()?;
            let mut count = 1;
            let same = letters.all(|other| {
                count += 1;
                other == first
            });
            (same && count <= MAX_CLASS).then_some(first)
        }
        HirKind::Capture(capture) => exactly(&capture.sub),
        HirKind::Concat(parts) => parts.iter().map(exactly).collect(),
        HirKind::Class(Class::Bytes(_)) | HirKind::Repetition(_) | HirKind::Alternation(_) => None,
    }
}
