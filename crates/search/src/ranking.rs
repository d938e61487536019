//! Ranks texts in memory by relevance to one question, without an index: BM25 (Robertson and Zaragoza, "The Probabilistic
//! Relevance Framework: BM25 and Beyond", 2009), with the usual constants and an inverse document
//! frequency that is never negative.

use std::collections::{BTreeMap, BTreeSet};

use crate::words::{TermKind, query_terms, terms};

/// Saturation of repeated words: the lower, the less a repetition counts.
const K1: f64 = 1.2;

/// Strength of the normalisation by length, which lowers the score of long texts.
const B: f64 = 0.75;

/// Texts ranked for one question; each is read once.
#[derive(Default)]
pub struct Ranking {
    wanted: BTreeSet<String>,
    /// For each text, the count of each wanted word, and the text's length in words.
    texts: Vec<(BTreeMap<String, u32>, usize)>,
}

impl Ranking {
    /// Creates a ranking for this question.
    pub fn new(question: &str) -> Self {
        Self {
            wanted: query_terms(question)
                .into_iter()
                .map(|term| term.term)
                .collect(),
            texts: Vec::new(),
        }
    }

    /// Whether the question contains no words.
    pub fn asks_nothing(&self) -> bool {
        self.wanted.is_empty()
    }

    /// Adds the next text.
    pub fn add(&mut self, text: &str) {
        let mut counts = BTreeMap::new();
        let mut length = 0;
        terms(text, |word, kind| {
            length += usize::from(kind == TermKind::Word);
            if self.wanted.contains(word) {
                *counts.entry(word.to_owned()).or_default() += 1;
            }
        });
        self.texts.push((counts, length));
    }

    /// Returns the texts with any of the words, by number in the order of [`add`](Self::add), best
    /// first; equal ones in this order.
    pub fn best(&self) -> Vec<usize> {
        let count = self.texts.len() as f64;
        let total: usize = self.texts.iter().map(|(_, length)| length).sum();
        let average = (total as f64 / count.max(1.0)).max(1.0);
        let weights = self.wanted.iter().map(|word| {
            let having = self.texts.iter();
            let having = having
                .filter(|(counts, _)| counts.contains_key(word))
                .count() as f64;
            (word, (1.0 + (count - having + 0.5) / (having + 0.5)).ln())
        });
        let weights: Vec<_> = weights.collect();
        let score = |(counts, length): &(BTreeMap<String, u32>, usize)| {
            let held_back = K1 * (1.0 - B + B * *length as f64 / average);
            let parts = weights.iter().filter_map(|(word, weight)| {
                let often = f64::from(*counts.get(*word)?);
                Some(weight * often * (K1 + 1.0) / (often + held_back))
            });
            parts.sum::<f64>()
        };
        let scored = self.texts.iter().map(score).enumerate();
        let mut scored: Vec<_> = scored.filter(|(_, score)| *score > 0.0).collect();
        scored.sort_by(|(one, best), (other, next)| next.total_cmp(best).then(one.cmp(other)));
        scored.into_iter().map(|(number, _)| number).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_words_and_short_texts_count_more() {
        let texts = [
            "the cat sat on the mat",
            "the dog sat on the log, and the dog was the only dog",
            "a resistor limits the current",
            "Resistor! A resistor is a part. It has two ends, a value and a tolerance, and more.",
            "",
        ];
        for (question, expected) in [
            ("resistor", &[2, 3][..]),
            ("Dog, resistor?", &[1, 2, 3]),
            ("the cat", &[0]),
            ("the", &[1, 0, 2]),
            ("unheard", &[]),
            ("", &[]),
            ("?!", &[]),
        ] {
            let mut ranking = Ranking::new(question);
            texts.iter().for_each(|text| ranking.add(text));
            assert_eq!(ranking.best(), expected, "{question}");
        }
    }
}
