//! Report of an evaluation: attempts and figures over them, as data and as a table for a person.

use std::{collections::BTreeMap, path::Path};

use gyrus_contract::Microdollars;
use gyrus_text::{clip, counted, wrap};
use serde::{Deserialize, Serialize};

use super::attempt::AttemptOutcome;
use crate::{LabConsole, LabError};
use gyrus_surfaces::projection::Tone;

/// The name of the file with all data in a report's folder.
pub(super) const FILE: &str = "report.json";

/// The version of this form.
const VERSION: u32 = 1;

/// Width of a table in columns.
const COLUMNS: usize = 80;

/// Width of the names in a table, in columns.
const NAME: usize = 20;

/// The report of an evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EvaluationReport {
    /// Version of the form of this report.
    pub version: u32,
    /// Version of gyrus.
    pub gyrus: String,
    /// Names of the suites, as typed.
    pub suites: Vec<String>,
    /// Names of the models, separated by commas.
    pub model: String,
    /// The least strength that passes.
    pub required: String,
    /// Time at which the evaluation began, in UTC.
    pub began: String,
    /// Number of planned attempts.
    pub planned: usize,
    /// Whether the evaluation ended before all attempts were made.
    pub interrupted: bool,
    /// Totals of all attempts.
    pub totals: Totals,
    /// Figures over the attempts with each combination of the options that vary; empty if none does.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, Totals>,
    /// The attempts, in the order of tasks and repeats.
    pub attempts: Vec<AttemptOutcome>,
}

/// Totals of all completed attempts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    /// Number of attempts, without the skipped ones.
    pub attempts: usize,
    /// Number of attempts that passed.
    pub passed: usize,
    /// Number of attempts skipped because a program is not installed.
    #[serde(default)]
    pub skipped: usize,
    /// Number of runs with a false claim.
    #[serde(default)]
    pub false_claims: usize,
    /// Number of runs that claimed a result without any call that does work.
    #[serde(default)]
    pub claimed_without_work: usize,
    /// Number of runs by their outcome.
    #[serde(default)]
    pub outcomes: BTreeMap<String, usize>,
    /// Number of requests to models.
    #[serde(default)]
    pub requests: u64,
    /// Share of the attempts that passed.
    pub rate: f64,
    /// Confidence interval of the rate at 95 %: Wilson's score interval.
    pub interval: (f64, f64),
    /// Number of turns of all runs.
    pub steps: u64,
    /// Turns of a run, in the median.
    pub median_steps: u64,
    /// Time of a run, in the median.
    pub median_wall_ms: u64,
    /// Number of prompt tokens that did not come from a cache.
    pub fresh_tokens: u64,
    /// Prompt tokens that came from a cache.
    pub cached_tokens: u64,
    /// Number of tokens in replies.
    pub output_tokens: u64,
    /// Fresh tokens of a prompt, on average.
    pub fresh_a_prompt: f64,
    /// Cost in millionths of a US dollar.
    pub cost: u64,
    /// Number of calls that changed something.
    pub changed: u64,
    /// Calls without an effect.
    pub no_effect: u64,
    /// Number of calls with an unknown effect.
    pub cannot_tell: u64,
    /// Number of refused calls.
    pub refused: u64,
    /// Number of questions.
    pub questions: u64,
    /// Number of questions answered with yes.
    pub allowed: u64,
    /// Number of questions answered with no.
    pub denied: u64,
    /// Number of inputs that the gate measured at another element than the named one.
    pub landed_elsewhere: u64,
}

/// Facts known before the first attempt.
pub(super) struct EvalPlan {
    pub(super) suites: Vec<String>,
    pub(super) model: String,
    pub(super) required: &'static str,
    pub(super) began_ms: i64,
    pub(super) planned: usize,
}

