//! The format of a script: TOML, one `[[reply]]` after the other.
//!
//! Replies are counted by purpose: the n-th `[[reply]]` of a purpose answers the n-th request
//! for it. A mistake is reported with its line and what would be right, and an unknown word with
//! the nearest known one.

use std::{collections::BTreeMap, num::NonZero};

use gyrus_contract::{Price, Purpose, StopReason};
use gyrus_text::{FileMistake, file_mistake, line_of};
use regex::Regex;
use serde::{Deserialize, Deserializer, de::Error};
use serde_json::Value;
use toml::Spanned;

use super::ScriptError;

#[derive(Debug)]
pub(super) struct CheckedScript {
    /// Name of the file in messages.
    pub(super) file: String,
    pub(super) model: ModelSection,
    replies: Vec<ScriptedReply>,
}

/// The section `[model]` of a script.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ModelSection {
    #[serde(default = "scripted")]
    pub(super) name: String,
    price: Option<PriceSection>,
}

/// Microdollars per million tokens.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceSection {
    input: u64,
    output: u64,
}

/// A table `[[reply]]` of a script.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScriptedReply {
    /// Number of the line at which the reply begins.
    #[serde(skip)]
    pub(super) line: usize,
    #[serde(default = "agent")]
    purpose: Purpose,
    /// Pattern of the first message, which contains the goal: the reply is for runs with such a
    /// goal alone, and they get no others. So each sub-run has replies of its own.
    #[serde(default, deserialize_with = "regex")]
    goal: Option<Regex>,
    /// Pattern that the text of the last message must match.
    #[serde(default, deserialize_with = "regex")]
    pub(super) when: Option<Regex>,
    /// Patterns to find in the request, instructions included: `{{name}}` in the reply becomes the
    /// first group of its pattern's last match.
    #[serde(default, deserialize_with = "regexes")]
    find: BTreeMap<String, Regex>,
    pub(super) thinking: Option<String>,
    pub(super) text: Option<String>,
    #[serde(default)]
    pub(super) calls: Vec<ScriptedCall>,
    pub(super) usage: Option<ReportedUsage>,
    /// Fault that is simulated once, before the reply.
    pub(super) fault: Option<Fault>,
    /// Bytes of a stream: played once before the reply if there is one, otherwise always.
    pub(super) raw: Option<String>,
    pub(super) stop: Option<StopReason>,
    #[serde(default = "once")]
    repeat: NonZero<u64>,
}

/// The content of a reply with all placeholders replaced.
#[derive(Debug)]
pub(super) struct FilledReply {
    pub(super) thinking: Option<String>,
    pub(super) text: Option<String>,
    pub(super) calls: Vec<ScriptedCall>,
    pub(super) usage: Option<ReportedUsage>,
    pub(super) stop: Option<StopReason>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScriptedCall {
    pub(super) tool: String,
    /// Text of the arguments: the JSON of a table, or a text as it is, JSON or not.
    #[serde(default, deserialize_with = "json_text")]
    pub(super) arguments: String,
}

/// Usage reported instead of an estimate.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "expected `{ input = TOKENS, output = TOKENS }` or \"none\""
)]
pub(super) enum ReportedUsage {
    Tokens { input: u64, output: u64 },
    Nothing(Nothing),
}

/// The word `none`, for a server that reports no usage.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Nothing {
    None,
}

/// Faults of real providers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Fault {
    /// A response with HTTP status 529.
    Overloaded,
    /// HTTP 429 with a short delay.
    RateLimited,
    /// The stream ends in the middle.
    Cut,
    /// An error event in a stream that began well.
    ErrorEvent,
    /// An event that is not JSON.
    Garbage,
    /// The correct reply, in pieces of one byte.
    SlowBytes,
}

