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

/// Amendments of the goal and names of models that a page's head takes.
const AMENDMENTS: usize = 50;
const MODELS: usize = 8;

/// A run from afar.
pub(super) struct Survey {
    pub(super) run: RunId,
    /// The first entry's record of the start; `None` if it has none.
    pub(super) started: Option<RunStarted>,
    pub(super) goal: Excerpt,
    /// Additions of people, with time and author.
    pub(super) amendments: Vec<(i64, Principal, Excerpt)>,
    /// The settings in force, if it was resumed with different ones.
    pub(super) settings: Option<RunSettings>,
    /// Standing of the run.
    pub(super) standing: SurveyState,
    /// Times at which the first and the last entry were appended, in UTC milliseconds.
    pub(super) began_ms: i64,
    pub(super) ended_ms: i64,
    /// The number of the last entry that was read.
    pub(super) last_seq: u64,
    /// Usage, as the run itself counts it.
    pub(super) spent: Spent,
    /// Shares of the time by activity.
    pub(super) shares: Shares,
    /// Names of the models that were asked.
    pub(super) models: BTreeSet<String>,
    /// Tool calls, questions to a person, and attempts at asking a model that failed.
    pub(super) calls: u64,
    pub(super) questions: u64,
    pub(super) failed_attempts: u64,
    /// Figures of the steps, in order.
    pub(super) steps: Vec<Figures>,
    /// The reason why nothing after `last_seq` can be read.
    pub(super) damage: Option<Error>,
}

/// Standing of a run.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum SurveyState {
    Over(Ending),
    /// It can be resumed.
    Parked(Ending),
    /// A process has it.
    Running,
    /// It was cut off and can be resumed.
    CutOff,
}

/// A few numbers of a step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Figures {
    pub(super) step: u32,
    /// Number of the first entry that belongs to one of its effects.
    pub(super) seq: u64,
    /// Tokens that were charged.
    pub(super) tokens: u64,
    /// Money that was charged.
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

    /// Takes what the head of the page says of an entry.
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

    /// Tokens that were used, those of an unfinished step included.
    pub(super) fn tokens(&self) -> u64 {
        let charged = self.steps.iter().map(|figures| figures.tokens);
        self.spent.tokens.max(charged.fold(0, u64::saturating_add))
    }

    /// Money that was spent, that of an unfinished step included.
    pub(super) fn cost(&self) -> Microdollars {
        let charged = self.steps.iter().map(|figures| figures.cost);
        self.spent
            .cost
            .max(charged.fold(Microdollars(0), |sum, cost| sum + cost))
    }

    /// Milliseconds from the first to the last entry.
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

/// A run that goes another way from a step of the one that was looked for.
pub(super) struct ForkLink {
    pub(super) run: RunId,
    /// The last step that both share.
    pub(super) step: u32,
}

/// The runs that were forked from `run`, in order of id. A run that cannot be read is none.
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
