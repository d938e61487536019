//! A run as a script that plays its model's replies again.

use std::collections::BTreeMap;

use gyrus_contract::{EffectId, Part, Purpose, Reply};
use gyrus_journal::LogReader;
use gyrus_kernel::{AttemptResult, Entry, Stop};
use serde::Serialize;
use serde_json::Value;

use crate::LabError;

/// A script, in the form that `--model script:FILE` reads.
#[derive(Serialize)]
pub struct RecordedScript {
    reply: Vec<RecordedReply>,
}

#[derive(Serialize)]
struct RecordedReply {
    purpose: Purpose,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    calls: Vec<ScriptCall>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<ReplyUsage>,
}

#[derive(Serialize)]
struct ScriptCall {
    tool: String,
    arguments: toml::Value,
}

#[derive(Serialize)]
struct ReplyUsage {
    input: u64,
    output: u64,
}

impl RecordedScript {
    /// Returns the replies of a run by purpose, in the order of the requests.
    pub fn of(reader: &LogReader) -> Result<Self, LabError> {
        let mut asked: BTreeMap<EffectId, (Purpose, u64)> = BTreeMap::new();
        let mut replies: BTreeMap<(Purpose, u64), RecordedReply> = BTreeMap::new();
        for entry in reader.entries(1)? {
            match gyrus_kernel::parse(&entry?) {
                Ok(Entry::ModelCall(call)) => {
                    asked.insert(call.effect, (call.purpose, call.ordinal));
                }
                Ok(Entry::ModelReply(reply)) => {
                    let (Some(place), AttemptResult::Reply { reply }) =
                        (asked.get(&reply.effect), reply.came)
                    else {
                        continue;
                    };
                    let reply = reply
                        .read(|id| reader.blob(id).map_err(Stop::from))
                        .map_err(|error| {
                            LabError::failed("a reply cannot be read").because(error)
                        })?;
                    replies.insert(*place, scripted(place.0, &reply));
                }
                _ => {}
            }
        }
        Ok(Self {
            reply: without_gaps(replies),
        })
    }

    /// Returns the number of replies.
    pub fn replies(&self) -> usize {
        self.reply.len()
    }

    /// The text of the file.
    pub fn to_toml(&self) -> Result<String, LabError> {
        toml::to_string_pretty(self)
            .map_err(|error| LabError::failed("the replies cannot be written").because(error))
    }
}

/// Fills gaps in the replies with a remark, since a script counts replies and some questions may
/// never have been answered.
fn without_gaps(replies: BTreeMap<(Purpose, u64), RecordedReply>) -> Vec<RecordedReply> {
    let mut all = Vec::new();
    let mut next: BTreeMap<Purpose, u64> = BTreeMap::new();
    for ((purpose, ordinal), reply) in replies {
        let due = next.entry(purpose).or_default();
        for _ in *due..ordinal {
            all.push(RecordedReply {
                purpose,
                thinking: None,
                text: Some("(this question was not answered)".to_owned()),
                calls: Vec::new(),
                usage: None,
            });
        }
        *due = ordinal + 1;
        all.push(reply);
    }
    all
}

fn scripted(purpose: Purpose, reply: &Reply) -> RecordedReply {
    let thinking: Vec<&str> = reply
        .parts
        .iter()
        .filter_map(|part| match part {
            Part::Thinking(block) => block["thinking"].as_str(),
            _ => None,
        })
        .collect();
    let calls: Vec<ScriptCall> = reply
        .tool_calls()
        .map(|call| ScriptCall {
            tool: call.tool.clone(),
            arguments: arguments(&call.arguments),
        })
        .collect();
    let text = reply.text();
    let says_nothing = thinking.is_empty() && calls.is_empty();
    RecordedReply {
        purpose,
        thinking: (!thinking.is_empty()).then(|| thinking.join("\n")),
        text: (!text.is_empty() || says_nothing).then_some(text),
        calls,
        usage: reply.usage.map(|usage| ReplyUsage {
            input: usage.input_tokens,
            output: usage.output_tokens,
        }),
    }
}

/// Returns arguments as a table if that is equivalent, else as the JSON that the model wrote.
fn arguments(arguments: &Value) -> toml::Value {
    let as_table = toml::Value::try_from(arguments).ok();
    let same = as_table.filter(|table| {
        table.is_table() && serde_json::to_value(table).is_ok_and(|back| back == *arguments)
    });
    same.unwrap_or_else(|| match arguments {
        Value::String(text) => toml::Value::String(text.clone()),
        other => toml::Value::String(other.to_string()),
    })
}
