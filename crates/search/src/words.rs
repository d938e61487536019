//! Splits text into the terms that are searched: its words, and what several of them say together,
//! so that "hive 77", "Anna Berg" and "3 March" are found among texts that have each of the words.

use std::collections::HashSet;

use crate::{
    dates::dates,
    stem::normal,
    tokens::{WordToken, tokens},
};

/// Words without a subject of their own. In a query they count only if there is nothing else.
const FUNCTION_WORDS: &str = " a about all am an and any are as at be been but by can could did do \
    does for from get give gives gave got had has have he her his how i if in into is it its me \
    much many my no not of on or our out please she should so tell than that the their them then \
    there these they this those to up us was we were what when where which who whom whose why will \
    with would you your \
    aber als am an auf aus bei bin das dass dem den der des die du ein eine einem einen einer er es \
    f\u{fc}r hat ich im in ist ja kann man mein meine mir mit nach nicht oder sich sie sind um und \
    uns von vor wann war warum was welche welcher wem wen wer wie wir wo zu zum zur ";

/// A term of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TermKind {
    Word,
    /// A meaning of several words together, or of another spelling.
    Joint,
}

/// Calls `each` with every word of a text, in lower case and without its ending.
///
/// A word is a sequence of letters or digits. Scripts that are written without spaces have no such
/// sequences: there each character is a word.
pub fn words(text: &str, mut each: impl FnMut(&str)) {
    terms(text, |term, kind| {
        if kind == TermKind::Word {
            each(term);
        }
    });
}

/// Calls `each` with every term of a text.
pub(crate) fn terms(text: &str, mut each: impl FnMut(&str, TermKind)) {
    for line in text.lines() {
        let tokens = tokens(line);
        let in_date = dates(&tokens, |date| each(date, TermKind::Joint));
        let has_lower = line.chars().any(char::is_lowercase);
        let mut before: Option<(&WordToken<'_>, String)> = None;
        for (number, token) in tokens.iter().enumerate() {
            if in_date.contains(&number) {
                before = None;
                continue;
            }
            if token.is_filler() && before.is_some() {
                each(&normal(token.text), TermKind::Word);
                continue;
            }
            let word = normal(token.text);
            each(&word, TermKind::Word);
            if let Some(spelled) = spelled_out(token.text) {
                each(&spelled, TermKind::Joint);
            }
            if has_lower && token.is_acronym() {
                each(&format!("^{}", token.text), TermKind::Joint);
            }
            if let Some((other, first)) = &before
                && (tokens[number - 1].is_filler() || is_close(token.gap))
                && belong_together(other, token)
            {
                each(&joint(first, &word), TermKind::Joint);
            }
            before = Some((token, word));
        }
    }
}

fn joint(first: &str, second: &str) -> String {
    format!("{first}\u{1}{second}")
}

/// Whether words with this text between them may belong together: no sentence or list ends there.
fn is_close(gap: &str) -> bool {
    gap.len() <= 3
        && gap
            .chars()
            .all(|character| " -_#/:\u{2013}\u{a0}".contains(character))
}

fn belong_together(one: &WordToken<'_>, other: &WordToken<'_>) -> bool {
    one.is_number()
        || other.is_number()
        || matches!(other.gap, "" | "-" | "_")
        || one.is_capitalised() && other.is_capitalised()
}

/// Returns the spelling of a word without umlauts, if it has any.
fn spelled_out(word: &str) -> Option<String> {
    let mut spelled = String::new();
    for character in word.chars().flat_map(char::to_lowercase) {
        match character {
            '\u{e4}' => spelled.push_str("ae"),
            '\u{f6}' => spelled.push_str("oe"),
            '\u{fc}' => spelled.push_str("ue"),
            other => spelled.push(other),
        }
    }
    (spelled.len() > word.len() || spelled.is_ascii() && !word.is_ascii()).then(|| normal(&spelled))
}

/// A term of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QueryTerm {
    pub(crate) term: String,
    /// Whether the query contains the term only as a combination of other terms. It counts where a
    /// text has it.
    pub(crate) is_joint: bool,
}

impl QueryTerm {
    /// Returns the weight of the term in a query, if this number of the notes has it. A small
    /// constant is added to the number of notes, or in a small vault no word would have any weight.
    /// Words together weigh more than each: another note may have them apart.
    pub(crate) fn tells(&self, occurs_in: u64, notes: u64) -> f64 {
        const ADDED: f64 = 20.0;
        let (all, some) = (notes as f64 + ADDED, occurs_in as f64);
        let rarity = (1.0 + (all - some + 0.5) / (some + 0.5)).ln();
        rarity * if self.is_joint { 2.0 } else { 1.0 }
    }
}

