//! The tool `ask_person`: asks the person a question.
//!
//! The kernel asks before it passes the call on. The output counts as said by the person, so none
//! of the model's words may be in it but a choice that the person made: the card shows question and
//! choices, numbered.

use gyrus_contract::{
    Arguments, Repeat, ResolvedCall, Site, ToolOutput, Touch, TypedTool, WrongArguments,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const MAX_ANSWER_BYTES: usize = 32 * 1024;

/// Asks the person a question.
pub struct AskPerson;

/// Asks the person one question about what the goal leaves open and you cannot find out. Not
/// for permissions: those are asked for by themselves.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AskPersonArguments {
    #[serde(rename = "question")]
    _question: String,
    /// Answers to choose from.
    #[serde(default)]
    choices: Vec<String>,
}

impl Arguments for AskPersonArguments {
    const TOOL: &'static str = "ask_person";
    const EXAMPLE: &'static str =
        r#"{"question": "Which one?", "choices": ["staging", "production"]}"#;
}

#[derive(Serialize)]
struct PersonAnswer<'a> {
    /// The person's words, or the choice that they select.
    text: &'a str,
}

/// Reason why there is no answer, not in the model's words.
pub struct NoAnswerReason(String);

impl From<WrongArguments> for NoAnswerReason {
    fn from(_quotes_the_model: WrongArguments) -> Self {
        Self(format!(
            "the arguments of `ask_person` are wrong; expected an object like {}",
            AskPersonArguments::EXAMPLE
        ))
    }
}

impl From<NoAnswerReason> for ToolOutput {
    fn from(NoAnswerReason(words): NoAnswerReason) -> Self {
        Self::error(words)
    }
}

impl TypedTool for AskPerson {
    type Arguments = AskPersonArguments;
    type Failure = NoAnswerReason;
    const REPEAT: Repeat = Repeat::Freely;

    fn touches(&self) -> Vec<Touch> {
        vec![Touch::Asks("question".to_owned())]
    }

    async fn run(
        &self,
        arguments: AskPersonArguments,
        _call: &ResolvedCall,
        site: &dyn Site,
    ) -> Result<ToolOutput, NoAnswerReason> {
        let Some(answer) = site.answer().map(str::trim) else {
            return Err(NoAnswerReason(
                "nobody answered the question; go on with what you know, and say what is open"
                    .to_owned(),
            ));
        };
        if answer.is_empty() {
            return Ok(said("(the person agreed without a word)", ""));
        }
        if let Some(choice) = chosen(answer, &arguments.choices) {
            return Ok(said(choice, choice));
        }
        let first = gyrus_text::first_bytes(answer, MAX_ANSWER_BYTES);
        let mut text = first.to_owned();
        if text.len() < answer.len() {
            text.push_str(&format!(
                "\n[cut: {} of the answer]",
                gyrus_text::counted(answer.len() - text.len(), "more byte")
            ));
        }
        Ok(said(&text, first))
    }
}

fn said(shown: &str, text: &str) -> ToolOutput {
    ToolOutput::read(shown).with_value(&PersonAnswer { text })
}

/// Returns the choice that the answer selects: the words themselves, before its number counted from
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
