//! The memory around a run: what it is given of it at its start, and what is noted at its end.

use gyrus::runtime::Home;
use gyrus_contract::{MemoryExtent, Origin, Strength, Text};
use gyrus_journal::Store;
use gyrus_kernel::{Attachment, Ending, Finished, StandingRun, log_name};
use gyrus_memory::MAX_CONTEXT_TOKENS;
use gyrus_surfaces::{console::put, projection};

use crate::{config::Config, failure::Failure, time::now_ms};

/// Part of a run's limit of tokens that the memory may take, as a divisor.
const OF_LIMIT: u64 = 10;

/// Returns what a run is given of the memory: all that is about its goal, and a digest. Only the
/// words of a person, or of the program, look into it. A memory that cannot be read is told of, and
/// the run goes on without it. `limit` is the run's limit of tokens.
pub(crate) fn of_run(
    home: &Home,
    goal: &Text,
    limit: Option<u64>,
) -> Result<Vec<Attachment>, Failure> {
    let is_wanted = goal.origin.is_trusted() && !goal.text.trim().is_empty();
    let vault = home.vault.as_ref().filter(|vault| vault.exists());
    let Some(vault) = vault.filter(|_| is_wanted) else {
        return Ok(Vec::new());
    };
    home.create_state()?;
    let most = limit.and_then(|limit| usize::try_from(limit / OF_LIMIT).ok());
    let most = most.unwrap_or(MAX_CONTEXT_TOKENS);
    let given = match vault.context(&goal.text, most, now_ms()) {
        Ok(Some(given)) => given,
        Ok(None) => return Ok(Vec::new()),
        Err(error) => {
            put(&format!(
                "the run is given nothing of the memory: {error}\n"
            ))?;
            return Ok(Vec::new());
        }
    };
    let notes = given.notes;
    let parts = [
        (given.text, MemoryExtent::Whole),
        (given.digest, MemoryExtent::Digest),
    ];
    let attached = parts.map(|(text, extent)| {
        let text = text.trim_end().to_owned();
        Attachment::Text(Text::new(text, Origin::Memory { notes, extent }))
    });
    Ok(attached.into())
}

/// Notes a run that a person started, once it is over. What cannot be noted is told of.
pub(crate) fn note_end(home: &Home, store: &Store, config: &Config, done: &Finished) {
    let Some(vault) = &home.vault else { return };
    let is_wanted = config.memory.note_runs != Some(false) && vault.exists();
    if !is_wanted || !done.ending.is_final() || !done.run.is_root() {
        return;
    }
    let ending = match &done.ending {
        Ending::Reached {
            strength: Strength::Claimed,
            ..
        } => "reached, as the model claims",
        Ending::Reached { .. } => "reached",
        Ending::Failed { .. } => "failed",
        Ending::Limit { .. }
        | Ending::Waiting { .. }
        | Ending::Sleeping { .. }
        | Ending::Stuck { .. }
        | Ending::ModelUnreachable { .. }
        | Ending::Stopped { .. }
        | Ending::Interrupted => return,
    };
    let Some(goal) = goal(store, done).filter(|goal| goal.origin == Origin::Person) else {
        return;
    };
    if let Err(error) = vault.note_run(done.run, &goal.text, ending, now_ms()) {
        let _ = put(&format!("the memory does not name this run: {error}\n"));
    }
}

/// Returns the goal as the journal has it, without secrets.
fn goal(store: &Store, done: &Finished) -> Option<Text> {
    let started = StandingRun::read(store, done.run).ok()?.started;
    let reader = store.reader(&log_name(done.run)).ok()?;
    projection::stored(&started.goal, &reader).ok()
}
