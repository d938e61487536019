//! The skills that a goal nominates, in the order in which they are loaded, and the reasons.
//!
//! Triggers nominate. Where no trigger of any skill matches, one description may: the one that
//! shares enough words with the goal that are rare in everyday goals and in other descriptions.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use crate::{
    library::Library,
    skill::Skill,
    triggers::{COMMON_GOALS, TriggerMatch, TriggerSet, check_trigger},
};

/// Minimum number of letters of a word that identifies a skill's subject.
const MIN_WORD: usize = 4;

/// Minimum number of words that a goal and a description must share for the description alone to
/// load the skill.
const MIN_SHARED: usize = 3;

/// Minimum weight of the shared words together. A word of which no everyday goal and no other
/// description knows weighs 1.
const MIN_WEIGHT: f64 = 1.4;

/// Minimum ratio of the best description's score to the next one's.
const MIN_LEAD: f64 = 1.3;

/// Words that identify no subject.
const EMPTY_WORDS: &[&str] = &[
    "about", "after", "again", "also", "been", "before", "begin", "best", "each", "every", "find",
    "from", "give", "going", "good", "have", "help", "here", "into", "like", "list", "look",
    "make", "more", "most", "much", "must", "need", "nothing", "once", "only", "open", "other",
    "over", "part", "please", "question", "right", "said", "send", "several", "should", "show",
    "small", "some", "somebody", "such", "take", "tell", "than", "that", "their", "them", "then",
    "there", "these", "they", "thing", "this", "time", "under", "until", "used", "want", "went",
    "were", "what", "when", "where", "which", "will", "with", "without", "work", "write", "wrong",
    "your",
];

/// Number of everyday goals in which a word occurs.
static COMMON_WORDS: LazyLock<BTreeMap<String, u32>> = LazyLock::new(|| {
    let mut counts = BTreeMap::new();
    for word in COMMON_GOALS.lines().flat_map(words) {
        *counts.entry(word).or_default() += 1;
    }
    counts
});

/// A skill that a goal nominates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillChoice {
    pub skill: Skill,
    pub matches: Vec<TriggerMatch>,
    /// Words in both the goal and the description.
    pub shared: Vec<String>,
    /// Whether the person named the skill.
    pub by_name: bool,
}

impl SkillChoice {
    /// Returns how specific the match is: letters that a trigger matched, and shared words.
    fn specificity(&self) -> (bool, usize, usize) {
        let lengths = self.matches.iter().map(|one| one.matched.chars().count());
        (
            self.by_name,
            lengths.max().unwrap_or(0) + 4 * self.shared.len(),
            self.matches.len(),
        )
    }

    /// Returns the reason why the skill was nominated.
    pub fn why(&self) -> String {
        if self.by_name {
            return "you named it".to_owned();
        }
        let Some(best) = self.matches.iter().max_by_key(|one| one.matched.len()) else {
            return format!(
                "no trigger of any skill matches, and its description says {}",
                self.shared.join(", ")
            );
        };
        let mut why = format!(
            "\"{}\" matches its trigger `{}`",
            best.matched, best.trigger
        );
        if !self.shared.is_empty() {
            why.push_str(&format!(
                ", and its description says {}",
                self.shared.join(", ")
            ));
        }
        why
    }
}

impl Library {
    /// Returns the skills that fit a goal, the most specific first. A goal that begins with `/NAME`
    /// names one.
    pub fn nominate(&self, goal: &str) -> Vec<SkillChoice> {
        let triggers = TriggerSet::new(self.skills.iter().map(|skill| skill.triggers.as_slice()));
        let matches = triggers.matches(goal);
        let named = named(goal);
        let words = words(goal);
        let mut nominated = Vec::new();
        for (number, skill) in self.skills.iter().enumerate() {
            let matches = matches
                .iter()
                .filter(|one| one.skill == number && check_trigger(&one.trigger).is_ok());
            let choice = SkillChoice {
                matches: matches.cloned().collect(),
                shared: self::words(&skill.description)
                    .intersection(&words)
                    .cloned()
                    .collect(),
                by_name: named == Some(skill.name.as_str()),
                skill: skill.clone(),
            };
            if !choice.matches.is_empty() || choice.by_name {
                nominated.push(choice);
            }
        }
        if nominated.is_empty() {
            nominated.extend(self.by_description(&words));
        }
        // The order of the names decides between equals.
        nominated.sort_by_key(|choice| std::cmp::Reverse(choice.specificity()));
        nominated
    }

