//! An entry as one line for a person. The console shows some of them live, `gyrus show` all.

use std::collections::BTreeMap;

use gyrus_contract::{EffectId, MessageBody, ResolvedPath, Text, ToolCall, View};
use gyrus_journal::{Payload, Reader};
use gyrus_kernel::{
    APPROVAL_REFUSED, AttemptResult, Ending, Entry, Inline, ScreenViewed, Settled, Stop,
    ToolResulted, summary,
};
use gyrus_loops::{REFLECTION, WENT_RIGHT};
use gyrus_text::counted;
use serde_json::Value;

use gyrus_text::span;

use super::paint::Paint;

/// Whether a line is worth a look while a run goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weight {
    /// The console shows it.
    Main,
    /// Only who asks for the whole timeline sees it.
    Detail,
}

/// One entry, for reading. The text is not made visible yet.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Line {
    pub(crate) weight: Weight,
    pub(crate) paint: Paint,
    /// One character that says what kind of thing it is.
    pub(crate) mark: char,
    pub(crate) text: String,
    /// Of the effect that it belongs to.
    pub(crate) effect: Option<EffectId>,
}

impl Line {
    fn main(paint: Paint, mark: char, text: impl Into<String>) -> Self {
        Self {
            weight: Weight::Main,
            paint,
            mark,
            text: text.into(),
            effect: None,
        }
    }

    fn detail(mark: char, text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            weight: Weight::Detail,
            paint: Paint::Aside,
            mark,
            text,
            effect: None,
        }
    }
}

/// The line for an entry of a journal; large values are read from its blobs. What this gyrus does
/// not understand is shown as it stands.
pub(crate) fn of(entry: &gyrus_journal::Entry, reader: &Reader) -> Line {
    match gyrus_kernel::parse(entry) {
        Ok(parsed) => {
            let effect = parsed.effect().cloned();
            Line {
                effect,
                ..known(&parsed, reader)
            }
        }
        Err(_) => match &entry.payload {
            Payload::Json(payload) => {
                Line::detail('·', format!("{} {}", entry.kind, payload.get()))
            }
            Payload::Erased(_) => Line::detail('·', format!("{} (erased)", entry.kind)),
        },
    }
}

fn known(entry: &Entry, reader: &Reader) -> Line {
    match entry {
        Entry::RunStarted(_)
        | Entry::RunResumed(_)
        | Entry::RunHandedOver(_)
        | Entry::RunParked(_)
        | Entry::RunEnded(_)
        | Entry::CycleEnded(_)
        | Entry::CycleDropped(_)
        | Entry::BudgetWarning(_) => life(entry, reader),
        Entry::ModelCall(_) | Entry::ModelReply(_) | Entry::Noted { .. } => mind(entry),
        Entry::ToolCalled(called) => Line::main(Paint::Call, '→', call(&called.call)),
        Entry::GateVerdict(judged) => Line::detail(
            '·',
            format!(
                "gate: {:?} risk, {:?}: {}{}",
                judged.verdict.risk,
                judged.verdict.decision,
                judged.verdict.reasons.join("; "),
                places(&judged.paths)
            ),
        ),
        Entry::ToolStarted(started) if started.attempt > 1 => Line::main(
            Paint::Aside,
            '·',
            format!("started again, attempt {}", started.attempt),
        ),
        Entry::ToolStarted(_) => Line::detail('·', "started"),
        Entry::ToolResulted(result) => observation(result, reader),
        Entry::ScreenViewed(viewed) => looked(viewed, reader),
        Entry::Steered(_)
        | Entry::ApprovalAsked(_)
        | Entry::ApprovalAnswered(_)
        | Entry::TakeoverStarted(_)
        | Entry::TakeoverEnded(_) => people(entry),
        Entry::ValueTaken(_)
        | Entry::WaitStarted(_)
        | Entry::WaitEnded(_)
        | Entry::BranchesStarted(_)
        | Entry::RaceWon(_)
        | Entry::ChildStarted(_)
        | Entry::ChildEnded(_) => other(entry),
    }
}

/// The run as a whole and its steps.
fn life(entry: &Entry, reader: &Reader) -> Line {
    match entry {
        Entry::RunStarted(started) => {
            let goal = read(&started.goal, reader).map_or_else(|gone| gone, |text: Text| text.text);
            Line {
                paint: Paint::Strong,
                ..Line::detail('■', format!("goal: {goal}"))
            }
        }
        Entry::RunResumed(resumed) => {
            let torn = resumed.set_aside_bytes.map_or_else(String::new, |bytes| {
                format!("; {bytes} unfinished bytes at the journal's end were set aside")
            });
            Line::detail(
                '■',
                format!("taken up by process {}{torn}", resumed.process.pid),
            )
        }
        Entry::RunHandedOver(handed) => Line::main(
            Paint::Plain,
            '■',
            format!(
                "a fresh step takes over ({}); {} effects were done",
                handed.reason,
                handed.done.len()
            ),
        ),
        Entry::RunParked(parked) => {
            Line::detail('■', format!("parked: {}", summary(&parked.ending)))
        }
        Entry::RunEnded(ended) => {
            let paint = match ended.ending {
                Ending::Failed { .. } => Paint::Bad,
                _ => Paint::Strong,
            };
            Line {
                paint,
                ..Line::detail('■', summary(&ended.ending))
            }
        }
        Entry::CycleEnded(ended) => Line::detail(
            '─',
            format!(
                "step {} is done; used so far: {}, {}",
                ended.cycle,
                counted(ended.kernel.spent.tokens, "token"),
                ended.kernel.spent.cost
            ),
        ),
        Entry::CycleDropped(dropped) => Line::detail(
            '─',
            format!("step {} was given up: {}", dropped.cycle, dropped.why),
        ),
        Entry::BudgetWarning(warning) => Line::main(
            Paint::Bad,
            '!',
            format!("a limit is near: {}", warning.what),
        ),
        _ => other(entry),
    }
}

