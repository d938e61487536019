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

use std::time::Duration;

use gyrus_contract::{Model, Repeat, ToolSpec};
use jiff::Timestamp;
use serde_json::{Value, json};

use ask::{Asked, Question};
pub use context::ContextProbe;
pub use measured::{
    Clicks, Context, Convention, Latency, MEASURED_VERSION, Measured, ProbeFinding, TokenCount,
    apply,
};
pub use pictures::ProbePictures;

/// Bounds of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// Time limit of one answer.
    pub limit: Duration,
    /// Search for the longest prompt; `None` leaves it out.
    pub context: Option<ContextProbe>,
}

impl Default for Effort {
    /// Returns an effort of a minute for each answer, without a search for the longest prompt.
    fn default() -> Self {
        Self {
            limit: Duration::from_secs(60),
            context: None,
        }
    }
}

/// Measures `model`, which must load its pictures from [`ProbePictures`]. `progress` is called for each
/// probe as it ends: with its name and its result in words.
///
/// Six requests, and those of the context. A model whose tool calls are prompted is measured with
/// them. Dropping the future cancels the measurement.
pub async fn check(
    model: &dyn Model,
    effort: Effort,
    progress: &mut (dyn FnMut(&str, &str) + Send),
) -> Measured {
    let mut asked = Asked::new(model, effort.limit);
    let answers = answers(&mut asked).await;
    progress("answers", &answers.to_string());
    let mut measured = unmeasured(model.name(), answers);
    if measured.answers == ProbeFinding::Works {
        abilities(&mut asked, &mut measured, progress).await;
        if let Some(probe) = effort.context {
            let latency = asked.latency();
            let context = context::measure(&mut asked, probe).await;
            progress("context", &in_words(&context));
            measured.context = context.ok();
            measured.latency = latency;
        }
    }
    measured.requests = asked.requests;
    measured
}

async fn abilities(
    asked: &mut Asked<'_>,
    measured: &mut Measured,
    progress: &mut (dyn FnMut(&str, &str) + Send),
) {
    let pictures = ProbePictures::new();
    measured.tools = tool_call(asked).await;
    progress("tool calls", &measured.tools.to_string());
    measured.schema = schema(asked).await;
    progress("replies by a schema", &measured.schema.to_string());
    measured.images = image(asked, &pictures).await;
    progress("pictures", &measured.images.to_string());
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
    progress("pointing", &words);
    (measured.choice, measured.tokens) = choice(asked).await;
    progress("choosing an element", &measured.choice.to_string());
    measured.latency = asked.latency();
}

fn unmeasured(model: &str, answers: ProbeFinding) -> Measured {
    let not_tried = || unknown("it was not tried");
    Measured {
        version: MEASURED_VERSION,
        at: Timestamp::now().to_string(),
        model: model.to_owned(),
        answers,
        tools: not_tried(),
        schema: not_tried(),
        images: not_tried(),
        pointing: not_tried(),
        clicks: None,
        choice: not_tried(),
        context: None,
        tokens: None,
        latency: None,
        requests: 0,
    }
}

fn in_words(context: &Result<Context, String>) -> String {
    match context {
        Ok(Context {
            holds,
            too_long: None,
        }) => format!("at least {holds} tokens"),
        Ok(Context {
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

async fn answers(asked: &mut Asked<'_>) -> ProbeFinding {
    let question = Question {
        text: "Are you there? Answer with the word yes.".to_owned(),
        ..Question::default()
    };
    match asked.ask(question).await {
        Ok(_) => ProbeFinding::Works,
        // Any trouble counts as a failure: this is the simplest of questions.
        Err(trouble) => fails(trouble.words()),
    }
}

async fn tool_call(asked: &mut Asked<'_>) -> ProbeFinding {
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
    let question = Question {
        text: "Use your tool to put seven pieces of quince into the basket.".to_owned(),
        tool: Some(tool),
        ..Question::default()
    };
    let reply = match asked.ask(question).await {
        Ok(reply) => reply,
        Err(trouble) => return trouble.finding(),
    };
    let mut calls = reply.tool_calls();
    match (calls.next(), calls.next()) {
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
        (Some(_), None) => ProbeFinding::Works,
    }
}

/// Asks a question that invites anything but JSON, so that the answer shows whether a schema binds.
async fn schema(asked: &mut Asked<'_>) -> ProbeFinding {
    let question = Question {
        text: "Write a short poem about the sea.".to_owned(),
        schema: Some(json!({
            "type": "object",
            "properties": {
                "lines": {"type": "array", "items": {"type": "string"}},
                "mood": {"type": "string", "enum": ["calm", "wild"]},
            },
            "required": ["lines", "mood"],
            "additionalProperties": false,
        })),
        ..Question::default()
    };
    let text = match asked.ask(question).await {
        Ok(reply) => reply.text(),
        Err(trouble) => return trouble.finding(),
    };
    let value: Value = match serde_json::from_str(text.trim()) {
        Ok(value) => value,
        Err(_) => return fails(format!("it wrote {}", start_of(&text))),
    };
    let lines = value["lines"].as_array();
    let fits = lines.is_some_and(|lines| lines.iter().all(Value::is_string))
        && matches!(value["mood"].as_str(), Some("calm" | "wild"))
        && value.as_object().is_some_and(|object| object.len() == 2);
    if fits {
        ProbeFinding::Works
    } else {
        fails(format!("its JSON does not fit: {}", start_of(&text)))
    }
}

async fn image(asked: &mut Asked<'_>, pictures: &ProbePictures) -> ProbeFinding {
    let question = Question {
        text: "Which number stands in this picture? Answer with its digits only.".to_owned(),
        image: Some(pictures.number.clone()),
        ..Question::default()
    };
    match asked.ask(question).await {
        Ok(reply) if reply.text().contains(pictures::NUMBER) => ProbeFinding::Works,
        Ok(reply) => fails(format!(
            "it read {} in place of {}",
            start_of(&reply.text()),
            pictures::NUMBER
        )),
        Err(trouble) => trouble.finding(),
    }
}

/// Elements of a page as shown to a model, with two buttons that differ by their position.
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

async fn choice(asked: &mut Asked<'_>) -> (ProbeFinding, Option<TokenCount>) {
    const RIGHT: &str = "13";
    let question = Question {
        text: format!(
            "These are the elements on a screen:\n\n{TREE}\n\nWhich element must be pressed to \
             save the export under the name that is in its dialog? Answer with its number only."
        ),
        ..Question::default()
    };
    let bytes = question.text.len() as u64;
    let reply = match asked.ask(question).await {
        Ok(reply) => reply,
        Err(trouble) => return (trouble.finding(), None),
    };
    let usage = reply.usage.filter(|usage| usage.input_tokens > 0);
    let tokens = usage.map(|usage| TokenCount {
        bytes,
        counted: usage.input_tokens,
    });
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
