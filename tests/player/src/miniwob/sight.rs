//! The view of a family: the request, and the screen of one prompt.

use serde_json::{Value, json};

use crate::prompt::{Line, Prompt, plain};

/// Text that the pages show beside every task.
const NOISE: [&str; 4] = [
    "last reward:",
    "last 10 average:",
    "time left:",
    "episodes done:",
];

/// The request and the screen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sight<'a> {
    pub(crate) asked: &'a str,
    pub(crate) prompt: &'a Prompt,
    /// The bytes of the picture.
    pub(crate) picture: Option<&'a [u8]>,
}

impl<'a> Sight<'a> {
    /// The name of the page.
    pub(super) fn page(&self) -> &'a str {
        let address = self.prompt.address();
        let name = address.rsplit_once("/miniwob/").map(|(_, name)| name);
        name.and_then(|name| name.split_once(".html"))
            .map_or("", |(name, _)| name)
    }

    /// Returns the last note of the family.
    pub(super) fn note(&self) -> &'a str {
        self.prompt.text("known")
    }

    /// Everything that can be used, in the order of the page.
    pub(super) fn usable(&self) -> impl Iterator<Item = &'a Line> {
        self.prompt.lines.iter().filter(|line| line.id.is_some())
    }

    /// Everything usable of a role.
    pub(super) fn all(&self, role: &'static str) -> Vec<&'a Line> {
        self.usable().filter(|line| line.role == role).collect()
    }

    /// The usable thing of this role and name.
    pub(super) fn one(&self, role: &str, name: &str) -> Option<&'a Line> {
        let name = plain(name);
        self.usable()
            .find(|line| line.role == role && plain(&line.name) == name)
    }

    /// The usable thing of this name, whatever its role.
    pub(super) fn named(&self, name: &str) -> Option<&'a Line> {
        let name = plain(name);
        self.usable().find(|line| plain(&line.name) == name)
    }

    /// The lines of words that the page shows, in its order, without what it asks for; nothing
    /// if the prompt left them out.
    pub(super) fn words(&self) -> Option<Vec<String>> {
        let is_of_task = |words: &String| {
            let words = plain(words);
            !words.is_empty()
                && !words.starts_with(&plain(self.asked))
                && !NOISE.iter().any(|noise| words.starts_with(noise))
        };
        if let Some(lines) = self.read() {
            let lines = lines.iter().map(|line| line.trim().to_owned());
            return Some(lines.filter(is_of_task).collect());
        }
        if self.prompt.picture.is_some() {
            return None;
        }
        let told = self.prompt.lines.iter().filter(|line| line.id.is_none());
        let told = told
            .filter(|line| !line.is_away && line.role != "page")
            .map(|line| line.name.clone());
        Some(told.filter(is_of_task).collect())
    }

    /// Returns the lines that were read on purpose in the last turn.
    pub(super) fn read(&self) -> Option<&'a [String]> {
        let (tool, lines) = self.prompt.returned.as_ref()?;
        (tool == "extract").then_some(lines)
    }
}

/// Reading the page.
pub(super) fn extract() -> Value {
    json!({"do": "extract"})
}

/// Clicking something.
pub(super) fn click(line: &Line) -> Value {
    json!({"do": "click", "on": line.id})
}

/// Filling a field.
pub(super) fn fill(line: &Line, text: &str) -> Value {
    json!({"do": "type_text", "on": line.id, "text": text, "replace": true})
}

/// Filling a field, unless it holds that already, and then a click.
pub(super) fn fill_and_click(field: &Line, text: &str, then: &Line) -> Vec<Value> {
    let holds = field.value == text || (!field.value.is_empty() && field.value.ends_with('…'));
    if holds {
        vec![click(then)]
    } else {
        vec![fill(field, text), click(then)]
    }
}

/// A key, pressed in something.
pub(super) fn press(line: &Line, key: &str) -> Value {
    json!({"do": "press_key", "key": key, "on": line.id})
}

/// Returns the text between two texts.
pub(super) fn between<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(start)?;
    Some(rest.split_once(end)?.0)
}
