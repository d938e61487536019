//! The answer that a task expects, and the comparison of a run's answer with it.

use regex::Regex;
use serde::Deserialize;

/// Pattern of a number in an answer, with or without commas between thousands.
const NUMBER: &str = r"-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?";

/// The answer that a task expects. Case and white space do not matter.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "ExpectationForm")]
pub(super) enum ExpectedAnswer {
    /// The answer is this text; marks around it do not matter.
    Exact(String),
    Contains(String),
    Pattern(Regex),
    Number(f64),
    All(Vec<String>),
}

/// An expected answer as a person writes it.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "expected a text, or one of { exact = … }, { contains = … }, { regex = … }, { number = … }, { all = […] }"
)]
enum ExpectationForm {
    Text(String),
    Rule(ExpectedRule),
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum ExpectedRule {
    Exact(String),
    Contains(String),
    Regex(String),
    Number(f64),
    All(Vec<String>),
}

impl TryFrom<ExpectationForm> for ExpectedAnswer {
    type Error = String;

    fn try_from(written: ExpectationForm) -> Result<Self, String> {
        let rule = match written {
            ExpectationForm::Text(text) => ExpectedRule::Contains(text),
            ExpectationForm::Rule(rule) => rule,
        };
        match rule {
            ExpectedRule::Exact(text) => Ok(Self::Exact(text)),
            ExpectedRule::Contains(text) => Ok(Self::Contains(text)),
            ExpectedRule::Number(number) => Ok(Self::Number(number)),
            ExpectedRule::All(texts) => Ok(Self::All(texts)),
            ExpectedRule::Regex(pattern) => Regex::new(&format!("(?i){pattern}"))
                .map(Self::Pattern)
                .map_err(|_| format!("invalid regular expression `{pattern}`")),
        }
    }
}

impl ExpectedAnswer {
    /// Returns the reason why an answer differs from the expected one; `None` if it does not.
    pub(super) fn mismatch(&self, answer: &str) -> Option<String> {
        let said = plain(answer);
        let (holds, expected) = match self {
            Self::Exact(text) => (
                bare(&said) == bare(&plain(text)),
                format!("is not `{text}`"),
            ),
            Self::Contains(text) => (
                said.contains(&plain(text)),
                format!("does not contain `{text}`"),
            ),
            Self::Pattern(pattern) => (
                pattern.is_match(&said),
                format!("does not match `{pattern}`"),
            ),
            Self::Number(number) => (
                has_number(&said, *number),
                format!("does not contain the number {number}"),
            ),
            Self::All(texts) => {
                let missing = texts.iter().find(|text| !said.contains(&plain(text)));
                (
                    missing.is_none(),
                    format!("does not contain `{}`", missing.map_or("", String::as_str)),
                )
            }
        };
        (!holds).then(|| format!("its answer {expected}: {answer}"))
    }
}

fn has_number(text: &str, expected: f64) -> bool {
    let Ok(pattern) = Regex::new(NUMBER) else {
        return false;
    };
    pattern.find_iter(text).any(|found| {
        let number = found.as_str().replace(',', "").parse::<f64>();
        // A hyphen before a number is no sign where none is expected: `total-42`.
        number.is_ok_and(|number| number == expected || number.abs() == expected)
    })
}

/// Returns an answer without the quotation marks and other marks around it.
fn bare(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || ".,;:!?\"'`*“”".contains(c))
}

fn plain(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_compared() {
        for (rule, answer, holds) in [
            ("\"42 EUR\"", "It costs 42  eur.", true),
            ("\"42 EUR\"", "It costs 43 EUR.", false),
            ("{ exact = \"Paris\" }", "**paris**.", true),
            ("{ exact = \"Paris\" }", "Paris, France", false),
            ("{ contains = \"paris\" }", "Paris, France", true),
            ("{ regex = \"^b.t$\" }", "BIT", true),
            ("{ number = 1234 }", "There are 1,234 lines.", true),
            ("{ number = 12 }", "There are 1,234 lines.", false),
            ("{ number = 2.5 }", "2.5 kg", true),
            ("{ number = 5 }", "2.5 kg", false),
            ("{ number = 7 }", "file-7", true),
            ("{ all = [\"a 1\", \"B\"] }", "b and A  1", true),
            ("{ all = [\"a 1\", \"B\"] }", "b and 1", false),
            ("{ number = -7 }", "7", false),
        ] {
            #[derive(Deserialize)]
            struct File {
                answer: ExpectedAnswer,
            }
            let file: File = toml::from_str(&format!("answer = {rule}")).unwrap();
            assert_eq!(
                file.answer.mismatch(answer).is_none(),
                holds,
                "{rule} {answer}"
            );
        }
        let wrong = toml::from_str::<std::collections::BTreeMap<String, ExpectedAnswer>>(
            "answer = { regex = \"(\" }",
        );
        assert!(wrong.unwrap_err().to_string().contains("invalid regular"));
    }
}