impl EvaluationReport {
    /// Creates the report of these attempts, given in the order of tasks and repeats.
    pub(super) fn of(plan: &EvalPlan, attempts: Vec<AttemptOutcome>, interrupted: bool) -> Self {
        Self {
            version: VERSION,
            gyrus: env!("CARGO_PKG_VERSION").to_owned(),
            suites: plan.suites.clone(),
            model: plan.model.clone(),
            required: plan.required.to_owned(),
            began: gyrus_text::utc(plan.began_ms),
            planned: plan.planned,
            interrupted,
            totals: Totals::of(&attempts),
            settings: by_setting(&attempts),
            attempts,
        }
    }

    /// Reads a report from its file, or from the folder around it.
    pub fn read(path: &Path) -> Result<Self, LabError> {
        let file = if path.is_dir() {
            path.join(FILE)
        } else {
            path.to_owned()
        };
        let unreadable = || {
            LabError::usage(format!(
                "{} is not a report of an evaluation",
                file.display()
            ))
            .hint("`gyrus eval SUITE --report FOLDER` writes one")
        };
        let text =
            gyrus_process::read_regular_text(&file).map_err(|error| unreadable().because(error))?;
        let report: Self =
            serde_json::from_str(&text).map_err(|error| unreadable().because(error))?;
        match report.version {
            VERSION => Ok(report),
            newer => Err(LabError::usage(format!(
                "{} has version {newer}, and this gyrus reads {VERSION}",
                file.display()
            ))),
        }
    }

    /// Attempts of each task that were made, in order; those with other options are of another task.
    pub(super) fn by_task(&self) -> BTreeMap<String, Vec<&AttemptOutcome>> {
        let mut tasks: BTreeMap<String, Vec<&AttemptOutcome>> = BTreeMap::new();
        for attempt in self.attempts.iter().filter(|attempt| !attempt.skipped) {
            tasks.entry(attempt.name()).or_default().push(attempt);
        }
        tasks
    }

    pub(super) fn table(&self, console: &LabConsole) -> String {
        let totals = &self.totals;
        let (low, high) = totals.interval;
        let mut lines = vec![String::new()];
        let is_good = totals.passed == totals.attempts && !self.interrupted;
        let rate = format!(
            "{} of {} passed: {:.1} % (95 %: {:.1} to {:.1})",
            totals.passed,
            totals.attempts,
            totals.rate * 100.0,
            low * 100.0,
            high * 100.0
        );
        let tone = if is_good { Tone::Strong } else { Tone::Bad };
        lines.push(console.paint(tone, &rate));
        lines.push(format!(
            "  outcomes   {}; {}",
            totals.outcomes_in_words(),
            counted(totals.false_claims, "false claim")
        ));
        if totals.claimed_without_work > 0 {
            let without = format!("  {} claimed without work", totals.claimed_without_work);
            lines.push(console.paint(Tone::Bad, &without));
        }
        if totals.skipped > 0 {
            lines.push(format!("  {} skipped", totals.skipped));
        }
        if self.attempts.len() < self.planned {
            lines.push(format!(
                "  {} of {} attempts were not made",
                self.planned - self.attempts.len(),
                self.planned
            ));
        }
        lines.push(format!(
            "  steps      {} in all, {} in the median",
            totals.steps, totals.median_steps
        ));
        lines.push(format!(
            "  tokens     {} fresh ({:.0} a prompt), {} cached, {} written, in {}",
            totals.fresh_tokens,
            totals.fresh_a_prompt,
            totals.cached_tokens,
            totals.output_tokens,
            counted(totals.requests, "request")
        ));
        lines.push(format!(
            "  time       {} in the median{}",
            gyrus_text::span(totals.median_wall_ms),
            Microdollars(totals.cost).after(" · cost ")
        ));
        lines.push(format!(
            "  verdicts   {} changed, {} no effect, {} cannot tell, {} refused",
            totals.changed, totals.no_effect, totals.cannot_tell, totals.refused
        ));
        lines.push(format!(
            "  questions  {} asked: {} allowed, {} denied",
            totals.questions, totals.allowed, totals.denied
        ));
        if totals.landed_elsewhere > 0 {
            lines.push(format!(
                "  {} inputs landed elsewhere than was named",
                totals.landed_elsewhere
            ));
        }
        lines.extend(self.settings_lines(console));
        lines.push(String::new());
        lines.join("\n")
    }

