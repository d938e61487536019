//! `gyrus eval`: tasks, each a real run of this very program, and what became of them.
//!
//! It starts `gyrus run` as a process for every attempt, each with a browser profile and a folder of its own, reads the entries that it prints,
//! and answers what it asks. Yes is said only to what the gate measured to be about the pages that
//! the evaluation itself serves for that attempt; the run's journal names it as who said so.

mod evaluation;
mod attempt;
mod screen;
mod task;
mod expected;
mod copies;
mod folder;
mod formats;
mod served;
mod setting;
mod stand_in;
mod suite;
mod built_in;
mod miniwob;
mod running;
mod report;
mod compare;

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::{Args, value_parser};
use gyrus_contract::{Image, RunId, Strength};
use gyrus_screen::find_program;
use serde::Serialize;
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::{Semaphore, watch};

pub use self::{
    attempt::{AttemptOutcome, QuestionCounts, Tokens, Verdicts},
    report::{EvaluationReport, Totals},
    setting::OptionAxis,
};
use self::{
    miniwob::FolderServer,
    report::{EvalPlan, FILE},
    running::{AttemptSetting, FilmedAttempt},
    screen::AttemptScreen,
    served::AttemptServer,
    setting::EvalSetting,
    suite::Suite,
    task::{EvalTask, ScreenKind},
};
use crate::{Installation, LabConsole, LabError, TrialEnd, sites::SiteServer};

/// Maximum number of attempts at once, and of attempts at one task.
const MOST_JOBS: i64 = 64;
const MOST_REPEATS: i64 = 100;

/// The tasks of an evaluation and its settings, as a person types them.
#[derive(Debug, Args)]
pub struct EvalOptions {
    /// Files or folders of tasks, `everyday`, `demo-site`, `skills`, or `desktop`
    #[arg(required_unless_present = "miniwob", value_name = "SUITE")]
    pub suites: Vec<String>,
    /// The pages of MiniWoB++ in this folder of the Python package; the Nth attempt has the seed N
    #[arg(long, value_name = "FOLDER", conflicts_with = "suites")]
    pub miniwob: Option<PathBuf>,
    /// Attempts under way at once, each with a browser of its own
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u32).range(1..=MOST_JOBS))]
    pub jobs: u32,
    /// Attempts at each task
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u32).range(1..=MOST_REPEATS))]
    pub repeat: u32,
    /// Try every task with each of these values of an option of `gyrus run`, such as
    /// `loop=react,plan` or `model=A,B`; several of these are combined
    #[arg(long, value_name = "OPTION=VALUES")]
    pub over: Vec<OptionAxis>,
    /// Only tasks whose id fits; `*` stands for anything
    #[arg(long, value_name = "PATTERN")]
    pub only: Option<String>,
    /// Write report.json, a page and a film of each run into this new folder
    #[arg(long, value_name = "FOLDER")]
    pub report: Option<PathBuf>,
    /// Print a line of JSON for each attempt, then one with the totals
    #[arg(long)]
    pub json: bool,
    /// The least that passes on a screen: claimed, checked or verified
    #[arg(long = "require", value_name = "STRENGTH", default_value = "checked", value_parser = strength)]
    pub required: Strength,
    /// Start the browsers without their own sandbox, where the system does not let them have one
    #[arg(long)]
    pub browser_without_its_sandbox: bool,
}

fn strength(word: &str) -> Result<Strength, String> {
    let all = [Strength::Claimed, Strength::Checked, Strength::Verified];
    let named = all.into_iter().find(|strength| strength.word() == word);
    named.ok_or_else(|| "write claimed, checked or verified".to_owned())
}

/// An evaluation whose suites are sound, before its first attempt.
pub struct Evaluation {
    options: EvalOptions,
    suites: Vec<Suite>,
    settings: Vec<EvalSetting>,
    pages: Option<FolderServer>,
    folder: Option<Folder>,
}

