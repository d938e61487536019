//! Two reports side by side: what got worse, what got better, what it costs now.

use std::cmp::Ordering;

use crate::{LabConsole, TrialEnd};
use gyrus_surfaces::projection::Tone;

use super::{
    attempt::AttemptOutcome,
    report::{EvaluationReport, median},
};

/// Maximum number of listed tasks that take more or fewer steps.
const LISTED: usize = 10;

/// Returns the comparison as text, and whether a task that passed fails now.
pub(super) fn compare(
    old: &EvaluationReport,
    new: &EvaluationReport,
    console: &LabConsole,
) -> (String, TrialEnd) {
    let (before, now) = (old.by_task(), new.by_task());
    let mut changes = TaskDifferences::default();
    for (task, attempts) in &now {
        if let Some(earlier) = before.get(task) {
            changes.of(task, earlier, attempts);
        }
    }
    changes.longer.sort_by(|a, b| b.cmp(a));
    changes.longer.truncate(LISTED);
    let longer: Vec<_> = changes
        .longer
        .iter()
        .map(|(_, line)| line.clone())
        .collect();
    let mut text = [
        section(console, Tone::Bad, "worse", &changes.worse),
        section(console, Tone::Strong, "better", &changes.better),
        section(console, Tone::Plain, "with other numbers of steps", &longer),
    ]
    .concat();
    let gone = before
        .keys()
        .filter(|task| !now.contains_key(*task))
        .count();
    let added = now
        .keys()
        .filter(|task| !before.contains_key(*task))
        .count();
    if gone + added > 0 {
        text.push_str(&format!("{gone} tasks are gone, {added} are new\n"));
    }
    text.push_str(&figures(old, new));
    let end = if changes.worse.is_empty() {
        TrialEnd::Passed
    } else {
        TrialEnd::Failed
    };
    (text, end)
}

#[derive(Default)]
struct TaskDifferences {
    worse: Vec<String>,
    better: Vec<String>,
    longer: Vec<(u64, String)>,
}

impl TaskDifferences {
    fn of(&mut self, task: &str, earlier: &[&AttemptOutcome], attempts: &[&AttemptOutcome]) {
        let (was, is) = (share(earlier), share(attempts));
        let change = format!(
            "{task}: {} passed, was {}",
            passed(attempts),
            passed(earlier)
        );
        match is.total_cmp(&was) {
            Ordering::Less => {
                let why = attempts.iter().find_map(|attempt| attempt.why.as_deref());
                let why = why.map_or_else(String::new, |why| format!("\n    {why}"));
                self.worse.push(format!("{change}{why}"));
            }
            Ordering::Greater => self.better.push(change),
            Ordering::Equal => {
                let (was, is) = (steps(earlier), steps(attempts));
                if was != is {
                    let line = format!("{task}: {is} steps, was {was}");
                    self.longer.push((is.abs_diff(was), line));
                }
            }
        }
    }
}

/// Renders a heading with the number of lines, and the lines; empty if there is none.
fn section(console: &LabConsole, tone: Tone, title: &str, lines: &[String]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let title = console.paint(tone, &format!("{} {title}", lines.len()));
    let lines: String = lines.iter().map(|line| format!("  {line}\n")).collect();
    format!("{title}\n{lines}")
}

fn share(attempts: &[&AttemptOutcome]) -> f64 {
    let passed = attempts.iter().filter(|attempt| attempt.passed).count();
    passed as f64 / attempts.len().max(1) as f64
}

fn passed(attempts: &[&AttemptOutcome]) -> String {
    let passed = attempts.iter().filter(|attempt| attempt.passed).count();
    format!("{passed} of {}", attempts.len())
}

fn steps(attempts: &[&AttemptOutcome]) -> u64 {
    median(attempts.iter().map(|attempt| attempt.steps))
}

fn figures(old: &EvaluationReport, new: &EvaluationReport) -> String {
    let (was, is) = (&old.totals, &new.totals);
    let rows = [
        ("passed, %", was.rate * 100.0, is.rate * 100.0),
        (
            "median steps",
            was.median_steps as f64,
            is.median_steps as f64,
        ),
        (
            "fresh tokens a prompt",
            was.fresh_a_prompt,
            is.fresh_a_prompt,
        ),
        ("tokens in all", tokens(old), tokens(new)),
        ("cost, $", was.cost as f64 / 1e6, is.cost as f64 / 1e6),
        ("questions", was.questions as f64, is.questions as f64),
        (
            "median seconds",
            was.median_wall_ms as f64 / 1e3,
            is.median_wall_ms as f64 / 1e3,
        ),
    ];
    let mut text = format!("{:<24}{:>12}{:>12}{:>10}\n", "", "before", "now", "change");
    for (name, was, is) in rows {
        let change = if was == 0.0 {
            String::new()
        } else {
            format!("{:+.1} %", (is - was) / was * 100.0)
        };
        let digits = if name.starts_with("cost") { 4 } else { 1 };
        text.push_str(&format!(
            "{name:<24}{was:>12.digits$}{is:>12.digits$}{change:>10}\n"
        ));
    }
    text
}

fn tokens(report: &EvaluationReport) -> f64 {
    report.totals.tokens() as f64
}
