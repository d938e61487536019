//! The plan of a run, with what became of its steps.

use serde_json::Value;

/// Columns of a step.
const COLUMNS: usize = 200;

/// The plan that was shown last.
#[derive(Debug, Default)]
pub struct ShownPlan {
    steps: Vec<ShownStep>,
}

/// A step of a plan.
#[derive(Debug)]
pub struct ShownStep {
    id: String,
    /// One line that names it.
    pub words: String,
    pub progress: StepProgress,
}

/// Progress of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepProgress {
    Open,
    Done,
    Failed,
}

impl ShownPlan {
    /// Returns the steps, in the order of the plan.
    pub fn steps(&self) -> &[ShownStep] {
        &self.steps
    }

    /// Takes a fact that a loop noted. Returns whether it is about the plan.
    pub fn noted(&mut self, kind: &str, fact: &Value) -> bool {
        match kind {
            "task.plan" => self.adopt(fact),
            "task.step" => return self.over(fact).is_some(),
            _ => return false,
        }
        !self.steps.is_empty()
    }

    /// Takes a new plan. Steps of the plan before it that are done stay.
    fn adopt(&mut self, fact: &Value) {
        self.steps
            .retain(|step| step.progress == StepProgress::Done);
        for step in fact["steps"].as_array().into_iter().flatten() {
            let word = |name: &str| step[name].as_str().unwrap_or_default();
            let words = match word("reason") {
                "" => format!("{}: {}", word("id"), word("tool")),
                reason => format!("{}: {reason}", word("id")),
            };
            self.steps.push(ShownStep {
                id: word("id").to_owned(),
                words: gyrus_text::clip(&gyrus_text::one_line(&words), COLUMNS),
                progress: StepProgress::Open,
            });
        }
    }

    /// Takes the end of a step. Of two with the same name the one that is open is meant.
    fn over(&mut self, fact: &Value) -> Option<()> {
        let id = fact["step"].as_str()?;
        let mut steps = self.steps.iter_mut().rev();
        let step = steps.find(|step| step.id == id)?;
        step.progress = if fact["worked"].as_bool()? {
            StepProgress::Done
        } else {
            StepProgress::Failed
        };
        Some(())
    }
}
