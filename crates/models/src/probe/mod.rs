//! Measures the abilities of a model: short questions with known answers, asked over its own wire.
//!
//! The one idea: one question is worth more than a claim about a model (its page, its name). Each
//! probe is one request, except for that of the context, which only runs on request. A model that
//! does not answer the first is asked nothing else.
//!
//! The pictures come from [`ProbePictures`], which must be the blob store that the model was connected
//! with.

mod ask;
mod context;
mod measured;
mod pictures;
mod pointing;

use gyrus_contract::{Model, Repeat, Reply, ToolSpec};
use serde_json::{Value, json};

use ask::{ProbeDialogue, ProbeQuestion, finding};
pub use context::ContextProbe;
pub use measured::{
    Clicks, ContextLength, Convention, Latency, MEASURED_VERSION, Measurements, ProbeFinding,
    TokenCount, apply,
};
pub use pictures::ProbePictures;

use crate::{CallStyle, call_reader::READ_FROM_TEXT};

/// Bounds of a measurement. A slow answer is waited for as long as the model's client waits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Effort {
    /// Search for the longest prompt; `None` leaves it out.
    pub context: Option<ContextProbe>,
}

/// Progress of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeStep<'a> {
    /// The probe of this name begins.
    Begins(&'a str),
    /// The probe of this name ended with this result.
    Ends(&'a str, &'a str),
}

/// Receives the progress of a measurement.
pub type ProbeProgress<'a> = dyn FnMut(ProbeStep<'_>) + Send + 'a;

/// Measures `model`, which must load its pictures from [`ProbePictures`] and be read by a
/// [`CallReader`](crate::CallReader), as [`connect`](crate::connect) returns it.
///
/// Six to eight requests, and those of the context: calls are tried natively, then prompted, then
/// bound, until one comes. Dropping the future cancels the measurement.
pub async fn check(
    model: &dyn Model,
    effort: Effort,
    progress: &mut ProbeProgress<'_>,
) -> Measurements {
    let mut asked = ProbeDialogue::new(model);
    progress(ProbeStep::Begins("answers"));
    let (answers, alone) = answers(&mut asked).await;
    progress(ProbeStep::Ends("answers", &answers.to_string()));
    let mut measured = unmeasured(model.name(), answers);
    if measured.answers == ProbeFinding::Works {
        progress(ProbeStep::Begins("tool calls"));
        let form = calls(&mut asked, &mut measured, alone).await;
        progress(ProbeStep::Ends("tool calls", &measured.calls_in_words()));
        abilities(&mut asked, &mut measured, progress).await;
        if form == Some(CallForm::Text) && measured.schema == ProbeFinding::Works {
            bind(&mut asked, &mut measured).await;
        }
        measured.window = model.window();
        if let Some(window) = measured.window {
            progress(ProbeStep::Ends("window", &format!("{window} tokens")));
        }
        if let Some(probe) = effort.context {
            progress(ProbeStep::Begins("context"));
            let context = context::measure(&mut asked, probe).await;
            progress(ProbeStep::Ends("context", &in_words(&context)));
            measured.context = context.ok();
        }
    }
    measured.requests = asked.requests;
    measured
}

