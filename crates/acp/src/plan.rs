//! The plan of a run as the protocol has plans: always the whole of it, each step with its status.

use serde_json::{Value, json};

/// Columns of a step.
const COLUMNS: usize = 200;

/// The plan that was shown last.
#[derive(Debug, Default)]
pub(crate) struct ShownPlan {
    steps: Vec<ShownStep>,
}

#[derive(Debug)]
struct ShownStep {
    id: String,
    words: String,
    status: &'static str,
}

impl ShownPlan {
    /// Takes a fact that a loop noted; returns the plan as it is now, if it is about a plan.
    pub(crate) fn noted(&mut self, kind: &str, fact: &Value) -> Option<Value> {
        match kind {
            "task.plan" => self.adopt(fact),
            "task.step" => self.done(fact)?,
            _ => return None,
        }
        if self.steps.is_empty() {
            return None;
        }
        let entries: Vec<Value> = self
            .steps
            .iter()
            .map(|step| json!({"content": step.words, "priority": "medium", "status": step.status}))
            .collect();
        Some(json!({"sessionUpdate": "plan", "entries": entries}))
    }

    /// Takes a new plan. Steps of the plan before it that are over stay.
    fn adopt(&mut self, fact: &Value) {
        self.steps.retain(|step| step.status == "completed");
        for step in fact["steps"].as_array().into_iter().flatten() {
            let word = |name: &str| step[name].as_str().unwrap_or_default();
            let words = match word("reason") {
                "" => format!("{}: {}", word("id"), word("tool")),
                reason => format!("{}: {reason}", word("id")),
            };
            self.steps.push(ShownStep {
                id: word("id").to_owned(),
                words: gyrus_text::clip(&gyrus_text::one_line(&words), COLUMNS),
                status: "pending",
            });
        }
    }

    /// Takes the end of a step. One that failed is not completed; what becomes of it is said.
    fn done(&mut self, fact: &Value) -> Option<()> {
        let id = fact["step"].as_str()?;
        let step = self.steps.iter_mut().find(|step| step.id == id)?;
        if fact["worked"].as_bool()? {
            step.status = "completed";
        } else {
            step.words.push_str(" (failed)");
        }
        Some(())
    }
}
