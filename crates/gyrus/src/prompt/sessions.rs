//! Going back in a session, and going on with one of before.

use std::path::Path;

use gyrus_contract::RunId;
use gyrus_journal::Store;
use gyrus_kernel::{Entry, RegisterLine, RunState, log_name, parse};
use gyrus_surfaces::{
    console::{self, Painter, put},
    projection::goal,
    sessions, terminal,
};
use gyrus_text::clip;

use super::TerminalConversation;
use crate::{commands::undo::UndoCommand, env::Environment, failure::Failure, time};

/// Maximum number of sessions to choose from.
const MOST_SESSIONS: usize = 50;

/// Maximum number of characters of a goal in the list.
const GOAL: usize = 60;

impl TerminalConversation<'_> {
    /// Goes back to before a goal of the session: takes back what was changed since, and lets the next
    /// run know nothing of it. The goal's words are the next line.
    pub(super) fn go_back(&mut self) -> Result<(), Failure> {
        let goals = self.runs.iter().map(|run| self.begun_run(*run)).collect();
        let Some(number) = self.choose("back to before which goal", goals)? else {
            return Ok(());
        };
        // What a later run changed stands on what an earlier one did.
        while self.runs.len() > number {
            let Some(run) = self.runs.last().copied() else {
                break;
            };
            UndoCommand::of(run).execute(self.gyrus)?;
            self.runs.pop();
            let reader = self.store.reader(&log_name(run))?;
            if let Some(first) = reader.entry(1)?
                && let Ok(Entry::RunStarted(started)) = parse(&first)
            {
                self.last = started.continues;
                self.begun = goal(&started.goal, &reader);
            }
        }
        Ok(put("the next run knows nothing of it\n")?)
    }

    /// Lets the person choose a session of the folder: one whose last run is parked is resumed, and
    /// the next goal goes on from one that is over.
    pub(super) fn choose_session(&mut self) -> Result<(), Failure> {
        let (runs, lines): (Vec<_>, Vec<_>) =
            listed(&self.store, &self.workspace)?.into_iter().unzip();
        let Some(number) = self.choose("go on with which", lines)? else {
            return Ok(());
        };
        self.go_on_from(runs[number])
    }

    /// Resumes a run that can be resumed; otherwise the next goal goes on from it.
    pub(super) fn go_on_from(&mut self, run: RunId) -> Result<(), Failure> {
        if let RunState::Over(_) = RunState::of(&self.store, run)? {
            self.last = Some(run);
            return Ok(put("the next goal goes on from it\n")?);
        }
        self.resume(Some(&run.to_string()))
    }

    /// Whether the last run of the conversation can be resumed.
    pub(super) fn last_is_open(&self) -> Result<bool, Failure> {
        let state = self.last.map(|run| RunState::of(&self.store, run));
        Ok(!matches!(
            state.transpose()?,
            None | Some(RunState::Over(_))
        ))
    }

    fn choose(&self, question: &str, lines: Vec<String>) -> Result<Option<usize>, Failure> {
        choose(question, &lines, &self.gyrus.environment)
    }

    fn begun_run(&self, run: RunId) -> String {
        let read = || {
            let reader = self.store.reader(&log_name(run)).ok()?;
            let first = reader.entry(1).ok()??;
            let Entry::RunStarted(started) = parse(&first).ok()? else {
                return None;
            };
            let words = clip(&goal(&started.goal, &reader), GOAL);
            Some(format!("{:<10} {words}", time::ago(first.at_ms)))
        };
        read().unwrap_or_else(|| "(it cannot be read)".to_owned())
    }
}

/// Returns the sessions of a folder that a person began, the newest first: the last run of each, and
/// a line about it.
pub(crate) fn listed(store: &Store, folder: &Path) -> Result<Vec<(RunId, String)>, Failure> {
    let is_here = |line: &RegisterLine| line.workspace == folder && line.is_own(store);
    let sessions = sessions(store, is_here)?.into_iter().take(MOST_SESSIONS);
    let lines = sessions.map(|session| {
        let at = session
            .active_at_ms(store)
            .map(time::ago)
            .unwrap_or_default();
        let state = match RunState::of(store, session.last) {
            Ok(RunState::Parked(_) | RunState::CutOff) => "(parked) ",
            Ok(RunState::Running(_)) => "(works) ",
            Ok(RunState::Over(_) | RunState::Record(_) | RunState::NeverBegan) | Err(_) => "",
        };
        (session.last, format!("{at:<10} {state}{}", session.title))
    });
    Ok(lines.collect())
}

/// Asks the person to choose one of some lines, and returns its index; `None` for none. A terminal
/// that is `dumb` is asked for a number.
pub(crate) fn choose(
    question: &str,
    lines: &[String],
    environment: &Environment,
) -> Result<Option<usize>, Failure> {
    if lines.is_empty() {
        return Err(Failure::usage("there is nothing to choose from yet").hint("type a goal"));
    }
    if !environment.dumb {
        let painter = Painter::new(&std::io::stderr(), environment.plain);
        return Ok(console::choose(question, lines, &painter)?);
    }
    for (number, line) in lines.iter().enumerate() {
        put(&format!("{:>3}  {line}\n", number + 1))?;
    }
    let answer = terminal::answer(&format!("{question}? [1-{}, Enter: none] ", lines.len()))?;
    if answer.is_empty() {
        return Ok(None);
    }
    let number = answer
        .parse::<usize>()
        .ok()
        .and_then(|it| it.checked_sub(1));
    match number.filter(|number| *number < lines.len()) {
        Some(number) => Ok(Some(number)),
        None => Err(Failure::usage(format!("`{answer}` is none of these"))),
    }
}
