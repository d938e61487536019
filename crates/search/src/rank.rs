//! Scores of notes: BM25 with weighted fields, and what raises them.
//!
//! The formula is BM25F (Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and
//! Beyond", 2009): the counts of a word in the fields are weighted and normalised by the lengths of
//! the fields, then added, and only the sum is saturated.

use crate::document::FIELDS;

/// Saturation: the larger it is, the longer more occurrences of a word matter.
const K1: f64 = 1.2;

/// Weights of title, headings, tags and body.
const WEIGHTS: [f64; FIELDS] = [4.0, 2.0, 3.0, 1.0];

/// Influence of the length of a field, from 0 to 1.
const LENGTH_MATTERS: [f64; FIELDS] = [0.3, 0.5, 0.0, 0.75];

/// Number of the best notes by words whose order recency and links may change.
pub(crate) const REORDERED: usize = 100;

/// Facts about all notes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Statistics {
    pub(crate) notes: u64,
    /// Number of words of each field in all notes.
    pub(crate) lengths: [u64; FIELDS],
}

/// The weight of one word.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WordWeight {
    rarity: f64,
    means: [f64; FIELDS],
}

impl WordWeight {
    /// Returns the weight of a word that occurs in this many notes.
    pub(crate) fn new(occurs_in: u64, statistics: &Statistics) -> Self {
        let (all, some) = (statistics.notes as f64, occurs_in as f64);
        let rarity = (1.0 + (all - some + 0.5) / (some + 0.5)).ln();
        let mean = |length: u64| (length as f64 / all.max(1.0)).max(1.0);
        Self {
            rarity,
            means: statistics.lengths.map(mean),
        }
    }

    /// Returns the word's part of a note's score.
    pub(crate) fn score(&self, counts: [u32; FIELDS], lengths: [u32; FIELDS]) -> f64 {
        let mut weighted = 0.0;
        for field in 0..FIELDS {
            if counts[field] == 0 {
                continue;
            }
            let matters = LENGTH_MATTERS[field];
            let length = f64::from(lengths[field]) / self.means[field];
            let norm = 1.0 - matters + matters * length;
            weighted += WEIGHTS[field] * f64::from(counts[field]) / norm;
        }
        self.rarity * weighted / (K1 + weighted)
    }
}

/// Returns the total weight of a query's words. Of a long query only the highest weights count,
/// because no note has all of its words.
pub(crate) fn told_by_all(mut words: Vec<f64>) -> f64 {
    const COUNTED: usize = 8;
    words.sort_by(|one, other| other.total_cmp(one));
    let sum: f64 = words.iter().take(COUNTED).sum();
    sum.max(f64::MIN_POSITIVE)
}

/// Returns the factor by which links to a note, and its age, raise its score: at most by a quarter
/// for a note of today, half of that after 30 days, and a tenth for each doubling of its links.
pub(crate) fn boost(links: u64, age_days: f64) -> f64 {
    let recency = 0.25 * (-age_days.max(0.0) / 30.0).exp2();
    let linked = 0.1 * (1.0 + links as f64).log2();
    1.0 + recency + linked.min(1.0)
}
