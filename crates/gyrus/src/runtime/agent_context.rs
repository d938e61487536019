//! The records of an agent in a session: all that its runs perceived and did, and the part of it
//! that the next run is given.
//!
//! The journals hold it already: a context only keeps which runs belong to it, as a log of its own,
//! and reads their entries. So it records what a loop perceives and does without the loop's help,
//! and a crash loses nothing.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use gyrus_contract::{Digest, MessageBody, Origin, RunId, Text};
use gyrus_journal::{Error as JournalError, LogReader, Store};
use gyrus_kernel::{Attachment, Ending, Entry, Stop, log_name, summary};
use gyrus_runtime::ledger::{Fold, Ledger};
use gyrus_search::Ranking;
use gyrus_text::{shorten, tokens};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::RuntimeError;

/// Number of the newest runs in a context.
const MAX_RUNS: usize = 200;

/// Number of the newest records that every run is given, whatever its goal.
const ALWAYS_GIVEN: usize = 4;

/// The constant of reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009).
const FUSION: f64 = 60.0;

/// The tokens that a record needs beside its text.
const TOKENS_OF_A_LINE: u64 = 8;

/// The bounds of a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextLimits {
    /// Maximum number of records in memory; the oldest are dropped first.
    pub records: usize,
    /// Maximum number of characters of a record.
    pub characters: usize,
    /// Maximum number of tokens of the records that a run is given.
    pub tokens: u64,
}

