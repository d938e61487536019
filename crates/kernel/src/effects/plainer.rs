//! A request that a model's server refused, made plainer: the one place that decides what is left
//! out next.
//!
//! The same request would be refused again. So what is new in it since the last one that this
//! model's server accepted is left out, one thing at a time in a fixed order; the server's words may
//! change the order, because most servers name what they do not like. What is left out stays left
//! out for the rest of the run, and is remembered for the model once a request without it was
//! accepted.

use std::collections::BTreeSet;

use gyrus_contract::{BlobId, Message, Part, Plainness, Prompt, Simplification};

/// The properties of a prompt that a server may refuse.
#[derive(Debug, Clone, Default)]
pub(crate) struct Features {
    pictures: BTreeSet<BlobId>,
    has_screen: bool,
    has_thinking: bool,
    tools: BTreeSet<String>,
    has_calls: bool,
    has_plain_schemas: bool,
    is_bound: bool,
    bytes: usize,
}

impl Features {
    pub(super) fn of(prompt: &Prompt) -> Self {
        let mut features = Self {
            has_screen: prompt.screen.is_some(),
            tools: prompt.tools.iter().map(|tool| tool.name.clone()).collect(),
            has_plain_schemas: Plainness::has_plain_schemas(prompt),
            is_bound: prompt.must_call || prompt.output_schema.is_some(),
            ..Self::default()
        };
        for message in &prompt.messages {
            features.add(message);
        }
        features
    }

    fn add(&mut self, message: &Message) {
        for part in &message.parts {
            match part {
                Part::Text(text) => self.bytes += text.text.len(),
                Part::Image(image) => {
                    self.pictures.insert(image.blob);
                }
                Part::ToolResult(result) => {
                    self.has_calls = true;
                    self.bytes += result.text.text.len();
                    self.pictures.extend(result.images.iter().map(|it| it.blob));
                }
                Part::Thinking(_) => self.has_thinking = true,
                Part::ToolCall(_) => self.has_calls = true,
            }
        }
    }

    /// Adds the properties of another accepted prompt.
    pub(super) fn also(&mut self, other: Self) {
        self.pictures.extend(other.pictures);
        self.has_thinking |= other.has_thinking;
        self.tools.extend(other.tools);
        self.has_calls |= other.has_calls;
        self.is_bound |= other.is_bound;
        self.bytes = self.bytes.max(other.bytes);
    }
}

/// The change by which a refused request may be accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Remedy {
    /// Leave a part of the request out.
    Without(Simplification),
    /// Leave these pictures out.
    WithoutPictures(BTreeSet<BlobId>),
    /// Summarise the conversation.
    Compact,
}

/// The smallest conversation that a summary could shorten, in bytes.
const WORTH_A_SUMMARY: usize = 8 * 1024;

/// Returns the change to make after a refusal with these words. `sent` is the refused request with
/// `left_out` left out of it, `accepted` what the same model's server accepted before. `None` if
/// nothing in the request is new, or the request was not the reason.
pub(super) fn remedy(
    sent: &Features,
    left_out: &Plainness,
    accepted: Option<&Features>,
    words: &str,
) -> Option<Remedy> {
    let words = words.to_lowercase();
    if is_about_the_model(&words) {
        return None;
    }
    let nothing = Features::default();
    let before = accepted.unwrap_or(&nothing);
    let new_pictures: BTreeSet<BlobId> = sent
        .pictures
        .difference(&before.pictures)
        .copied()
        .collect();
    let fits = |step: Simplification| {
        if left_out.steps.contains(&step) {
            return false;
        }
        let named = names(step, &words);
        match step {
            Simplification::FewTools | Simplification::OneObject => false,
            Simplification::SmallerPictures => {
                named && !sent.has_screen && !new_pictures.is_empty()
            }
            Simplification::NoPictures => !new_pictures.is_empty(),
            Simplification::NoThinking => sent.has_thinking && (named || !before.has_thinking),
            Simplification::PlainSchemas => {
                !sent.has_plain_schemas && (named || !sent.tools.is_subset(&before.tools))
            }
            Simplification::UnboundReply => sent.is_bound && (named || !before.is_bound),
            Simplification::FewParameters => named || accepted.is_none(),
            Simplification::CallsInText => {
                let has_new_tools = !sent.tools.is_empty() && before.tools.is_empty();
                has_new_tools || sent.has_calls && !before.has_calls
            }
        }
    };
    let is_longer = sent.bytes > before.bytes.max(WORTH_A_SUMMARY);
    if is_longer && is_about_length(&words) && !names(Simplification::SmallerPictures, &words) {
        return Some(Remedy::Compact);
    }
    let steps = Simplification::REMEDIES
        .into_iter()
        .filter(|step| fits(*step));
    let named = steps.clone().find(|step| names(*step, &words));
    match named.or_else(|| steps.clone().next()) {
        Some(Simplification::NoPictures) => {
            // One picture may be broken; a second refusal, or the server's words, mean all.
            let all = !left_out.pictures.is_empty() || is_about_eyes(&words);
            Some(if all {
                Remedy::Without(Simplification::NoPictures)
            } else {
                Remedy::WithoutPictures(new_pictures)
            })
        }
        Some(step) => Some(Remedy::Without(step)),
        None => is_longer.then_some(Remedy::Compact),
    }
}

