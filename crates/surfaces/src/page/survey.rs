//! A first reading of a run, for what stands at the head of its page: how it ended, what it used
//! and where its time went. Keeps a few numbers of every step, and nothing else of it.

use std::collections::BTreeSet;

use gyrus_contract::{MessageBody, Microdollars, Principal, RunId, Spent};
use gyrus_journal::{Error, LogReader, Store};
use gyrus_kernel::{Ending, Entry, Register, RunSettings, RunStarted, log_name};

use super::{
    excerpt::{Excerpt, brief},
    time_shares::{Shares, TimeShares},
};
use crate::projection::{Happening, HappeningSubject, Projection, goal, step_of};

/// Maximum number of amendments of the goal, and of model names, in a page's head.
const AMENDMENTS: usize = 50;
const MODELS: usize = 8;

pub(super) struct Survey {
    pub(super) run: RunId,
    /// The record of the run's start; `None` if it is missing.
    pub(super) started: Option<RunStarted>,
    pub(super) goal: Excerpt,
    /// Additions of people, with time and author.
    pub(super) amendments: Vec<(i64, Principal, Excerpt)>,
    /// The settings in force, if the run was resumed with different ones.
    pub(super) settings: Option<RunSettings>,
    pub(super) standing: SurveyState,
    /// Times at which the first and the last entry were appended, in UTC milliseconds.
    pub(super) began_ms: i64,
    pub(super) ended_ms: i64,
    pub(super) last_seq: u64,
    /// The use of the run, as it counts itself.
    pub(super) spent: Spent,
    pub(super) shares: Shares,
    pub(super) models: BTreeSet<String>,
    /// Tool calls, questions to a person, and attempts at asking a model that failed.
    pub(super) calls: u64,
    pub(super) questions: u64,
    pub(super) failed_attempts: u64,
    pub(super) steps: Vec<Figures>,
    /// Reason why the entries after `last_seq` cannot be read.
    pub(super) damage: Option<Error>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum SurveyState {
    Over(Ending),
    /// The run can be resumed.
    Parked(Ending),
    /// A process drives the run.
    Running,
    /// The run's process died; it can be resumed.
    CutOff,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Figures {
    pub(super) step: u32,
    /// Number of the first entry of any of the step's effects.
    pub(super) seq: u64,
    pub(super) tokens: u64,
    pub(super) cost: Microdollars,
}

impl Survey {
    /// Reads the whole run, as far as it can be read.
    ///
    /// # Errors
    /// When there is no such run. Damage further on is not an error but part of what was found.
    pub(super) fn read(store: &Store, run: RunId, reader: &LogReader) -> Result<Self, Error> {
        let mut survey = Self {
            run,
            started: None,
            goal: Excerpt::default(),
            amendments: Vec::new(),
            settings: None,
            standing: match store.holder(&log_name(run))? {
                Some(_) => SurveyState::Running,
                None => SurveyState::CutOff,
            },
            began_ms: 0,
            ended_ms: 0,
            last_seq: 0,
            spent: Spent::default(),
            shares: Shares::default(),
            models: BTreeSet::new(),
            calls: 0,
            questions: 0,
            failed_attempts: 0,
            steps: Vec::new(),
            damage: None,
        };
        let unless_stopped = survey.standing.clone();
        let mut clock = TimeShares::default();
        let mut projection = Projection::new();
        for entry in reader.entries(1)? {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    survey.damage = Some(error);
                    break;
                }
            };
            if survey.last_seq == 0 {
                survey.began_ms = entry.at_ms;
            }
            (survey.last_seq, survey.ended_ms) = (entry.seq, entry.at_ms);
            for happening in projection.take(&entry, reader) {
                clock.take(&happening);
                survey.count(&happening);
            }
            if let Ok(parsed) = gyrus_kernel::parse(&entry) {
                survey.take(entry.at_ms, parsed, reader, &unless_stopped);
            }
        }
        survey.shares = clock.shares();
        Ok(survey)
    }

