//! Evidence of a claim that names what failed.
//!
//! A model that says that a goal is reached may name as its evidence a command that failed, a file that
//! could not be read or a page that could not be opened. Such a claim is refused with the failure, as
//! long as the same was not done successfully since.

use std::collections::BTreeMap;

use gyrus_contract::{FINISH, Observation, ToolCall};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Arguments that name the subject of a call.
const SUBJECTS: [&str; 4] = ["command", "url", "path", "program"];

/// Maximum number of remembered failures.
const MOST_KEPT: usize = 30;

/// Minimum length of a subject searched for in evidence: a shorter one may stand there by chance.
const SHORTEST: usize = 4;

/// Maximum number of characters of a failure quoted in a refusal.
const WHY_CHARACTERS: usize = 200;

/// Subjects of calls that failed and did not succeed since, with the words of the failure.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Failures(BTreeMap<String, String>);

impl Failures {
    /// Whether every failure was followed by a success.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Hears the result of a call.
    pub(crate) fn hear(&mut self, call: &ToolCall, seen: &Observation) {
        let Some(subject) = subject(call) else {
            return;
        };
        if seen.is_error && self.0.len() < MOST_KEPT {
            let why = gyrus_text::shorten(seen.text.text.trim(), WHY_CHARACTERS);
            self.0.insert(subject.to_owned(), why.to_string());
        } else if !seen.is_error {
            self.0.remove(subject);
        }
    }

    /// Returns a sentence about the failed call that a claim names as its evidence.
    pub(crate) fn named_by(&self, call: &ToolCall) -> Option<String> {
        if call.tool != FINISH || call.arguments["reached"] != Value::Bool(true) {
            return None;
        }
        let evidence = call.arguments["evidence"].as_array()?;
        let places = evidence.iter().filter_map(|it| it["at"].as_str());
        let named = |(subject, _): &(&String, &String)| {
            places.clone().any(|place| has_whole(place, subject))
        };
        let (subject, why) = self.0.iter().find(named)?;
        Some(format!(
            "the evidence names `{subject}`, which failed: {why}"
        ))
    }
}

/// Whether a text contains `part` as whole words, not inside a longer word or path.
fn has_whole(text: &str, part: &str) -> bool {
    let goes_on = |c: char| c.is_alphanumeric() || matches!(c, '/' | '_' | '-');
    text.match_indices(part).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + part.len()..].chars().next();
        !before.is_some_and(goes_on) && !after.is_some_and(goes_on)
    })
}

/// Returns the subject of a call: its command, address or path.
fn subject(call: &ToolCall) -> Option<&str> {
    let mut subjects = SUBJECTS
        .iter()
        .filter_map(|name| call.arguments[*name].as_str());
    subjects.find(|subject| subject.len() >= SHORTEST)
}

#[cfg(test)]
mod tests {
    use gyrus_contract::{EffectId, ToolCall};
    use serde_json::{Value, json};

    use super::*;

    fn seen(call: &ToolCall, is_error: bool) -> Observation {
        let seen = Observation::refused(EffectId::cycle(1), call, "exit code 1");
        Observation { is_error, ..seen }
    }

    fn claim(reached: bool, at: &str) -> ToolCall {
        let evidence = json!([{"what": "all tests pass", "at": at}]);
        let arguments = json!({"reached": reached, "answer": "done", "evidence": evidence});
        ToolCall::new(FINISH, arguments)
    }

    #[test]
    fn evidence_that_failed_is_refused_until_it_succeeds() {
        let mut failures = Failures::default();
        let call = |arguments: Value| ToolCall::new("shell", arguments);
        let test = call(json!({"command": "cargo test"}));
        failures.hear(&test, &seen(&test, true));
        failures.hear(&call(json!({"path": "a"})), &seen(&test, true));
        assert_eq!(failures.0.len(), 1, "`a` stands everywhere");
        let why = failures.named_by(&claim(true, "output of `cargo test`"));
        assert!(why.unwrap().contains("exit code 1"));
        assert_eq!(failures.named_by(&claim(false, "cargo test")), None);
        for elsewhere in ["notes.txt", "cargo tests", "my-cargo test"] {
            assert_eq!(failures.named_by(&claim(true, elsewhere)), None);
        }
        failures.hear(&test, &seen(&test, false));
        assert_eq!(failures.named_by(&claim(true, "cargo test")), None);
    }
}
