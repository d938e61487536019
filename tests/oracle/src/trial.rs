//! A whole trial: which lines are tried, on several machines at once, and what came of it.

use std::{
    collections::BTreeMap,
    fmt,
    io::{BufRead, BufReader, Write},
    os::{fd::OwnedFd, unix::net::UnixStream},
    process::Child,
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

use gyrus_contract::Decision;
use parking_lot::{Mutex, MutexGuard};

use crate::{
    Attack, Between, Error, Finding, Fixture, Kind, attacks,
    attacks::corpora,
    doing, machine,
    mutation::Seeds,
    worker::{Answer, Question},
};

/// A machine that says nothing for so long is lost. Building one takes a
/// second or two.
const ANSWERS_WITHIN: Duration = Duration::from_secs(180);

/// Settings of a trial.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The numbers of the tasks to try.
    pub numbers: Vec<u64>,
    /// Machines at once.
    pub workers: usize,
    /// The protection between the lines and the person.
    pub between: Between,
}

/// Something to be tried: an attack in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// By which it is found again, with the seed.
    pub number: u64,
    /// The fixture on which it is tried.
    pub fixture: Fixture,
    /// The attack that is tried.
    pub attack: Attack,
}

/// A task of which something was found.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The task that was tried.
    pub task: Task,
    /// Findings of the task.
    pub findings: Vec<Finding>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Task {
            number,
            fixture,
            attack,
        } = &self.task;
        writeln!(f, "{} {number} ({}):", attack.class, fixture)?;
        for line in &attack.lines {
            writeln!(f, "    {line:?}")?;
        }
        if let Some(after) = attack.killed_after {
            writeln!(f, "    killed after {after} ms")?;
        }
        for finding in &self.findings {
            writeln!(f, "  - {finding}")?;
        }
        Ok(())
    }
}

/// Results of a class of lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OfClass {
    /// Calls that passed.
    pub allowed: u64,
    /// Calls that would have been asked about, and were denied because nobody could be asked.
    pub asked: u64,
    /// Calls that were denied outright.
    pub denied: u64,
    /// Attacks that were tried.
    pub attacks: u64,
    /// Attacks of which something was found, by kind.
    pub found: BTreeMap<Kind, u64>,
}

/// Results of a trial.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    /// By class.
    pub classes: BTreeMap<String, OfClass>,
    /// Every task of which something was found.
    pub failures: Vec<Failure>,
    /// Milliseconds in runs, and in all, summed up over machines.
    pub took: (u64, u64),
    /// Duration of the trial, in seconds.
    pub seconds: f64,
}

impl Summary {
    /// Returns the number of attacks with findings of this kind.
    pub fn found(&self, kind: Kind) -> u64 {
        let classes = self.classes.values();
        classes.filter_map(|class| class.found.get(&kind)).sum()
    }

    /// Tasks with findings of a kind that is not known to be [open](Kind::open).
    pub fn unexpected(&self, between: Between) -> Vec<&Failure> {
        let open = Kind::open(between);
        let is_open = |finding: &Finding| open.contains(&finding.kind);
        let failures = self.failures.iter();
        failures
            .filter(|failure| !failure.findings.iter().all(is_open))
            .collect()
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found: Vec<Kind> = Kind::ALL
            .into_iter()
            .filter(|kind| self.found(*kind) > 0)
            .collect();
        write!(f, "| class | attacks | calls allowed | asked | denied |")?;
        found
            .iter()
            .try_for_each(|kind| write!(f, " {} |", kind.name()))?;
        write!(f, "\n| --- | ---: | ---: | ---: | ---: |")?;
        found.iter().try_for_each(|_| write!(f, " ---: |"))?;
        let mut all = OfClass::default();
        for (name, class) in &self.classes {
            row(f, name, class, &found)?;
            all.attacks += class.attacks;
            all.allowed += class.allowed;
            all.asked += class.asked;
            all.denied += class.denied;
            for (kind, count) in &class.found {
                *all.found.entry(*kind).or_default() += count;
            }
        }
        row(f, "all", &all, &found)?;
        let attacks = all.attacks.max(1);
        write!(
            f,
            "\n\n{} attacks in {:.0} s, {} with findings; {:.1} ms each, {:.1} of them in gyrus",
            all.attacks,
            self.seconds,
            self.failures.len(),
            self.took.1 as f64 / attacks as f64,
            self.took.0 as f64 / attacks as f64,
        )
    }
}