impl Evaluation {
    /// Reads the suites, creates the folder for the report, and finds a browser and other programs
    /// that the tasks need.
    pub fn prepare(options: EvalOptions) -> Result<Self, LabError> {
        let only = options.only.as_deref();
        let settings = setting::combinations(&options.over);
        if settings.len() > setting::MOST {
            return Err(LabError::usage(format!(
                "{} combinations of options are more than {}",
                settings.len(),
                setting::MOST
            )));
        }
        let (suites, pages) = match &options.miniwob {
            None => (suite::load(&options.suites, only)?, None),
            Some(folder) => {
                let pages = FolderServer::serve(folder)?;
                let mut suites = vec![pages.suite("MiniWoB++")];
                suite::choose(&mut suites, only)?;
                (suites, Some(pages))
            }
        };
        let folder = options.report.as_deref().map(Folder::new).transpose()?;
        let tasks: Vec<_> = suites.iter().flat_map(|suite| &suite.tasks).collect();
        if tasks.iter().any(|task| task.screen == ScreenKind::Browser) {
            find_program(None).map_err(LabError::usage)?;
        }
        tasks.iter().try_for_each(|task| task.needs_programs())?;
        Ok(Self {
            options,
            suites,
            settings,
            pages,
            folder,
        })
    }

    /// Whether the models are among the options that vary.
    pub fn varies_models(&self) -> bool {
        self.options.over.iter().any(OptionAxis::is_model)
    }

    /// Makes all attempts with these models and reports them. `now_ms` is the time in UTC.
    pub async fn run(
        self,
        models: &[String],
        gyrus: &dyn Installation,
        console: &LabConsole,
        now_ms: i64,
    ) -> Result<TrialEnd, LabError> {
        let all = attempts(&self.suites, &self.settings, self.options.repeat);
        if let Some(needs) = all.iter().find(|planned| planned.task.needs_sandbox()) {
            gyrus.sandbox().map_err(|why| {
                let id = &needs.task.id;
                LabError::usage(format!("the task `{id}` is checked in the sandbox: {why}"))
                    .hint("`gyrus doctor` tells what is missing")
            })?;
        }
        let plan = EvalPlan {
            suites: self.suites.iter().map(|suite| suite.name.clone()).collect(),
            model: if models.is_empty() {
                "several models".to_owned()
            } else {
                models.join(", ")
            },
            required: self.options.required.word(),
            began_ms: now_ms,
            planned: all.len(),
        };
        let arguments: Vec<String> = models
            .iter()
            .flat_map(|name| ["--model".to_owned(), name.clone()])
            .chain(
                (self.options.browser_without_its_sandbox)
                    .then(|| "--browser-without-its-sandbox".to_owned()),
            )
            .collect();
        let making = AttemptsAtWork {
            options: &self.options,
            pages: self.pages.as_ref(),
            arguments,
            gyrus,
            console,
        };
        let (made, interrupted) = making.make_all(&all).await?;
        let frames = made
            .iter()
            .map(|made| made.frame.clone())
            .collect::<Vec<_>>();
        let attempts = made.into_iter().map(|made| made.attempt).collect();
        let report = EvaluationReport::of(&plan, attempts, interrupted);
        making.tell_totals(&report)?;
        if let Some(folder) = self.folder {
            let page = folder.write(gyrus, &report, &frames)?;
            gyrus_surfaces::console::put(&format!("{}\n", page.display()))?;
        }
        let ended = report.totals.passed + report.totals.skipped;
        Ok(match (interrupted, ended == plan.planned) {
            (true, _) => TrialEnd::Interrupted,
            (false, true) => TrialEnd::Passed,
            (false, false) => TrialEnd::Failed,
        })
    }
}

/// Prints how two reports differ; whether no task that passed fails now.
pub fn compare(old: &Path, new: &Path, console: &LabConsole) -> Result<TrialEnd, LabError> {
    let (old, new) = (EvaluationReport::read(old)?, EvaluationReport::read(new)?);
    let (text, end) = compare::compare(&old, &new, console);
    console.print(&text)?;
    Ok(end)
}

struct PlannedAttempt<'a> {
    suite: &'a Suite,
    task: &'a EvalTask,
    setting: &'a EvalSetting,
    repeat: u32,
}

fn attempts<'a>(
    suites: &'a [Suite],
    settings: &'a [EvalSetting],
    repeat: u32,
) -> Vec<PlannedAttempt<'a>> {
    let tasks = suites
        .iter()
        .flat_map(|suite| suite.tasks.iter().map(move |task| (suite, task)));
    let repeated = tasks.flat_map(|(suite, task)| {
        let set = settings
            .iter()
            .flat_map(move |setting| (1..=repeat).map(move |repeat| (setting, repeat)));
        set.map(move |(setting, repeat)| PlannedAttempt {
            suite,
            task,
            setting,
            repeat,
        })
    });
    repeated.collect()
}

