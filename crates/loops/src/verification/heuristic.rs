//! A heuristic comparison of the screen where no model can be asked: changes of the picture (30 of
//! 100), changes of the elements (30), and whether it contains words of the goal (40).

use std::collections::BTreeMap;

use gyrus_contract::View;
use serde::Serialize;

use super::check::text_of;

/// Minimum number of differing cells, of the 64 of a hash, at which pictures count as different.
const ANOTHER_PICTURE: u32 = 6;

/// Minimum length of a compared word.
const LETTERS: usize = 4;

/// The result of the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Guess {
    /// The total, from 0 to 100.
    pub(super) score: u8,
    /// The points for the picture, of 30; without pictures they go to the elements.
    pub(super) visual: u8,
    /// The points for the elements, of 30.
    pub(super) structural: u8,
    /// The points for the words, of 40.
    pub(super) words: u8,
}

/// Compares the earlier and the present screen.
pub(super) fn guess(goal: &str, before: &View, now: &View) -> Guess {
    let structural = changed_elements(before, now);
    let visual = match (before.hash, now.hash) {
        (Some(one), Some(other)) => {
            f64::from((one ^ other).count_ones().min(ANOTHER_PICTURE)) / f64::from(ANOTHER_PICTURE)
        }
        _ => structural,
    };
    let parts = [
        (visual, 30.0),
        (structural, 30.0),
        (speaks_of(goal, now), 40.0),
    ];
    // At most 40.
    let [visual, structural, words] = parts.map(|(share, most)| (share * most).round() as u8);
    Guess {
        score: visual + structural + words,
        visual,
        structural,
        words,
    }
}

/// Returns the share of elements in one of the views only; half of them makes another page.
fn changed_elements(before: &View, now: &View) -> f64 {
    let mut counts: BTreeMap<(&str, &str, Option<&str>), i64> = BTreeMap::new();
    for (view, step) in [(before, 1), (now, -1)] {
        for element in &view.elements {
            let key = (&*element.role, &*element.name, element.value.as_deref());
            *counts.entry(key).or_default() += step;
        }
    }
    let differ: i64 = counts.values().map(|count| count.abs()).sum();
    let all = before.elements.len() + now.elements.len();
    // Counts of elements.
    let share = differ as f64 / all.max(1) as f64;
    (share * 2.0).min(1.0)
}

/// Returns the share of the goal's words that are on the page now; an apparent error halves it.
fn speaks_of(goal: &str, now: &View) -> f64 {
    const ERRORS: &[&str] = &[
        "error",
        "failed",
        "failure",
        "invalid",
        "not found",
        "denied",
        "try again",
        "fehler",
        "ungültig",
        "erreur",
        "échec",
    ];
    let said = text_of(now).to_lowercase();
    let goal = goal.to_lowercase();
    let of_no_address = goal.split_whitespace().filter(|word| !word.contains("://"));
    let mut words: Vec<String> = of_no_address
        .flat_map(|word| word.split(|c: char| !c.is_alphanumeric()))
        .filter(|word| word.chars().count() >= LETTERS)
        .map(str::to_owned)
        .collect();
    words.sort();
    words.dedup();
    let found = words
        .iter()
        .filter(|word| said.contains(word.as_str()))
        .count();
    // Counts of words.
    let share = match words.len() {
        0 => 0.5,
        all => found as f64 / all as f64,
    };
    if ERRORS.iter().any(|error| said.contains(error)) {
        share / 2.0
    } else {
        share
    }
}