/// What the model is asked and says, and what the loop notes.
fn mind(entry: &Entry) -> Line {
    match entry {
        Entry::ModelCall(asked) => Line::detail(
            '·',
            format!("asks {} (attempt {})", asked.model, asked.attempt),
        ),
        Entry::ModelReply(reply) => match &reply.came {
            AttemptResult::Reply { .. } => Line::detail(
                '·',
                format!(
                    "answered: {}, {}",
                    counted(reply.charged.tokens, "token"),
                    span(reply.took_ms)
                ),
            ),
            AttemptResult::Error { error } => Line::main(
                Paint::Bad,
                '!',
                format!(
                    "attempt {} of asking the model failed: {error}",
                    reply.attempt
                ),
            ),
            AttemptResult::CutOff => Line::detail('·', "the question was cut off"),
        },
        Entry::Noted { kind, fact, .. } => {
            let words = fact.fact.as_str().or_else(|| fact.fact["text"].as_str());
            match (kind.as_str(), words) {
                ("thought" | "reflection" | "task.plan", Some(words)) => {
                    Line::main(Paint::Thought, '•', words)
                }
                ("phase", Some(words)) => Line::main(Paint::Aside, '·', format!("phase: {words}")),
                ("judge.verdict", Some(words)) => {
                    let paint = match fact.fact["accepted"].as_bool() {
                        Some(true) => Paint::Strong,
                        _ => Paint::Bad,
                    };
                    Line::main(paint, '■', words)
                }
                ("changeset.state", Some(words)) => changeset(&fact.fact, words),
                ("changeset.context", Some(words)) => {
                    Line::main(Paint::Aside, '·', format!("read {words}"))
                }
                (REFLECTION, None) => learned(&fact.fact),
                (WENT_RIGHT, Some(words)) => {
                    Line::main(Paint::Thought, '•', format!("what went right: {words}"))
                }
                ("plan.invalid", Some(words)) => {
                    Line::main(Paint::Bad, '!', format!("the plan was sent back: {words}"))
                }
                (APPROVAL_REFUSED, Some(words)) => refused(&fact.fact, words),
                (_, Some(words)) => Line::detail('·', format!("{kind}: {words}")),
                (_, None) => Line::detail('·', format!("{kind} {}", fact.fact)),
            }
        }
        _ => other(entry),
    }
}

/// A step of a changeset.
fn changeset(fact: &Value, words: &str) -> Line {
    let word = |name: &str| fact[name].as_str();
    let first = words.lines().next().unwrap_or_default();
    let mut text = format!("{}: {first}", word("to").unwrap_or_default());
    if let Some(by) = word("by") {
        text.push_str(&format!(" ({by})"));
    }
    match word("last_error") {
        None => Line::main(Paint::Aside, '·', text),
        Some(why) => Line::main(Paint::Bad, '!', format!("{text}: {why}")),
    }
}

/// What was learned of a changeset.
fn learned(fact: &Value) -> Line {
    let said = [("worked", "what worked"), ("did_not", "what did not")];
    let said = said.iter().filter_map(|(name, what)| {
        let words = fact[name].as_str().filter(|words| !words.is_empty());
        words.map(|words| format!("{what}: {words}"))
    });
    let said: Vec<_> = said.collect();
    Line::main(Paint::Thought, '•', said.join("\n"))
}

/// An answer that did not count.
fn refused(fact: &Value, why: &str) -> Line {
    let said = match fact["approved"].as_bool() {
        Some(true) => "yes",
        _ => "no",
    };
    let who = fact["by"]["id"].as_str().unwrap_or("somebody");
    Line::main(
        Paint::Ask,
        '»',
        format!("a {said} of {who} does not count: {why}"),
    )
}