    fn count(&mut self, happening: &Happening) {
        let counts = |subject| u64::from(happening.subject == subject);
        self.calls += counts(HappeningSubject::Call);
        self.questions += counts(HappeningSubject::Question);
        self.failed_attempts += counts(HappeningSubject::ReplyFailed);
        if let Some(step) = step_of(happening.effect.as_ref()) {
            let figures = self.figures(step, happening.seq);
            figures.tokens = figures.tokens.saturating_add(happening.charged.tokens);
            figures.cost = figures.cost + happening.charged.cost;
        }
    }

    /// Adds an entry to the data for the head of the page.
    fn take(&mut self, at_ms: i64, entry: Entry, reader: &LogReader, unless_stopped: &SurveyState) {
        if let Entry::RunStarted(started) = entry {
            self.goal = Excerpt::of(&goal(&started.goal, reader));
            self.started = Some(started);
        } else if let Entry::RunResumed(resumed) = entry {
            self.settings = Some(resumed.settings);
            self.standing = unless_stopped.clone();
        } else if let Entry::RunParked(parked) = entry {
            self.standing = SurveyState::Parked(parked.ending);
            self.spent = parked.spent;
        } else if let Entry::RunEnded(ended) = entry {
            self.standing = SurveyState::Over(ended.ending);
            self.spent = ended.spent;
        } else if let Entry::CycleEnded(ended) = entry {
            self.spent = ended.kernel.spent;
        } else if let Entry::ModelCall(asked) = entry {
            if self.models.len() < MODELS {
                self.models.insert(brief(&asked.model));
            }
        } else if let Entry::Steered(steered) = entry {
            for message in steered.messages {
                if let MessageBody::Steer { text, .. } = &message.body
                    && self.amendments.len() < AMENDMENTS
                {
                    self.amendments
                        .push((at_ms, message.from, Excerpt::of(text)));
                }
            }
        }
    }

    /// Returns the number of used tokens, including those of an unfinished step.
    pub(super) fn tokens(&self) -> u64 {
        let charged = self.steps.iter().map(|figures| figures.tokens);
        self.spent.tokens.max(charged.fold(0, u64::saturating_add))
    }

    /// Returns the spent money, including that of an unfinished step.
    pub(super) fn cost(&self) -> Microdollars {
        let charged = self.steps.iter().map(|figures| figures.cost);
        self.spent
            .cost
            .max(charged.fold(Microdollars(0), |sum, cost| sum + cost))
    }

    pub(super) fn lasted_ms(&self) -> u64 {
        self.ended_ms
            .saturating_sub(self.began_ms)
            .max(0)
            .unsigned_abs()
    }

    /// The figures of a step; steps come in order.
    fn figures(&mut self, step: u32, seq: u64) -> &mut Figures {
        if self.steps.last().is_none_or(|last| last.step != step) {
            self.steps.push(Figures {
                step,
                seq,
                ..Figures::default()
            });
        }
        let last = self.steps.len() - 1;
        &mut self.steps[last]
    }
}

pub(super) struct ForkLink {
    pub(super) run: RunId,
    /// The last step that both runs share.
    pub(super) step: u32,
}

/// Returns the runs forked from `run`, in order of id. Runs that cannot be read are left out.
pub(super) fn forks(store: &Store, run: RunId) -> Result<Vec<ForkLink>, Error> {
    let step = |id: RunId| {
        let reader = store.reader(&log_name(id)).ok()?;
        let entry = reader.entry(1).ok()??;
        if let Entry::RunStarted(started) = gyrus_kernel::parse(&entry).ok()? {
            Some(started.forked_from?.cycle)
        } else {
            None
        }
    };
    let register = Register::read(store)?;
    let forks = register
        .roots()
        .filter(|line| line.forked_from == Some(run));
    let mut forks: Vec<ForkLink> = forks
        .filter_map(|line| {
            let run = line.run;
            Some(ForkLink {
                run,
                step: step(run)?,
            })
        })
        .collect();
    forks.sort_by_key(|fork| fork.run);
    Ok(forks)
}
