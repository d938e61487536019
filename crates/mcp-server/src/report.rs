//! Reports of runs, as data and as text. The texts of a run are untrusted: unseen characters in
//! them are made visible.

use gyrus_contract::RunId;
use gyrus_kernel::approvals::OpenQuestion;
use gyrus_server::RunOverview;
use gyrus_surfaces::console::card;
use gyrus_text::{clip, one_line, readable};
use rmcp::model::{CallToolResult, ContentBlock};
use schemars::JsonSchema;
use serde::Serialize;

/// Columns of a goal in a list.
const GIST: usize = 100;

/// The state of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ReportedState {
    /// It waits for its turn, or to go on.
    Queued,
    /// It is at work.
    Running,
    /// It waits for a person to answer.
    WaitsForPerson,
    /// It stopped and can be resumed.
    Parked,
    /// Its goal is reached.
    Reached,
    /// It ended without reaching its goal.
    Failed,
}

impl ReportedState {
    fn words(self) -> &'static str {
        match self {
            ReportedState::Queued => "waits for its turn",
            ReportedState::Running => "is at work",
            ReportedState::WaitsForPerson => "waits for a person",
            ReportedState::Parked => "stopped, and can be resumed",
            ReportedState::Reached => "reached its goal",
            ReportedState::Failed => "ended without reaching its goal",
        }
    }

    /// Whether the run's state does not change by itself.
    pub(crate) fn is_at_rest(self) -> bool {
        match self {
            ReportedState::Queued | ReportedState::Running | ReportedState::WaitsForPerson => false,
            ReportedState::Parked | ReportedState::Reached | ReportedState::Failed => true,
        }
    }
}

/// A question of a run.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct ReportedQuestion {
    /// The run that asks: the one that was started, or a child of it.
    pub(crate) run: String,
    /// The id of the question.
    pub(crate) question: String,
    /// The digest of the card.
    pub(crate) digest: String,
    /// The whole card. Lines that begin with `┃` are not gyrus's words, and may be wrong.
    pub(crate) card: String,
}

impl ReportedQuestion {
    pub(crate) fn of(open: &OpenQuestion) -> Self {
        Self {
            run: open.run.to_string(),
            question: open.id.to_string(),
            digest: open.digest.to_string(),
            card: card::plain_text(open),
        }
    }
}

/// The report of a run.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct RunReport {
    /// The run.
    pub(crate) run: String,
    /// Its state.
    pub(crate) state: ReportedState,
    /// The way in which it ended, or the reason why it waits, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) why: Option<String>,
    /// The strength with which the goal is believed to be reached: `claimed`, `checked` or
    /// `verified`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) outcome: Option<String>,
    /// The answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) answer: Option<String>,
    /// The events, a line each, oldest first; only the last lines.
    pub(crate) events: Vec<String>,
    /// Files that it wrote, by their paths in the folder.
    pub(crate) files: Vec<String>,
    /// Questions that wait for a person.
    pub(crate) questions: Vec<ReportedQuestion>,
    /// The place up to which this report tells: give it as `after` to be told what follows.
    pub(crate) next: u64,
}

impl RunReport {
    /// Returns the report of a run of which nothing is known yet.
    pub(crate) fn new(run: RunId, after: u64) -> Self {
        Self {
            run: run.to_string(),
            state: ReportedState::Queued,
            why: None,
            outcome: None,
            answer: None,
            events: Vec::new(),
            files: Vec::new(),
            questions: Vec::new(),
            next: after,
        }
    }

    pub(crate) fn into_result(self) -> CallToolResult {
        let mut text = format!("Run {} {}", self.run, self.state.words());
        if let Some(outcome) = &self.outcome {
            text.push_str(&format!(" ({outcome})"));
        }
        if let Some(why) = &self.why {
            text.push_str(&format!(": {why}"));
        }
        text.push('\n');
        for event in &self.events {
            text.push_str(&format!("{event}\n"));
        }
        if !self.files.is_empty() {
            text.push_str(&format!("Files: {}\n", self.files.join(", ")));
        }
        for question in &self.questions {
            text.push_str(&format!("\n{}", question.card));
        }
        if self.state == ReportedState::WaitsForPerson {
            text.push_str("A person has to answer: gyrus approvals, or the dashboard.\n");
        }
        if let Some(answer) = &self.answer {
            text.push_str(&format!("\n{answer}\n"));
        }
        if !self.state.is_at_rest() {
            text.push_str(&format!(
                "Use `follow` with after = {} for more.\n",
                self.next
            ));
        }
        structured(text, &self)
    }
}

/// A run in a list.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct ListedRun {
    /// The run.
    pub(crate) run: String,
    /// The beginning of its goal.
    pub(crate) goal: String,
    /// `running`, `parked`, `over` and so on.
    pub(crate) state: String,
    /// The way in which it ended, or the reason why it waits, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    ending: Option<String>,
    /// The folder that it works in.
    workdir: String,
    /// Number of questions that wait for an answer.
    questions: usize,
}

impl ListedRun {
    pub(crate) fn of(overview: &RunOverview) -> Self {
        let state = serde_json::to_value(overview.state).unwrap_or_default();
        Self {
            run: overview.run.to_string(),
            goal: clip(&one_line(&overview.goal), GIST),
            state: state.as_str().unwrap_or_default().to_owned(),
            ending: overview
                .ending
                .as_deref()
                .map(|text| readable(text).into_owned()),
            workdir: overview.workdir.display().to_string(),
            questions: overview.questions,
        }
    }
}

/// A list of runs.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct RunReports {
    /// The runs, newest first.
    pub(crate) runs: Vec<ListedRun>,
}

impl RunReports {
    pub(crate) fn into_result(self) -> CallToolResult {
        let line = |run: &ListedRun| {
            let ending = run.ending.as_deref().unwrap_or_default();
            format!("{} {} · {} · {ending}\n", run.run, run.state, run.goal)
        };
        let text: String = self.runs.iter().map(line).collect();
        let text = if text.is_empty() {
            "There are no runs.\n".to_owned()
        } else {
            text
        };
        structured(text, &self)
    }
}

fn structured(text: String, data: &impl Serialize) -> CallToolResult {
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.structured_content = serde_json::to_value(data).ok();
    result
}

pub(crate) fn text(text: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

/// Returns the result of a call that cannot be carried out, with the reason for the model.
pub(crate) fn refused(why: impl Into<String>) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(why)])
}
