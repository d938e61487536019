//! Many replays: each task is learned once on plain pages, and then asked for with other values on
//! pages that were changed.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, ensure};
use gyrus_lab::sites::{RESTYLE_KINDS, SiteServer};

use crate::{
    LearnedTask, TASKS, Verdict,
    program::{Lesson, Program, Ran},
    tasks::NEAR_MISSES,
    verdict::{Prices, judge},
};

/// A series of replays.
#[derive(Debug, Clone)]
pub struct Series {
    /// The executable.
    pub gyrus: PathBuf,
    /// Number of replays in all.
    pub replays: u64,
    /// The first number, by which pages and values are chosen.
    pub first: u64,
    /// Only tasks whose name contains this.
    pub only: String,
    /// Whether runs are let be, or killed.
    pub kills: Kills,
}

/// Whether the process of a replay is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kills {
    /// It never is.
    Never,
    /// Each is, after another number of entries, and resumed by the next process.
    Always,
}

/// Number of entries of a journal after which replays are killed; longer ones end before.
const ENTRIES: u64 = 70;

/// What replays of one kind came to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Count {
    /// Number of replays that did what was asked for.
    pub replayed: u64,
    /// Number of replays that were handed over.
    pub handed_over: u64,
    /// Descriptions of those that were wrong.
    pub wrong: Vec<String>,
    /// Time of those that were replayed, in all.
    pub time: Duration,
    /// Time of the run that taught it, where it is counted by task.
    pub first: Duration,
    /// The reasons of those that were handed over, with a number each.
    pub reasons: BTreeMap<String, u64>,
}

impl Count {
    /// Returns the number of replays.
    pub fn all(&self) -> u64 {
        self.replayed + self.handed_over + self.wrong.len() as u64
    }

    /// Counts a replay; `what` is its name.
    pub(crate) fn add(&mut self, verdict: Verdict, ran: &Ran, what: &str) {
        match verdict {
            Verdict::Replayed => {
                self.replayed += 1;
                self.time += ran.took;
            }
            Verdict::HandedOver => {
                self.handed_over += 1;
                *self.reasons.entry(ran.said.clone()).or_default() += 1;
            }
            Verdict::Wrong(why) => self.wrong.push(format!("{what}: {why}")),
        }
    }
}

impl Series {
    /// Does it and tells what it does; the counts are by kind of change, and by task.
    ///
    /// # Errors
    /// A task cannot be learned, or gyrus cannot be run.
    pub async fn run(&self, tell: impl Fn(&str)) -> anyhow::Result<BTreeMap<String, Count>> {
        let sites = SiteServer::start(None).await?;
        let mut counts: BTreeMap<String, Count> = BTreeMap::new();
        let wanted = TASKS.iter().filter(|task| task.name.contains(&self.only));
        let wanted: Vec<_> = wanted.collect();
        ensure!(!wanted.is_empty(), "no task is called `{}`", self.only);
        let share = self.replays.div_ceil(wanted.len() as u64);
        for task in wanted {
            let program = Program::new(&self.gyrus)?;
            let (name, first) = learn(&program, &sites, task)
                .await
                .with_context(|| format!("the task `{}`", task.name))?;
            let seconds = first.took.as_secs_f64();
            tell(&format!(
                "{}: learned as {name} in {seconds:.1} s",
                task.name
            ));
            near_misses(&program, &sites, task).await?;
            for number in self.first..self.first + share {
                let (kind, verdict, ran) = self.replay(&program, &sites, task, number).await?;
                for key in [format!("pages {kind}"), format!("task {}", task.name)] {
                    let count = counts.entry(key).or_default();
                    let what = format!("{} {number} ({kind})", task.name);
                    count.add(verdict.clone(), &ran, &what);
                }
                if let Verdict::Wrong(why) = &verdict {
                    tell(&format!("WRONG {} {number} ({kind}): {why}", task.name));
                }
            }
        }
        Ok(counts)
    }
}

