//! Values of entries, wherever they are stored.

use gyrus_contract::{Origin, Part, Text};
use gyrus_journal::LogReader;
use gyrus_kernel::{Inline, RunStarted, Stop};

/// Reads a value, wherever it is stored; the error says why it cannot be shown.
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

fn texts(started: &RunStarted, reader: &LogReader) -> impl Iterator<Item = Text> {
    let parts = started.context.iter();
    let parts = parts.filter_map(|part| stored(part, reader).ok());
    parts.filter_map(|part| match part {
        Part::Text(text) => Some(text),
        Part::Image(_) | Part::Thinking(_) | Part::ToolCall(_) | Part::ToolResult(_) => None,
    })
}

/// Returns the numbers of the lessons that a run was given, with their lines.
pub fn given_lessons(started: &RunStarted, reader: &LogReader) -> Option<(Vec<u64>, String)> {
    texts(started, reader).find_map(|Text { origin, text }| {
        let Origin::Lessons { numbers, .. } = origin else {
            return None;
        };
        Some((numbers, text))
    })
}

/// Returns the names of the skills that a run follows, each with the reason why it was loaded.
pub fn loaded_skills(started: &RunStarted, reader: &LogReader) -> Vec<(String, String)> {
    let skills = texts(started, reader).filter_map(|text| {
        let Origin::Skill { name, why } = text.origin else {
            return None;
        };
        Some((name, why))
    });
    skills.collect()
}

/// Returns the number of notes from memory in a run's prompt.
pub fn notes_given(started: &RunStarted, reader: &LogReader) -> u32 {
    let given = texts(started, reader).find_map(|text| {
        let Origin::Memory { notes, .. } = text.origin else {
            return None;
        };
        Some(notes)
    });
    given.unwrap_or_default()
}
