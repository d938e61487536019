//! `agent_trace.jsonl`: one line a step, a projection of the entries of that step.

use gyrus_journal::LogReader;
use gyrus_kernel::Entry;
use serde::Serialize;
use serde_json::{Value, json};

use crate::projection::stored;

/// A step of the trace, written as one line.
#[derive(Debug, Serialize)]
pub struct TraceStep {
    /// The step's number, counted from 1.
    pub step: u32,
    /// Phase of the loop in which the step took place, or the loop's name if it has no phases.
    phase: String,
    /// The thoughts of the model, in order, joined by blank lines.
    thought: String,
    tool_inputs: Vec<Value>,
    /// Results of the calls, in the order in which they ended.
    tool_outputs: Vec<Value>,
    /// Time at which the step ended, UTC.
    timestamp: String,
}

/// Collects entries until a step is complete.
#[derive(Debug, Default)]
pub struct TraceCollector {
    phase: String,
    /// The phase in which the present step thinks or acts.
    thinks_in: Option<String>,
    thoughts: Vec<String>,
    calls: Vec<Value>,
    results: Vec<Value>,
}

impl TraceCollector {
    /// Adds the next entry of a run and returns the step that it completes. What became of no step,
    /// because it was abandoned, is left out.
    pub fn take(
        &mut self,
        entry: &gyrus_journal::LogEntry,
        reader: &LogReader,
    ) -> Option<TraceStep> {
        let parsed = gyrus_kernel::parse(entry).ok()?;
        if let Entry::CycleEnded(ended) = parsed {
            let step = TraceStep {
                step: ended.cycle,
                phase: self.thinks_in.take().unwrap_or_else(|| self.phase.clone()),
                thought: self.thoughts.join("\n\n"),
                tool_inputs: std::mem::take(&mut self.calls),
                tool_outputs: std::mem::take(&mut self.results),
                timestamp: gyrus_text::utc(entry.at_ms),
            };
            self.clear();
            return Some(step);
        }
        if let Entry::RunStarted(started) = parsed {
            self.phase = started.cognitive_loop;
        } else if let Entry::Noted { kind, fact, .. } = parsed {
            self.fact(&kind, &fact.fact);
        } else if let Entry::ModelCall(_) = parsed {
            self.thinks_in.get_or_insert_with(|| self.phase.clone());
        } else if let Entry::ToolCalled(called) = parsed {
            // The last phase in which something was called: a submission is validated.
            self.thinks_in = Some(self.phase.clone());
            self.calls.push(json!({
                "effect": called.effect,
                "tool": called.call.tool,
                "arguments": called.call.arguments,
            }));
        } else if let Entry::ToolResulted(result) = parsed {
            self.results.push(json!({
                "effect": result.effect,
                "output": stored(&result.text, reader).unwrap_or_else(|gone| gone),
                "is_error": result.is_error,
                "settled": result.settled,
                "verdict": result.verdict,
            }));
        } else if let Entry::CycleDropped(_) = parsed {
            self.clear();
        }
        None
    }

    fn fact(&mut self, kind: &str, fact: &Value) {
        let text = fact.as_str().or_else(|| fact["text"].as_str());
        match (kind, text) {
            ("thought" | "reflection" | "task.plan" | "task.result" | "task.error", Some(text)) => {
                self.thoughts.push(text.to_owned());
            }
            ("engineer.plan", _) => {
                let plan = fact["plan"].as_str().unwrap_or_default();
                if !self.thoughts.iter().any(|thought| thought == plan) {
                    self.thoughts.push(plan.to_owned());
                }
            }
            ("phase", Some(phase)) => phase.clone_into(&mut self.phase),
            ("changeset.state", _) => {
                let phase = fact["to"].as_str().unwrap_or_default();
                phase.clone_into(&mut self.phase);
            }
            _ => {}
        }
    }

    fn clear(&mut self) {
        self.thinks_in = None;
        self.thoughts.clear();
        self.calls.clear();
        self.results.clear();
    }
}
