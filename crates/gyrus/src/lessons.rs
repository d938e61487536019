//! Lessons: what a new run is given of earlier ones, and what is read from the journal of one that
//! has ended.
//!
//! They are the words of a model, and a run may have written them under the influence of a page. So
//! they are data, vouch for nothing, and make a run exposed if the run that wrote them was.

use std::{mem, path::Path};

use gyrus::runtime::Home;
use gyrus_contract::{ActionVerdict, EffectId, Origin, RunId, Strength, Text};
use gyrus_journal::{LogReader, Store};
use gyrus_kernel::{Attachment, Ending, Entry, RunStarted, StandingRun, ToolResulted, log_name};
use gyrus_loops::{CHECK_MADE, CognitiveConfig, LESSON, REFLECTION, WENT_RIGHT};
use gyrus_runtime::lessons::{GivenTo, Lesson, LessonError, LessonFact, LessonSubject, Lessons};
use gyrus_surfaces::{console::put, projection};
use gyrus_text::{one_line, readable, shorten, tokens};
use serde::Deserialize as _;

use crate::failure::Failure;

/// Maximum number of lessons that a run is given.
const MOST: usize = 2;

/// Maximum tokens of all lessons of a run; with the sentence before it at most 100, which is what a
/// lesson may cost in each prompt.
const TOKENS: usize = 75;

/// Fewest tokens for which a further lesson is given; less would tell nothing.
const LEAST_TOKENS: usize = 25;

/// Maximum length of a goal, and of each part of a lesson, in characters.
const CHARACTERS: usize = 400;

/// Maximum characters of a goal in the line of a lesson.
const GOAL_CHARACTERS: usize = 50;

/// Number of entries from the end of a journal that are searched for its lesson.
const LAST_ENTRIES: usize = 2_000;

pub(crate) fn of_home(home: &Home, store: &Store) -> Lessons {
    Lessons::of(store, &home.state.join("lessons"))
}

/// Returns the lessons that a new run is given. Only the words of a person, or of the program,
/// choose them. Lessons that cannot be read are no reason not to run.
pub(crate) fn of_run(
    home: &Home,
    workspace: &Path,
    goal: &Text,
    url: Option<&str>,
) -> Result<Option<Attachment>, Failure> {
    if !goal.origin.is_trusted() {
        return Ok(None);
    }
    let store = home.store()?;
    let lessons = of_home(home, &store);
    let subject = LessonSubject {
        goal: &goal.text,
        workspace: &workspace.to_string_lossy(),
        site: &url.map_or_else(String::new, site),
    };
    match lessons.similar(&subject, MOST) {
        Ok(found) => Ok(attachment(&found)),
        Err(error) => {
            tell("no lessons of earlier runs are given", error);
            Ok(None)
        }
    }
}

/// Returns the site of an address: everything before its path.
fn site(address: &str) -> String {
    address.split('/').take(3).collect::<Vec<_>>().join("/")
}

fn attachment(lessons: &[Lesson]) -> Option<Attachment> {
    let mut left = TOKENS;
    let (mut lines, mut numbers, mut exposed) = (Vec::new(), Vec::new(), false);
    for lesson in lessons {
        if left < LEAST_TOKENS {
            break;
        }
        let line = line(lesson, left);
        left = left.saturating_sub(tokens(&line));
        lines.push(line);
        numbers.push(lesson.number);
        exposed |= lesson.exposed;
    }
    let origin = Origin::Lessons { numbers, exposed };
    let text = Text::new(lines.join("\n"), origin);
    (!lines.is_empty()).then_some(Attachment::Text(text))
}

fn line(lesson: &Lesson, most: usize) -> String {
    let goal = shorten(&lesson.goal, GOAL_CHARACTERS);
    let head = format!("lesson {} ({}): {goal}", lesson.number, lesson.outcome);
    let mut characters = CHARACTERS;
    loop {
        let mut line = head.clone();
        for (title, words) in [("worked", &lesson.worked), ("did not", &lesson.did_not)] {
            if !words.is_empty() {
                line.push_str(&format!("; {title}: {}", shorten(words, characters)));
            }
        }
        if tokens(&line) <= most || characters < 10 {
            return line;
        }
        characters = characters * 3 / 4;
    }
}

