//! The size of a goal, by rules that a person can read: no model, no state, the same answer for the
//! same words.
//!
//! A goal counts as multi-step unless its words say otherwise, because that costs least where it is
//! wrong. The goal may be untrusted text: it chooses among three sizes, and nothing else.

mod words;

use gyrus_contract::Intent;

use self::words::{BROAD, LOOKS, POLITE, SAYS_ALL, THEN, WIDE, WORLD};

/// Maximum number of bytes of a goal that are examined.
const LOOKED_AT: usize = 8 << 10;

/// Maximum number of words of a simple goal.
const SIMPLE_WORDS: usize = 25;

/// Maximum words of a goal that may be answered without tools, beside the text that it is about.
const SAYING_WORDS: usize = 60;

/// Words above which a goal that thinks out work is complex, and those above which any is.
const LONG: (usize, usize) = (40, 250);

/// Number of steps that make a goal complex.
const MANY_STEPS: usize = 4;

/// The size of a goal, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassifiedGoal {
    pub intent: Intent,
    /// The reason, as a clause to follow "because".
    pub because: String,
    /// Whether the goal can be answered without tools.
    pub needs_no_tools: bool,
    /// Whether words of the goal decided; otherwise the most frequent size is assumed.
    pub is_sure: bool,
}

/// Returns the size of a goal.
pub fn classify(goal: &str) -> ClassifiedGoal {
    let goal = Goal::new(gyrus_text::first_bytes(goal, LOOKED_AT));
    let found = |intent, because: String| ClassifiedGoal {
        intent,
        because,
        needs_no_tools: false,
        is_sure: true,
    };
    if let Some(because) = goal.complex() {
        return found(Intent::Complex, because);
    }
    let steps = goal.steps();
    if let Some(because) = goal.says_all().filter(|_| steps == 0) {
        return ClassifiedGoal {
            needs_no_tools: true,
            ..found(Intent::Simple, because)
        };
    }
    let short = goal.count <= SIMPLE_WORDS && goal.lines <= 2;
    let (broad, wide) = (goal.any(BROAD), goal.any(WIDE));
    if let Some(look) = goal
        .begins(LOOKS)
        .filter(|_| short && steps == 0 && broad.is_none())
    {
        return found(
            Intent::Simple,
            format!("it asks for one thing (`{}`)", shown(look)),
        );
    }
    if steps > 0 {
        let steps = gyrus_text::counted(steps + 1, "step");
        return found(Intent::MultiStep, format!("it names {steps}"));
    }
    if let Some(word) = broad.or(wide) {
        return found(Intent::MultiStep, format!("it says `{}`", shown(word)));
    }
    ClassifiedGoal {
        is_sure: false,
        ..found(Intent::MultiStep, "as most goals are".to_owned())
    }
}

struct Goal {
    /// The text in lower case.
    text: String,
    /// The words of the text, each between spaces.
    words: String,
    count: usize,
    lines: usize,
    items: usize,
    names_a_place: bool,
}

impl Goal {
    fn new(goal: &str) -> Self {
        let text = goal.to_lowercase();
        let words: Vec<&str> = text
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .collect();
        let is_item = |line: &str| {
            let rest = line.trim_start();
            let number = rest.trim_start_matches(|c: char| c.is_ascii_digit());
            rest.starts_with(['-', '*', '•'])
                || (number.len() < rest.len() && number.starts_with(['.', ')']))
        };
        Self {
            count: words.len() + text.chars().filter(|c| is_ideographic(*c)).count() / 2,
            words: format!(" {} ", words.join(" ")),
            lines: text.lines().filter(|line| !line.trim().is_empty()).count(),
            items: text.lines().filter(|line| is_item(line)).count(),
            names_a_place: text.contains('`') || text.split_whitespace().any(is_place),
            text,
        }
    }

