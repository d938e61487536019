//! Going back in a session, and going on with one of before.

use gyrus_contract::RunId;
use gyrus_kernel::{Entry, Register, RunState, log_name, parse};
use gyrus_surfaces::{console::put, projection::goal, terminal};
use gyrus_text::clip;

use super::TerminalConversation;
use crate::{commands::undo::UndoCommand, failure::Failure, time};

/// Maximum number of runs to choose from.
const MOST_RUNS: usize = 9;

/// Maximum number of characters of a goal in the list.
const GOAL: usize = 60;

impl TerminalConversation<'_> {
    /// Goes back to before a goal of the session: takes back what was changed since, and lets the next
    /// run know nothing of it. The goal's words are the next line.
    pub(super) fn go_back(&mut self) -> Result<(), Failure> {
        let goals = self.runs.iter().map(|run| self.begun_run(*run)).collect();
        let Some(number) = choose("back to before which goal", goals)? else {
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

    /// Lets the person choose a run of the folder: one that is parked is resumed, and the next goal
    /// goes on from one that is over.
    pub(super) fn choose_run(&mut self) -> Result<(), Failure> {
        let register = Register::read(&self.store)?;
        let here = register
            .roots()
            .filter(|line| line.workspace == self.workspace && line.is_own(&self.store));
        let here: Vec<RunId> = here.map(|line| line.run).take(MOST_RUNS).collect();
        let lines = here.iter().map(|run| self.begun_run(*run)).collect();
        let Some(number) = choose("go on with which", lines)? else {
            return Ok(());
        };
        let run = here[number];
        if let RunState::Over(_) = RunState::of(&self.store, run)? {
            self.last = Some(run);
            return Ok(put("the next goal goes on from it\n")?);
        }
        self.resume(Some(&run.to_string()))
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

/// Asks the person to choose one of some lines, and returns its index; `None` for none.
fn choose(question: &str, lines: Vec<String>) -> Result<Option<usize>, Failure> {
    if lines.is_empty() {
        return Err(Failure::usage("there is nothing to choose from yet").hint("type a goal"));
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
