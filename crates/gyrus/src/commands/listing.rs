//! Flags that every list takes.

use clap::Args;
use gyrus_surfaces::output::StandardOutput;
use serde_json::Value;

use crate::failure::Failure;

/// Flags of a list.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct ListFlags {
    /// Print one JSON object a line, for programs
    #[arg(long)]
    pub(super) json: bool,
    /// List only what has these words, in upper or lower case
    #[arg(long, value_name = "WORDS")]
    filter: Option<String>,
}

impl ListFlags {
    pub(super) fn is_json(&self) -> bool {
        self.json
    }

    /// Handles the next item of a list: prints it for a program, or returns whether it is to be
    /// shown to a person.
    pub(super) fn shows(&self, out: &mut StandardOutput, item: &Value) -> Result<bool, Failure> {
        if let Some(filter) = &self.filter
            && !contains(item, &filter.to_lowercase())
        {
            return Ok(false);
        }
        if self.json {
            out.json(item)?;
        }
        Ok(!self.json)
    }
}

/// Whether a text or a number in a value contains words in lower case.
fn contains(item: &Value, words: &str) -> bool {
    match item {
        Value::String(text) => text.to_lowercase().contains(words),
        Value::Number(number) => number.to_string().contains(words),
        Value::Array(items) => items.iter().any(|item| contains(item, words)),
        Value::Object(fields) => fields.values().any(|item| contains(item, words)),
        Value::Null | Value::Bool(_) => false,
    }
}