    fn any(&self, table: &'static str) -> Option<&'static str> {
        entries(table).find(|entry| self.count_of(entry) > 0)
    }

    /// Returns the entry of the table with which the goal begins, after words of politeness. In
    /// scripts without spaces a question may end with it.
    fn begins(&self, table: &'static str) -> Option<&'static str> {
        let mut words = self.words.as_str();
        while let Some(rest) = entries(POLITE).find_map(|entry| {
            let rest = words.strip_prefix(' ')?.strip_prefix(entry)?;
            rest.starts_with(' ').then_some(rest)
        }) {
            words = rest;
        }
        let begins = |entry: &&str| match entry.strip_suffix('*') {
            _ if is_unspaced(entry) => self.text.contains(*entry),
            Some(stem) => words[1..].starts_with(stem),
            None => words[1..]
                .strip_prefix(*entry)
                .is_some_and(|rest| rest.starts_with(' ')),
        };
        // The longest says most.
        let found = entries(table).filter(begins);
        found.max_by_key(|entry| entry.len())
    }

    /// Counts how often the goal contains an entry of a list of words.
    fn count_of(&self, entry: &str) -> usize {
        match entry.strip_suffix('*') {
            _ if is_unspaced(entry) => self.text.matches(entry).count(),
            Some(stem) => self.words.matches(&format!(" {stem}")).count(),
            None => self.words.matches(&format!(" {entry} ")).count(),
        }
    }

    fn steps(&self) -> usize {
        let joined = entries(THEN)
            .map(|entry| self.count_of(entry))
            .sum::<usize>();
        joined + self.items.saturating_sub(1) + self.text.matches(';').count()
    }

    /// Counts the words for open-ended work in the goal.
    fn broad_words(&self) -> usize {
        let is_broad = |word: &&str| {
            entries(BROAD).any(|entry| match entry.strip_suffix('*') {
                Some(stem) => word.starts_with(stem),
                None => *word == entry,
            })
        };
        self.words.split(' ').filter(is_broad).count()
    }

    fn complex(&self) -> Option<String> {
        let (some, many) = LONG;
        let steps = self.steps();
        let broad = self.any(BROAD);
        let wide = self.any(WIDE);
        if let (Some(broad), Some(wide)) = (broad, wide) {
            return Some(format!("it says `{}` of `{}`", shown(broad), shown(wide)));
        }
        let is_more = self.count > some || steps >= 2 || self.broad_words() > 1;
        if let Some(word) = broad.filter(|_| is_more) {
            return Some(format!(
                "it says `{}`, and more than one thing",
                shown(word)
            ));
        }
        if self.items >= MANY_STEPS || steps > MANY_STEPS {
            let steps = gyrus_text::counted(steps + 1, "step");
            return Some(format!("it names {steps}"));
        }
        (self.count > many).then(|| format!("it has {} words", self.count))
    }

    /// Returns the reason why the goal can be answered without tools, if it can.
    fn says_all(&self) -> Option<String> {
        if self.names_a_place || self.any(WORLD).is_some() || self.count > SAYING_WORDS {
            return None;
        }
        if is_arithmetic(&self.text) {
            return Some("it is a calculation".to_owned());
        }
        let entry = self.begins(SAYS_ALL)?;
        Some(format!("it says all that is needed (`{}`)", shown(entry)))
    }
}

fn entries(table: &'static str) -> impl Iterator<Item = &'static str> {
    table.split(',').map(str::trim)
}

/// Returns an entry in readable form: `refactor…` for every word that begins so.
fn shown(entry: &str) -> String {
    entry.replace('*', "…")
}

/// Whether a word of a goal is a path, a file's name or an address.
fn is_place(word: &str) -> bool {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '/' | '~' | '.'));
    let word = word.trim_end_matches('.');
    let is_file = word.rsplit_once('.').is_some_and(|(name, end)| {
        let is_end = (1..=5).contains(&end.len()) && end.bytes().all(|b| b.is_ascii_alphanumeric());
        is_end && end.bytes().any(|b| b.is_ascii_alphabetic()) && name.len() > 1
    });
    word.contains("://")
        || word.contains('@')
        || word.starts_with(['/', '~'])
        || word.starts_with("./")
        || word.matches('/').count() > 1
        || is_file
}

/// Whether a goal is digits and operators alone.
fn is_arithmetic(text: &str) -> bool {
    let has = |set: &str| text.contains(|c| set.contains(c));
    let is_part = |c: char| c.is_ascii_digit() || c.is_whitespace() || "+-*/×÷^%().,=?".contains(c);
    text.chars().all(is_part) && has("0123456789") && has("+-*/×÷^%")
}

fn is_unspaced(entry: &str) -> bool {
    entry.chars().any(is_ideographic)
}

fn is_ideographic(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}')
}

#[cfg(test)]
mod tests;