impl CheckedScript {
    /// Parses a script; `file` is its name for messages.
    pub(super) fn parse(file: &str, text: &str) -> Result<Self, ScriptError> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Raw {
            model: Option<ModelSection>,
            #[serde(default)]
            reply: Vec<Spanned<ScriptedReply>>,
        }
        let wrong = |mistake| ScriptError::Format {
            file: file.to_owned(),
            mistake,
        };
        let error = |line, message| {
            wrong(FileMistake {
                line,
                message,
                nearest: None,
            })
        };
        let raw: Raw = toml::from_str(text)
            .map_err(|error| wrong(file_mistake(text, error.span(), error.message())))?;
        if raw.reply.is_empty() {
            return Err(error(1, "a script needs at least one [[reply]]".to_owned()));
        }
        let mut replies = Vec::with_capacity(raw.reply.len());
        for reply in raw.reply {
            let line = line_of(text, reply.span().start);
            let reply = ScriptedReply {
                line,
                ..reply.into_inner()
            };
            if !reply.has_content() && reply.raw.is_none() {
                let message = "this reply is empty; give it `text`, `thinking`, `calls` or `raw`";
                return Err(error(line, message.to_owned()));
            }
            if reply.fault.is_some() && reply.raw.is_some() {
                let message = "`raw` already says what goes wrong; leave out `fault`";
                return Err(error(line, message.to_owned()));
            }
            replies.push(reply);
        }
        let model = raw.model.unwrap_or_else(|| ModelSection {
            name: scripted(),
            price: None,
        });
        Ok(Self {
            file: file.to_owned(),
            model,
            replies,
        })
    }

    /// Returns the price of the model, if the script contains it.
    pub(super) fn price(&self) -> Option<Price> {
        self.model
            .price
            .map(|price| Price::new(price.input, price.output))
    }

    /// Returns the reply to the request for `purpose` with this ordinal, counted from 0, in a
    /// conversation with this first message. The error is the number of replies.
    pub(super) fn reply(
        &self,
        purpose: Purpose,
        ordinal: u64,
        first: &str,
    ) -> Result<&ScriptedReply, u64> {
        let is_for = |reply: &&ScriptedReply| {
            let goal = reply.goal.as_ref();
            reply.purpose == purpose && goal.is_some_and(|goal| goal.is_match(first))
        };
        let for_goal: Vec<_> = self.replies.iter().filter(is_for).collect();
        let for_all = |reply: &&ScriptedReply| reply.purpose == purpose && reply.goal.is_none();
        let replies = if for_goal.is_empty() {
            self.replies.iter().filter(for_all).collect()
        } else {
            for_goal
        };
        let mut count = 0_u64;
        for reply in replies {
            count = count.saturating_add(reply.repeat.get());
            if ordinal < count {
                return Ok(reply);
            }
        }
        Err(count)
    }
}

impl ScriptedReply {
    /// Returns the reply with the matches found in `request`. The error names what was not found.
    pub(super) fn filled(&self, request: &str) -> Result<FilledReply, String> {
        let mut found = Vec::new();
        for (name, pattern) in &self.find {
            let last = pattern.captures_iter(request).last();
            match last.and_then(|captures| captures.get(1)) {
                Some(group) => found.push((format!("{{{{{name}}}}}"), group.as_str())),
                None => return Err(format!("`{name}`, which is to match `{pattern}`")),
            }
        }
        let fill = |text: &str| {
            found.iter().fold(text.to_owned(), |text, (name, value)| {
                text.replace(name, value)
            })
        };
        Ok(FilledReply {
            thinking: self.thinking.as_deref().map(fill),
            text: self.text.as_deref().map(fill),
            calls: self
                .calls
                .iter()
                .map(|call| ScriptedCall {
                    tool: call.tool.clone(),
                    arguments: fill(&call.arguments),
                })
                .collect(),
            usage: self.usage,
            stop: self.stop,
        })
    }

    /// Whether the reply has content besides `raw`.
    pub(super) fn has_content(&self) -> bool {
        self.text.is_some() || self.thinking.is_some() || !self.calls.is_empty()
    }
}

