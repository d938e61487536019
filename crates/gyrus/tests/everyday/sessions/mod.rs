//! Whole sessions end inside the sandbox as they do outside, and hardly ask.
//!
//! `sessions.toml` has kinds of work, projects, places and ways to commit. A session is one of each; its
//! steps are done twice at the same place, by a person's shell and by a run of the real program, and what
//! was said, what lies there and what git knows afterwards are compared.

mod database;
mod scripted;
mod trace;
mod world;

use std::{
    collections::BTreeMap,
    fmt::Write,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use parking_lot::Mutex;
use serde::Deserialize;
use world::World;

use crate::{corpus::is_there, desk::Original};

/// Sessions at once; they wait for the disk mostly.
const AT_ONCE: usize = 3;

#[derive(Deserialize)]
struct Sheet {
    places: Vec<String>,
    commits: Vec<Vec<String>>,
    project: Vec<Project>,
    kind: Vec<Kind>,
}

#[derive(Deserialize, Clone)]
struct Project {
    name: String,
    #[serde(default)]
    needs: Vec<String>,
    setup: String,
    test: String,
    edit: Step,
}

#[derive(Deserialize, Clone)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Kind {
    name: String,
    count: usize,
    #[serde(default)]
    needs: Vec<String>,
    /// Content of the project's file about the sandbox, to which a person agrees.
    #[serde(default)]
    agree: String,
    /// Lines of the person's own configuration, in its section about the sandbox.
    #[serde(default)]
    config: String,
    #[serde(default)]
    env: BTreeMap<String, String>,
    steps: Vec<Step>,
    /// Whether the whole run works in a work tree.
    #[serde(default)]
    work_tree: bool,
    /// Whether each part of the work does.
    #[serde(default)]
    work_trees: bool,
    /// Whether the clock can be set ahead.
    #[serde(default)]
    clock: bool,
    /// Script of the person afterwards.
    #[serde(default)]
    after: String,
    /// Folders of the home that are to be the same, too.
    #[serde(default)]
    keeps: Vec<String>,
}

#[derive(Deserialize, Clone)]
#[serde(untagged)]
enum Step {
    Shell(String),
    Edit {
        edit: String,
        from: String,
        to: String,
    },
    Write {
        write: String,
        text: String,
    },
    Serve {
        serve: String,
        until: String,
    },
    Parts {
        parts: Vec<String>,
    },
}

impl Step {
    fn texts(&mut self) -> Vec<&mut String> {
        match self {
            Step::Shell(line) => vec![line],
            Step::Edit { edit, from, to } => vec![edit, from, to],
            Step::Write { write, text } => vec![write, text],
            Step::Serve { serve, until } => vec![serve, until],
            Step::Parts { parts } => parts.iter_mut().collect(),
        }
    }
}

/// A kind of work in a project at a place.
struct Session {
    number: usize,
    /// Whether it stands for the others of its kind.
    is_sample: bool,
    kind: Kind,
    project: Project,
    place: String,
}

impl Session {
    /// Returns all that there are.
    fn all() -> Vec<Self> {
        let sheet: Sheet = toml::from_str(include_str!("sessions.toml")).unwrap();
        let mut sessions: Vec<Self> = Vec::new();
        for (index, kind) in sheet.kind.iter().enumerate() {
            for number in 0..kind.count {
                let commits = &sheet.commits[number % sheet.commits.len()];
                let project = &sheet.project[number % sheet.project.len()];
                let place = &sheet.places[(number + number / 8) % sheet.places.len()];
                sessions.push(Self {
                    is_sample: number == index % kind.count,
                    ..Self::new(sessions.len(), (kind, project), commits, place)
                });
            }
        }
        sessions
    }

    fn new(
        number: usize,
        (kind, project): (&Kind, &Project),
        commits: &[String],
        place: &str,
    ) -> Self {
        let mut kind = kind.clone();
        let steps = kind.steps.into_iter().flat_map(|step| match &step {
            Step::Shell(line) if line == "@COMMIT@" => {
                commits.iter().cloned().map(Step::Shell).collect()
            }
            Step::Shell(line) if line == "@EDIT@" => vec![project.edit.clone()],
            Step::Shell(_)
            | Step::Edit { .. }
            | Step::Write { .. }
            | Step::Serve { .. }
            | Step::Parts { .. } => vec![step],
        });
        kind.steps = steps.collect();
        let mut session = Self {
            number,
            is_sample: false,
            kind,
            project: project.clone(),
            place: place.to_owned(),
        };
        session.fill("@TEST@", &project.test);
        session
    }

