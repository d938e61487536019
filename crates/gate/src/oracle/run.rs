//! A whole trial: all lines of the corpora, then mutations, on several jails at once.

use std::{
    path::PathBuf,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Instant,
};

use super::{
    Error, Inmate, Question, Reply,
    corpus::{self, DOUBTFUL, EVERYDAY, HOSTILE, READ_ONLY},
    fixture::Ground,
    mutation::Stock,
};

/// Mutations looked at for each that is wanted: beyond it, readings believe next to nothing.
const TRIES: u64 = 100;

/// Lines asked to make a failing one as short as it can be.
const SHRINKING: usize = 250;

/// After so many failures there is enough to mend.
const MOST_FAILURES: u64 = 60;

/// What a trial is to do.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Names the mutations.
    pub seed: u64,
    /// Mutations to run, that is, such as are called reading.
    pub count: u64,
    /// In how many of the disguised folders each line of the corpora that names git is run, beside
    /// the ordinary and the hostile one; the others are run in one. If it is 0, each line is run
    /// only once, in one of these two.
    pub disguises: usize,
    /// Jails at once.
    pub workers: usize,
    /// The program that is the worker, and its arguments; see [`Inmate::start`].
    pub worker: (PathBuf, Vec<String>),
    /// Variables that it gets beside this process's own.
    pub environment: Vec<(String, String)>,
}

/// A line that was called reading, and was not.
#[derive(Debug, Clone)]
pub struct Failure {
    /// Where it comes from: a file of the corpus, or a seed.
    pub origin: String,
    /// Where it was run.
    pub ground: Ground,
    /// The line.
    pub line: String,
    /// The same failure, made short.
    pub shortest: String,
    /// What it did, in words.
    pub differences: Vec<String>,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            origin,
            ground,
            line,
            shortest,
            differences,
        } = self;
        let differences = differences.join("; ");
        write!(
            f,
            "{shortest:?} in {}: {differences}\n    {origin}: {line:?}",
            ground.folder()
        )
    }
}

/// What a trial found.
#[derive(Debug, Default)]
pub struct Summary {
    /// Lines of the corpora that were run.
    pub corpus_lines: u64,
    /// Mutations that were run.
    pub mutations: u64,
    /// Mutations that were read.
    pub tried: u64,
    /// Lines that were killed because their time was over; no failures.
    pub timed_out: u64,
    /// Lines of the corpus of reading lines, and how many of them were recognised.
    pub recognised: (u64, u64),
    /// What went wrong, shortest first. What comes down to the same line is here once.
    pub failures: Vec<Failure>,
    /// Failures that came down to the same line as one of these.
    pub repeated: u64,
    /// How long it took.
    pub seconds: f64,
}

impl std::fmt::Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let executed = self.corpus_lines + self.mutations;
        let (of, recognised) = self.recognised;
        write!(
            f,
            "{executed} lines run ({} of the corpora, {} of {} mutations), {} failures ({} more come \
             down to the same), {} out of time, {recognised} of {of} reading lines recognised, {:.0} lines/s",
            self.corpus_lines,
            self.mutations,
            self.tried,
            self.failures.len(),
            self.repeated,
            self.timed_out,
            executed as f64 / self.seconds.max(0.001),
        )
    }
}

/// A line to be asked about.
struct Task {
    origin: String,
    ground: Ground,
    line: String,
    /// Counts for the share that is recognised.
    is_measured: bool,
}

/// Runs a trial. `tell` hears of each failure at once.
pub fn run(settings: &Settings, tell: &(dyn Fn(&Failure) + Sync)) -> Result<Summary, Error> {
    let started = Instant::now();
    let trial = Trial::new(settings, tell)?;
    let results: Vec<Result<(), Error>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..settings.workers)
            .map(|_| scope.spawn(|| trial.work()))
            .collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined
            .map(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    results.into_iter().collect::<Result<(), Error>>()?;
    let mut summary = trial
        .summary
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    summary
        .failures
        .sort_by_key(|failure| failure.shortest.len());
    summary.seconds = started.elapsed().as_secs_f64();
    Ok(summary)
}

struct Trial<'a> {
    settings: &'a Settings,
    tell: &'a (dyn Fn(&Failure) + Sync),
    corpus: Vec<Task>,
    stock: Stock,
    /// The next line, first of the corpus, then of the mutations.
    next: AtomicU64,
    summary: Mutex<Summary>,
}

impl<'a> Trial<'a> {
    fn new(settings: &'a Settings, tell: &'a (dyn Fn(&Failure) + Sync)) -> Result<Self, Error> {
        let mut stock = Stock {
            reading: Vec::new(),
            other: Vec::new(),
        };
        let mut tasks = Vec::new();
        for (name, text) in [
            ("read-only", READ_ONLY),
            ("hostile", HOSTILE),
            ("everyday", EVERYDAY),
            ("doubtful", DOUBTFUL),
        ] {
            for command in corpus::parse(text)? {
                let grounds = grounds(&command.line, command.number, settings.disguises);
                for ground in grounds {
                    tasks.push(Task {
                        origin: format!("{name}.txt line {}", command.number),
                        ground,
                        line: command.line.clone(),
                        is_measured: name == "read-only" && ground == Ground::Ordinary,
                    });
                }
                let list = match name {
                    "read-only" => &mut stock.reading,
                    _ => &mut stock.other,
                };
                list.push(command.line);
            }
        }
        Ok(Self {
            settings,
            tell,
            corpus: tasks,
            stock,
            next: AtomicU64::new(0),
            summary: Mutex::default(),
        })
    }

