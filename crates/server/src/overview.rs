//! A run in a few words, for lists.

use std::{collections::HashMap, path::PathBuf, sync::Arc};

use gyrus_contract::{Limits, RunId, Spent};
use gyrus_journal::{LogReader, Store};
use gyrus_kernel::{Ending, Entry, RunState, log_name, record_summary, spent, summary};
use gyrus_surfaces::projection::{Projection, Prominence, goal};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Serialize;

use crate::heads::{self, RunWord};

/// Maximum number of characters of a goal and of a sentence.
const GIST: usize = 400;

/// Maximum number of entries that are searched for the last sentence.
const SEARCHED: usize = 60;

/// Maximum number of cached overviews of ended runs: as many as one list looks at, because a longer
/// list would push out what it has just read.
const KEPT: usize = 20_000;

/// A run in a few words.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct RunOverview {
    /// The run.
    #[schemars(with = "String")]
    pub run: RunId,
    /// Its name for people.
    pub name: String,
    /// The goal, cut.
    pub goal: String,
    /// The state.
    pub state: RunWord,
    /// The strength with which the goal is believed to be reached: `answered`, `claimed`, `checked` or
    /// `verified`; `failed` where the run ended without reaching it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// The way in which it ended, or the reason why it waits, in one sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ending: Option<String>,
    /// The last thing that happened, in one sentence.
    pub last: String,
    /// The folder that it works in.
    pub workdir: PathBuf,
    /// Its loop.
    #[serde(rename = "loop")]
    pub cognitive_loop: String,
    /// The agent under whose trust it works.
    pub agent: String,
    /// The model that it asks, or the first of them.
    pub model: String,
    /// Number of the last entry.
    pub seq: u64,
    /// The time of its first entry, in UTC milliseconds.
    pub started_ms: i64,
    /// The time of its last entry, in UTC milliseconds.
    pub last_ms: i64,
    /// Number of steps.
    pub steps: u64,
    /// AccessTokens used.
    pub tokens: u64,
    /// Money spent, in millionths of a dollar, as far as prices are known.
    pub cost_microdollars: u64,
    /// The most steps, tokens and money that it may use.
    #[schemars(with = "serde_json::Value")]
    pub limits: Limits,
    /// The run that it was forked from.
    #[schemars(with = "Option<String>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<RunId>,
    /// The run before it in its session.
    #[schemars(with = "Option<String>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continues: Option<RunId>,
    /// Number of questions that wait for an answer.
    pub questions: usize,
}

/// Overviews of ended runs, which never change again.
#[derive(Default)]
pub(crate) struct Overviews(Mutex<HashMap<RunId, Arc<RunOverview>>>);

impl Overviews {
    pub(crate) fn of(
        &self,
        store: &Store,
        run: RunId,
        questions: usize,
    ) -> Result<Arc<RunOverview>, gyrus_journal::Error> {
        let kept = || self.0.lock();
        if let Some(known) = kept().get(&run) {
            return Ok(Arc::clone(known));
        }
        let overview = Arc::new(RunOverview::read(store, run, questions)?);
        if overview.state == RunWord::Over {
            let mut kept = kept();
            if kept.len() >= KEPT {
                kept.clear();
            }
            kept.insert(run, Arc::clone(&overview));
        }
        Ok(overview)
    }
}

impl RunOverview {
    /// Reads the overview of a run with this number of open questions.
    pub fn read(store: &Store, run: RunId, questions: usize) -> Result<Self, gyrus_journal::Error> {
        let reader = store.reader(&log_name(run))?;
        let state = RunState::of(store, run)?;
        let first = reader.entry(1)?;
        let started_ms = first.as_ref().map_or(0, |first| first.at_ms);
        let started = match first.as_ref().map(gyrus_kernel::parse) {
            Some(Ok(Entry::RunStarted(started))) => Some(started),
            _ => None,
        };
        let (seq, last_ms, last) = last_told(&reader)?;
        let (outcome, ending) = match &state {
            RunState::Over(ending) | RunState::Parked(ending) => {
                (outcome(ending), Some(gist(&summary(ending))))
            }
            RunState::Record(ending) => (
                ending.as_ref().and_then(outcome),
                Some(gist(&record_summary(ending.as_ref()))),
            ),
            RunState::CutOff => (None, Some("its process died".to_owned())),
            RunState::Running(_) | RunState::NeverBegan => (None, None),
        };
        let Spent {
            steps,
            tokens,
            cost,
            ..
        } = spent(store, run)?;
        let of = |text: fn(&gyrus_kernel::RunStarted) -> &str| {
            started.as_ref().map(text).unwrap_or_default().to_owned()
        };
        let goal = started.as_ref().map(|started| goal(&started.goal, &reader));
        Ok(Self {
            run,
            name: run.short(),
            goal: gist(&goal.unwrap_or_default()),
            state: heads::word(&state, questions),
            outcome,
            ending,
            last,
            workdir: started
                .as_ref()
                .map(|started| started.workspace.clone())
                .unwrap_or_default(),
            cognitive_loop: of(|started| &started.cognitive_loop),
            agent: of(|started| &started.agent),
            model: of(|started| &started.model),
            seq,
            started_ms,
            last_ms: last_ms.max(started_ms),
            steps,
            tokens,
            cost_microdollars: cost.0,
            limits: started
                .as_ref()
                .map(|started| started.settings.limits)
                .unwrap_or_default(),
            forked_from: started
                .as_ref()
                .and_then(|started| Some(started.forked_from.as_ref()?.run)),
            continues: started.as_ref().and_then(|started| started.continues),
            questions,
        })
    }
}

/// Returns the number and the time of the last entry, and the last sentence for a person.
fn last_told(reader: &LogReader) -> Result<(u64, i64, String), gyrus_journal::Error> {
    let (mut seq, mut last_ms) = (0, 0);
    for entry in reader.entries_back()?.take(SEARCHED) {
        let entry = entry?;
        if seq == 0 {
            (seq, last_ms) = (entry.seq, entry.at_ms);
        }
        let happenings = Projection::new().take(&entry, reader);
        let mut told = happenings.iter().rev();
        if let Some(told) =
            told.find(|one| one.weight == Prominence::Main && !one.headline.is_empty())
        {
            return Ok((seq, last_ms, gist(&told.headline)));
        }
    }
    Ok((seq, last_ms, String::new()))
}

fn outcome(ending: &Ending) -> Option<String> {
    match ending {
        Ending::Reached { claim, strength } if claim.reached => Some(strength.word().to_owned()),
        Ending::Reached { .. } | Ending::Failed { .. } => Some("failed".to_owned()),
        _ => None,
    }
}

fn gist(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    gyrus_text::clip(line, GIST)
}