fn scripted() -> String {
    "scripted".to_owned()
}

fn agent() -> Purpose {
    Purpose::Agent
}

fn once() -> NonZero<u64> {
    NonZero::<u64>::MIN
}

fn regex<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Regex>, D::Error> {
    let pattern = String::deserialize(deserializer)?;
    Regex::new(&pattern).map(Some).map_err(|error| {
        // The crate draws the place on several lines; the last one is the description.
        let error = error.to_string();
        let reason = error
            .lines()
            .last()
            .unwrap_or_default()
            .trim_start_matches("error: ");
        D::Error::custom(format!("invalid regular expression `{pattern}`: {reason}"))
    })
}

fn regexes<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, Regex>, D::Error> {
    #[derive(Deserialize)]
    #[serde(transparent)]
    struct One(#[serde(deserialize_with = "regex")] Option<Regex>);
    let named = BTreeMap::<String, One>::deserialize(deserializer)?;
    let named = named.into_iter();
    Ok(named
        .filter_map(|(name, One(pattern))| Some((name, pattern?)))
        .collect())
}

fn json_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    match toml::Value::deserialize(deserializer)? {
        toml::Value::String(text) => Ok(text),
        table @ toml::Value::Table(_) => to_json(table).map(|json| json.to_string()),
        other => Err(format!(
            "arguments are a table, or a text that is sent as it stands, not {}",
            other.type_str()
        )),
    }
    .map_err(D::Error::custom)
}

