//! The tool `ask_person`: asks the person a question.
//!
//! The kernel asks before it passes the call on. The output counts as said by the person, so none
//! of the model's words may be in it but a choice that the person made: the card shows question and
//! choices, numbered.

use gyrus_contract::{
    Boxed, Cleared, Repeat, ResolvedCall, Site, Tool, ToolOutput, ToolSpec, Touch,
};
use serde::Deserialize;
use serde_json::json;

use crate::{
    arguments,
    failure::{self, Failure},
};

/// Maximum bytes of an answer.
const MAX_ANSWER_BYTES: usize = 32 * 1024;

const EXAMPLE: &str = r#"{"question": "Which one?", "choices": ["staging", "production"]}"#;

/// Asks the person a question.
pub struct AskPerson {
    spec: ToolSpec,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The question; the kernel shows it.
    #[serde(rename = "question")]
    _question: String,
    #[serde(default)]
    choices: Vec<String>,
}

impl AskPerson {
    /// Creates the tool.
    #[expect(clippy::new_without_default, reason = "tools are made in one way")]
    pub fn new() -> Self {
        let spec = ToolSpec {
            name: "ask_person".to_owned(),
            description: "Asks the person a question and returns their answer. Use it only for \
                          what you cannot find out yourself and what the goal leaves open: a \
                          choice of theirs, something only they know. Ask one thing at a time, \
                          with what they need to answer it. Not for leave to do something: that \
                          is asked by itself."
                .to_owned(),
            parameters: arguments::schema(
                json!({
                    "question": {
                        "type": "string",
                        "description": "What the person is asked, with what they need to know."
                    },
                    "choices": {
                        "type": "array",
                        "items": { "type": "string" },
                        "description": "Answers to choose from; they are shown numbered. The \
                                        person may answer something else."
                    }
                }),
                &["question"],
            ),
            touches: vec![Touch::Asks("question".to_owned())],
            repeat: Repeat::Freely,
        };
        Self { spec }
    }
}

impl Tool for AskPerson {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        call: Cleared<ResolvedCall>,
        site: &'a dyn Site,
    ) -> Boxed<'a, ToolOutput> {
        Box::pin(async move { failure::output(run(&call, site)) })
    }
}

fn run(call: &ResolvedCall, site: &dyn Site) -> Result<ToolOutput, Failure> {
    // The parse error is dropped because it would quote the model.
    let Arguments { choices, .. } = arguments::parse(call, EXAMPLE).map_err(|_| {
        Failure::new(format!(
            "the arguments of `ask_person` are wrong; expected an object like {EXAMPLE}"
        ))
    })?;
    let Some(answer) = site.answer().map(str::trim) else {
        return Err(Failure::new(
            "nobody answered the question; go on with what you know, and say what is open",
        ));
    };
    if answer.is_empty() {
        return Ok(ToolOutput::read("(the person agreed without a word)"));
    }
    if let Some(choice) = chosen(answer, &choices) {
        return Ok(ToolOutput::read(choice));
    }
    let mut text = gyrus_text::first_bytes(answer, MAX_ANSWER_BYTES).to_owned();
    if text.len() < answer.len() {
        text.push_str(&format!(
            "\n[cut: {} of the answer]",
            gyrus_text::counted(answer.len() - text.len(), "more byte")
        ));
    }
    Ok(ToolOutput::read(text))
}

/// Returns the choice that the answer means: the words themselves, before its number counted from
/// 1, before a beginning that no other choice has.
fn chosen<'a>(answer: &str, choices: &'a [String]) -> Option<&'a str> {
    let answer = answer.to_lowercase();
    let is_it = |choice: &&String| choice.trim().to_lowercase() == answer;
    if let Some(choice) = choices.iter().find(is_it) {
        return Some(choice);
    }
    let number = answer.trim_end_matches(['.', ')']);
    if let Ok(number) = number.parse::<usize>() {
        return choices.get(number.checked_sub(1)?).map(String::as_str);
    }
    let starts = |choice: &&String| choice.trim().to_lowercase().starts_with(&answer);
    let mut starting = choices.iter().filter(starts);
    let choice = starting.next()?;
    starting.next().is_none().then_some(choice)
}
