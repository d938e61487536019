//! Servers that misbehave, as data: each case in `cases/*.toml` is an answer, byte by byte, and the
//! end that the client must come to.
//!
//! `events` are framed as the protocol frames them, and `body` follows as it is. In both, `✂`
//! separates what arrives in two pieces, and `⟨f0 9f⟩` stands for bytes that are not text. A time
//! from now is written as `{epoch+7200}`, `{millis+7200}`, `{date+7200}` or `{stamp+7200}`.
//!
//! `cargo xtask wire` prints the table of all cases; with words, that of the cases whose name has
//! them.

use std::{collections::BTreeMap, fmt::Write as _, io::Write as _, time::Instant};

use flate2::{Compression, write::GzEncoder};
use gyrus_contract::{Delta, ModelError, Reply};
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    dialect::Dialect,
    dialects,
    prompts::ask,
    server::{Answer, Ending},
};

const FILES: [(&str, &str); 5] = [
    ("chat", include_str!("cases/chat.toml")),
    ("protocols", include_str!("cases/protocols.toml")),
    ("too long", include_str!("cases/too_long.toml")),
    ("refusals", include_str!("cases/refusals.toml")),
    ("quotas", include_str!("cases/quotas.toml")),
];

/// Variable with words of the names of the cases to play; it also has the table printed.
const ONLY: &str = "GYRUS_WIRE";

/// Difference that is accepted where a delay is reckoned from now, in milliseconds.
const MARGIN_MS: u64 = 60_000;

#[derive(Deserialize)]
struct File {
    case: Vec<Case>,
}

/// One answer, and the end that is expected: the parts of a reply, or an error.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    /// The protocols that it is played with; all if it names none.
    #[serde(default)]
    wires: Vec<String>,
    #[serde(default = "ok")]
    status: u16,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    events: Vec<String>,
    #[serde(default)]
    body: String,
    #[serde(default)]
    gzip: bool,
    /// Whether the connection breaks instead of ending.
    #[serde(default)]
    breaks: bool,

    text: Option<String>,
    thinking: Option<String>,
    /// Each is a name, a space, and arguments in JSON.
    #[serde(default)]
    calls: Vec<String>,
    stop: Option<String>,
    /// Tokens of prompt and reply.
    usage: Option<[u64; 2]>,
    /// Kind of the error, as a journal writes it.
    error: Option<String>,
    after_ms: Option<u64>,
    /// Words that the error contains.
    says: Option<String>,
}

fn ok() -> u16 {
    200
}

impl Case {
    fn answer(&self, dialect: &dyn Dialect) -> Answer {
        let is_lines = dialect.event_end() == "\n";
        let frame = if is_lines {
            ("", "\n")
        } else {
            ("data: ", "\n\n")
        };
        let framed = self.events.iter();
        let framed = framed.map(|event| format!("{}{event}{}", frame.0, frame.1));
        let body = with_times(&(framed.collect::<String>() + &self.body));
        let mut pieces: Vec<_> = body.split('✂').map(bytes).collect();
        if self.gzip {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(&pieces.concat()).unwrap();
            // The head of the format is split too.
            pieces = encoder
                .finish()
                .unwrap()
                .chunks(7)
                .map(<[u8]>::to_vec)
                .collect();
        }
        let mut headers = self.headers.clone();
        if !headers.contains_key("content-type") {
            let is_stream = self.status == 200 && !self.events.is_empty();
            let kind = if is_stream {
                dialect.content_type()
            } else {
                "application/json"
            };
            headers.insert("content-type".to_owned(), kind.to_owned());
        }
        Answer {
            status: self.status,
            headers: headers
                .iter()
                .map(|(name, value)| (name.clone(), with_times(value)))
                .collect(),
            pieces,
            ending: if self.breaks {
                Ending::Abort
            } else {
                Ending::Clean
            },
        }
    }

    /// Returns the differences between what is expected and what came; empty if there are none.
    fn differences(&self, came: &Result<Reply, ModelError>, deltas: &[Delta]) -> String {
        let (expected, found) = match came {
            Ok(reply) => (self.expected_reply(), self.fields_of(reply, deltas)),
            Err(error) => (self.expected_error(), self.fields_of_error(error)),
        };
        if expected == found {
            return String::new();
        }
        let words = came.as_ref().err().map(ToString::to_string);
        let words = words.unwrap_or_default();
        format!("expected {expected}\n        came {found}\n    {words}")
    }

    fn expected_reply(&self) -> Value {
        let stop = if self.calls.is_empty() {
            "end_of_turn"
        } else {
            "tool_calls"
        };
        json!({
            "error": self.error,
            "text": self.text.as_deref().unwrap_or_default(),
            "calls": self.calls,
            "stop": self.stop.as_deref().unwrap_or(stop),
            "usage": self.usage,
            "thinking": self.thinking,
        })
    }

