//! Triggers: regular expressions that match the goals that a skill is for. A thousand of them cost
//! less than a millisecond: one look finds which of the words that they need a goal contains, and
//! only those triggers are compiled and tried.

use std::sync::OnceLock;

use aho_corasick::AhoCorasick;
use regex::{Regex, RegexBuilder};

use self::needs::{MAX_NESTING, folded, needed_words};

mod needs;

/// Maximum length of a trigger in characters.
const MAX_TRIGGER: usize = 500;

/// Maximum size of a compiled trigger in bytes.
const MAX_COMPILED: usize = 1 << 20;

/// Share of everyday goals, as a divisor, above which a trigger matches too much.
const TOO_COMMON: usize = 5;

/// Two hundred everyday goals, one per line.
pub const COMMON_GOALS: &str = include_str!("common_goals.txt");

/// Checks that a trigger is valid and does not match too much.
///
/// # Errors
/// The reason why it is refused.
pub fn check_trigger(trigger: &str) -> Result<(), String> {
    let regex = compile(trigger)?;
    if regex.is_match("") {
        return Err(format!("the trigger `{trigger}` matches everything"));
    }
    let goals = COMMON_GOALS.lines().filter(|goal| !goal.is_empty());
    let count = goals.clone().count();
    let matched = goals.filter(|goal| regex.is_match(goal)).count();
    if matched * TOO_COMMON > count {
        return Err(format!(
            "the trigger `{trigger}` matches {matched} of {count} everyday goals; at most a fifth may match"
        ));
    }
    Ok(())
}

fn compile(trigger: &str) -> Result<Regex, String> {
    if trigger.chars().count() > MAX_TRIGGER {
        return Err(format!("a trigger is longer than {MAX_TRIGGER} characters"));
    }
    let mut builder = RegexBuilder::new(trigger);
    builder
        .size_limit(MAX_COMPILED)
        .dfa_size_limit(MAX_COMPILED)
        .nest_limit(MAX_NESTING);
    builder.build().map_err(|error| {
        let error = error.to_string();
        let last = error.lines().last().unwrap_or_default();
        format!(
            "invalid trigger `{trigger}`: {}",
            last.trim_start_matches("error: ")
        )
    })
}

/// A trigger that matches a goal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriggerMatch {
    /// Number of the skill, in the order given.
    pub skill: usize,
    pub trigger: String,
    /// The part of the goal that the trigger matches.
    pub matched: String,
}

struct Trigger {
    skill: usize,
    source: String,
    compiled: OnceLock<Option<Regex>>,
}

/// The triggers of several skills.
pub struct TriggerSet {
    triggers: Vec<Trigger>,
    /// Finds words, with the triggers that need each.
    words: Option<AhoCorasick>,
    of_word: Vec<usize>,
    /// Triggers that need no certain word.
    always: Vec<usize>,
}