    /// Returns the skill whose description alone clearly fits a goal of these words, if any.
    fn by_description(&self, goal: &BTreeSet<String>) -> Option<SkillChoice> {
        let described = |skill: &Skill| words(&format!("{} {}", skill.name, skill.description));
        let descriptions: Vec<_> = self.skills.iter().map(described).collect();
        let weight = |word: &String| {
            let in_goals = COMMON_WORDS.get(word).copied().unwrap_or(0);
            let has = |words: &&BTreeSet<String>| words.contains(word);
            let in_others = descriptions.iter().filter(has).count().saturating_sub(1);
            1.0 / (1.0 + f64::from(in_goals) / 4.0) / (1.0 + in_others as f64 / 2.0)
        };
        let mut weighed: Vec<(f64, usize, Vec<String>)> = Vec::new();
        for (number, words) in descriptions.iter().enumerate() {
            let shared = words.intersection(goal);
            let shared: Vec<String> = shared
                .filter(|word| !EMPTY_WORDS.contains(&word.as_str()))
                .cloned()
                .collect();
            if !shared.is_empty() {
                weighed.push((shared.iter().map(weight).sum(), number, shared));
            }
        }
        weighed.sort_by(|one, other| other.0.total_cmp(&one.0));
        let next = weighed.get(1).map_or(0.0, |next| next.0);
        let (best, number, shared) = weighed.into_iter().next()?;
        let is_clear = shared.len() >= MIN_SHARED && best >= MIN_WEIGHT && best >= MIN_LEAD * next;
        is_clear.then(|| SkillChoice {
            skill: self.skills[number].clone(),
            matches: Vec::new(),
            shared,
            by_name: false,
        })
    }
}

fn named(goal: &str) -> Option<&str> {
    goal.trim_start()
        .strip_prefix('/')?
        .split_whitespace()
        .next()
}

/// Returns the words of a text that may name a subject, without plural endings.
fn words(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| !letter.is_alphanumeric());
    let words = words.map(str::to_lowercase);
    let stems = words.map(|word| match word.strip_suffix('s') {
        Some(stem) if stem.len() >= MIN_WORD => stem.to_owned(),
        _ => word,
    });
    stems
        .filter(|word| word.chars().count() >= MIN_WORD)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::skill::SkillPlace;

    fn skill(name: &str, description: &str, trigger: &str) -> Skill {
        Skill {
            name: name.to_owned(),
            description: description.to_owned(),
            instructions: "Do it.".to_owned(),
            triggers: vec![trigger.to_owned()],
            max_steps: None,
            permissions: Vec::new(),
            place: SkillPlace::User,
            path: PathBuf::from(name),
            digest: String::new(),
        }
    }

    #[test]
    fn the_most_specific_come_first() {
        let library = Library {
            skills: vec![
                skill("book", "Books tables.", "(?i)\\bbook\\b"),
                skill(
                    "compare-prices",
                    "Compares prices of things in several shops.",
                    "(?i)\\bcompare\\b.*\\bprices?\\b",
                ),
                skill("shop", "Orders from shops.", "(?i)\\bshops?\\b"),
                skill("tweet", "Posts tweets.", "(?i)\\btweet\\b"),
            ],
            ..Library::default()
        };
        let names = |choices: &[SkillChoice]| {
            choices
                .iter()
                .map(|one| one.skill.name.clone())
                .collect::<Vec<_>>()
        };
        let goal = "compare the prices of this book in three shops";
        let choices = library.nominate(goal);
        assert_eq!(names(&choices), ["compare-prices", "shop", "book"]);
        assert_eq!(
            choices[0].why(),
            "\"compare the prices\" matches its trigger `(?i)\\bcompare\\b.*\\bprices?\\b`, and its description says compare, price, shop"
        );
        let choices = library.nominate("/tweet hello from the book shop");
        assert_eq!(names(&choices)[0], "tweet");
        assert_eq!(choices[0].why(), "you named it");
        assert!(library.nominate("what is the weather").is_empty());
    }
}