    /// Returns the same fields of a reply; those of which nothing is expected are null.
    fn fields_of(&self, reply: &Reply, deltas: &[Delta]) -> Value {
        let calls = reply.tool_calls();
        let calls = calls.map(|call| format!("{} {}", call.tool, call.arguments));
        let thought = deltas.iter().filter_map(|delta| match delta {
            Delta::Thinking(text) => Some(text.as_str()),
            Delta::Text(_) | Delta::Tool(_) => None,
        });
        let usage = reply.usage.filter(|_| self.usage.is_some());
        json!({
            "error": null,
            "text": reply.text(),
            "calls": calls.collect::<Vec<_>>(),
            "stop": reply.stop,
            "usage": usage.map(|usage| [usage.input_tokens, usage.output_tokens]),
            "thinking": self.thinking.as_ref().map(|_| thought.collect::<String>()),
        })
    }

    fn expected_error(&self) -> Value {
        json!({"error": self.error, "after_ms": self.after_ms, "says": self.says.is_some()})
    }

    fn fields_of_error(&self, error: &ModelError) -> Value {
        let stored = serde_json::to_value(error).unwrap();
        let after_ms = error.retry_after_ms();
        let is_near = after_ms.zip(self.after_ms).is_some_and(|(is, expected)| {
            self.reckons_from_now() && is.abs_diff(expected) < MARGIN_MS
        });
        let says = self.says.as_deref();
        json!({
            "error": stored["error"],
            "after_ms": if is_near { self.after_ms } else { after_ms },
            "says": says.is_some_and(|words| error.to_string().contains(words)),
        })
    }

    fn reckons_from_now(&self) -> bool {
        let mut texts = self.headers.values().chain([&self.body]);
        texts.any(|text| with_times(text) != *text)
    }
}

/// Replaces `⟨…⟩` by the bytes in it.
fn bytes(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (number, part) in text.split(['⟨', '⟩']).enumerate() {
        if number % 2 == 0 {
            bytes.extend_from_slice(part.as_bytes());
        } else {
            bytes.extend(
                part.split(' ')
                    .map(|byte| u8::from_str_radix(byte, 16).unwrap()),
            );
        }
    }
    bytes
}

/// Replaces times from now, such as `{epoch+60}`.
fn with_times(text: &str) -> String {
    let mut text = text.to_owned();
    for form in ["epoch", "millis", "date", "stamp"] {
        let begins = format!("{{{form}+");
        while let Some(start) = text.find(&begins) {
            let length = text[start..].find('}').unwrap();
            let seconds = text[start + begins.len()..start + length].parse().unwrap();
            let time = Timestamp::now() + SignedDuration::from_secs(seconds);
            let written = match form {
                "epoch" => time.as_second().to_string(),
                "millis" => time.as_millisecond().to_string(),
                "date" => time.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string(),
                _ => time.to_string(),
            };
            text.replace_range(start..=start + length, &written);
        }
    }
    text
}

#[tokio::test]
async fn misbehaving_servers_end_well() {
    let only = std::env::var(ONLY).ok();
    let since = Instant::now();
    let (mut table, mut failures, mut all) = (String::new(), String::new(), 0);
    for (file, text) in FILES {
        let file_cases: File =
            toml::from_str(text).unwrap_or_else(|error| panic!("{file}: {error}"));
        let mut passed = BTreeMap::new();
        for case in &file_cases.case {
            if only
                .as_ref()
                .is_some_and(|only| !case.name.contains(only.as_str()))
            {
                continue;
            }
            let named = |dialect: &&dyn Dialect| {
                case.wires.is_empty() || case.wires.iter().any(|wire| wire == dialect.name())
            };
            for dialect in dialects().into_iter().filter(named) {
                let (came, deltas) = ask(dialect, case.answer(dialect)).await;
                let differences = case.differences(&came, &deltas);
                let (good, played) = passed.entry(dialect.name()).or_insert((0, 0));
                *played += 1;
                all += 1;
                if differences.is_empty() {
                    *good += 1;
                } else {
                    writeln!(
                        failures,
                        "{file}, {}: {}\n    {differences}",
                        dialect.name(),
                        case.name
                    )
                    .unwrap();
                }
            }
        }
        for (wire, (good, played)) in passed {
            writeln!(table, "| {file} | {wire} | {good} | {} |", played - good).unwrap();
        }
    }
    let failed = failures
        .lines()
        .filter(|line| !line.starts_with(' '))
        .count();
    if only.is_some() {
        println!("| cases | protocol | passed | failed |\n| --- | --- | ---: | ---: |\n{table}");
        println!(
            "{} of {all} passed in {:.1} s",
            all - failed,
            since.elapsed().as_secs_f64()
        );
    }
    assert!(
        failures.is_empty(),
        "{failed} of {all} cases failed\n{failures}"
    );
    assert!(all > 0, "no case has these words in its name");
}