    fn summary(&self) -> std::sync::MutexGuard<'_, Summary> {
        self.summary.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is asked next; `None` when it is enough.
    fn task(&self) -> Option<Task> {
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        {
            let summary = self.summary();
            let tries = self.settings.count.saturating_mul(TRIES);
            if summary.failures.len() as u64 >= MOST_FAILURES || summary.tried > tries {
                return None;
            }
            if index >= self.corpus.len() as u64 && summary.mutations >= self.settings.count {
                return None;
            }
        }
        if let Some(task) = self.corpus.get(index as usize) {
            return Some(Task {
                origin: task.origin.clone(),
                line: task.line.clone(),
                ..*task
            });
        }
        let seed = (self.settings.seed << 32).wrapping_add(index - self.corpus.len() as u64);
        let ground = match seed % 4 {
            0 => Ground::Ordinary,
            1 => Ground::Hostile,
            _ => Ground::Disguised((seed / 4) as usize % Ground::DISGUISES),
        };
        Some(Task {
            origin: format!("mutation {seed}"),
            ground,
            line: self.stock.mutation(seed),
            is_measured: false,
        })
    }

    fn work(&self) -> Result<(), Error> {
        let (program, arguments) = &self.settings.worker;
        let environment = &self.settings.environment;
        let start = || Inmate::start(program, arguments, environment);
        let mut inmate = start()?;
        let mut is_fresh = true;
        while let Some(task) = self.task() {
            let question = Question {
                line: task.line.clone(),
                ground: task.ground,
                run_anyway: false,
            };
            match inmate.ask(&question) {
                Ok(reply) => {
                    is_fresh = false;
                    self.count(&task, &reply, &mut inmate)?;
                }
                // It never worked: this is no line's fault.
                Err(error) if is_fresh => return Err(error),
                Err(error) => {
                    self.fail(
                        &task,
                        task.line.clone(),
                        vec![format!("its jail broke: {error}")],
                    );
                    inmate = start()?;
                    is_fresh = true;
                }
            }
        }
        Ok(())
    }

    fn count(&self, task: &Task, reply: &Reply, inmate: &mut Inmate) -> Result<(), Error> {
        {
            let mut summary = self.summary();
            let is_mutation = task.origin.starts_with("mutation");
            summary.tried += u64::from(is_mutation);
            if reply.outcome.is_some() {
                match is_mutation {
                    true => summary.mutations += 1,
                    false => summary.corpus_lines += 1,
                }
            }
            let timed_out = reply
                .outcome
                .as_ref()
                .is_some_and(|outcome| outcome.timed_out);
            summary.timed_out += u64::from(timed_out);
            summary.recognised.0 += u64::from(task.is_measured);
            summary.recognised.1 += u64::from(task.is_measured && reply.only_reads);
        }
        let found = complaints(reply);
        if !found.is_empty() {
            let shortest = shrink(task, inmate)?;
            self.fail(task, shortest, found);
        }
        Ok(())
    }

    fn fail(&self, task: &Task, shortest: String, differences: Vec<String>) {
        let failure = Failure {
            origin: task.origin.clone(),
            ground: task.ground,
            line: task.line.clone(),
            shortest,
            differences,
        };
        let mut summary = self.summary();
        let is_known = |known: &Failure| known.shortest == failure.shortest;
        if summary.failures.iter().any(is_known) {
            summary.repeated += 1;
        } else {
            (self.tell)(&failure);
            summary.failures.push(failure);
        }
    }
}

/// Where a line of the corpora is run.
fn grounds(line: &str, number: usize, disguises: usize) -> Vec<Ground> {
    if disguises == 0 {
        return vec![[Ground::Ordinary, Ground::Hostile][number % 2]];
    }
    let disguises = match line.contains("git") {
        true => disguises.min(Ground::DISGUISES),
        false => 1,
    };
    // Another line begins with another disguise, so that few lines see many.
    let disguised = (0..disguises).map(|next| (number * disguises + next) % Ground::DISGUISES);
    let mut grounds = vec![Ground::Ordinary, Ground::Hostile];
    grounds.extend(disguised.map(Ground::Disguised));
    grounds
}

/// What is wrong with a reading, if anything.
fn complaints(reply: &Reply) -> Vec<String> {
    let differences = reply
        .outcome
        .iter()
        .flat_map(|outcome| &outcome.differences);
    differences.chain(&reply.bad_reading).cloned().collect()
}

/// The line without whatever it can lose and still fail.
fn shrink(task: &Task, inmate: &mut Inmate) -> Result<String, Error> {
    let mut line: Vec<char> = task.line.chars().collect();
    let mut asked = 0;
    let mut size = (line.len() / 2).max(1);
    loop {
        let mut at = 0;
        let before = line.len();
        while at < line.len() && asked < SHRINKING {
            let end = (at + size).min(line.len());
            let shorter: Vec<char> = [&line[..at], &line[end..]].concat();
            asked += 1;
            let reply = inmate.ask(&Question {
                line: shorter.iter().collect(),
                ground: task.ground,
                run_anyway: false,
            })?;
            match complaints(&reply).is_empty() {
                true => at = end,
                false => line = shorter,
            }
        }
        if asked >= SHRINKING || (size == 1 && line.len() == before) {
            return Ok(line.into_iter().collect());
        }
        size = (size / 2).max(1);
    }
}