/// Returns the different terms of a query, in their order.
pub(crate) fn query_terms(query: &str) -> Vec<QueryTerm> {
    /// Maximum number of terms of a query; further ones are ignored.
    const MAX_TERMS: usize = 96;
    let mut found: Vec<QueryTerm> = Vec::new();
    let mut add = |term: String, is_joint| {
        if found.len() < MAX_TERMS && !found.iter().any(|known| known.term == term) {
            found.push(QueryTerm { term, is_joint });
        }
    };
    for line in query.lines() {
        let tokens = tokens(line);
        let tells = |token: &&WordToken<'_>| !is_function_word(token.text);
        let telling: Vec<_> = tokens.iter().filter(tells).copied().collect();
        terms(line, |term, kind| match kind {
            TermKind::Joint => add(term.to_owned(), true),
            TermKind::Word => {
                if telling.iter().any(|token| normal(token.text) == term) {
                    add(term.to_owned(), false);
                }
            }
        });
        // People do not write names and numbers as notes do.
        for pair in telling.windows(2) {
            add(joint(&normal(pair[0].text), &normal(pair[1].text)), true);
        }
    }
    if !found.iter().any(|term| !term.is_joint) {
        words(query, |word| {
            if found.len() < MAX_TERMS && !found.iter().any(|known| known.term == word) {
                found.push(QueryTerm {
                    term: word.to_owned(),
                    is_joint: false,
                });
            }
        });
    }
    found
}

fn is_function_word(word: &str) -> bool {
    // A capital is no part of these but at the beginning, where it tells nothing.
    let lower = word.to_lowercase();
    FUNCTION_WORDS.contains(&format!(" {lower} "))
}

/// The terms of a query, for counting those in a text.
#[derive(Debug, Clone)]
pub struct QueryWords(HashSet<String>);

impl QueryWords {
    pub fn new(query: &str) -> Self {
        Self(
            query_terms(query)
                .into_iter()
                .map(|term| term.term)
                .collect(),
        )
    }

    /// Whether the query is empty of words.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of different query terms that a text has.
    pub fn count_in(&self, text: &str) -> usize {
        let mut found = HashSet::new();
        terms(text, |term, _| {
            if let Some(known) = self.0.get(term) {
                found.insert(known.as_str());
            }
        });
        found.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_texts() {
        for (text, expected) in [
            ("", ""),
            ("Eve's e-mail: EVE@x.org", "eve e mail eve x org"),
            ("\u{c4}rger \u{dc}BER 42", "arger uber 42"),
            ("\u{6771}\u{4eac} tower", "\u{6771} \u{4eac} tower"),
            ("a\0b \u{202e}c", "a b c"),
            ("hive77 5G 019c4f2ab1", "hiv 77 5 g 019c4f2ab1"),
            (
                "paid 1,234.50 on 14 March 2026",
                "paid 1234.50 on march 2026",
            ),
        ] {
            let mut found = Vec::new();
            words(text, |word| found.push(word.to_owned()));
            assert_eq!(found.join(" "), expected, "{text}");
        }
        let mut found = Vec::new();
        words(&"x".repeat(10_000), |word| found.push(word.to_owned()));
        assert_eq!(found, ["x".repeat(40)]);
    }

    #[test]
    fn a_query_asks_for_what_its_words_say_together() {
        for (query, text, other) in [
            (
                "how much honey did hive 77 give?",
                "hive-77: 30 kg honey",
                "hive-78: 77 kg honey",
            ),
            ("hive number 77", "Hive 77", "hive 7, 77 frames"),
            (
                "where is Anna Berg",
                "Anna Berg: floor 2",
                "Anna Lind. Tom Berg.",
            ),
            ("who runs IT?", "IT is run by Eve", "who knows it"),
            ("phone of Mueller", "M\u{fc}ller 0664", "Muster 0664"),
            ("M\u{fc}ller", "Mueller", "Meier"),
            ("\u{6771}\u{4eac}", "\u{6771}\u{4eac}", "\u{4eac}\u{6771}"),
            ("on 3 March 2026", "2026-03-03", "2026-03-04"),
        ] {
            let wanted = QueryWords::new(query);
            assert!(wanted.count_in(text) > wanted.count_in(other), "{query}");
        }
        assert!(QueryWords::new("?!").is_empty());
        assert_eq!(QueryWords::new("who is it").count_in("who it is"), 3);
    }
}
