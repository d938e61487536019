//! Measures the similarity of two goals by their words, weighted by how rare they are among the lessons.

use std::{
    collections::BTreeSet,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use super::{Lesson, LessonBook};

/// Similarity from which a lesson is about the same kind of goal.
pub(super) const SIMILAR: f64 = 0.45;

/// Factor by which a lesson of the same folder, or of the same site, is preferred.
const SAME_PLACE: f64 = 1.2;

/// Maximum number of words of a goal that are compared.
const MAX_WORDS: usize = 64;

/// Words that carry no meaning in a goal.
const STOP_WORDS: &str = " a about all an and any are as at be by can could do for from get give \
    has have how i if in into is it its let make me my no not now of on one or our out per please \
    she should so some that the their them then there these this to two up us was we what when \
    where which who will with would you your \
    auf aus bei bitte das dem den der des die ein eine einem einen einer er es für ich im in ist \
    mein meine mir mit nach oder sie und von wie zu zum zur ";

/// The new run that lessons are sought for.
#[derive(Debug, Clone, Copy)]
pub struct LessonSubject<'a> {
    pub goal: &'a str,
    /// The folder in which the run works.
    pub workspace: &'a str,
    /// The host of the page at which the run begins; empty if it begins at none.
    pub site: &'a str,
}

/// Returns the words of a goal for comparisons, as numbers, sorted. Numbers are left out: they are
/// values that differ from one time to the next.
pub(super) fn words(goal: &str) -> Vec<u32> {
    let lower = goal.to_lowercase();
    let all = lower.split(|letter: char| !letter.is_alphanumeric());
    let telling = all.filter(|word| {
        word.chars().count() > 1
            && !word.chars().all(char::is_numeric)
            && !STOP_WORDS.contains(&format!(" {word} "))
    });
    let words: BTreeSet<u32> = telling.take(MAX_WORDS).map(number).collect();
    words.into_iter().collect()
}

/// Returns a hash of a word. When two share one, a lesson seems slightly more similar than it is.
fn number(word: &str) -> u32 {
    let mut hasher = DefaultHasher::new();
    word.hash(&mut hasher);
    hasher.finish() as u32
}

/// Returns the lessons that fit a new run best, best first, newest first among equal ones. There
/// are none for a goal whose last run could leave nothing out: they would only make its prompts
/// longer.
pub(super) fn best(book: &LessonBook, subject: &LessonSubject<'_>, most: usize) -> Vec<Lesson> {
    let given = book.lessons().filter(|record| !record.is_retired());
    let given: Vec<(&Lesson, Vec<u32>)> = given
        .map(|record| (&record.lesson, words(&record.lesson.goal)))
        .collect();
    let is_same = |goal: &str| goal.split_whitespace().eq(subject.goal.split_whitespace());
    let last = given.iter().rfind(|(lesson, _)| is_same(&lesson.goal));
    if last.is_some_and(|(lesson, _)| lesson.direct) {
        return Vec::new();
    }
    let weights = Weights::of(subject.goal, given.iter().map(|(_, words)| &**words));
    let mut scored: Vec<(f64, &Lesson)> = Vec::new();
    for (lesson, words) in given.iter().rev() {
        let similarity = weights.similarity(words);
        if similarity < SIMILAR {
            continue;
        }
        let same_site = !subject.site.is_empty() && lesson.site == subject.site;
        let places = i32::from(lesson.workspace == subject.workspace) + i32::from(same_site);
        scored.push((similarity * SAME_PLACE.powi(places), lesson));
    }
    scored.sort_by(|one, other| other.0.total_cmp(&one.0));
    let mut best: Vec<Lesson> = Vec::new();
    for (_, lesson) in scored {
        let says =
            |other: &Lesson| (&other.worked, &other.did_not) == (&lesson.worked, &lesson.did_not);
        if best.len() < most && !best.iter().any(says) {
            best.push(lesson.clone());
        }
    }
    best
}

pub(super) struct Weights {
    words: Vec<(u32, f64)>,
    total: f64,
}

impl Weights {
    pub(super) fn of<'a>(goal: &str, lessons: impl Iterator<Item = &'a [u32]>) -> Self {
        let mut words: Vec<(u32, usize)> = words(goal).into_iter().map(|word| (word, 0)).collect();
        let mut count = 0;
        for lesson in lessons {
            count += 1;
            for (word, with) in &mut words {
                *with += usize::from(lesson.binary_search(word).is_ok());
            }
        }
        let rarity = |with: usize| (1.0 + (count as f64 + 1.0) / (with as f64 + 1.0)).ln();
        let words: Vec<(u32, f64)> = words
            .into_iter()
            .map(|(word, with)| (word, rarity(with)))
            .collect();
        let total = words.iter().map(|(_, weight)| weight).sum();
        Self { words, total }
    }

    /// Returns the similarity of a lesson's goal, from 0 to 1; 0 if they share a single word among
    /// several.
    pub(super) fn similarity(&self, lesson: &[u32]) -> f64 {
        let shared: Vec<f64> = self
            .words
            .iter()
            .filter(|(word, _)| lesson.binary_search(word).is_ok())
            .map(|(_, weight)| *weight)
            .collect();
        let smaller = self.words.len().min(lesson.len());
        if shared.is_empty() || shared.len() < 2 && smaller > 1 {
            return 0.0;
        }
        let of_goal = shared.iter().sum::<f64>() / self.total;
        let of_lesson = shared.len() as f64 / lesson.len() as f64;
        2.0 * of_goal * of_lesson / (of_goal + of_lesson)
    }
}
