//! Matches a goal against a thousand triggers: one by one, as one set of regular expressions, and
//! by [`TriggerSet`]. Prints the median time of each in microseconds, and the time to prepare it.
#![expect(clippy::print_stdout, reason = "it is a benchmark")]

use std::{hint::black_box, time::Instant};

use gyrus_skills::{COMMON_GOALS, TriggerSet};
use regex::{Regex, RegexSet};

/// Number of triggers.
const TRIGGERS: usize = 1_000;

/// Returns triggers of the kinds that people write, of words that stand in everyday goals.
fn triggers() -> Vec<String> {
    let words: Vec<&str> = COMMON_GOALS
        .split_whitespace()
        .filter(|word| word.len() > 4 && word.chars().all(char::is_alphabetic))
        .collect();
    let word = |number: usize| words[(number * 7_919) % words.len()];
    let of = |number: usize| match number % 3 {
        0 => format!("(?i)\\b{}\\b", word(number)),
        1 => format!("(?i)\\b{}\\b.*\\b{}s?\\b", word(number), word(number + 1)),
        _ => format!("(?i)\\b({}|{})\\b", word(number), word(number + 2)),
    };
    (0..TRIGGERS).map(of).collect()
}

/// Returns the median of what each goal takes, in microseconds.
fn median(mut look: impl FnMut(&str) -> usize) -> f64 {
    let mut took: Vec<f64> = Vec::new();
    for _ in 0..20 {
        for goal in COMMON_GOALS.lines() {
            let since = Instant::now();
            black_box(look(goal));
            took.push(since.elapsed().as_secs_f64() * 1e6);
        }
    }
    took.sort_by(f64::total_cmp);
    took[took.len() / 2]
}

fn main() {
    let triggers = triggers();
    let since = Instant::now();
    let set = TriggerSet::new(triggers.iter().map(std::slice::from_ref));
    let prepared = since.elapsed();
    let first = Instant::now();
    black_box(set.matches("compare the prices of three laptops"));
    let first = first.elapsed();
    println!(
        "by their words: {:.0} µs, prepared in {prepared:?}, the first goal took {first:?}",
        median(|goal| set.matches(goal).len())
    );
    let since = Instant::now();
    let one_by_one: Vec<Regex> = triggers
        .iter()
        .map(|one| Regex::new(one).expect("it is valid"))
        .collect();
    let prepared = since.elapsed();
    println!(
        "one by one: {:.0} µs, prepared in {prepared:?}",
        median(|goal| one_by_one.iter().filter(|one| one.is_match(goal)).count())
    );
    let since = Instant::now();
    let all = RegexSet::new(&triggers).expect("they are valid");
    let prepared = since.elapsed();
    println!(
        "one set: {:.0} µs, prepared in {prepared:?}",
        median(|goal| all.matches(goal).iter().count())
    );
    let same = COMMON_GOALS.lines().all(|goal| {
        let found = set.matches(goal).into_iter().map(|one| one.skill);
        found.eq(all.matches(goal).iter())
    });
    println!("same matches: {same}");
}