impl PlannedAttempt<'_> {
    fn without_a_run(&self, why: String, skipped: bool) -> FilmedAttempt {
        let attempt = AttemptOutcome {
            task: self.task.id.clone(),
            repeat: self.repeat,
            setting: self.setting.name.clone(),
            skipped,
            why: Some(why),
            ..AttemptOutcome::default()
        };
        FilmedAttempt {
            attempt,
            frame: None,
            cut_off: false,
        }
    }
}

struct AttemptsAtWork<'a> {
    options: &'a EvalOptions,
    pages: Option<&'a FolderServer>,
    /// Arguments of `gyrus run`, the same for all attempts.
    arguments: Vec<String>,
    gyrus: &'a dyn Installation,
    console: &'a LabConsole,
}

impl AttemptsAtWork<'_> {
    /// The attempts that came to an end, in the order of the plan, and whether the person ended it.
    async fn make_all(
        &self,
        all: &[PlannedAttempt<'_>],
    ) -> Result<(Vec<FilmedAttempt>, bool), LabError> {
        let (stop, stopped) = watch::channel(false);
        if !self.options.json {
            self.console.print(&report::heading(self.console))?;
        }
        let turns = Arc::new(Semaphore::new(self.options.jobs as usize));
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
                    gyrus_surfaces::console::put("\nending what is under way\n")?;
                }
            }
        };
        let made: Vec<Option<FilmedAttempt>> = made.into_iter().collect::<Result<_, _>>()?;
        let ended = made.into_iter().flatten().filter(|made| !made.cut_off);
        Ok((ended.collect(), interrupted))
    }

    /// Makes an attempt when there is room for it, unless the person has ended all before.
    async fn in_turn(
        &self,
        planned: &PlannedAttempt<'_>,
        turns: &Semaphore,
        stopped: watch::Receiver<bool>,
    ) -> Result<Option<FilmedAttempt>, LabError> {
        let _turn = turns.acquire().await.map_err(LabError::failed)?;
        if *stopped.borrow() {
            return Ok(None);
        }
        if let Some(pages) = self.pages {
            return self.episode(planned, pages, stopped).await;
        }
        let task = planned.task;
        match task.screen {
            ScreenKind::Browser => self.on_pages(planned, stopped).await,
            ScreenKind::X11 => {
                let programs = &task.programs;
                let screen = AttemptScreen::Desktop { programs };
                self.make(&self.setting(planned, task, screen), stopped)
                    .await
            }
            ScreenKind::NoScreen => {
                if let Some(missing) = task.missing() {
                    let made = planned.without_a_run(missing, true);
                    self.tell(&made.attempt)?;
                    return Ok(Some(made));
                }
                let server = task.server.as_ref().map(AttemptServer::new).transpose()?;
                let screen = match &server {
                    None => AttemptScreen::NoScreen,
                    Some(server) => AttemptScreen::Server {
                        description: server.description().display().to_string(),
                    },
                };
                let mut setting = self.setting(planned, task, screen);
                setting.server = server;
                self.make(&setting, stopped).await
            }
        }
    }

    /// Runs an attempt on pages served by gyrus or by others.
    async fn on_pages(
        &self,
        planned: &PlannedAttempt<'_>,
        stopped: watch::Receiver<bool>,
    ) -> Result<Option<FilmedAttempt>, LabError> {
        let task = planned.task;
        // A server of its own: what is allowed holds for this port, and nothing else has it.
        let site = if task.is_served_here() {
            Some(SiteServer::start(None).await.map_err(|error| {
                LabError::failed("the sites of the tasks cannot be served").because(error)
            })?)
        } else {
            None
        };
        let world = site
            .as_ref()
            .map(|site| format!("{}/w/{}", site.address(), task.id));
        let ours = site
            .iter()
            .flat_map(|site| [site.address(), site.other_address()]);
        let screen = AttemptScreen::Browser {
            start: task.start_in(world.as_deref().unwrap_or_default()),
            ours: ours.collect(),
        };
        self.make(&self.setting(planned, task, screen), stopped)
            .await
    }

    /// An episode of a page of MiniWoB++; its goal is what it asks for.
    async fn episode(
        &self,
        planned: &PlannedAttempt<'_>,
        pages: &FolderServer,
        stopped: watch::Receiver<bool>,
    ) -> Result<Option<FilmedAttempt>, LabError> {
        let start = miniwob::start(planned.task, planned.repeat);
        let asked = start.clone();
        let look = self.gyrus.command();
        let goal = tokio::task::spawn_blocking(move || miniwob::utterance(look, &asked));
        let mut task = planned.task.clone();
        task.goal = match goal.await.map_err(LabError::failed)? {
            Ok(goal) => goal,
            Err(error) => {
                let made = planned.without_a_run(error.to_string(), false);
                self.tell(&made.attempt)?;
                return Ok(Some(made));
            }
        };
        let screen = AttemptScreen::Browser {
            start,
            ours: vec![pages.origin().to_owned()],
        };
        self.make(&self.setting(planned, &task, screen), stopped)
            .await
    }

    fn setting<'a>(
        &'a self,
        planned: &'a PlannedAttempt<'_>,
        task: &'a EvalTask,
        screen: AttemptScreen<'a>,
    ) -> AttemptSetting<'a> {
        AttemptSetting {
            task,
            files: &planned.suite.files,
            repeat: planned.repeat,
            setting: planned.setting,
            screen,
            server: None,
            arguments: &self.arguments,
            required: self.options.required,
            gyrus: self.gyrus,
        }
    }

    async fn make(
        &self,
        setting: &AttemptSetting<'_>,
        stopped: watch::Receiver<bool>,
    ) -> Result<Option<FilmedAttempt>, LabError> {
        let made = setting.make(stopped).await?;
        if !made.cut_off {
            self.tell(&made.attempt)?;
        }
        Ok(Some(made))
    }

    fn tell(&self, attempt: &AttemptOutcome) -> Result<(), LabError> {
        if self.options.json {
            self.print_json(attempt)
        } else {
            let line = report::line(attempt, self.options.repeat, self.console);
            Ok(self.console.print(&line)?)
        }
    }

    fn tell_totals(&self, report: &EvaluationReport) -> Result<(), LabError> {
        if self.options.json {
            self.print_json(&json!({ "totals": report.totals }))
        } else {
            Ok(self.console.print(&report.table(self.console))?)
        }
    }

    fn print_json(&self, value: &impl Serialize) -> Result<(), LabError> {
        let line = serde_json::to_string(value).map_err(LabError::failed)?;
        Ok(self.console.print_json(&line)?)
    }
}

