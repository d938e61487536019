//! `agent_trace.jsonl`: one line a step, a projection of the entries of that step.

use gyrus_contract::Text;
use gyrus_journal::Reader;
use gyrus_kernel::{Entry, Inline, Stop};
use serde::Serialize;
use serde_json::{Value, json};

/// One line.
#[derive(Debug, Serialize)]
pub(crate) struct Step {
    /// The step's number, counted from 1.
    pub(crate) step: u32,
    /// The phase of the loop, or the loop's name if it has no phases.
    phase: String,
    /// What the model thought, in order, joined by blank lines.
    thought: String,
    /// What was called, with which arguments.
    tool_inputs: Vec<Value>,
    /// What came back, in the order it did.
    tool_outputs: Vec<Value>,
    /// When the step was done, UTC.
    timestamp: String,
}

/// Collects entries until a step is complete.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    phase: String,
    thoughts: Vec<String>,
    calls: Vec<Value>,
    results: Vec<Value>,
}

impl Trace {
    /// Takes in the next entry of a run; the step that it completes.
    pub(crate) fn take(&mut self, entry: &gyrus_journal::Entry, reader: &Reader) -> Option<Step> {
        match gyrus_kernel::parse(entry).ok()? {
            Entry::RunStarted(started) => self.phase = started.cognitive_loop,
            Entry::Noted { kind, fact, .. } => {
                let words = fact.fact.as_str().or_else(|| fact.fact["text"].as_str());
                match (kind.as_str(), words) {
                    ("thought" | "reflection", Some(words)) => self.thoughts.push(words.to_owned()),
                    ("phase", Some(phase)) => self.phase = phase.to_owned(),
                    _ => {}
                }
            }
            Entry::ToolCalled(called) => self.calls.push(json!({
                "effect": called.effect,
                "tool": called.call.tool,
                "arguments": called.call.arguments,
            })),
            Entry::ToolResulted(result) => self.results.push(json!({
                "effect": result.effect,
                "output": output(&result.text, reader),
                "is_error": result.is_error,
                "settled": result.settled,
                "verdict": result.verdict,
            })),
            // Nothing of a step that was given up counts.
            Entry::CycleDropped(_) => self.clear(),
            Entry::CycleEnded(ended) => {
                let step = Step {
                    step: ended.cycle,
                    phase: self.phase.clone(),
                    thought: self.thoughts.join("\n\n"),
                    tool_inputs: std::mem::take(&mut self.calls),
                    tool_outputs: std::mem::take(&mut self.results),
                    timestamp: gyrus_text::utc(entry.at_ms),
                };
                self.clear();
                return Some(step);
            }
            _ => {}
        }
        None
    }

    fn clear(&mut self) {
        self.thoughts.clear();
        self.calls.clear();
        self.results.clear();
    }
}

fn output(text: &Inline<String>, reader: &Reader) -> String {
    let read = text.read(|id| reader.blob(id).map_err(Stop::from));
    read.unwrap_or_else(|error| format!("(gone: {error})"))
}

/// The goal of a run, wherever it is stored.
pub(crate) fn goal(goal: &Inline<Text>, reader: &Reader) -> String {
    let read = goal.read(|id| reader.blob(id).map_err(Stop::from));
    read.map_or_else(|error| format!("(gone: {error})"), |text| text.text)
}
