//! Open steps and constraints that outlive compaction. They are part of a loop's state and of every
//! question, so no later summary can lose them: a step goes only when the model says that it is
//! done, and a constraint stays to the end of the run.

use gyrus_contract::{Origin, Part, Text};
use gyrus_text::first_chars;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::json;

/// Maximum number of open steps, and of constraints; later ones are refused, since a list without a
/// bound would outgrow what compaction saves.
const MAX_ITEMS: usize = 16;

/// Maximum length of a step or a constraint, in characters.
const MAX_CHARACTERS: usize = 240;

/// A summary of a conversation as a model writes it.
#[derive(Debug, Default, PartialEq, Deserialize, JsonSchema)]
pub(crate) struct Summary {
    /// The conversation in short.
    pub(crate) summary: String,
    /// The numbers of open steps that are done or no longer needed.
    #[serde(default)]
    #[schemars(length(max = 16))]
    pub(crate) done: Vec<usize>,
    /// Steps that remain to be done and are not listed yet.
    #[serde(default)]
    #[schemars(length(max = 8))]
    pub(crate) open_steps: Vec<String>,
    /// Limits and wishes that the work must respect and that are not listed yet.
    #[serde(default)]
    #[schemars(length(max = 8))]
    pub(crate) constraints: Vec<String>,
}

impl Summary {
    /// Parses a reply. One that is not the requested object is the summary as plain text, unless it
    /// is another object, which summarises nothing.
    pub(crate) fn read(reply: &str) -> Self {
        let object = json::the_object(reply, "summary").ok();
        let bare = reply.trim().trim_start_matches("```json").trim_matches('`');
        if object.is_none() && serde_json::from_str::<Map<String, Value>>(bare.trim()).is_ok() {
            return Self::default();
        }
        let parsed = object.and_then(|object| serde_json::from_value(Value::Object(object)).ok());
        parsed.unwrap_or_else(|| Self {
            summary: reply.to_owned(),
            ..Self::default()
        })
    }
}

/// Open steps and constraints of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct KeptWork {
    /// The remaining steps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    steps: Vec<String>,
    /// Limits and wishes that the work must respect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    constraints: Vec<String>,
}

impl KeptWork {
    /// Whether there are neither steps nor constraints.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.constraints.is_empty()
    }

    /// Returns the work to keep after a summary.
    pub(crate) fn after(&self, summary: &Summary) -> Self {
        let is_open = |(number, _): &(usize, &String)| !summary.done.contains(number);
        let open = (1..).zip(&self.steps).filter(is_open);
        let mut kept = Self {
            steps: open.map(|(_, step)| step.clone()).collect(),
            constraints: self.constraints.clone(),
        };
        add(&mut kept.steps, &summary.open_steps);
        add(&mut kept.constraints, &summary.constraints);
        kept
    }

    /// Returns the size in bytes of text.
    pub(crate) fn size(&self) -> u64 {
        let items = self.steps.iter().chain(&self.constraints);
        items.map(|item| item.len() as u64).sum()
    }

    /// Returns the parts of a question that list the kept work.
    pub(crate) fn parts(&self) -> Vec<Part> {
        if self.is_empty() {
            return Vec::new();
        }
        let mut lines = Vec::new();
        for (title, items) in [
            ("open steps:", &self.steps),
            ("constraints:", &self.constraints),
        ] {
            if items.is_empty() {
                continue;
            }
            lines.push(title.to_owned());
            let numbered = (1..).zip(items);
            lines.extend(numbered.map(|(number, item)| format!("{number}. {item}")));
        }
        let what = "You noted this about the work when earlier parts of the conversation were put \
                    away:";
        vec![
            Part::Text(Text::new(what, Origin::Kernel)),
            Part::Text(Text::new(lines.join("\n"), Origin::Model)),
        ]
    }
}

fn add(items: &mut Vec<String>, new: &[String]) {
    for item in new {
        let line = item.split_whitespace().collect::<Vec<_>>().join(" ");
        let item = first_chars(&line, MAX_CHARACTERS);
        if !item.is_empty() && items.len() < MAX_ITEMS && !items.iter().any(|one| one == item) {
            items.push(item.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(reply: &str) -> Summary {
        Summary::read(reply)
    }

    #[test]
    fn a_reply_is_read_as_an_object_or_as_words() {
        let whole = summary(
            "Here it is:\n```json\n{\"summary\": \"two read\", \"open_steps\": [\"read b\"], \
             \"constraints\": [\"spend at most 20\"]}\n```",
        );
        assert_eq!(whole.summary, "two read");
        assert_eq!(whole.open_steps, ["read b"]);
        assert_eq!(summary("I read two files.").summary, "I read two files.");
        let cut_off = "{\"summary\": \"two re";
        assert_eq!(summary(cut_off).summary, cut_off);
        for empty in ["{}", " {} ", "```json\n{}\n```", r#"{"done": [1]}"#] {
            assert_eq!(summary(empty), Summary::default(), "{empty}");
        }
        let of_another_form = r#"{"summary": ["a", "b"]}"#;
        assert_eq!(summary(of_another_form).summary, of_another_form);
    }

    #[test]
    fn a_step_stays_until_it_is_done_and_a_constraint_for_good() {
        let first = KeptWork::default().after(&summary(
            r#"{"summary": "", "open_steps": ["read b", "read  c\n"], "constraints": ["no mail"]}"#,
        ));
        assert_eq!(first.steps, ["read b", "read c"]);
        // The next summary forgets everything.
        assert_eq!(first.after(&summary("I went on.")), first);
        let second = first.after(&summary(
            r#"{"summary": "", "done": [1, 7], "open_steps": ["read c", "answer"], "constraints": []}"#,
        ));
        assert_eq!(second.steps, ["read c", "answer"]);
        assert_eq!(second.constraints, ["no mail"]);
        let told = second.parts();
        let Part::Text(text) = &told[1] else {
            panic!("{told:?}")
        };
        insta::assert_snapshot!(text.text, @r"
        open steps:
        1. read c
        2. answer
        constraints:
        1. no mail
        ");
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut kept = KeptWork::default();
        for number in 0..100 {
            let item = format!("{number} {}", "ä".repeat(10_000));
            kept = kept.after(&Summary {
                open_steps: vec![item.clone()],
                constraints: vec![item],
                ..Summary::default()
            });
        }
        assert!(kept.size() <= (2 * MAX_ITEMS * MAX_CHARACTERS * 2) as u64);
    }
}