fn row(f: &mut fmt::Formatter<'_>, name: &str, class: &OfClass, kinds: &[Kind]) -> fmt::Result {
    let OfClass {
        attacks,
        allowed,
        asked,
        denied,
        found,
    } = class;
    write!(
        f,
        "\n| {name} | {attacks} | {allowed} | {asked} | {denied} |"
    )?;
    for kind in kinds {
        write!(f, " {} |", found.get(kind).copied().unwrap_or(0))?;
    }
    Ok(())
}

/// All tasks there are, without end: first every attack in every folder, then the corpora, then
/// mutations by their seeds.
pub struct Tasks {
    fixed: Vec<(Fixture, Attack)>,
    seeds: Seeds,
    seed: u64,
}

/// The tasks of a seed.
///
/// # Errors
/// When a file of lines is not written as it should be.
pub fn tasks(seed: u64) -> Result<Tasks, Error> {
    let (attacks, corpora) = (attacks()?, corpora()?);
    let of_fixture = |fixture| attacks.iter().cloned().map(move |attack| (fixture, attack));
    let mut fixed: Vec<(Fixture, Attack)> = Fixture::ALL.into_iter().flat_map(of_fixture).collect();
    // What reads a repository is tried in two of those that do not look like a trap.
    for (number, attack) in corpora.iter().enumerate() {
        let fixtures = if attack.lines[0].contains("git") {
            vec![disguise(number * 2), disguise(number * 2 + 1)]
        } else {
            vec![[Fixture::Hostile, Fixture::Ordinary][number % 2]]
        };
        fixed.extend(
            fixtures
                .into_iter()
                .map(|fixture| (fixture, attack.clone())),
        );
    }
    let seeds = Seeds::new(attacks, corpora);
    Ok(Tasks { fixed, seeds, seed })
}

fn disguise(number: usize) -> Fixture {
    Fixture::Disguised(number % Fixture::DISGUISES)
}

impl Tasks {
    /// Returns the number of attacks that are not mutations; they stand first.
    pub fn fixed(&self) -> u64 {
        self.fixed.len() as u64
    }

    /// The task of this number.
    pub fn task(&self, number: u64) -> Task {
        let (fixture, attack) = match self.fixed.get(number as usize) {
            Some(task) => task.clone(),
            None => {
                let seed = (self.seed << 32).wrapping_add(number - self.fixed());
                let fixture = match seed % 8 {
                    0..=4 => Fixture::Ordinary,
                    5 => Fixture::Linked,
                    6 => disguise((seed / 8) as usize),
                    _ => Fixture::Hostile,
                };
                (fixture, self.seeds.mutation(seed))
            }
        };
        Task {
            number,
            fixture,
            attack,
        }
    }
}

/// Runs a trial. `tell` hears of each task with findings at once, and of the answers of the shell
/// if `verbose`.
///
/// # Errors
/// When no machine can be made.
pub fn run(
    settings: &Settings,
    tasks: &(dyn Fn(u64) -> Task + Sync),
    tell: &(dyn Fn(&Failure, &[String]) + Sync),
) -> Result<Summary, Error> {
    let started = Instant::now();
    let trial = Trial {
        settings,
        tasks,
        tell,
        next: AtomicU64::new(0),
        summary: Mutex::default(),
    };
    let results: Vec<Result<(), Error>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..settings.workers)
            .map(|number| {
                let trial = &trial;
                scope.spawn(move || trial.work(number))
            })
            .collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined
            .map(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    results.into_iter().collect::<Result<(), Error>>()?;
    let mut summary = trial.summary.into_inner();
    summary.failures.sort_by_key(|failure| failure.task.number);
    summary.seconds = started.elapsed().as_secs_f64();
    Ok(summary)
}

