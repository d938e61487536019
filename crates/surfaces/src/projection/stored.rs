//! Values of entries, wherever they are stored.

use gyrus_contract::{Origin, Part, Text};
use gyrus_journal::LogReader;
use gyrus_kernel::{Inline, RunStarted, Stop};

/// Reads a value, wherever it is stored, or returns words that say why it cannot be shown.
pub fn stored<T>(value: &Inline<T>, reader: &LogReader) -> Result<T, String>
where
    T: serde::Serialize + serde::de::DeserializeOwned + Clone,
{
    let fetched = value.read(|id| reader.blob(id).map_err(Stop::from));
    fetched.map_err(|error| format!("(it cannot be shown: {error})"))
}

/// Returns the goal of a run, wherever it is stored.
pub fn goal(goal: &Inline<Text>, reader: &LogReader) -> String {
    stored(goal, reader).map_or_else(|gone| gone, |text: Text| text.text)
}

/// Returns the numbers of the lessons that a run was given, and the lines that it was given.
pub fn given_lessons(started: &RunStarted, reader: &LogReader) -> Option<(Vec<u64>, String)> {
    let mut parts = started
        .context
        .iter()
        .filter_map(|part| stored(part, reader).ok());
    parts.find_map(|part| match part {
        Part::Text(Text {
            origin: Origin::Lessons { numbers, .. },
            text,
        }) => Some((numbers, text)),
        Part::Text(_)
        | Part::Image(_)
        | Part::Thinking(_)
        | Part::ToolCall(_)
        | Part::ToolResult(_) => None,
    })
}

/// Returns the names of the skills that a run follows, each with the reason why it was loaded.
pub fn loaded_skills(started: &RunStarted, reader: &LogReader) -> Vec<(String, String)> {
    let parts = started
        .context
        .iter()
        .filter_map(|part| stored(part, reader).ok());
    let skills = parts.filter_map(|part| match part {
        Part::Text(Text {
            origin: Origin::Skill { name, why },
            ..
        }) => Some((name, why)),
        Part::Text(_)
        | Part::Image(_)
        | Part::Thinking(_)
        | Part::ToolCall(_)
        | Part::ToolResult(_) => None,
    });
    skills.collect()
}

/// Returns the number of notes of the memory that a run was given.
pub fn notes_given(started: &RunStarted, reader: &LogReader) -> u32 {
    let mut parts = started
        .context
        .iter()
        .filter_map(|part| stored(part, reader).ok());
    let given = parts.find_map(|part| match part {
        Part::Text(Text {
            origin: Origin::Memory { notes, .. },
            ..
        }) => Some(notes),
        Part::Text(_)
        | Part::Image(_)
        | Part::Thinking(_)
        | Part::ToolCall(_)
        | Part::ToolResult(_) => None,
    });
    given.unwrap_or_default()
}