/// What people are asked and say.
fn people(entry: &Entry) -> Line {
    match entry {
        Entry::Steered(steered) => {
            let words: Vec<&str> = steered
                .messages
                .iter()
                .filter_map(|message| match &message.body {
                    MessageBody::Steer { text } => Some(text.as_str()),
                    _ => None,
                })
                .collect();
            Line::main(
                Paint::Ask,
                '»',
                format!("the person adds: {}", words.join("; ")),
            )
        }
        Entry::TakeoverStarted(takeover) => Line::main(
            Paint::Ask,
            '»',
            format!("{} has the browser; the run waits", takeover.by.id),
        ),
        Entry::TakeoverEnded(takeover) => {
            let words = takeover.words.as_deref();
            let words = words.map_or_else(String::new, |words| format!(": {words}"));
            Line::main(
                Paint::Ask,
                '»',
                format!(
                    "{} gave the browser back after {}{words}",
                    takeover.by.id,
                    span(takeover.took_ms)
                ),
            )
        }
        Entry::ApprovalAsked(asked) => Line {
            paint: Paint::Ask,
            ..Line::detail('?', asked.card.sentence.clone())
        },
        Entry::ApprovalAnswered(answered) => {
            let who = match &answered.by {
                Some(by) => format!("{} ({})", by.id, by.surface),
                None => "nobody could be asked".to_owned(),
            };
            let verdict = if answered.approved {
                "approved"
            } else {
                "denied"
            };
            let words = answered
                .reason
                .as_ref()
                .map_or_else(String::new, |r| format!(": {r}"));
            Line::main(Paint::Ask, '»', format!("{verdict} by {who}{words}"))
        }
        _ => other(entry),
    }
}

/// A look at the screen in one line.
fn looked(viewed: &ScreenViewed, reader: &Reader) -> Line {
    let text = match read(&viewed.view, reader) {
        Ok(text) => text,
        Err(gone) => return Line::main(Paint::Aside, '◉', gone),
    };
    match of_view(&text) {
        Some(words) => Line::main(Paint::Observation, '◉', words),
        None => Line::main(Paint::Aside, '◉', text),
    }
}

/// A recorded view in a few words; `None` if it is none.
pub(super) fn of_view(text: &str) -> Option<String> {
    let view: View = serde_json::from_str(text).ok()?;
    let elements = counted(view.elements.len(), "element");
    Some(format!("{} · {} · {elements}", view.title, view.address))
}

fn other(entry: &Entry) -> Line {
    match entry {
        Entry::ValueTaken(value) => Line::detail('·', format!("took {:?}", value.value)),
        Entry::WaitStarted(wait) => Line::main(
            Paint::Aside,
            '…',
            match &wait.signal {
                Some(signal) => format!("waits for the signal `{signal}`"),
                None => "waits for a time".to_owned(),
            },
        ),
        Entry::WaitEnded(wait) => match &wait.payload {
            Some(payload) => Line::main(
                Paint::Observation,
                '←',
                format!("the signal came: {}", payload.text),
            ),
            None => Line::detail('…', "the time is over"),
        },
        Entry::BranchesStarted(started) => Line::detail(
            '·',
            format!(
                "{} ({:?})",
                counted(started.branches, "branch"),
                started.form
            ),
        ),
        Entry::RaceWon(won) => Line::detail('·', format!("won by branch {:?}", won.winner)),
        Entry::ChildStarted(child) => Line::main(
            Paint::Call,
            '⇒',
            format!("run {}: {}", child.child.short(), child.goal),
        ),
        Entry::ChildEnded(child) => Line::main(
            Paint::Observation,
            '⇐',
            format!("run {}: {}", child.child.short(), summary(&child.ending)),
        ),
        entry => Line::detail('·', entry.kind()),
    }
}

/// A call as one would say it: the tool and its arguments, long ones last and as they are.
pub(crate) fn call(call: &ToolCall) -> String {
    let Some(arguments) = call.arguments.as_object() else {
        return format!("{} {}", call.tool, call.arguments);
    };
    let mut parts: Vec<String> = arguments
        .iter()
        .map(|(name, value)| match value {
            Value::String(text) if arguments.len() == 1 => text.clone(),
            Value::String(text) => format!("{name}={text}"),
            value => format!("{name}={value}"),
        })
        .collect();
    parts.sort_by_key(String::len);
    format!("{} {}", call.tool, parts.join(" "))
}

fn places(paths: &BTreeMap<String, ResolvedPath>) -> String {
    let real: Vec<String> = paths
        .values()
        .map(|path| path.real.display().to_string())
        .collect();
    if real.is_empty() {
        String::new()
    } else {
        format!(" ({})", real.join(", "))
    }
}

fn observation(result: &ToolResulted, reader: &Reader) -> Line {
    let text = read(&result.text, reader).unwrap_or_else(|gone| gone);
    let text = match result.settled {
        Settled::Done => text,
        // Some tools begin with the word themselves: models read it too.
        Settled::Refused if text.starts_with("refused: ") => text,
        Settled::Refused => format!("refused: {text}"),
        Settled::Interrupted => format!("interrupted: {text}"),
        Settled::Cancelled => format!("cut off: {text}"),
    };
    Line::main(Paint::Observation, '←', text)
}

/// A value, wherever it is, or words that say why it cannot be shown.
fn read<T>(value: &Inline<T>, reader: &Reader) -> Result<T, String>
where
    T: serde::Serialize + serde::de::DeserializeOwned + Clone,
{
    let fetched = value.read(|id| reader.blob(id).map_err(Stop::from));
    fetched.map_err(|error| format!("(it cannot be shown: {error})"))
}
