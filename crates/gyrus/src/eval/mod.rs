//! `gyrus eval`: tasks, each a real run of this very program, and what became of them.
//!
//! The evaluation is a person at a second terminal: it starts `gyrus run` as a process for every
//! attempt, each with a browser profile and a folder of its own, reads the entries that it prints,
//! and answers what it asks. Yes is said only to what the gate measured to be about the pages that
//! the evaluation itself serves for that attempt; the run's journal names it as who said so.

mod attempt;
mod suite;
mod miniwob;
mod running;
mod report;
mod compare;

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use gyrus_contract::{Image, RunId, Strength};
use gyrus_journal::Store;
use gyrus_sites::Site;
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::{Semaphore, watch};

pub(crate) use self::{attempt::Attempt, report::Report};
use self::{
    miniwob::Pages,
    report::{FILE, Plan},
    running::{Made, Setting},
    suite::{Suite, Task},
};
use crate::{
    Gyrus, browser,
    console::put,
    drive,
    exit::Code,
    failure::Failure,
    output, setup,
    show::{html, paint::Painter},
    time,
};

/// What is to be evaluated, and how.
#[derive(Debug)]
pub(crate) struct Wish {
    pub(crate) suites: Vec<String>,
    /// The folder of MiniWoB++, instead of suites.
    pub(crate) miniwob: Option<PathBuf>,
    pub(crate) model: Vec<String>,
    pub(crate) jobs: usize,
    pub(crate) repeat: u32,
    pub(crate) only: Option<String>,
    pub(crate) report: Option<PathBuf>,
    pub(crate) json: bool,
    pub(crate) required: Strength,
    /// Further arguments of each run.
    pub(crate) arguments: Vec<String>,
}

/// Makes all attempts and tells of them.
pub(crate) fn evaluate(gyrus: &Gyrus, wish: &Wish) -> Result<Code, Failure> {
    let only = wish.only.as_deref();
    let (suites, pages) = match &wish.miniwob {
        None => (suite::load(&wish.suites, only)?, None),
        Some(folder) => {
            let pages = Pages::serve(folder)?;
            let mut suites = vec![pages.suite("MiniWoB++")];
            suite::choose(&mut suites, only)?;
            (suites, Some(pages))
        }
    };
    let folder = wish.report.as_deref().map(Folder::new).transpose()?;
    if let Some(why) = browser::missing() {
        return Err(Failure::usage(why));
    }
    let runtime = drive::runtime()?;
    let whom = setup::whom(&runtime, gyrus, &gyrus.config()?, &wish.model)?;
    let all = attempts(&suites, wish.repeat);
    let plan = Plan {
        suites: suites.iter().map(|suite| suite.name.clone()).collect(),
        model: whom.names().collect::<Vec<_>>().join(", "),
        required: wish.required.word(),
        began_ms: time::now_ms(),
        planned: all.len(),
    };
    let store = gyrus.store()?;
    let arguments: Vec<String> = whom
        .names()
        .flat_map(|name| ["--model".to_owned(), name])
        .chain(wish.arguments.iter().cloned())
        .collect();
    let evaluation = Evaluation {
        wish,
        pages: pages.as_ref(),
        arguments,
        store: &store,
        painter: Painter::new(&output::standard(), gyrus.environment.plain),
    };
    let made = runtime.block_on(evaluation.make_all(&all));
    runtime.shutdown_background();
    let (made, interrupted) = made?;
    let frames = made
        .iter()
        .map(|made| made.frame.clone())
        .collect::<Vec<_>>();
    let attempts = made.into_iter().map(|made| made.attempt).collect();
    let report = Report::of(&plan, attempts, interrupted);
    evaluation.tell_totals(&report)?;
    if let Some(folder) = folder {
        let page = folder.write(&store, &report, &frames)?;
        put(&format!("{}\n", page.display()))?;
    }
    Ok(match (interrupted, report.totals.passed == plan.planned) {
        (true, _) => Code::Interrupted,
        (false, true) => Code::Reached,
        (false, false) => Code::Failed,
    })
}