    /// The figures for each combination of options, a line each below a heading.
    fn settings_lines(&self, console: &LabConsole) -> Vec<String> {
        let name = self.settings.keys().map(|name| name.chars().count()).max();
        let Some(name) = name else {
            return Vec::new();
        };
        let heading = format!(
            "  {:<name$} {:>9} {:>7} {:>6} {:>7} {:>8} {:>8} {:>7}",
            "options", "passed", "%", "false", "reqs", "tokens", "cost", "time"
        );
        let rows = self.settings.iter().map(|(setting, totals)| {
            let of = format!("{}/{}", totals.passed, totals.attempts);
            format!(
                "  {setting:<name$} {of:>9} {:>7.1} {:>6} {:>7} {:>8} {:>8} {:>7}",
                totals.rate * 100.0,
                totals.false_claims,
                totals.requests,
                totals.tokens(),
                totals.cost_in_words(),
                gyrus_text::span(totals.median_wall_ms),
            )
        });
        [String::new(), console.paint(Tone::Aside, &heading)]
            .into_iter()
            .chain(rows)
            .collect()
    }
}

/// Returns the figures for each combination of the options that vary.
fn by_setting(attempts: &[AttemptOutcome]) -> BTreeMap<String, Totals> {
    let mut settings: BTreeMap<&str, Vec<&AttemptOutcome>> = BTreeMap::new();
    for attempt in attempts.iter().filter(|it| !it.setting.is_empty()) {
        settings.entry(&attempt.setting).or_default().push(attempt);
    }
    let settings = settings.into_iter();
    settings
        .map(|(name, attempts)| (name.to_owned(), Totals::of(attempts)))
        .collect()
}

/// Renders the heading above the lines of attempts.
pub(super) fn heading(console: &LabConsole) -> String {
    let line = format!(
        "  {:<NAME$} {:<8} {:<5} {:>4} {:>6} {:>6} {:>6} {:>6}  run",
        "task", "outcome", "claim", "reqs", "prompt", "output", "cost", "time"
    );
    format!("{}\n", console.paint(Tone::Aside, &line))
}

pub(super) fn line(attempt: &AttemptOutcome, repeats: u32, console: &LabConsole) -> String {
    let name = match repeats {
        1 => attempt.task.clone(),
        _ => format!("{}/{}", attempt.task, attempt.repeat),
    };
    let (mark, tone) = match (attempt.skipped, attempt.passed) {
        (true, _) => ('□', Tone::Aside),
        (false, true) => ('■', Tone::Plain),
        (false, false) => ('✗', Tone::Bad),
    };
    let run = attempt.run.map(|run| run.short());
    let cost = match attempt.cost {
        0 => String::new(),
        cost => Microdollars(cost).to_string(),
    };
    let text = format!(
        "{mark} {:<NAME$} {:<8} {:<5} {:>4} {:>6} {:>6} {cost:>6} {:>6}  {}",
        clip(&name, NAME),
        attempt.outcome(),
        attempt.truth(),
        attempt.tokens.prompts,
        attempt.tokens.fresh + attempt.tokens.cached,
        attempt.tokens.output,
        gyrus_text::span(attempt.wall_ms),
        run.as_deref().unwrap_or("none"),
    );
    let text = format!("{text}  {}", attempt.setting);
    let mut text = format!("{}\n", console.paint(tone, text.trim_end()));
    if let Some(why) = &attempt.why {
        for line in wrap(why, console.columns().min(COLUMNS) - 4) {
            text.push_str(&format!("    {line}\n"));
        }
    }
    text
}

