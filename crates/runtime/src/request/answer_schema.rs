//! The schema of `--answer-schema`.

use std::{fmt, io::Read as _, path::Path, str::FromStr};

use gyrus_contract::{AnswerSchema, Origin, Text};
use gyrus_kernel::Attachment;
use gyrus_process::open_regular;
use serde_json::Value;

/// A schema of answers, as given by the person.
#[derive(Debug, Clone, PartialEq)]
pub struct GivenSchema(AnswerSchema);

/// The largest schema in bytes: it is part of the prompt.
const SCHEMA_LIMIT: u64 = 64 << 10;

impl GivenSchema {
    /// Returns the schema itself.
    pub fn schema(&self) -> &AnswerSchema {
        &self.0
    }

    /// Returns the attachment that describes the schema to the model.
    pub fn in_words(&self) -> Attachment {
        let schema = &self.0;
        let words = format!(
            "A program reads the answer. It must be JSON that fits this JSON Schema, and nothing \
             else, without a fence around it:\n{schema}"
        );
        Attachment::Text(Text::new(words, Origin::Configuration))
    }
}

impl FromStr for GivenSchema {
    type Err = String;

    fn from_str(given: &str) -> Result<Self, String> {
        let text = if given.trim_start().starts_with('{') {
            given.to_owned()
        } else {
            let file = open_regular(Path::new(given)).map_err(|error| error.to_string())?;
            let mut text = String::new();
            let read = file.take(SCHEMA_LIMIT + 1).read_to_string(&mut text);
            read.map_err(|error| error.to_string())?;
            text
        };
        if text.len() as u64 > SCHEMA_LIMIT {
            return Err(format!("a schema has at most {SCHEMA_LIMIT} bytes"));
        }
        let schema: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        let schema = AnswerSchema::try_from(schema).map_err(|error| error.to_string())?;
        Ok(Self(schema))
    }
}

impl fmt::Display for GivenSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

gyrus_contract::stored_as_text!(GivenSchema);