impl Default for ContextLimits {
    /// 2,000 records of 1,500 characters, and 4,000 tokens for a run.
    fn default() -> Self {
        Self {
            records: 2_000,
            characters: 1_500,
            tokens: 4_000,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RecordKind {
    /// A goal, or a message of a person.
    Event,
    /// A call of a tool.
    Call,
    /// The result of a call.
    Result,
    /// The answer or the end of a run.
    Answer,
}

impl RecordKind {
    fn title(self) -> &'static str {
        match self {
            RecordKind::Event => "heard",
            RecordKind::Call => "called",
            RecordKind::Result => "result",
            RecordKind::Answer => "answer",
        }
    }

    /// Returns the factor by which a record is preferred to a result of the same rank.
    fn weight(self) -> f64 {
        match self {
            RecordKind::Answer => 1.5,
            RecordKind::Event => 1.3,
            RecordKind::Call => 1.1,
            RecordKind::Result => 1.0,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextRecord {
    pub kind: RecordKind,
    pub run: RunId,
    /// The number of the entry in the run's journal.
    pub entry: u64,
    /// The text, bounded and without secrets.
    pub text: String,
}

impl ContextRecord {
    fn tokens(&self) -> u64 {
        tokens(&self.text) as u64 + TOKENS_OF_A_LINE
    }
}

/// The tokens of a retrieval.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TokenLedger {
    /// The tokens that could be used.
    pub budget: u64,
    /// The tokens that were used, by kind of record.
    pub used: BTreeMap<RecordKind, u64>,
    /// The tokens of the records for which there was no room.
    pub left_out: u64,
}

impl TokenLedger {
    /// Returns the sum of the tokens that were used; never over the budget.
    pub fn total(&self) -> u64 {
        self.used.values().sum()
    }
}

/// The records that were retrieved for a question.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContextWindow {
    /// The records, oldest first.
    pub records: Vec<ContextRecord>,
    /// The number of tokens of the records.
    pub ledger: TokenLedger,
}

impl ContextWindow {
    /// Returns the records as text for a prompt.
    pub fn to_context_string(&self) -> String {
        let mut text = String::new();
        let mut run = None;
        for record in &self.records {
            if run != Some(record.run) {
                run = Some(record.run);
                text.push_str(&format!("run {}\n", record.run.short()));
            }
            let words = record.text.replace('\n', "\n  ");
            text.push_str(&format!("- {}: {words}\n", record.kind.title()));
        }
        text
    }

    /// Returns the records as material for a run, where they are data; `None` if there are none.
    pub(super) fn attachment(&self) -> Option<Attachment> {
        let text = Text::new(self.to_context_string(), Origin::Run);
        (!self.records.is_empty()).then_some(Attachment::Text(text))
    }
}

/// The records of an agent in a session. Clones are the same context.
///
/// ```
/// use gyrus::AgentContext;
///
/// let context = AgentContext::with_defaults("session-1", "agent-1");
/// assert!(context.records().is_empty());
/// ```
#[derive(Debug, Clone)]
pub struct AgentContext {
    session: String,
    agent: String,
    limits: ContextLimits,
    state: Arc<Mutex<ContextState>>,
}

#[derive(Debug, Default)]
struct ContextState {
    /// The log of the runs, once a runtime has used the context.
    opened: Option<ContextLog>,
    /// The entry of each run up to which it was read.
    read: BTreeMap<RunId, u64>,
    records: VecDeque<ContextRecord>,
}

#[derive(Debug)]
struct ContextLog {
    store: Store,
    ledger: Ledger<ContextRuns>,
}

impl AgentContext {
    /// Creates a context for an agent in a session. Runs of a loop that has it begin with what it
    /// recorded in that session before, also in earlier processes.
    pub fn with_defaults(session: impl Into<String>, agent: impl Into<String>) -> Self {
        Self::new(session, agent, ContextLimits::default())
    }

    /// Creates a context with these bounds.
    pub fn new(
        session: impl Into<String>,
        agent: impl Into<String>,
        limits: ContextLimits,
    ) -> Self {
        Self {
            session: session.into(),
            agent: agent.into(),
            limits,
            state: Arc::default(),
        }
    }

    /// Returns all records, oldest first, up to the present. Of a damaged journal, the records
    /// before the damage are returned.
    pub fn records(&self) -> Vec<ContextRecord> {
        let mut state = self.state.lock();
        state.refresh(&self.limits);
        state.records.iter().cloned().collect()
    }

    /// Returns the records that matter most for a question, within this number of tokens: those
    /// with its words and the newest ones, answers before the records that led to them.
    pub fn retrieve(&self, question: &str, tokens: u64) -> ContextWindow {
        select(self.records(), question, tokens)
    }

    /// Returns the records that a new run for a goal is given, without those of the run that it
    /// continues.
    pub(super) fn for_goal(&self, goal: &str, continues: Option<RunId>) -> ContextWindow {
        let mut records = self.records();
        records.retain(|record| Some(record.run) != continues);
        select(records, goal, self.limits.tokens)
    }

    /// Opens the log of the context in a store, unless it is open.
    ///
    /// # Errors
    /// Another process has this context, or this one is in use with another store.
    pub(super) fn open(&self, store: &Store) -> Result<(), RuntimeError> {
        let mut state = self.state.lock();
        if let Some(opened) = &state.opened {
            return if opened.store.root() == store.root() {
                Ok(())
            } else {
                Err(RuntimeError::ContextElsewhere {
                    session: self.session.clone(),
                    agent: self.agent.clone(),
                })
            };
        }
        // The names may be any text, so they are not part of the log's name.
        let digest = Digest::of_json(&[&self.session, &self.agent]).to_string();
        let letters = digest.chars().filter(char::is_ascii_alphanumeric);
        let id: String = letters.take(40).collect();
        let mut ledger = Ledger::<ContextRuns>::open(store, &id)?;
        if ledger.state().name.is_none() {
            ledger.append(vec![ContextFact::Named {
                session: self.session.clone(),
                agent: self.agent.clone(),
            }])?;
        }
        state.opened = Some(ContextLog {
            store: store.clone(),
            ledger,
        });
        Ok(())
    }

    /// Adds a run, which need not exist yet.
    pub(super) fn join(&self, run: RunId) -> Result<(), RuntimeError> {
        let mut state = self.state.lock();
        if let Some(opened) = &mut state.opened
            && !opened.ledger.state().runs.contains(&run)
        {
            opened.ledger.append(vec![ContextFact::Run { run }])?;
            opened.ledger.writer().barrier_blocking()?;
        }
        Ok(())
    }
}

impl ContextState {
    /// Reads the new entries of the runs since the last refresh.
    fn refresh(&mut self, limits: &ContextLimits) {
        let Some(opened) = &self.opened else {
            return;
        };
        let runs: Vec<RunId> = opened.ledger.state().runs.iter().copied().collect();
        let store = opened.store.clone();
        for run in runs {
            // It may have been removed, or its process ended before it was created.
            if store.exists(&log_name(run)) {
                // A journal that is damaged tells what it can, and the others are still read.
                let _ = self.read_run(&store, run, limits);
            }
        }
        let excess = self.records.len().saturating_sub(limits.records);
        self.records.drain(..excess);
    }

    fn read_run(
        &mut self,
        store: &Store,
        run: RunId,
        limits: &ContextLimits,
    ) -> Result<(), JournalError> {
        let reader = store.reader(&log_name(run))?;
        let from = self.read.get(&run).map_or(1, |seq| seq + 1);
        for entry in reader.entries(from)? {
            let entry = entry?;
            self.read.insert(run, entry.seq);
            // An entry of a newer gyrus says nothing to this one.
            let Ok(parsed) = gyrus_kernel::parse(&entry) else {
                continue;
            };
            for (kind, text) in recorded(parsed, &reader) {
                self.records.push_back(ContextRecord {
                    kind,
                    run,
                    entry: entry.seq,
                    text: shorten(text.trim(), limits.characters).into_owned(),
                });
            }
        }
        Ok(())
    }
}

fn recorded(entry: Entry, reader: &LogReader) -> Vec<(RecordKind, String)> {
    let blob = |id: &_| reader.blob(id).map_err(Stop::from);
    match entry {
        Entry::RunStarted(started) => {
            let goal = started.goal.read(blob).map(|goal| goal.text);
            vec![(RecordKind::Event, goal.unwrap_or_default())]
        }
        Entry::Steered(steered) => steered
            .messages
            .iter()
            .filter_map(|message| match &message.body {
                MessageBody::Steer { text, .. } => Some((RecordKind::Event, text.clone())),
                _ => None,
            })
            .collect(),
        Entry::ToolCalled(called) => {
            let text = format!("{} {}", called.call.tool, called.call.arguments);
            vec![(RecordKind::Call, text)]
        }
        Entry::ToolResulted(result) if result.claim.is_none() => {
            vec![(
                RecordKind::Result,
                result.text.read(blob).unwrap_or_default(),
            )]
        }
        Entry::RunEnded(ended) => {
            let text = match &ended.ending {
                Ending::Reached { claim, .. } => claim.answer.clone(),
                other => summary(other),
            };
            vec![(RecordKind::Answer, text)]
        }
        _ => Vec::new(),
    }
}

/// Chooses records for a question within a budget.
fn select(records: Vec<ContextRecord>, question: &str, budget: u64) -> ContextWindow {
    let mut ranking = Ranking::new(question);
    records.iter().for_each(|record| ranking.add(&record.text));
    let relevant: BTreeMap<usize, usize> = ranking.best().into_iter().zip(0..).collect();
    let count = records.len();
    let fused = |place: usize| 1.0 / (FUSION + place as f64);
    let score = |number: usize| {
        let by_words = relevant
            .get(&number)
            .map_or(0.0, |place| 2.0 * fused(*place));
        let by_age = fused(count - 1 - number);
        (by_words + by_age) * records[number].kind.weight()
    };
    let mut order: Vec<usize> = (0..count).collect();
    let is_newest = |number: usize| number + ALWAYS_GIVEN >= count;
    order.sort_by(|one, other| {
        let newest = is_newest(*other).cmp(&is_newest(*one));
        let best = || score(*other).total_cmp(&score(*one));
        newest.then_with(best).then(other.cmp(one))
    });
    let mut window = ContextWindow::default();
    window.ledger.budget = budget;
    let (mut chosen, mut used) = (BTreeSet::new(), 0);
    for number in order {
        let cost = records[number].tokens();
        if used + cost > budget {
            window.ledger.left_out += cost;
            continue;
        }
        used += cost;
        *window.ledger.used.entry(records[number].kind).or_default() += cost;
        chosen.insert(number);
    }
    let all = records.into_iter().enumerate();
    window.records = all
        .filter(|(number, _)| chosen.contains(number))
        .map(|(_, record)| record)
        .collect();
    window
}

#[derive(Debug, Default)]
struct ContextRuns {
    name: Option<(String, String)>,
    runs: VecDeque<RunId>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", content = "payload")]
enum ContextFact {
    #[serde(rename = "context.named")]
    Named { session: String, agent: String },
    #[serde(rename = "context.run")]
    Run { run: RunId },
}

impl Fold for ContextRuns {
    const LOG_KIND: &'static str = "contexts";
    type Fact = ContextFact;

    fn apply(&mut self, fact: ContextFact) {
        match fact {
            ContextFact::Named { session, agent } => self.name = Some((session, agent)),
            ContextFact::Run { run } => {
                self.runs.push_back(run);
                if self.runs.len() > MAX_RUNS {
                    self.runs.pop_front();
                }
            }
        }
    }

    fn facts(&self) -> Vec<ContextFact> {
        let name = self.name.clone().into_iter();
        let named = name.map(|(session, agent)| ContextFact::Named { session, agent });
        let runs = self.runs.iter().map(|run| ContextFact::Run { run: *run });
        named.chain(runs).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: RecordKind, text: &str) -> ContextRecord {
        ContextRecord {
            kind,
            run: RunId::new(),
            entry: 1,
            text: text.to_owned(),
        }
    }

    #[test]
    fn what_has_the_words_comes_before_what_is_only_newer() {
        let mut records = vec![
            record(RecordKind::Answer, "The invoice of March is 419 euros."),
            record(RecordKind::Result, "nothing of use"),
        ];
        let filler = |number: usize| record(RecordKind::Result, &format!("line {number} of a log"));
        records.extend((0..500).map(filler));
        let window = select(records, "What was the invoice of March?", 200);
        assert!(window.records[0].text.contains("419"), "{window:?}");
        assert!(window.records.last().unwrap().text.contains("499"));
        assert!(window.ledger.total() <= 200 && window.ledger.total() > 180);
        assert!(window.ledger.left_out > 1_000);
    }

    #[test]
    fn nothing_is_over_the_budget() {
        let large = record(RecordKind::Event, &"word ".repeat(10_000));
        let small = record(RecordKind::Event, "word");
        let window = select(vec![large, small.clone()], "word", 50);
        assert_eq!(window.records, [small]);
        assert_eq!(select(Vec::new(), "", 50).records, []);
    }
}
