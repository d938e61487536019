//! A first reading of a run, for what stands at the head of its page: how it ended, what it used
//! and where its time went. Keeps a few numbers of every step, and nothing else of it.

use std::collections::BTreeSet;

use gyrus_contract::{Microdollars, Principal, RunId, Spent};
use gyrus_journal::{Error, Reader, Store};
use gyrus_kernel::{AttemptResult, Ending, Entry, RUNS, RunStarted, Settings, log_name};

use super::{
    clock::{Clock, Shares},
    words::{Words, brief},
};
use crate::show::trace;

/// Amendments of the goal and names of models that a page's head takes.
const AMENDMENTS: usize = 50;
const MODELS: usize = 8;

/// A run from afar.
pub(super) struct Survey {
    /// The run.
    pub(super) run: RunId,
    /// What it was started with; `None` if the journal's first entry does not say it.
    pub(super) started: Option<RunStarted>,
    /// What it is to reach.
    pub(super) goal: Words,
    /// What people added, with when and who.
    pub(super) amendments: Vec<(i64, Principal, Words)>,
    /// What holds now, if it was resumed with something else.
    pub(super) settings: Option<Settings>,
    /// How it stands.
    pub(super) standing: Standing,
    /// When the first and the last entry were appended, in UTC milliseconds.
    pub(super) began_ms: i64,
    pub(super) ended_ms: i64,
    /// The number of the last entry that was read.
    pub(super) last_seq: u64,
    /// What was used, as the run itself counts.
    pub(super) spent: Spent,
    /// Where the time went.
    pub(super) shares: Shares,
    /// Who was asked.
    pub(super) models: BTreeSet<String>,
    /// Tool calls, questions to a person, and attempts at asking a model that failed.
    pub(super) calls: u64,
    pub(super) questions: u64,
    pub(super) failed_attempts: u64,
    /// By step, in order.
    pub(super) steps: Vec<Figures>,
    /// Why nothing after `last_seq` can be read.
    pub(super) damage: Option<Error>,
}

/// How a run stands.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Standing {
    /// It is over.
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
    /// Its number.
    pub(super) step: u32,
    /// Tokens that were charged.
    pub(super) tokens: u64,
    /// Money that was charged.
    pub(super) cost: Microdollars,
}

impl Survey {
    /// Reads the whole run, as far as it can be read.
    ///
    /// # Errors
    /// When there is no such run. Damage further on is no error but part of what was found.
    pub(super) fn read(store: &Store, run: RunId, reader: &Reader) -> Result<Self, Error> {
        let mut survey = Self {
            run,
            started: None,
            goal: Words::default(),
            amendments: Vec::new(),
            settings: None,
            standing: match store.holder(&log_name(run))? {
                Some(_) => Standing::Running,
                None => Standing::CutOff,
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
        let mut clock = Clock::default();
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
            let parsed = gyrus_kernel::parse(&entry).ok();
            clock.take(entry.at_ms, parsed.as_ref());
            if let Some(parsed) = parsed {
                survey.take(entry.at_ms, parsed, reader, &unless_stopped);
            }
        }
        survey.shares = clock.shares();
        Ok(survey)
    }

    fn take(&mut self, at_ms: i64, entry: Entry, reader: &Reader, unless_stopped: &Standing) {
        if let Some(effect) = entry.effect() {
            self.figures(effect.cycle_number());
        }
        match entry {
            Entry::RunStarted(started) => {
                self.goal = Words::of(&trace::goal(&started.goal, reader));
                self.started = Some(started);
            }
            Entry::RunResumed(resumed) => {
                self.settings = Some(resumed.settings);
                self.standing = unless_stopped.clone();
            }
            Entry::RunParked(parked) => {
                self.standing = Standing::Parked(parked.ending);
                self.spent = parked.spent;
            }
            Entry::RunEnded(ended) => {
                self.standing = Standing::Over(ended.ending);
                self.spent = ended.spent;
            }
            Entry::CycleEnded(ended) => self.spent = ended.kernel.spent,
            Entry::Steered(steered) => {
                for message in steered.messages {
                    if let gyrus_contract::MessageBody::Steer { text } = &message.body
                        && self.amendments.len() < AMENDMENTS
                    {
                        self.amendments.push((at_ms, message.from, Words::of(text)));
                    }
                }
            }
            Entry::ModelCall(asked) if self.models.len() < MODELS => {
                self.models.insert(brief(&asked.model));
            }
            Entry::ModelReply(reply) => {
                self.failed_attempts +=
                    u64::from(!matches!(reply.came, AttemptResult::Reply { .. }));
                let figures = self.figures(reply.effect.cycle_number());
                figures.tokens = figures.tokens.saturating_add(reply.charged.tokens);
                figures.cost = figures.cost + reply.charged.cost;
            }
            Entry::ChildEnded(child) => {
                let figures = self.figures(child.effect.cycle_number());
                figures.tokens = figures.tokens.saturating_add(child.spent.tokens);
                figures.cost = figures.cost + child.spent.cost;
            }
            Entry::ToolCalled(_) => self.calls += 1,
            Entry::ApprovalAsked(_) => self.questions += 1,
            _ => {}
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
    fn figures(&mut self, step: u32) -> &mut Figures {
        if self.steps.last().is_none_or(|last| last.step != step) {
            self.steps.push(Figures {
                step,
                ..Figures::default()
            });
        }
        let last = self.steps.len() - 1;
        &mut self.steps[last]
    }
}

/// A run that goes another way from a step of the one that was looked for.
pub(super) struct Fork {
    /// It.
    pub(super) run: RunId,
    /// The last step that both share.
    pub(super) step: u32,
}

/// The runs that were forked from `run`, in order of id. A run that cannot be read is none.
pub(super) fn forks(store: &Store, run: RunId) -> Result<Vec<Fork>, Error> {
    let first_entry = |id: RunId| {
        let reader = store.reader(&log_name(id)).ok()?;
        let entry = reader.entry(1).ok()??;
        match gyrus_kernel::parse(&entry).ok()? {
            Entry::RunStarted(started) => started.forked_from,
            _ => None,
        }
    };
    let names = store.names(RUNS)?;
    let ids = names.iter().filter_map(|name| name.id().parse().ok());
    Ok(ids
        .filter_map(|id| {
            let from = first_entry(id).filter(|from| from.run == run)?;
            Some(Fork {
                run: id,
                step: from.cycle,
            })
        })
        .collect())
}