    /// Puts a value in place of a word, wherever it stands.
    fn fill(&mut self, word: &str, value: &str) {
        let kind = &mut self.kind;
        let texts = kind.steps.iter_mut().flat_map(Step::texts);
        let texts = texts.chain([&mut kind.agree]).chain(kind.env.values_mut());
        for text in texts {
            *text = text.replace(word, value);
        }
    }

    fn name(&self) -> String {
        let (kind, project) = (&self.kind.name, &self.project.name);
        format!("{kind} {}: {project} in {:?}", self.number, self.place)
    }

    fn lacks_a_program(&self) -> bool {
        let mut needs = self.kind.needs.iter().chain(&self.project.needs);
        needs.any(|program| !is_there(program))
    }
}

/// Result of a session.
struct Came {
    name: String,
    kind: String,
    questions: usize,
    /// Everything that is not as outside, as text; empty if all is.
    differences: String,
}

/// Tries one session of each kind, or those whose name has some words, or all if there are none.
pub(crate) fn hold(original: &Original, only: Option<&str>) -> String {
    let sessions = Session::all().into_iter().filter(|session| match only {
        None => session.is_sample,
        Some(words) => session.name().contains(words),
    });
    let (skipped, sessions): (Vec<_>, Vec<_>) = sessions.partition(Session::lacks_a_program);
    let known = sessions.len() + skipped.len();
    assert_ne!(known, 0, "no session has these words in its name");
    let clock = world::clock(original);
    let sessions = Mutex::new(sessions.into_iter());
    let (came, done) = (Mutex::new(Vec::new()), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                let next = || sessions.lock().next();
                while let Some(session) = next() {
                    let one = try_session(original, session, clock.as_deref());
                    came.lock().extend(one);
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    let came = came.into_inner();
    let report = report(&came, done.into_inner() - came.len() + skipped.len());
    let differ = came.iter().any(|one| !one.differences.is_empty());
    let is_whole = only.is_none_or(str::is_empty);
    assert!(!differ && (!is_whole || median(&came) == 0), "\n{report}");
    report
}

/// `None` if it needs a clock that cannot be made here.
fn try_session(
    original: &Original,
    mut session: Session,
    clock: Option<&std::path::Path>,
) -> Option<Came> {
    if session.kind.clock && clock.is_none() {
        return None;
    }
    let world = World::new(original, &mut session);
    let outside = world.outside(&session);
    let (inside, questions) = world.inside(&session, clock);
    Some(Came {
        name: session.name(),
        kind: session.kind.name,
        questions,
        differences: outside.differences(&inside),
    })
}

fn median(came: &[Came]) -> usize {
    let mut questions: Vec<usize> = came.iter().map(|one| one.questions).collect();
    questions.sort_unstable();
    questions.get(questions.len() / 2).copied().unwrap_or(0)
}

fn report(came: &[Came], skipped: usize) -> String {
    let mut text = String::new();
    for one in came {
        if one.questions > 0 || !one.differences.is_empty() {
            let differences = one.differences.replace('\n', "\n      ");
            let _ = writeln!(
                text,
                "{} asked {}\n      {differences}",
                one.name, one.questions
            );
        }
    }
    text += "| kind | sessions | as outside | questions |\n| --- | ---: | ---: | ---: |\n";
    let mut kinds: Vec<&str> = came.iter().map(|one| one.kind.as_str()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    for kind in kinds.into_iter().map(Some).chain([None]) {
        let here = || {
            came.iter()
                .filter(|one| kind.is_none_or(|kind| one.kind == kind))
        };
        let same = here().filter(|one| one.differences.is_empty()).count();
        let questions: usize = here().map(|one| one.questions).sum();
        let name = kind.unwrap_or("all");
        let _ = writeln!(
            text,
            "| {name} | {} | {same} | {questions} |",
            here().count()
        );
    }
    let median = median(came);
    let _ = write!(text, "median of questions: {median}; {skipped} skipped");
    text
}