/// Whether a server's words say that there is no such model, which no change of the request can
/// fix.
pub(super) fn is_about_the_model(words: &str) -> bool {
    let words = words.to_lowercase();
    let missing = [
        "not found",
        "does not exist",
        "no such model",
        "not exist",
        "unknown model",
    ];
    words.contains("model")
        && missing.iter().any(|said| words.contains(said))
        && !Simplification::REMEDIES
            .iter()
            .any(|step| names(*step, &words))
}

fn is_about_length(words: &str) -> bool {
    let said = [
        "too long",
        "too large",
        "context",
        "maximum length",
        "max length",
        "token limit",
    ];
    said.iter().any(|said| words.contains(said))
}

/// Whether a server's words say that pictures, and not the conversation, are too large.
pub(super) fn is_about_large_pictures(words: &str) -> bool {
    names(Simplification::SmallerPictures, &words.to_lowercase())
}

/// Whether a server's words say that its model takes no pictures at all.
fn is_about_eyes(words: &str) -> bool {
    let said = [
        "not support",
        "unsupported",
        "does not accept",
        "text-only",
        "text only",
        "mmproj",
    ];
    said.iter().any(|said| words.contains(said))
}

/// Words of servers about parameters of a request.
const PARAMETERS: [&str; 17] = [
    "stream_options",
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "cache_control",
    "unrecognized",
    "unknown field",
    "unknown name",
    "unknown parameter",
    "unsupported parameter",
    "extra inputs",
    "extra fields",
    "not permitted",
    "num_ctx",
    "keep_alive",
    "prompt_cache",
    "effort",
];

/// Whether a server's words, in lower case, name the part that a step leaves out.
fn names(step: Simplification, words: &str) -> bool {
    let any = |said: &[&str]| said.iter().any(|said| words.contains(said));
    let pictures = ["image", "picture", "vision", "multimodal", "mmproj"];
    match step {
        Simplification::FewTools | Simplification::OneObject => false,
        Simplification::SmallerPictures => {
            any(&pictures)
                && any(&[
                    "too large",
                    "too big",
                    "exceed",
                    "dimension",
                    "resolution",
                    "pixels",
                    "size",
                ])
        }
        Simplification::NoPictures => any(&pictures),
        Simplification::NoThinking => any(&["thinking", "signature", "reasoning", "thought"]),
        Simplification::PlainSchemas => any(&[
            "schema",
            "function_declarations",
            "additionalproperties",
            "anyof",
            "oneof",
            "$ref",
            "tools[",
            "tools.",
            "input_schema",
        ]),
        Simplification::UnboundReply => any(&[
            "tool_choice",
            "response_format",
            "json_schema",
            "structured output",
            "grammar",
            "text.format",
            "responseschema",
        ]),
        Simplification::FewParameters => any(&PARAMETERS),
        Simplification::CallsInText => {
            any(&["tool", "function call"])
                && any(&[
                    "not support",
                    "unsupported",
                    "not available",
                    "not enabled",
                    "requires",
                    "no endpoints",
                ])
        }
    }
}

#[cfg(test)]
mod tests;