/// Counts a run for or against the lessons that it was given, and stores its own lesson, if it has
/// ended or is parked. Repeating it changes nothing.
pub(crate) fn settle(lessons: &Lessons, store: &Store, run: RunId) -> Result<(), Failure> {
    let reader = store.reader(&log_name(run))?;
    let Some(end) = RunEnd::read(&reader)? else {
        return Ok(());
    };
    let started = StandingRun::read(store, run)?.started;
    lessons.change(|book| {
        let mut facts = Vec::new();
        let Some(reached) = end.reached else {
            return Ok(facts);
        };
        let given = GivenTo { run, reached };
        let numbers = projection::given_lessons(&started, &reader);
        for lesson in numbers.into_iter().flat_map(|(numbers, _)| numbers) {
            let record = book.lesson(lesson);
            if record.is_some_and(|record| !record.given.contains(&given)) {
                facts.push(LessonFact::Counted { lesson, given });
            }
        }
        if let Some(lesson) = end.lesson(&started, &reader)
            && book.of_run(run).is_none_or(|known| {
                (&known.worked, &known.did_not) != (&lesson.worked, &lesson.did_not)
            })
        {
            facts.push(LessonFact::Learned(lesson));
        }
        Ok::<_, Failure>(facts)
    })
}

/// The outcome of a run that has ended, or has parked, and its lesson.
struct RunEnd {
    at_ms: i64,
    /// Whether the goal was reached; `None` if the run's ending says nothing about that.
    reached: Option<bool>,
    outcome: &'static str,
    worked: String,
    did_not: String,
    exposed: bool,
    /// Whether the checks passed and each call changed something.
    direct: bool,
}

impl RunEnd {
    /// Reads the last entries; `None` if the run neither has ended nor is parked.
    fn read(reader: &LogReader) -> Result<Option<Self>, Failure> {
        let mut back = reader.entries_back()?.take(LAST_ENTRIES);
        let Some(last) = back.next().transpose()? else {
            return Ok(None);
        };
        let ending = match gyrus_kernel::parse(&last) {
            Ok(Entry::RunEnded(ended)) => ended.ending,
            Ok(Entry::RunParked(parked)) => parked.ending,
            _ => return Ok(None),
        };
        let (reached, outcome) = match &ending {
            Ending::Reached { strength, .. } => (Some(true), strength.word()),
            Ending::Failed { .. } => (Some(false), "failed"),
            Ending::Limit { .. } => (Some(false), "limit"),
            Ending::Stuck { .. } => (Some(false), "stuck"),
            Ending::Waiting { .. }
            | Ending::Sleeping { .. }
            | Ending::ModelUnreachable { .. }
            | Ending::Stopped { .. }
            | Ending::Interrupted => (None, "unknown"),
        };
        let mut end = Self {
            at_ms: last.at_ms,
            reached,
            outcome,
            worked: String::new(),
            did_not: String::new(),
            exposed: false,
            direct: matches!(&ending, Ending::Reached { strength, .. } if *strength > Strength::Claimed),
        };
        let (mut cycles, mut is_whole) = (0, false);
        let mut detours = Detours::default();
        for entry in back {
            match gyrus_kernel::parse(&entry?) {
                Ok(Entry::CycleEnded(ended)) => {
                    cycles += 1;
                    if cycles == 1 {
                        end.exposed = ended.kernel.exposed;
                    }
                }
                Ok(Entry::Noted { kind, fact, .. }) => {
                    detours.noted(&kind, &fact.effect);
                    if cycles < 2 {
                        end.learn(&kind, &fact.fact);
                    }
                }
                Ok(Entry::ToolResulted(result)) => end.direct &= !detours.is_one(&result),
                Ok(Entry::RunStarted(_)) => is_whole = true,
                _ => {}
            }
            if cycles > 1 && !end.direct {
                break;
            }
        }
        end.direct &= is_whole;
        Ok(Some(end))
    }

