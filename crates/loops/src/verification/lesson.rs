//! The lesson of a run, for later runs with similar goals: what worked, and what did not.
//!
//! Loops with a reflection of their own (`engineer`, `changeset`) record that one instead.

use gyrus_contract::{ExecutionResult, MemoryBuffer, Message, Origin, Part, Purpose, Text};
use gyrus_kernel::{ModelQuestion, Run, Stop};
use gyrus_text::first_chars;
use serde_json::{Value, json};

use crate::{CognitiveConfig, ThinkingStrategy, goal, json::the_object, prompt};

pub(crate) const PROMPT: &str = include_str!("../prompts/lesson.md");

/// The kind of the fact with the lesson of a run: `worked` and `did_not`.
pub const LESSON: &str = "run.lesson";

/// Maximum length of each part of a lesson, in characters.
const CHARACTERS: usize = 800;

/// Whether runs of this configuration end with a lesson.
pub(super) fn is_wanted(config: &CognitiveConfig) -> bool {
    let has_its_own = matches!(
        config.strategy,
        ThinkingStrategy::Engineer | ThinkingStrategy::Changeset
    );
    config.reflection && !has_its_own
}

/// Returns what worked and what did not. A reply that is not the requested object counts as what
/// worked if the goal was reached, otherwise as what did not.
pub(crate) fn read(said: &str, reached: bool) -> [String; 2] {
    let parts = match the_object(said, "worked") {
        Ok(object) => ["worked", "did_not"].map(|name| {
            let words = object.get(name).and_then(Value::as_str);
            words.unwrap_or_default().to_owned()
        }),
        Err(_) if reached => [said.to_owned(), String::new()],
        Err(_) => [String::new(), said.to_owned()],
    };
    parts.map(|words| first_chars(words.trim(), CHARACTERS).to_owned())
}

/// Asks for the lesson and records it. If the model does not answer, only the lesson is missing.
pub(super) async fn record(
    run: &mut Run,
    config: &CognitiveConfig,
    memory: &MemoryBuffer,
    recent_work: Option<String>,
    result: &ExecutionResult,
) -> Result<(), Stop> {
    let reached = result.error.is_none() && result.claim.as_ref().is_some_and(|one| one.reached);
    let ended = match (&result.error, &result.claim) {
        (Some(why), _) => format!("It failed: {why}"),
        (None, Some(claim)) if claim.reached => "The goal was reached.".to_owned(),
        (None, _) => "It was given up.".to_owned(),
    };
    let now = format!("{ended} Write down what can be learned.");
    let mut question = Message::user(Text::new(now, Origin::Kernel));
    if let Some(work) = recent_work {
        let title = Text::new("The last actions, as data:", Origin::Kernel);
        let name = "actions".to_owned();
        let work = Text::new(work, Origin::Tool { name });
        question.parts.extend([title, work].map(Part::Text));
    }
    let perception = run.perception();
    let question = ModelQuestion {
        tail: vec![question],
        ..prompt::question(run, config, PROMPT, Purpose::Reflect, &perception, memory)
    };
    let reply = match run.consult(question).await {
        Ok(reply) => reply,
        Err(error) => return error.handled().map(drop),
    };
    let [worked, did_not] = read(&reply.text(), reached);
    if worked.is_empty() && did_not.is_empty() {
        return Ok(());
    }
    let goal = goal::first_goal(&perception);
    let fact = json!({ "goal": goal, "reached": reached, "worked": worked, "did_not": did_not });
    run.note(LESSON, 1, &fact)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lesson_is_read_from_what_models_say() {
        for (said, reached, expected) in [
            (r#"{"worked": " a ", "did_not": "b"}"#, true, ["a", "b"]),
            ("```json\n{\"worked\": \"a\"}\n```", true, ["a", ""]),
            ("It went well.", true, ["It went well.", ""]),
            ("It did not.", false, ["", "It did not."]),
            (r#"{"worked": ["a"], "did_not": null}"#, true, ["", ""]),
            ("  ", true, ["", ""]),
        ] {
            assert_eq!(read(said, reached), expected, "{said}");
        }
        assert_eq!(
            read(&"ä".repeat(5_000), true)[0].chars().count(),
            CHARACTERS
        );
    }
}
