//! The prompts of a server: texts that a person may give to a run, in the server's words.

use std::collections::BTreeMap;

use rmcp::model::{ClientRequest, GetPromptRequest, GetPromptRequestParams, JsonObject};
use serde_json::Value;

use crate::{
    definition::clean,
    result::{bounded, in_words},
};

/// Maximum characters of a description.
const MAX_ABOUT: usize = 300;

/// A prompt that a server offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedPrompt {
    /// The prompt's name at the server: any text.
    pub name: String,
    /// The server's description of the prompt, cleaned and shortened.
    pub description: String,
    /// The prompt's arguments, each with whether it is required.
    pub arguments: BTreeMap<String, bool>,
}

impl OfferedPrompt {
    pub(crate) fn read(said: &Value) -> Option<Self> {
        let plain = |value: &Value| clean(value.as_str().unwrap_or_default()).replace('\n', " ");
        let arguments = said["arguments"].as_array().into_iter().flatten();
        let arguments = arguments.filter_map(|argument| {
            let name = argument["name"].as_str()?.to_owned();
            Some((name, argument["required"] == Value::Bool(true)))
        });
        Some(Self {
            name: said["name"].as_str()?.to_owned(),
            description: gyrus_text::shorten(&plain(&said["description"]), MAX_ABOUT).into_owned(),
            arguments: arguments.collect(),
        })
    }

    /// Checks arguments against those that the prompt takes.
    ///
    /// # Errors
    /// The first mistake, for a person.
    pub(crate) fn check(&self, given: &BTreeMap<String, String>) -> Result<(), String> {
        let known: Vec<&str> = self.arguments.keys().map(String::as_str).collect();
        let takes = if known.is_empty() {
            "it takes none".to_owned()
        } else {
            format!("it takes {}", clean(&known.join(", ")))
        };
        let unknown = given
            .keys()
            .find(|name| !self.arguments.contains_key(*name));
        if let Some(name) = unknown {
            return Err(format!("it has no argument `{name}`; {takes}"));
        }
        let mut required = self.arguments.iter().filter(|(_, required)| **required);
        match required.find(|(name, _)| !given.contains_key(*name)) {
            Some((name, _)) => Err(format!(
                "its argument `{}` is missing; {takes}",
                clean(name)
            )),
            None => Ok(()),
        }
    }
}

pub(crate) fn getting(name: &str, arguments: &BTreeMap<String, String>) -> ClientRequest {
    let arguments: JsonObject = arguments
        .iter()
        .map(|(name, value)| (name.clone(), Value::from(value.as_str())))
        .collect();
    let params = GetPromptRequestParams::new(name).with_arguments(arguments);
    ClientRequest::GetPromptRequest(GetPromptRequest::new(params))
}

/// Returns the text of a prompt, bounded: its messages, each with who is supposed to say it.
pub(crate) fn text(answer: &Value) -> String {
    let messages = answer["messages"].as_array().into_iter().flatten();
    let said = messages.map(|message| {
        let role = match message["role"].as_str() {
            Some("assistant") => "assistant",
            _ => "user",
        };
        format!("{role}: {}", clean(&in_words(&message["content"])))
    });
    bounded(&said.collect::<Vec<_>>().join("\n\n"))
}
