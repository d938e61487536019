//! Topics of events, and patterns that match them.

use std::{fmt, str::FromStr, sync::Arc};

/// Maximum number of words of a topic or of a pattern.
pub const TOPIC_WORDS: usize = 16;

/// Maximum length of a word, in bytes.
pub const WORD_BYTES: usize = 64;

/// First word of the topics of replies.
const PRIVATE: &str = "_reply";

/// A text is not a valid topic or pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid {what} `{given}`: {reason}")]
pub struct TopicError {
    /// `topic` or `topic pattern`.
    pub what: &'static str,
    /// The invalid text, cut to 80 characters.
    pub given: String,
    pub reason: String,
}

/// The subject of an event: words of letters, digits, `_`, `-` and `:`, joined by dots, such as
/// `build.finished` or `user:approve:context`. Cloning is cheap.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Topic(Arc<str>);

impl Topic {
    /// Returns the topic as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the words of the topic, at least one.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.0.split('.')
    }

    /// Returns the topic with one more word.
    ///
    /// # Errors
    /// Returns an error when the word is invalid or one too many.
    pub fn join(&self, word: &str) -> Result<Self, TopicError> {
        format!("{self}.{word}").parse()
    }

    pub(crate) fn private(conversation: uuid::Uuid) -> Self {
        Self(format!("{PRIVATE}.{conversation}").into())
    }

    /// Whether events on the topic reach only the conversation that the topic was made for.
    pub fn is_private(&self) -> bool {
        let rest = self.0.strip_prefix(PRIVATE);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }
}

/// A set of topics: a topic in which `*` stands for one word and `**` for any number of words, also
/// none, at any place. Cloning is cheap.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TopicPattern {
    text: Arc<str>,
    words: Arc<[PatternWord]>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum PatternWord {
    Literal(Box<str>),
    /// Exactly one word, whatever it is.
    One,
    Many,
}

impl TopicPattern {
    /// Returns the pattern as text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the topic is in the set. Compares at most each word of the pattern with each word of
    /// the topic.
    pub fn matches(&self, topic: &Topic) -> bool {
        let mut words = [""; TOPIC_WORDS];
        let mut count = 0;
        for (place, word) in words.iter_mut().zip(topic.words()) {
            *place = word;
            count += 1;
        }
        matches(&self.words, &words[..count], &mut |one, other| one == other)
    }

    /// Whether the pattern's first word is that of the private topics of replies.
    pub(crate) fn is_private(&self) -> bool {
        matches!(self.words.first(), Some(PatternWord::Literal(word)) if &**word == PRIVATE)
    }
}

impl From<&Topic> for TopicPattern {
    fn from(topic: &Topic) -> Self {
        Self {
            text: Arc::clone(&topic.0),
            words: topic.words().map(literal).collect(),
        }
    }
}

fn literal(word: &str) -> PatternWord {
    PatternWord::Literal(word.into())
}

/// Matches words with a pattern. On a mismatch only the last `**` so far takes one word more: an
/// earlier one can gain nothing by that, so no combination is ever tried twice.
fn matches(
    pattern: &[PatternWord],
    words: &[&str],
    equal: &mut dyn FnMut(&str, &str) -> bool,
) -> bool {
    let (mut at, mut word) = (0, 0);
    // The place in the pattern behind the last `**`, and the first word that it did not take.
    let mut retry: Option<(usize, usize)> = None;
    loop {
        let fits = match (pattern.get(at), words.get(word)) {
            (Some(PatternWord::Many), _) => {
                at += 1;
                retry = Some((at, word));
                continue;
            }
            (Some(PatternWord::One), Some(_)) => true,
            (Some(PatternWord::Literal(expected)), Some(found)) => equal(expected, found),
            (None, None) => return true,
            (None, Some(_)) | (Some(PatternWord::One | PatternWord::Literal(_)), None) => false,
        };
        if fits {
            (at, word) = (at + 1, word + 1);
            continue;
        }
        match retry {
            Some((behind, taken)) if taken < words.len() => {
                retry = Some((behind, taken + 1));
                (at, word) = (behind, taken + 1);
            }
            _ => return false,
        }
    }
}

/// Checks the number of words and each word that is not a wildcard.
fn check(what: &'static str, text: &str, is_wildcard: fn(&str) -> bool) -> Result<(), TopicError> {
    let fail = |reason: String| TopicError {
        what,
        given: text.chars().take(80).collect(),
        reason,
    };
    let count = text.split('.').count();
    if count > TOPIC_WORDS {
        let reason = format!("it has {count} words, and at most {TOPIC_WORDS} are allowed");
        return Err(fail(reason));
    }
    for (number, word) in (1..).zip(text.split('.')) {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ':');
        let reason = if is_wildcard(word) {
            continue;
        } else if word.is_empty() {
            format!("word {number} is empty")
        } else if let Some(wrong) = word.chars().find(|c| !is_plain(*c)) {
            match wrong {
                '*' if what == PATTERN => {
                    format!("word {number} mixes `*` with other characters")
                }
                wrong => format!(
                    "word {number} contains {wrong:?}, and only A-Z, a-z, 0-9, `_`, `-` and \
                     `:` are allowed"
                ),
            }
        } else if word.len() > WORD_BYTES {
            format!("word {number} is longer than {WORD_BYTES} characters")
        } else {
            continue;
        };
        return Err(fail(reason));
    }
    Ok(())
}