impl Totals {
    fn of<'a>(all: impl IntoIterator<Item = &'a AttemptOutcome>) -> Self {
        let all: Vec<_> = all.into_iter().collect();
        let attempts: Vec<_> = all.iter().filter(|attempt| !attempt.skipped).collect();
        let count = |of: fn(&AttemptOutcome) -> bool| attempts.iter().filter(|it| of(it)).count();
        let mut outcomes = BTreeMap::new();
        for attempt in &attempts {
            *outcomes.entry(attempt.outcome().to_owned()).or_default() += 1;
        }
        let sum = |of: fn(&AttemptOutcome) -> u64| attempts.iter().map(|it| of(it)).sum::<u64>();
        let passed = count(|it| it.passed);
        let prompts = sum(|it| it.tokens.prompts);
        let fresh = sum(|it| it.tokens.fresh);
        let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        Self {
            attempts: attempts.len(),
            passed,
            skipped: all.len() - attempts.len(),
            false_claims: count(|it| it.false_claim),
            claimed_without_work: count(AttemptOutcome::claims_without_work),
            outcomes,
            requests: prompts,
            rate: share(passed as f64, attempts.len() as f64),
            interval: wilson(passed, attempts.len()),
            steps: sum(|it| it.steps),
            median_steps: median(attempts.iter().map(|it| it.steps)),
            median_wall_ms: median(attempts.iter().map(|it| it.wall_ms)),
            fresh_tokens: fresh,
            cached_tokens: sum(|it| it.tokens.cached),
            output_tokens: sum(|it| it.tokens.output),
            fresh_a_prompt: share(fresh as f64, prompts as f64),
            cost: sum(|it| it.cost),
            changed: sum(|it| it.verdicts.changed),
            no_effect: sum(|it| it.verdicts.no_effect),
            cannot_tell: sum(|it| it.verdicts.cannot_tell),
            refused: sum(|it| it.verdicts.refused),
            questions: sum(|it| it.questions.asked),
            allowed: sum(|it| it.questions.allowed),
            denied: sum(|it| it.questions.denied),
            landed_elsewhere: sum(|it| it.landed_elsewhere),
        }
    }
}

impl Totals {
    pub(super) fn tokens(&self) -> u64 {
        self.fresh_tokens + self.cached_tokens + self.output_tokens
    }

    /// Returns the cost; a word where no price is known.
    pub(super) fn cost_in_words(&self) -> String {
        match self.cost {
            0 => "unknown".to_owned(),
            cost => Microdollars(cost).to_string(),
        }
    }

    /// Returns how many runs ended with which outcome, the weakest last.
    pub(super) fn outcomes_in_words(&self) -> String {
        let words = ["verified", "checked", "claimed", "answered", "failed"];
        let counts = words.map(|word| (word, self.outcomes.get(word).copied().unwrap_or(0)));
        let counts = counts.iter().filter(|(_, count)| *count > 0);
        let told: Vec<String> = counts
            .map(|(word, count)| format!("{count} {word}"))
            .collect();
        told.join(", ")
    }
}

/// Returns the median, the lower of two values in the middle.
pub(super) fn median(values: impl Iterator<Item = u64>) -> u64 {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable();
    let middle = values.len().saturating_sub(1) / 2;
    values.get(middle).copied().unwrap_or(0)
}

/// Wilson's score interval for a share at 95 %: E. B. Wilson, JASA 22 (1927), 209–212. It is of
/// use for few attempts and for shares of 0 and 1.
fn wilson(passed: usize, of: usize) -> (f64, f64) {
    const Z: f64 = 1.959_963_985;
    if of == 0 {
        return (0.0, 1.0);
    }
    let (n, p) = (of as f64, passed as f64 / of as f64);
    let middle = p + Z * Z / (2.0 * n);
    let half = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
    let whole = 1.0 + Z * Z / n;
    (
        ((middle - half) / whole).max(0.0),
        ((middle + half) / whole).min(1.0),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_and_medians() {
        for (passed, of, low, high) in [
            (10, 10, 0.722, 1.0),
            (0, 10, 0.0, 0.278),
            (45, 50, 0.786, 0.957),
            (0, 0, 0.0, 1.0),
        ] {
            let (l, h) = wilson(passed, of);
            assert!(
                (l - low).abs() < 0.001 && (h - high).abs() < 0.001,
                "{passed}/{of}: {l} {h}"
            );
        }
        assert_eq!(median([3, 1, 2].into_iter()), 2);
        assert_eq!(median([4, 1].into_iter()), 1);
        assert_eq!(median(std::iter::empty()), 0);
    }
}
