//! A lesson, what became of the runs that were given it, and whether it is still given.

use std::collections::BTreeMap;

use gyrus_contract::RunId;
use serde::{Deserialize, Serialize};

use crate::ledger::Fold;

/// Number of failures more than successes, since a lesson was given or brought back, at which it is
/// retired.
pub const MORE_FAILURES: usize = 2;

/// Maximum number of runs of which a lesson remembers the outcome; the oldest go first.
const MAX_RUNS: usize = 100;

/// A lesson of a finished run, in the words of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lesson {
    /// The number, from 1 on.
    pub number: u64,
    pub run: RunId,
    /// The time at which the run ended, in UTC milliseconds.
    pub at_ms: i64,
    /// The goal of that run, cut.
    pub goal: String,
    /// The folder in which the run worked.
    pub workspace: String,
    /// The host of the page at which the run began; empty if it began at none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub site: String,
    /// The outcome of the run: `failed`, `limit`, `stuck`, `claimed`, `checked` or `verified`.
    pub outcome: String,
    /// Description of successful steps; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub worked: String,
    /// Description of failed attempts; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub did_not: String,
    /// Whether the run had read untrusted text: then the lesson is untrusted, too.
    pub exposed: bool,
    /// Whether the run was direct: without any lesson it reached its goal, as checks told, and each
    /// of its calls changed something. Then the same goal needs no lesson.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub direct: bool,
}

/// The outcome of a run that was given a lesson.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenTo {
    pub run: RunId,
    /// Whether the run reached its goal.
    pub reached: bool,
}

/// A person's decision about a lesson.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LessonDecision {
    /// The lesson is no longer given to runs.
    Retire,
    /// The lesson is given to runs again, with new counts.
    Restore,
}

/// A fact about lessons.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "payload")]
pub enum LessonFact {
    /// A lesson was learned from a run. The number is the next one, whatever the fact says.
    #[serde(rename = "lesson.learned")]
    Learned(Lesson),
    /// A run with a lesson has ended. A later one about the same run replaces it.
    #[serde(rename = "lesson.counted")]
    Counted {
        /// The number of the lesson.
        lesson: u64,
        /// The run and its outcome.
        #[serde(flatten)]
        given: GivenTo,
    },
    /// A person decided about a lesson.
    #[serde(rename = "lesson.decided")]
    Decided {
        /// The number of the lesson.
        lesson: u64,
        decision: LessonDecision,
    },
}

/// The present state of a lesson.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LessonRecord {
    pub lesson: Lesson,
    /// The runs with this lesson that have ended, oldest first; at most 100.
    pub given: Vec<GivenTo>,
    /// The last decision of a person.
    pub decided: Option<LessonDecision>,
    /// Number of the first runs in `given` that no longer count.
    before: usize,
}

impl LessonRecord {
    /// Returns the number of counted runs that reached their goals, and of those that did not.
    pub fn counts(&self) -> (usize, usize) {
        let counted = &self.given[self.before..];
        let reached = counted.iter().filter(|given| given.reached).count();
        (reached, counted.len() - reached)
    }

    /// Whether the lesson is no longer given: a person retired it, or [`MORE_FAILURES`] more runs
    /// failed with it than reached their goals.
    pub fn is_retired(&self) -> bool {
        let (reached, failed) = self.counts();
        self.decided == Some(LessonDecision::Retire) || failed >= reached + MORE_FAILURES
    }

    fn count(&mut self, given: GivenTo) {
        if let Some(known) = self.given.iter_mut().find(|known| known.run == given.run) {
            known.reached = given.reached;
            return;
        }
        self.given.push(given);
        if self.given.len() > MAX_RUNS {
            self.given.remove(0);
            self.before = self.before.saturating_sub(1);
        }
    }

    fn decide(&mut self, decision: LessonDecision) {
        self.decided = Some(decision);
        if decision == LessonDecision::Restore {
            self.before = self.given.len();
        }
    }
}

/// All lessons, by number.
#[derive(Debug, Default, PartialEq)]
pub struct LessonBook {
    lessons: BTreeMap<u64, LessonRecord>,
    runs: BTreeMap<RunId, u64>,
}

impl LessonBook {
    /// Returns the lessons, oldest first.
    pub fn lessons(&self) -> impl DoubleEndedIterator<Item = &LessonRecord> {
        self.lessons.values()
    }

    pub fn lesson(&self, number: u64) -> Option<&LessonRecord> {
        self.lessons.get(&number)
    }

    pub fn of_run(&self, run: RunId) -> Option<&Lesson> {
        Some(&self.lesson(*self.runs.get(&run)?)?.lesson)
    }
}

impl Fold for LessonBook {
    const LOG_KIND: &'static str = "lessons";
    type Fact = LessonFact;

    fn apply(&mut self, fact: LessonFact) {
        match fact {
            LessonFact::Learned(mut lesson) => {
                // A run that was resumed after its end taught its lesson anew.
                let last = self.lessons.keys().next_back().copied().unwrap_or(0);
                let number = *self.runs.entry(lesson.run).or_insert(last + 1);
                lesson.number = number;
                match self.lessons.get_mut(&number) {
                    Some(known) => known.lesson = lesson,
                    None => {
                        let record = LessonRecord {
                            lesson,
                            given: Vec::new(),
                            decided: None,
                            before: 0,
                        };
                        self.lessons.insert(number, record);
                    }
                }
            }
            LessonFact::Counted { lesson, given } => {
                if let Some(record) = self.lessons.get_mut(&lesson) {
                    record.count(given);
                }
            }
            LessonFact::Decided { lesson, decision } => {
                if let Some(record) = self.lessons.get_mut(&lesson) {
                    record.decide(decision);
                }
            }
        }
    }

    fn facts(&self) -> Vec<LessonFact> {
        let mut facts = Vec::new();
        for (number, record) in &self.lessons {
            let lesson = *number;
            let counted = |given: &GivenTo| LessonFact::Counted {
                lesson,
                given: *given,
            };
            facts.push(LessonFact::Learned(record.lesson.clone()));
            let (before, since) = record.given.split_at(record.before);
            facts.extend(before.iter().map(counted));
            let decided = |decision| LessonFact::Decided { lesson, decision };
            if !before.is_empty() || record.decided == Some(LessonDecision::Restore) {
                facts.push(decided(LessonDecision::Restore));
            }
            facts.extend(since.iter().map(counted));
            if record.decided == Some(LessonDecision::Retire) {
                facts.push(decided(LessonDecision::Retire));
            }
        }
        facts
    }
}
