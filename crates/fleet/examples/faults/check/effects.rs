//! Each line of a ledger has its intent before it, none comes twice or after its worker's time, and what
//! the log calls done is there.

use std::{collections::BTreeMap, fs};

use gyrus_contract::EffectId;
use gyrus_kernel::{CallEnd, Ending, Entry};

use super::run::Placed;
use crate::runs::Submitted;

/// A line of a ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LedgerLine {
    pub(crate) step: usize,
    pub(crate) at_us: i64,
}

/// Numbers of effects.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Effects {
    /// Lines in the ledger.
    pub(crate) lines: usize,
    /// Steps that the log calls done.
    pub(crate) done: usize,
    /// Steps that were interrupted.
    pub(crate) interrupted: usize,
    /// Interrupted steps whose line is in the ledger.
    pub(crate) interrupted_with_line: usize,
    /// Answers of people that were used.
    pub(crate) answers: usize,
    /// Other steps: refused, cancelled, or without an end.
    pub(crate) other: usize,
}

/// Reads the ledger of a run; a line that makes no sense is an error.
pub(crate) fn ledger(run: &Submitted) -> Result<Vec<LedgerLine>, String> {
    let text = match fs::read_to_string(&run.ledger) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(format!("{}: {error}", run.ledger.display())),
    };
    let line = |line: &str| {
        let (step, time) = line.split_once(' ')?;
        let (seconds, micros) = time.split_once(['.', ','])?;
        let at_us = seconds.parse::<i64>().ok()? * 1_000_000 + micros.parse::<i64>().ok()?;
        Some(LedgerLine {
            step: step.parse().ok()?,
            at_us,
        })
    };
    text.lines()
        .map(|text| line(text).ok_or_else(|| format!("{}: `{text}`", run.ledger.display())))
        .collect()
}

/// One call of a step.
#[derive(Debug, Default)]
struct Call {
    step: usize,
    started: Vec<(i64, u64)>,
    settled: Option<CallEnd>,
}

fn calls(entries: &[Placed]) -> (BTreeMap<EffectId, Call>, Vec<String>) {
    let mut calls: BTreeMap<EffectId, Call> = BTreeMap::new();
    let mut wrong = Vec::new();
    for Placed {
        entry,
        at_us,
        epoch,
    } in entries
    {
        match entry {
            Entry::ToolCalled(called) => {
                let command = called.call.arguments["command"].as_str();
                let step = command
                    .and_then(|command| command.strip_prefix(": step "))
                    .and_then(|rest| rest.split(';').next()?.parse().ok());
                if let Some(step) = step {
                    calls.entry(called.effect.clone()).or_default().step = step;
                }
            }
            Entry::ToolStarted(started) => {
                if let Some(call) = calls.get_mut(&started.effect) {
                    call.started.push((*at_us, *epoch));
                }
            }
            Entry::ToolResulted(resulted) => {
                if let Some(call) = calls.get_mut(&resulted.effect)
                    && call.settled.replace(resulted.settled).is_some()
                {
                    wrong.push(format!("effect {} was settled twice", resulted.effect));
                }
            }
            _ => {}
        }
    }
    (calls, wrong)
}

/// Returns what is wrong with the effects of a run, and their numbers. `claims` are the times of its
/// claims.
pub(crate) fn check(
    run: &Submitted,
    entries: &[Placed],
    claims: &[i64],
    ledger: &[LedgerLine],
) -> (Vec<String>, Effects) {
    let (calls, mut wrong) = calls(entries);
    let mut numbers = Effects {
        lines: ledger.len(),
        ..Effects::default()
    };
    for line in ledger {
        let twins = ledger.iter().filter(|other| other.step == line.step);
        if twins.count() > 1 {
            wrong.push(format!("step {} happened twice", line.step));
        }
        let mut starts = calls
            .values()
            .filter(|call| call.step == line.step)
            .flat_map(|call| &call.started);
        let Some((_, epoch)) = starts.find(|(at_us, _)| *at_us <= line.at_us) else {
            wrong.push(format!(
                "step {} happened without an intent before it",
                line.step
            ));
            continue;
        };
        // Claims are counted from 1, so this is the one after it.
        let next = usize::try_from(*epoch)
            .ok()
            .and_then(|next| claims.get(next));
        if let Some(next) = next.filter(|next| **next < line.at_us) {
            wrong.push(format!(
                "step {} happened {} ms after the next worker had claimed the run",
                line.step,
                (line.at_us - next) / 1_000
            ));
        }
    }
    for call in calls.values() {
        let is_there = ledger.iter().any(|line| line.step == call.step);
        match call.settled {
            Some(CallEnd::Done) => {
                numbers.done += 1;
                if !is_there {
                    wrong.push(format!("step {} is called done and never was", call.step));
                }
            }
            Some(CallEnd::Interrupted) => {
                numbers.interrupted += 1;
                numbers.interrupted_with_line += usize::from(is_there);
            }
            Some(CallEnd::Refused | CallEnd::Cancelled) | None => numbers.other += 1,
        }
    }
    let claimed = |placed: &Placed| match &placed.entry {
        Entry::RunEnded(ended) => matches!(ended.ending, Ending::Reached { .. }),
        _ => false,
    };
    if entries.last().is_some_and(claimed) {
        for step in (0..run.steps).filter(|step| calls.values().all(|call| call.step != *step)) {
            wrong.push(format!("it reached its goal without step {step}"));
        }
    }
    let (more, answers) = answers(entries);
    wrong.extend(more);
    numbers.answers = answers;
    let name = |wrong: String| format!("run {}: {wrong}", run.run);
    (wrong.into_iter().map(name).collect(), numbers)
}

/// Returns what is wrong with the answers of people, and their number: each question has one at most, and
/// none does without a question.
fn answers(entries: &[Placed]) -> (Vec<String>, usize) {
    let mut open = Vec::new();
    let mut wrong = Vec::new();
    let mut count = 0;
    for placed in entries {
        match &placed.entry {
            Entry::ApprovalAsked(asked) => open.push((asked.effect.clone(), asked.digest)),
            Entry::ApprovalAnswered(answered) => {
                count += 1;
                let question = (answered.effect.clone(), answered.digest);
                match open.iter().position(|open| *open == question) {
                    Some(place) => drop(open.swap_remove(place)),
                    None => wrong.push(format!(
                        "an answer of effect {} was used twice",
                        answered.effect
                    )),
                }
            }
            _ => {}
        }
    }
    (wrong, count)
}