/// Tells how two reports differ.
pub(crate) fn compare(gyrus: &Gyrus, old: &Path, new: &Path) -> Result<Code, Failure> {
    let (old, new) = (Report::read(old)?, Report::read(new)?);
    let painter = Painter::new(&output::standard(), gyrus.environment.plain);
    let (text, code) = compare::compare(&old, &new, &painter);
    write!(output::standard(), "{text}")?;
    Ok(code)
}

/// An attempt that is to be made.
struct Planned<'a> {
    suite: &'a Suite,
    task: &'a Task,
    repeat: u32,
}

fn attempts(suites: &[Suite], repeat: u32) -> Vec<Planned<'_>> {
    let tasks = suites
        .iter()
        .flat_map(|suite| suite.tasks.iter().map(move |task| (suite, task)));
    let repeated = tasks.flat_map(|(suite, task)| {
        (1..=repeat).map(move |repeat| Planned {
            suite,
            task,
            repeat,
        })
    });
    repeated.collect()
}

struct Evaluation<'a> {
    wish: &'a Wish,
    pages: Option<&'a Pages>,
    /// Of `gyrus run`, the same for all.
    arguments: Vec<String>,
    store: &'a Store,
    painter: Painter,
}

impl Evaluation<'_> {
    /// The attempts that came to an end, in the order of the plan, and whether the person ended
    /// it.
    async fn make_all(&self, all: &[Planned<'_>]) -> Result<(Vec<Made>, bool), Failure> {
        let (stop, stopped) = watch::channel(false);
        if !self.wish.json {
            write!(output::standard(), "{}", report::heading(&self.painter))?;
        }
        let turns = Arc::new(Semaphore::new(self.wish.jobs));
        let making = all
            .iter()
            .map(|planned| self.in_turn(planned, &turns, stopped.clone()));
        let making = futures_util::future::join_all(making);
        tokio::pin!(making);
        let mut interrupted = false;
        let made = loop {
            tokio::select! {
                made = &mut making => break made,
                said = tokio::signal::ctrl_c(), if !interrupted => {
                    said?;
                    interrupted = true;
                    stop.send_replace(true);
                    put("\nending what is under way\n")?;
                }
            }
        };
        let made: Vec<Option<Made>> = made.into_iter().collect::<Result<_, _>>()?;
        let ended = made.into_iter().flatten().filter(|made| !made.cut_off);
        Ok((ended.collect(), interrupted))
    }

    /// Makes an attempt when there is room for it; nothing if the person has ended all before.
    async fn in_turn(
        &self,
        planned: &Planned<'_>,
        turns: &Semaphore,
        stopped: watch::Receiver<bool>,
    ) -> Result<Option<Made>, Failure> {
        let _turn = turns.acquire().await.map_err(Failure::failed)?;
        if *stopped.borrow() {
            return Ok(None);
        }
        if let Some(pages) = self.pages {
            return self.episode(planned, pages, stopped).await;
        }
        let task = planned.task;
        // A server of its own: what is allowed holds for this port, and nothing else has it.
        let site = match task.is_served_here() {
            true => Some(Site::start(None).await.map_err(|error| {
                Failure::failed("the sites of the tasks cannot be served").because(&error)
            })?),
            false => None,
        };
        let world = site
            .as_ref()
            .map(|site| format!("{}/w/{}", site.address(), task.id));
        let ours = site
            .iter()
            .flat_map(|site| [site.address(), site.other_address()]);
        let setting = Setting {
            task,
            files: &planned.suite.files,
            repeat: planned.repeat,
            start: task.start_in(world.as_deref().unwrap_or_default()),
            ours: ours.collect(),
            arguments: &self.arguments,
            required: self.wish.required,
            store: self.store,
        };
        self.make(&setting, stopped).await
    }

    /// An episode of a page of MiniWoB++; its goal is what it asks for.
    async fn episode(
        &self,
        planned: &Planned<'_>,
        pages: &Pages,
        stopped: watch::Receiver<bool>,
    ) -> Result<Option<Made>, Failure> {
        let start = miniwob::start(planned.task, planned.repeat);
        let asked = start.clone();
        let goal = tokio::task::spawn_blocking(move || miniwob::utterance(&asked));
        let mut task = planned.task.clone();
        task.goal = match goal.await.map_err(Failure::failed)? {
            Ok(goal) => goal,
            Err(failure) => {
                let made = Made::without_a_run(&task.id, planned.repeat, failure.message);
                self.tell(&made.attempt)?;
                return Ok(Some(made));
            }
        };
        let setting = Setting {
            task: &task,
            files: &planned.suite.files,
            repeat: planned.repeat,
            start,
            ours: vec![pages.origin().to_owned()],
            arguments: &self.arguments,
            required: self.wish.required,
            store: self.store,
        };
        self.make(&setting, stopped).await
    }

    async fn make(
        &self,
        setting: &Setting<'_>,
        stopped: watch::Receiver<bool>,
    ) -> Result<Option<Made>, Failure> {
        let made = setting.make(stopped).await?;
        if !made.cut_off {
            self.tell(&made.attempt)?;
        }
        Ok(Some(made))
    }

    fn tell(&self, attempt: &Attempt) -> Result<(), Failure> {
        let mut out = output::standard();
        match self.wish.json {
            true => out.json(attempt)?,
            false => write!(
                out,
                "{}",
                report::line(attempt, self.wish.repeat, &self.painter)
            )?,
        }
        Ok(out.flush()?)
    }

    fn tell_totals(&self, report: &Report) -> Result<(), Failure> {
        match self.wish.json {
            true => output::standard().json(&json!({ "totals": report.totals }))?,
            false => write!(output::standard(), "{}", report.table(&self.painter))?,
        }
        Ok(())
    }
}

