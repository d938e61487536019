//! `gyrus memory lessons`

use clap::{Args, Subcommand};
use gyrus::runtime::Home;
use gyrus_runtime::lessons::{
    GivenTo, LessonBook, LessonDecision, LessonError, LessonFact, LessonRecord, Lessons,
};
use gyrus_surfaces::{
    console::put,
    output::{self, StandardOutput},
};
use gyrus_text::{counted, one_line};
use serde_json::{Value, json};

use crate::{exit::Code, failure::Failure, inside_run, lessons};

/// Maximum number of runs that are named for a lesson.
const NAMED_RUNS: usize = 5;

#[derive(Args)]
pub(super) struct LessonsCommand {
    #[command(subcommand)]
    decide: Option<LessonsVerb>,
    /// Print one JSON object a line, for programs
    #[arg(long)]
    json: bool,
}

#[derive(Subcommand)]
enum LessonsVerb {
    /// Give a lesson to no run any more
    Retire {
        /// Number of the lesson
        number: u64,
    },
    /// Give a retired lesson to runs again, and begin to count anew
    Restore {
        /// Number of the lesson
        number: u64,
    },
}

impl LessonsCommand {
    pub(super) fn execute(self, home: &Home) -> Result<Code, Failure> {
        let store = home.store()?;
        let lessons = lessons::of_home(home, &store);
        match self.decide {
            None => list(&lessons.all()?, self.json),
            Some(LessonsVerb::Retire { number }) => {
                decide(&lessons, number, LessonDecision::Retire)?;
                put(&format!(
                    "lesson {number} is retired; to bring it back: gyrus memory lessons restore \
                     {number}\n"
                ))?;
                Ok(Code::Reached)
            }
            Some(LessonsVerb::Restore { number }) => {
                decide(&lessons, number, LessonDecision::Restore)?;
                put(&format!("lesson {number} is given to runs again\n"))?;
                Ok(Code::Reached)
            }
        }
    }
}

fn decide(lessons: &Lessons, number: u64, decision: LessonDecision) -> Result<(), Failure> {
    inside_run::refuse("decide about lessons")?;
    lessons.change(|book| {
        let lesson = number;
        match book.lesson(number) {
            Some(_) => Ok(vec![LessonFact::Decided { lesson, decision }]),
            None => Err(Failure::from(LessonError::Unknown(number))),
        }
    })
}

fn list(book: &LessonBook, json: bool) -> Result<Code, Failure> {
    let mut out = output::standard();
    for record in book.lessons().rev() {
        if json {
            out.json(&as_json(record))?;
        } else {
            print(&mut out, record)?;
        }
    }
    if book.lessons().next().is_none() && !json {
        put("no run has taught anything yet; a run ends with a lesson if it has --reflect\n")?;
    }
    Ok(Code::Reached)
}

fn as_json(record: &LessonRecord) -> Value {
    let mut value = json!(record.lesson);
    value["given"] = json!(record.given);
    value["retired"] = json!(retired(record));
    value
}

/// Returns why a lesson is no longer given.
fn retired(record: &LessonRecord) -> Option<&'static str> {
    record
        .is_retired()
        .then_some(if record.decided == Some(LessonDecision::Retire) {
            "by hand"
        } else {
            "failures"
        })
}

fn print(out: &mut StandardOutput, record: &LessonRecord) -> Result<(), Failure> {
    let lesson = &record.lesson;
    let at = gyrus_text::utc(lesson.at_ms);
    writeln!(
        out,
        "{:>4}  {}  {}  {}",
        lesson.number,
        at.get(..10).unwrap_or(&at),
        lesson.outcome,
        one_line(&lesson.goal),
    )?;
    for (title, words) in [("worked", &lesson.worked), ("did not", &lesson.did_not)] {
        if !words.is_empty() {
            writeln!(out, "      {title}: {}", one_line(words))?;
        }
    }
    let untrusted = if lesson.exposed {
        ", which had read untrusted text"
    } else {
        ""
    };
    writeln!(out, "      from run {}{untrusted}", lesson.run.short())?;
    if !record.given.is_empty() {
        writeln!(out, "      given to {}", given(record))?;
    }
    if let Some(why) = retired(record) {
        let why = match why {
            "by hand" => "retired by hand",
            _ => "retired: two more runs failed with it than reached their goals",
        };
        writeln!(out, "      {why}")?;
    }
    Ok(())
}

/// Returns the results of the runs that a lesson was given to.
fn given(record: &LessonRecord) -> String {
    let named = |wanted: bool, what: &str| {
        let runs: Vec<&GivenTo> = record
            .given
            .iter()
            .filter(|given| given.reached == wanted)
            .collect();
        let newest = runs.iter().rev().take(NAMED_RUNS);
        let names: Vec<String> = newest.map(|given| given.run.short()).collect();
        let more = if runs.len() > NAMED_RUNS { ", …" } else { "" };
        (!runs.is_empty()).then(|| format!("{} {what} ({}{more})", runs.len(), names.join(", ")))
    };
    let parts = [named(true, "reached"), named(false, "did not")];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    format!(
        "{}: {}",
        counted(record.given.len(), "run"),
        parts.join(", ")
    )
}