/// A folder for a report, which appears when it is complete.
struct Folder {
    path: PathBuf,
    /// The temporary folder beside it, which is renamed at the end.
    making: TempDir,
}

impl Folder {
    fn new(path: &Path) -> Result<Self, LabError> {
        if path.exists() {
            return Err(LabError::usage(format!("{} exists", path.display()))
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
            LabError::usage(format!("{} cannot be made", path.display())).because(error)
        })?;
        Ok(Self {
            path: path.to_owned(),
            making,
        })
    }

    fn write(
        self,
        gyrus: &dyn Installation,
        report: &EvaluationReport,
        frames: &[Option<Image>],
    ) -> Result<PathBuf, LabError> {
        let failed = |error: io::Error| {
            LabError::failed(format!("{} cannot be written", self.path.display())).because(error)
        };
        let folder = self.making.path();
        let text = serde_json::to_string_pretty(report).map_err(LabError::failed)?;
        fs::write(folder.join(FILE), text + "\n").map_err(failed)?;
        for (number, run) in (1..).zip(report.attempts.iter().map(|attempt| attempt.run)) {
            self.film(gyrus, number, run)?;
        }
        let page = evaluation::page(gyrus.store(), report, frames);
        fs::write(folder.join("index.html"), page).map_err(failed)?;
        fs::rename(folder, &self.path).map_err(failed)?;
        // Nothing is left to remove.
        let _ = self.making.keep();
        Ok(self.path.join("index.html"))
    }

    /// A run as a page; a run that cannot be read has none.
    fn film(
        &self,
        gyrus: &dyn Installation,
        number: u32,
        run: Option<RunId>,
    ) -> Result<(), LabError> {
        let Some(run) = run else { return Ok(()) };
        let mut film = Vec::new();
        gyrus_surfaces::page::write(gyrus.store(), run, &mut film)?;
        let name = film_name(number);
        Ok(fs::write(self.making.path().join(name), film)?)
    }
}

/// The name of the file with the run of an attempt, counted from 1, in a report's folder.
fn film_name(attempt: u32) -> String {
    format!("film-{attempt}.html")
}