struct Trial<'a> {
    settings: &'a Settings,
    tasks: &'a (dyn Fn(u64) -> Task + Sync),
    tell: &'a (dyn Fn(&Failure, &[String]) + Sync),
    /// The next of the numbers.
    next: AtomicU64,
    summary: Mutex<Summary>,
}

impl Trial<'_> {
    fn work(&self, number: usize) -> Result<(), Error> {
        let mut machine = None;
        loop {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(task) = self.settings.numbers.get(index as usize) else {
                return Ok(());
            };
            let task = (self.tasks)(*task);
            let used = match machine.take() {
                Some(machine) => machine,
                None => Machine::start(number, self.settings.between)?,
            };
            machine = self.attempt(&task, used);
        }
    }

    /// Tries a task, and returns the machine if it can go on being used.
    fn attempt(&self, task: &Task, mut machine: Machine) -> Option<Machine> {
        let question = Question {
            fixture: task.fixture,
            lines: task.attack.lines.clone(),
            between: self.settings.between,
            killed_after: task.attack.killed_after,
        };
        let answer = match machine.ask(&question) {
            Ok(answer) => answer,
            Err(error) => Answer {
                findings: vec![Finding::new(Kind::Broke, error.to_string())],
                is_spoiled: true,
                ..Answer::default()
            },
        };
        self.count(task, &answer);
        (!answer.is_spoiled).then_some(machine)
    }

    fn summary(&self) -> MutexGuard<'_, Summary> {
        self.summary.lock()
    }

    fn count(&self, task: &Task, answer: &Answer) {
        let mut summary = self.summary();
        summary.took.0 += answer.took.0;
        summary.took.1 += answer.took.1;
        let class = summary.classes.entry(task.attack.class.clone());
        let class = class.or_default();
        class.attacks += 1;
        for decision in &answer.decisions {
            *match decision {
                Decision::Allow => &mut class.allowed,
                Decision::Ask => &mut class.asked,
                Decision::Deny => &mut class.denied,
            } += 1;
        }
        let mut kinds: Vec<Kind> = answer.findings.iter().map(|finding| finding.kind).collect();
        kinds.sort();
        kinds.dedup();
        for kind in kinds {
            *class.found.entry(kind).or_default() += 1;
        }
        let failure = Failure {
            task: task.clone(),
            findings: answer.findings.clone(),
        };
        (self.tell)(&failure, &answer.texts);
        if !failure.findings.is_empty() {
            summary.failures.push(failure);
        }
    }
}

/// A machine with its worker, from outside.
struct Machine {
    child: Child,
    questions: UnixStream,
    answers: BufReader<UnixStream>,
}

impl Machine {
    fn start(number: usize, between: Between) -> Result<Self, Error> {
        let (ours, theirs) = UnixStream::pair().map_err(doing("make a socket"))?;
        ours.set_read_timeout(Some(ANSWERS_WITHIN))
            .map_err(doing("set a time limit"))?;
        let child = machine::start(OwnedFd::from(theirs), number, between);
        let answers = ours.try_clone().map_err(doing("share the socket"))?;
        let mut machine = Self {
            child: child.map_err(doing("run unshare (of util-linux)"))?,
            questions: ours,
            answers: BufReader::new(answers),
        };
        machine.answer()?;
        Ok(machine)
    }

    fn ask(&mut self, question: &Question) -> Result<Answer, Error> {
        let mut text =
            serde_json::to_string(question).map_err(|error| Error::Lost(error.to_string()))?;
        text.push('\n');
        let sent = self.questions.write_all(text.as_bytes());
        sent.map_err(doing("ask the machine"))?;
        self.answer()
    }

    fn answer(&mut self) -> Result<Answer, Error> {
        let mut text = String::new();
        let read = self.answers.read_line(&mut text);
        if read.map_err(doing("hear the machine"))? == 0 {
            return Err(Error::Lost("it ended without an answer".to_owned()));
        }
        let answer: Answer =
            serde_json::from_str(&text).map_err(|error| Error::Lost(error.to_string()))?;
        match answer.error {
            Some(error) => Err(Error::Lost(error)),
            None => Ok(answer),
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // unshare takes the whole namespace with it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