/// The name of a pattern in errors.
const PATTERN: &str = "topic pattern";

impl FromStr for Topic {
    type Err = TopicError;
    fn from_str(text: &str) -> Result<Self, TopicError> {
        check("topic", text, |_| false)?;
        Ok(Self(text.into()))
    }
}

impl FromStr for TopicPattern {
    type Err = TopicError;
    fn from_str(text: &str) -> Result<Self, TopicError> {
        check(PATTERN, text, |word| matches!(word, "*" | "**"))?;
        let word = |word| match word {
            "*" => PatternWord::One,
            "**" => PatternWord::Many,
            word => literal(word),
        };
        Ok(Self {
            text: text.into(),
            words: text.split('.').map(word).collect(),
        })
    }
}

gyrus_contract::stored_as_text!(Topic, TopicPattern);

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for TopicPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Matches by trying every number of words for every `**`.
    fn naive(pattern: &[&str], words: &[&str]) -> bool {
        match pattern.split_first() {
            None => words.is_empty(),
            Some((&"**", rest)) => (0..=words.len()).any(|taken| naive(rest, &words[taken..])),
            Some((&first, rest)) => words.split_first().is_some_and(|(word, words)| {
                (first == "*" || first == *word) && naive(rest, words)
            }),
        }
    }

    fn random_words(random: &mut fastrand::Rng, from: &[&'static str]) -> Vec<&'static str> {
        let count = random.usize(1..=6);
        (0..count)
            .map(|_| from[random.usize(..from.len())])
            .collect()
    }

    #[test]
    fn matching_agrees_with_a_naive_matcher() {
        let mut random = fastrand::Rng::with_seed(17);
        let mut matched = 0;
        for _ in 0..50_000 {
            let words = random_words(&mut random, &["a", "b"]);
            let pattern = random_words(&mut random, &["a", "b", "*", "**", "**"]);
            let parsed: TopicPattern = pattern.join(".").parse().unwrap();
            let expected = naive(&pattern, &words);
            let topic: Topic = words.join(".").parse().unwrap();
            assert_eq!(parsed.matches(&topic), expected, "{parsed} {topic}");
            matched += u32::from(expected);
        }
        assert!((10_000..40_000).contains(&matched), "{matched}");
    }

    #[test]
    fn no_pattern_takes_more_comparisons_than_words_times_words() {
        let words = vec!["a"; TOPIC_WORDS];
        let mut random = fastrand::Rng::with_seed(4);
        for round in 0..20_000 {
            let mut pattern: Vec<&str> = match round {
                0 => ["**", "a"].repeat(8),
                1 => ["**", "*"].repeat(8),
                2 => vec!["**"; TOPIC_WORDS],
                _ => (0..TOPIC_WORDS)
                    .map(|_| ["a", "*", "**", "b"][random.usize(..4)])
                    .collect(),
            };
            *pattern.last_mut().unwrap() = "b";
            let pattern: TopicPattern = pattern.join(".").parse().unwrap();
            let mut compared = 0;
            let matched = matches(&pattern.words, &words, &mut |one, other| {
                compared += 1;
                one == other
            });
            assert!(
                !matched && compared <= TOPIC_WORDS * TOPIC_WORDS,
                "{pattern}"
            );
        }
    }

    #[test]
    fn wrong_topics_say_what_is_wrong() {
        let long = "a".repeat(WORD_BYTES + 1);
        let many = vec!["a"; TOPIC_WORDS + 1].join(".");
        for (given, expected) in [
            ("", "invalid topic ``: word 1 is empty"),
            ("a..b", "invalid topic `a..b`: word 2 is empty"),
            (
                "a.*",
                "invalid topic `a.*`: word 2 contains '*', and only A-Z, a-z, 0-9, `_`, `-` and `:` are \
                 allowed",
            ),
            ("a b", "word 1 contains ' '"),
            ("é", "word 1 contains 'é'"),
            (&long, "word 1 is longer than 64 characters"),
            (&many, "it has 17 words, and at most 16 are allowed"),
        ] {
            let error = given.parse::<Topic>().unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        let error = "a.b*".parse::<TopicPattern>().unwrap_err().to_string();
        assert_eq!(
            error,
            "invalid topic pattern `a.b*`: word 2 mixes `*` with other characters"
        );
        assert!(serde_json::from_str::<Topic>("\"a..b\"").is_err());
        let pattern: TopicPattern = serde_json::from_str("\"a.**\"").unwrap();
        assert_eq!(serde_json::to_string(&pattern).unwrap(), "\"a.**\"");
    }
}