/// Tries the forms of tools until the model calls one, and returns the form of that call. `alone` is
/// the token count of a prompt without tools.
async fn calls(
    asked: &mut ProbeDialogue<'_>,
    measured: &mut Measurements,
    alone: Option<u64>,
) -> Option<CallForm> {
    for style in [CallStyle::Native, CallStyle::Prompted, CallStyle::Bound] {
        let (finding, tokens, form) = tool_call(asked, style).await;
        let works = finding == ProbeFinding::Works;
        if style == CallStyle::Native {
            measured.tools = match (finding, alone.zip(tokens)) {
                (ProbeFinding::Fails { why }, Some((alone, with)))
                    if with < alone.saturating_add(FEWEST_TOOL_TOKENS) =>
                {
                    fails(format!(
                        "its server seems to leave tools out, since a prompt has {alone} tokens \
                         without and {with} with one; {why}"
                    ))
                }
                (finding, _) => finding,
            };
        }
        if works {
            measured.calls = Some(style);
            return Some(form);
        }
    }
    None
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallForm {
    /// As a call of the protocol.
    Wire,
    /// As text.
    Text,
}

/// Binds the replies to a schema for a model that writes its calls as text and whose server
/// enforces schemas: such a model often writes no call where one is due.
async fn bind(asked: &mut ProbeDialogue<'_>, measured: &mut Measurements) {
    if tool_call(asked, CallStyle::Bound).await.0 == ProbeFinding::Works {
        measured.calls = Some(CallStyle::Bound);
    }
}

async fn abilities(
    asked: &mut ProbeDialogue<'_>,
    measured: &mut Measurements,
    progress: &mut ProbeProgress<'_>,
) {
    let pictures = ProbePictures::new();
    progress(ProbeStep::Begins("replies by a schema"));
    measured.schema = schema(asked).await;
    let words = measured.schema.to_string();
    progress(ProbeStep::Ends("replies by a schema", &words));
    progress(ProbeStep::Begins("pictures"));
    measured.images = image(asked, &pictures).await;
    progress(ProbeStep::Ends("pictures", &measured.images.to_string()));
    progress(ProbeStep::Begins("pointing"));
    measured.pointing = match &measured.images {
        ProbeFinding::Works => match pointing::measure(asked, &pictures).await {
            Ok(clicks) => {
                measured.clicks = Some(clicks);
                ProbeFinding::Works
            }
            Err(finding) => finding,
        },
        _ => unknown("it was shown no screen, since it sees no pictures"),
    };
    let words = match &measured.clicks {
        Some(clicks) => format!(
            "in {}, off by {:.0} pixels, at most {:.0}",
            clicks.convention, clicks.median_error, clicks.largest_error
        ),
        None => measured.pointing.to_string(),
    };
    progress(ProbeStep::Ends("pointing", &words));
    progress(ProbeStep::Begins("choosing an element"));
    (measured.choice, measured.tokens) = choice(asked).await;
    let words = measured.choice.to_string();
    progress(ProbeStep::Ends("choosing an element", &words));
    measured.latency = asked.latency();
    measured.tokens_per_second = asked.speed();
}

fn unmeasured(model: &str, answers: ProbeFinding) -> Measurements {
    let not_tried = || unknown("it was not tried");
    Measurements {
        version: MEASURED_VERSION,
        at: gyrus_text::now().to_string(),
        model: model.to_owned(),
        answers,
        tools: not_tried(),
        calls: None,
        schema: not_tried(),
        images: not_tried(),
        pointing: not_tried(),
        clicks: None,
        choice: not_tried(),
        window: None,
        context: None,
        tokens: None,
        latency: None,
        tokens_per_second: None,
        requests: 0,
    }
}

fn in_words(context: &Result<ContextLength, String>) -> String {
    match context {
        Ok(ContextLength {
            holds,
            too_long: None,
        }) => format!("at least {holds} tokens"),
        Ok(ContextLength {
            holds,
            too_long: Some(too_long),
        }) => format!("{holds} tokens are held, {too_long} are not"),
        Err(why) => format!("not known: {why}"),
    }
}

fn unknown(why: &str) -> ProbeFinding {
    ProbeFinding::Unknown {
        why: why.to_owned(),
    }
}

fn fails(why: impl Into<String>) -> ProbeFinding {
    ProbeFinding::Fails { why: why.into() }
}

/// Returns the start of a model's text, to be quoted.
fn start_of(text: &str) -> String {
    const MOST: usize = 100;
    let start = gyrus_text::shorten(text.trim(), MOST);
    format!("`{}`", start.replace(gyrus_text::is_unseen, " "))
}

/// Returns whether the model answers, and the number of tokens of the prompt if its server counts
/// them.
async fn answers(asked: &mut ProbeDialogue<'_>) -> (ProbeFinding, Option<u64>) {
    let question = ProbeQuestion {
        text: "Are you there? Answer with the word yes.".to_owned(),
        ..ProbeQuestion::default()
    };
    match asked.ask(question).await {
        Ok(reply) => (ProbeFinding::Works, counted(&reply)),
        // Any error counts as a failure: this is the simplest of questions.
        Err(error) => (fails(error.to_string()), None),
    }
}

/// Returns the server's count of the prompt's tokens.
fn counted(reply: &Reply) -> Option<u64> {
    let tokens = reply.usage.map(|usage| usage.input_tokens);
    tokens.filter(|&tokens| tokens > 0)
}

/// Minimum number of tokens by which the tool of [`tool_call`] lengthens a prompt: its schema has
/// 300 bytes.
const FEWEST_TOOL_TOKENS: u64 = 24;

/// Returns whether the model calls a tool that it is offered in this way, the number of tokens of the
/// prompt if its server counts them, and the form of the call.
async fn tool_call(
    asked: &mut ProbeDialogue<'_>,
    calls: CallStyle,
) -> (ProbeFinding, Option<u64>, CallForm) {
    let expected = json!({"fruit": "quince", "pieces": 7});
    let tool = ToolSpec {
        name: "put_into_basket".to_owned(),
        description: "Puts pieces of a fruit into the basket.".to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {"fruit": {"type": "string"}, "pieces": {"type": "integer"}},
            "required": ["fruit", "pieces"],
            "additionalProperties": false,
        }),
        touches: Vec::new(),
        repeat: Repeat::Freely,
    };
    let name = tool.name.clone();
    let question = ProbeQuestion {
        text: "Use your tool to put seven pieces of quince into the basket.".to_owned(),
        tool: Some(tool),
        calls,
        ..ProbeQuestion::default()
    };
    let reply = match asked.ask(question).await {
        Ok(reply) => reply,
        Err(error) => return (finding(&error), None, CallForm::Wire),
    };
    let mut form = CallForm::Wire;
    let mut calls = reply.tool_calls();
    let finding = match (calls.next(), calls.next()) {
        (None, _) => fails(format!("it wrote {}", start_of(&reply.text()))),
        (Some(_), Some(_)) => fails("it called more than once"),
        (Some(call), None) if call.tool != name => fails(format!(
            "it called {}, which there is not",
            start_of(&call.tool)
        )),
        (Some(call), None) if call.arguments != expected => fails(format!(
            "its arguments were {} in place of `{expected}`",
            start_of(&call.arguments.to_string())
        )),
        (Some(call), None) => {
            if call.repairs.iter().any(|it| it == READ_FROM_TEXT) {
                form = CallForm::Text;
            }
            ProbeFinding::Works
        }
    };
    (finding, counted(&reply), form)
}