impl TriggerSet {
    /// Prepares the triggers of skills. Each is compiled when a goal first has a word that it needs.
    pub fn new<'a>(skills: impl IntoIterator<Item = &'a [String]>) -> Self {
        let mut set = Self {
            triggers: Vec::new(),
            words: None,
            of_word: Vec::new(),
            always: Vec::new(),
        };
        let mut words = Vec::new();
        for (skill, triggers) in skills.into_iter().enumerate() {
            for source in triggers {
                let number = set.triggers.len();
                match needed_words(source) {
                    Some(needed) => {
                        set.of_word.extend(needed.iter().map(|_| number));
                        words.extend(needed);
                    }
                    None => set.always.push(number),
                }
                set.triggers.push(Trigger {
                    skill,
                    source: source.clone(),
                    compiled: OnceLock::new(),
                });
            }
        }
        match AhoCorasick::new(&words) {
            Ok(found) => set.words = Some(found),
            // Too many words for one automaton: each trigger is tried.
            Err(_) => set.always = (0..set.triggers.len()).collect(),
        }
        set
    }

    /// Returns the triggers that match a goal, in their order.
    pub fn matches(&self, goal: &str) -> Vec<TriggerMatch> {
        let mut tried = self.always.clone();
        if let Some(words) = &self.words {
            let goal = folded(goal);
            let found = words.find_overlapping_iter(&goal);
            tried.extend(found.map(|word| self.of_word[word.pattern().as_usize()]));
        }
        tried.sort_unstable();
        tried.dedup();
        let matched = tried.into_iter().filter_map(|number| {
            let trigger = &self.triggers[number];
            let regex = trigger
                .compiled
                .get_or_init(|| compile(&trigger.source).ok());
            Some(TriggerMatch {
                skill: trigger.skill,
                trigger: trigger.source.clone(),
                matched: regex.as_ref()?.find(goal)?.as_str().to_owned(),
            })
        });
        matched.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: [&str; 9] = ["ab", "abc", "c", "straße", "k", "ΣΑΣ", "i", "cab", "ſk"];

    /// Returns a random trigger like those that people write, or that they should not.
    fn trigger(random: &mut fastrand::Rng) -> String {
        let mut word = || *random.choice(&WORDS).unwrap();
        let (one, two) = (word(), word());
        match random.u8(..9) {
            0 => one.to_owned(),
            1 => format!("(?i){one}"),
            2 => format!("(?i)\\b{one}\\b"),
            3 => format!("({one}|{two})"),
            4 => format!("(?i)({one}|{two}|)"),
            5 => format!("{one}.*{two}"),
            6 => format!("(?i)({one})?{two}"),
            7 => format!("[{one}]{two}+"),
            _ => format!("(?:{one}){{2}}\\s*{two}"),
        }
    }

    #[test]
    fn the_matches_are_those_of_one_by_one() {
        let mut random = fastrand::Rng::with_seed(11);
        let letters: Vec<char> = "abcABC ßẞſkKKiIİıΣσςste".chars().collect();
        let mut matched = 0;
        for _ in 0..200 {
            let triggers: Vec<String> = (0..random.usize(..12))
                .map(|_| trigger(&mut random) + &trigger(&mut random))
                .collect();
            let compiled: Vec<_> = triggers
                .iter()
                .map(|trigger| compile(trigger).ok())
                .collect();
            let set = TriggerSet::new(triggers.iter().map(std::slice::from_ref));
            for _ in 0..10 {
                let goal: String = (0..random.usize(..24))
                    .map(|_| *random.choice(&letters).unwrap())
                    .collect();
                let found: Vec<usize> = set.matches(&goal).iter().map(|one| one.skill).collect();
                let matches =
                    |regex: &Option<Regex>| regex.as_ref().is_some_and(|one| one.is_match(&goal));
                let one_by_one: Vec<usize> = (0..compiled.len())
                    .filter(|number| matches(&compiled[*number]))
                    .collect();
                assert_eq!(found, one_by_one, "{triggers:?} {goal:?}");
                matched += found.len();
            }
        }
        assert!(matched > 500, "{matched}");
    }

    #[test]
    fn hostile_triggers_are_refused() {
        let long = "a".repeat(MAX_TRIGGER + 1);
        let deep = "(".repeat(60) + &")".repeat(60);
        for trigger in [
            "",
            ".*",
            "(?i)\\b\\w+\\b",
            "the|a|my",
            "(",
            "a{1000}{1000}",
            "\\p{L}{500}{500}",
            "x*",
            &long,
            &deep,
            "(?:){4294967295}",
        ] {
            assert!(check_trigger(trigger).is_err(), "{trigger}");
        }
        for trigger in [
            "(?i)\\btweet\\b",
            "(?i)compare .* prices?",
            "発票",
            "(?i)\\binvoices?\\b",
        ] {
            assert_eq!(check_trigger(trigger), Ok(()));
        }
        assert_eq!(COMMON_GOALS.lines().count(), 200);
    }
}