    /// Reads a fact of the run, unless a later fact of the kind was read.
    fn learn(&mut self, kind: &str, fact: &serde_json::Value) {
        let [worked, did_not] = match kind {
            LESSON | REFLECTION => ["worked", "did_not"],
            WENT_RIGHT => ["text", ""],
            _ => return,
        };
        let words = |field: &str| kept(fact[field].as_str().unwrap_or_default());
        if self.worked.is_empty() && self.did_not.is_empty() {
            (self.worked, self.did_not) = (words(worked), words(did_not));
        }
    }

    fn lesson(&self, started: &RunStarted, reader: &LogReader) -> Option<Lesson> {
        if self.worked.is_empty() && self.did_not.is_empty() {
            return None;
        }
        let config = CognitiveConfig::deserialize(&*started.loop_config).ok();
        let url = config
            .as_ref()
            .and_then(|config| config.start_url.as_deref());
        Some(Lesson {
            number: 0,
            run: started.run,
            at_ms: self.at_ms,
            goal: kept(&projection::goal(&started.goal, reader)),
            workspace: started.workspace.to_string_lossy().into_owned(),
            site: url.map_or_else(String::new, site),
            outcome: self.outcome.to_owned(),
            worked: self.worked.clone(),
            did_not: self.did_not.clone(),
            exposed: started.exposed || self.exposed,
            direct: self.direct && projection::given_lessons(started, reader).is_none(),
        })
    }
}

/// Determines which calls of a run a later one could leave out, from the last call to the first.
#[derive(Default)]
struct Detours {
    /// The cycle and the number of the call by which a check was made.
    check: Option<(u64, u64)>,
    has_claimed: bool,
}

impl Detours {
    fn noted(&mut self, kind: &str, effect: &EffectId) {
        if kind == CHECK_MADE {
            // The result of a check is noted right after its call, if it makes one.
            self.check = place(effect).map(|(cycle, number)| (cycle, number.saturating_sub(1)));
        }
    }

    /// Whether a call counts as a detour: it changed nothing, or failed. A check is no detour, nor
    /// is the claim that ends the run; one before that was sent back.
    fn is_one(&mut self, result: &ToolResulted) -> bool {
        if result.claim.is_some() {
            return mem::replace(&mut self.has_claimed, true);
        }
        let is_check = self.check.is_some() && place(&result.effect) == self.check;
        !is_check && (result.is_error || result.verdict != ActionVerdict::Changed)
    }
}

/// Returns the cycle of an effect and its number there.
fn place(effect: &EffectId) -> Option<(u64, u64)> {
    let path = effect.path();
    Some((u64::from(*path.first()?), u64::from(*path.get(1)?)))
}

/// Returns words in the form in which they are stored: on one line, bounded, and with the marks of
/// secrets as plain text, which no tool puts a secret in place of.
fn kept(words: &str) -> String {
    let cut = shorten(words.trim(), CHARACTERS);
    let plain = cut.replace('⟦', "[").replace('⟧', "]");
    let words: Vec<&str> = plain.split_whitespace().collect();
    shorten(&one_line(&words.join(" ")), CHARACTERS).into_owned()
}

fn tell(what: &str, why: impl std::fmt::Display) {
    // Without anybody to tell, the run goes on all the same.
    let _ = put(&format!("{what}: {}\n", readable(&why.to_string())));
}

impl From<LessonError> for Failure {
    fn from(error: LessonError) -> Self {
        match error {
            LessonError::Unknown(_) => {
                Self::usage(error.to_string()).hint("see their numbers: gyrus memory lessons")
            }
            LessonError::Busy => Self::failed(error.to_string()).hint("try again in a moment"),
            LessonError::Ledger(_) | LessonError::File { .. } => {
                Self::failed("the lessons cannot be used").because(&error)
            }
        }
    }
}