fn to_json(value: toml::Value) -> Result<Value, String> {
    Ok(match value {
        toml::Value::String(text) => text.into(),
        toml::Value::Integer(number) => number.into(),
        toml::Value::Float(number) if !number.is_finite() => {
            return Err(format!("JSON has no number `{number}`"));
        }
        toml::Value::Float(number) => number.into(),
        toml::Value::Boolean(truth) => truth.into(),
        toml::Value::Datetime(time) => time.to_string().into(),
        toml::Value::Array(items) => items.into_iter().map(to_json).collect::<Result<_, _>>()?,
        toml::Value::Table(fields) => Value::Object(
            fields
                .into_iter()
                .map(|(name, value)| Ok((name, to_json(value)?)))
                .collect::<Result<_, String>>()?,
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_of(script: &str) -> String {
        CheckedScript::parse("demo.toml", script)
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn replies_are_counted_by_purpose() {
        let script = CheckedScript::parse(
            "demo.toml",
            r#"
            [[reply]]
            text = "a"
            repeat = 2
            [[reply]]
            purpose = "summarise"
            text = "b"
            [[reply]]
            text = "c"
            "#,
        )
        .unwrap();
        let text = |purpose, ordinal| {
            script
                .reply(purpose, ordinal, "")
                .map(|reply| (reply.text.as_deref().unwrap(), reply.line))
        };
        assert_eq!(text(Purpose::Agent, 0), Ok(("a", 2)));
        assert_eq!(text(Purpose::Agent, 1), Ok(("a", 2)));
        assert_eq!(text(Purpose::Agent, 2), Ok(("c", 8)));
        assert_eq!(text(Purpose::Agent, 3), Err(3));
        assert_eq!(text(Purpose::Summarise, 0), Ok(("b", 5)));
        assert_eq!(text(Purpose::Plan, 0), Err(0));
        assert_eq!(script.model.name, "scripted");
        assert_eq!(script.price(), None);
    }

    #[test]
    fn arguments_become_json() {
        let script = CheckedScript::parse(
            "demo.toml",
            r#"
            [[reply]]
            calls = [
              { tool = "write", arguments = { path = "a", lines = [1, 2.5, true], on = 2026-01-02 } },
              { tool = "done" },
              { tool = "odd", arguments = '{"cut' },
            ]
            "#,
        )
        .unwrap();
        let arguments: Vec<_> = script.replies[0]
            .calls
            .iter()
            .map(|c| &*c.arguments)
            .collect();
        let table = r#"{"lines":[1,2.5,true],"on":"2026-01-02","path":"a"}"#;
        assert_eq!(arguments, [table, "", r#"{"cut"#]);
    }

    #[test]
    fn mistakes_are_reported_with_line_and_remedy() {
        insta::assert_snapshot!(error_of(""), @"demo.toml, line 1: a script needs at least one [[reply]]");
        insta::assert_snapshot!(error_of("\n[[reply]]\ntext = \"a\"\ntxet = 1\n"), @"demo.toml, line 4: unknown key `txet`, expected one of `purpose`, `goal`, `when`, `find`, `thinking`, `text`, `calls`, `usage`, `fault`, `raw`, `stop`, `repeat`; did you mean `text`?");
        insta::assert_snapshot!(error_of("[[replies]]\ntext = \"a\"\n"), @"demo.toml, line 1: unknown key `replies`, expected `model` or `reply`; did you mean `reply`?");
        insta::assert_snapshot!(error_of("[[reply]]\npurpose = \"agnet\"\n"), @"demo.toml, line 2: unknown word `agnet`, expected one of `agent`, `plan`, `reflect`, `verify`, `safety`, `summarise`, `mandate`, `sampling`; did you mean `agent`?");
        insta::assert_snapshot!(error_of("[[reply]]\ntext = \"a\"\nfault = \"timeout\"\n"), @"demo.toml, line 3: unknown word `timeout`, expected one of `overloaded`, `rate-limited`, `cut`, `error-event`, `garbage`, `slow-bytes`");
        insta::assert_snapshot!(error_of("[[reply]]\ntext = \"a\"\nstop = \"max-tokens\"\n"), @"demo.toml, line 3: unknown word `max-tokens`, expected one of `end_of_turn`, `tool_calls`, `max_tokens`; did you mean `max_tokens`?");
        insta::assert_snapshot!(error_of("[[reply]]\ntext = \"a\"\n\nwhen = \"(a\"\n"), @"demo.toml, line 4: invalid regular expression `(a`: unclosed group");
        insta::assert_snapshot!(error_of("[[reply]]\ntext = \"a\"\nusage = \"no\"\n"), @r#"demo.toml, line 3: expected `{ input = TOKENS, output = TOKENS }` or "none""#);
        insta::assert_snapshot!(error_of("[[reply]]\ntext = \"a\"\nrepeat = 0\n"), @"demo.toml, line 3: invalid value: integer `0`, expected a nonzero u64");
        insta::assert_snapshot!(error_of("[[reply]]\ntext = 5\n"), @"demo.toml, line 2: invalid type: integer `5`, expected a string");
        insta::assert_snapshot!(error_of("[[reply]]\ntext = \"a\n"), @r#"demo.toml, line 2: invalid basic string, expected `"`"#);
        insta::assert_snapshot!(error_of("[model]\nname = \"m\"\n\n[[reply]]\nrepeat = 2\n"), @"demo.toml, line 4: this reply is empty; give it `text`, `thinking`, `calls` or `raw`");
        insta::assert_snapshot!(error_of("[[reply]]\nraw = \"x\"\nfault = \"cut\"\n"), @"demo.toml, line 1: `raw` already says what goes wrong; leave out `fault`");
        insta::assert_snapshot!(error_of("[[reply]]\ncalls = [{ arguments = {} }]\n"), @"demo.toml, line 2: missing key `tool`");
        insta::assert_snapshot!(
            error_of("[[reply]]\ncalls = [{ tool = \"a\", arguments = { x = nan } }]\n"), @"demo.toml, line 2: JSON has no number `NaN`"
        );
        insta::assert_snapshot!(
            error_of("[model]\nprice = { input = 1, output = 2, cached = 1 }\n"), @"demo.toml, line 2: unknown key `cached`, expected `input` or `output`"
        );
    }
}