impl Series {
    async fn replay(
        &self,
        program: &Program,
        sites: &SiteServer,
        task: &LearnedTask,
        number: u64,
    ) -> anyhow::Result<(&'static str, Verdict, Ran)> {
        // Each kind of change has its turn, after plain pages and pages with three of them.
        let kinds = RESTYLE_KINDS.len() as u64;
        let (kind, world) = match number % (kinds + 2) {
            0 => ("unchanged", format!("plain{number}-{}", task.name)),
            1 => {
                let seed = number * 8 + 7;
                (
                    "changed in three ways",
                    format!("restyle{seed}-{}", task.name),
                )
            }
            other => {
                let at = usize::try_from(other - 2).expect("there are few kinds");
                let kind = RESTYLE_KINDS[at];
                (kind, format!("restyle{number}.{kind}-{}", task.name))
            }
        };
        let values = task.values(number);
        let start = format!("{}/w/{world}/{}", sites.address(), task.start);
        let command = task.command(&values);
        let arguments = ["--url", &start, "--", &command];
        let ran = match self.kills {
            Kills::Never => program.run(&arguments).await?,
            Kills::Always => {
                program
                    .run_killed(&arguments, 1 + number * 7 % ENTRIES)
                    .await?
            }
        };
        let learned = task.learned();
        let prices = Prices {
            has_changed: task.is_priced
                && sites.is_repriced(&world)
                && (task.name != "shop" || values.0[1] == learned.0[1])
                && (task.name != "wizard" || values.0[3] == learned.0[3]),
        };
        let claims = ran.code == Some(0);
        let mut verdict = judge(task, &values, &sites.ledger(&world), prices, claims);
        if ran.asked_models > 0 && verdict == Verdict::Replayed {
            verdict = Verdict::Wrong("it asked a model".to_owned());
        }
        Ok((kind, verdict, ran))
    }
}

/// Learns a task on plain pages.
async fn learn(
    program: &Program,
    sites: &SiteServer,
    task: &LearnedTask,
) -> anyhow::Result<(String, Ran)> {
    let values = task.learned();
    let start = format!("{}/w/learn-{}/{}", sites.address(), task.name, task.start);
    let lesson = Lesson {
        url: &start,
        command: &task.command(&values),
        played: &task.played(&values),
        check: &task.check(),
    };
    program.learn(lesson).await
}

/// Asks for what is almost the learned command. Without a model nothing may happen.
async fn near_misses(
    program: &Program,
    sites: &SiteServer,
    task: &LearnedTask,
) -> anyhow::Result<()> {
    for (number, form) in NEAR_MISSES.iter().enumerate() {
        let learned = task.command(&task.learned());
        let command = form.replace("{}", learned.trim_end_matches('.'));
        let world = format!("near{number}-{}", task.name);
        let start = format!("{}/w/{world}/{}", sites.address(), task.start);
        program.run(&["--url", &start, "--", &command]).await?;
        let binding = sites.ledger(&world);
        let count = binding
            .iter()
            .filter(|event| event.kind == task.kind)
            .count();
        ensure!(
            count == 0,
            "WRONG: `{command}` was taken for the learned command"
        );
    }
    Ok(())
}

/// Returns the counts as a table in Markdown.
pub fn table(counts: &BTreeMap<String, Count>) -> String {
    let mut text =
        "| replays | all | replayed | handed over | wrong | seconds each | the first run |\n\
                    | --- | --- | --- | --- | --- | --- | --- |\n"
            .to_owned();
    for (key, count) in counts {
        let each = count.time.as_secs_f64() / count.replayed.max(1) as f64;
        let first = if count.first.is_zero() {
            String::new()
        } else {
            format!("{:.1}", count.first.as_secs_f64())
        };
        let _ = writeln!(
            text,
            "| {key} | {} | {} | {} | {} | {each:.1} | {first} |",
            count.all(),
            count.replayed,
            count.handed_over,
            count.wrong.len()
        );
    }
    text
}

/// Finds the executable beside this one.
///
/// # Errors
/// There is none.
pub fn gyrus_beside(own: &Path) -> anyhow::Result<PathBuf> {
    let folders = own.ancestors().skip(1).take(2);
    let mut candidates = folders.map(|folder| folder.join("gyrus"));
    candidates
        .find(|path| path.is_file())
        .context("build gyrus first: cargo build --package gyrus")
}