/// Asks a question that invites anything but JSON, to test whether a schema is enforced. Its values
/// are short: a small model never ends a list of lines.
async fn schema(asked: &mut ProbeDialogue<'_>) -> ProbeFinding {
    let question = ProbeQuestion {
        text: "Write a short poem about the sea.".to_owned(),
        schema: Some(json!({
            "type": "object",
            "properties": {
                "lines": {"type": "integer"},
                "mood": {"type": "string", "enum": ["calm", "wild"]},
            },
            "required": ["lines", "mood"],
            "additionalProperties": false,
        })),
        ..ProbeQuestion::default()
    };
    let text = match asked.ask(question).await {
        Ok(reply) => reply.text(),
        Err(error) => return finding(&error),
    };
    let value: Value = match serde_json::from_str(text.trim()) {
        Ok(value) => value,
        Err(_) => return fails(format!("it wrote {}", start_of(&text))),
    };
    let fits = value["lines"].is_i64()
        && matches!(value["mood"].as_str(), Some("calm" | "wild"))
        && value.as_object().is_some_and(|object| object.len() == 2);
    if fits {
        ProbeFinding::Works
    } else {
        fails(format!("its JSON does not fit: {}", start_of(&text)))
    }
}

async fn image(asked: &mut ProbeDialogue<'_>, pictures: &ProbePictures) -> ProbeFinding {
    let question = ProbeQuestion {
        text: "Which number stands in this picture? Answer with its digits only.".to_owned(),
        image: Some(pictures.number.clone()),
        ..ProbeQuestion::default()
    };
    match asked.ask(question).await {
        Ok(reply) if reply.text().contains(pictures::NUMBER) => ProbeFinding::Works,
        Ok(reply) => fails(format!(
            "it read {} in place of {}",
            start_of(&reply.text()),
            pictures::NUMBER
        )),
        Err(error) => finding(&error),
    }
}

/// Listing of a page's elements, with two buttons that differ only by position.
const TREE: &str = "\
[1] window \"Invoices\"
  [2] toolbar
    [3] button \"New\"
    [4] button \"Save\"
    [5] button \"Print\"
  [6] table \"Open invoices\"
    [7] row \"2026-104, Miller, 120.00\"
    [8] row \"2026-105, Okafor, 89.50\"
  [9] dialog \"Export\"
    [10] text field \"File name\"
    [11] combo box \"Format\"
    [12] button \"Cancel\"
    [13] button \"Save\"
  [14] status bar \"2 invoices\"";

async fn choice(asked: &mut ProbeDialogue<'_>) -> (ProbeFinding, Option<TokenCount>) {
    const RIGHT: &str = "13";
    let question = ProbeQuestion {
        text: format!(
            "These are the elements on a screen:\n\n{TREE}\n\nWhich element must be pressed to \
             save the export under the name that is in its dialog? Answer with its number only."
        ),
        ..ProbeQuestion::default()
    };
    let bytes = question.text.len() as u64;
    let reply = match asked.ask(question).await {
        Ok(reply) => reply,
        Err(error) => return (finding(&error), None),
    };
    let tokens = counted(&reply).map(|counted| TokenCount { bytes, counted });
    let text = reply.text();
    let mut numbers = text
        .split(|c: char| !c.is_ascii_digit())
        .filter(|digits| !digits.is_empty());
    let finding = match (numbers.next(), numbers.next()) {
        (Some(RIGHT), None) => ProbeFinding::Works,
        _ => fails(format!("it chose {} in place of {RIGHT}", start_of(&text))),
    };
    (finding, tokens)
}

#[cfg(test)]
mod tests;