/// Where a report goes: a folder that appears when it is complete.
struct Folder {
    path: PathBuf,
    /// Beside it, so that it can be renamed.
    making: TempDir,
}

impl Folder {
    fn new(path: &Path) -> Result<Self, Failure> {
        if path.exists() {
            return Err(Failure::usage(format!("{} exists", path.display()))
                .hint("name a new folder for the report"));
        }
        let parent = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let made = tempfile::Builder::new()
            .prefix(".gyrus-eval-")
            .tempdir_in(parent);
        let making = made.map_err(|error| {
            Failure::usage(format!("{} cannot be made", path.display())).because(&error)
        })?;
        Ok(Self {
            path: path.to_owned(),
            making,
        })
    }

    /// The page of the report, written.
    fn write(
        self,
        store: &Store,
        report: &Report,
        frames: &[Option<Image>],
    ) -> Result<PathBuf, Failure> {
        let failed = |error: io::Error| {
            Failure::failed(format!("{} cannot be written", self.path.display())).because(&error)
        };
        let folder = self.making.path();
        let text = serde_json::to_string_pretty(report).map_err(Failure::failed)?;
        fs::write(folder.join(FILE), text + "\n").map_err(failed)?;
        for (number, run) in (1..).zip(report.attempts.iter().map(|attempt| attempt.run)) {
            self.film(store, number, run)?;
        }
        let mut page = Vec::new();
        html::evaluation(store, report, frames, &mut page)?;
        fs::write(folder.join("index.html"), page).map_err(failed)?;
        fs::rename(folder, &self.path).map_err(failed)?;
        // Nothing is left to remove.
        let _ = self.making.keep();
        Ok(self.path.join("index.html"))
    }

    /// A run as a page; a run that cannot be read has none.
    fn film(&self, store: &Store, number: u32, run: Option<RunId>) -> Result<(), Failure> {
        let Some(run) = run else { return Ok(()) };
        let mut film = Vec::new();
        html::write(store, run, &mut film)?;
        let name = html::film_name(number);
        Ok(fs::write(self.making.path().join(name), film)?)
    }
}
