//! The skills that are loaded for a goal, and the reasons.

use std::collections::BTreeSet;

use crate::{
    library::Library,
    skill::Skill,
    triggers::{TriggerMatch, TriggerSet, check_trigger},
};

/// Maximum number of skills that load by themselves.
const MAX_LOADED: usize = 2;

/// Minimum number of letters of a word that tells a skill's subject.
const MIN_WORD: usize = 4;

/// A skill that a goal nominates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillChoice {
    /// The skill.
    pub skill: Skill,
    /// The triggers that match.
    pub matches: Vec<TriggerMatch>,
    /// Words that the goal and the description share.
    pub shared: Vec<String>,
    /// Whether the person named it.
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

    /// Returns the reason why it was nominated, in words.
    pub fn why(&self) -> String {
        if self.by_name {
            return "you named it".to_owned();
        }
        let Some(best) = self.matches.iter().max_by_key(|one| one.matched.len()) else {
            return "nothing matches".to_owned();
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

/// The skills that a goal nominates.
#[derive(Debug, Default)]
pub struct SkillChoices {
    /// Those that are loaded, the most specific first.
    pub loaded: Vec<SkillChoice>,
    /// Those that were nominated and are less specific.
    pub passed_over: Vec<SkillChoice>,
    /// Those that were nominated and left out by their names.
    pub left_out: Vec<SkillChoice>,
}

impl Library {
    /// Returns the skills for a goal. A goal that begins with `/NAME` names one; skills of the names
    /// in `without` are left out.
    pub fn choose(&self, goal: &str, without: &[String]) -> SkillChoices {
        let triggers = TriggerSet::new(self.skills.iter().map(|skill| skill.triggers.as_slice()));
        let matches = triggers.matches(goal);
        let named = named(goal);
        let words = words(goal);
        let mut choices = SkillChoices::default();
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
            if choice.matches.is_empty() && !choice.by_name {
                continue;
            }
            if without.contains(&skill.name) {
                choices.left_out.push(choice);
            } else {
                choices.loaded.push(choice);
            }
        }
        // The order of the names decides between equals.
        choices
            .loaded
            .sort_by_key(|choice| std::cmp::Reverse(choice.specificity()));
        choices.passed_over = choices
            .loaded
            .split_off(choices.loaded.len().min(MAX_LOADED));
        choices
    }
}

/// Returns the name that a goal begins with, as `/NAME`.
fn named(goal: &str) -> Option<&str> {
    goal.trim_start()
        .strip_prefix('/')?
        .split_whitespace()
        .next()
}

/// Returns the words of a text that may tell a subject, without the ends that tell its number.
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
    fn the_most_specific_two_are_loaded() {
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
        let choices = library.choose(goal, &[]);
        assert_eq!(names(&choices.loaded), ["compare-prices", "shop"]);
        assert_eq!(names(&choices.passed_over), ["book"]);
        assert_eq!(
            choices.loaded[0].why(),
            "\"compare the prices\" matches its trigger `(?i)\\bcompare\\b.*\\bprices?\\b`, and its description says compare, price, shop"
        );
        let choices = library.choose(goal, &["compare-prices".to_owned()]);
        assert_eq!(names(&choices.left_out), ["compare-prices"]);
        assert_eq!(names(&choices.loaded), ["shop", "book"]);
        let choices = library.choose("/tweet hello from the book shop", &[]);
        assert_eq!(names(&choices.loaded)[0], "tweet");
        assert_eq!(choices.loaded[0].why(), "you named it");
        assert!(library.choose("what is the weather", &[]).loaded.is_empty());
    }
}
