//! The memory around a run: what it is given of it at its start, and what is noted at its end.

use gyrus::runtime::Home;
use gyrus_contract::{MemoryExtent, Origin, RunId, Strength, Text};
use gyrus_journal::Store;
use gyrus_kernel::{Attachment, Ending, StandingRun, log_name};
use gyrus_memory::MAX_CONTEXT_TOKENS;
use gyrus_surfaces::{console::put, projection};

use crate::{config::Config, failure::Failure, time::now_ms};

/// Part of a run's limit of tokens that the memory may take, as a divisor.
const OF_LIMIT: u64 = 10;

/// Returns the attachments from the memory for a run: all that is about its goal, and a digest.
/// Only goals of a person, or of the program, look into the memory. One that cannot be read is
/// reported, and the run goes on without it. `limit` is the run's limit of tokens.
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

/// Notes in the memory how and when a person's run ended. Repeating it changes nothing.
pub(crate) fn note_end(
    home: &Home,
    store: &Store,
    config: &Config,
    (run, ending, at_ms): (RunId, &Ending, i64),
) -> Result<(), Failure> {
    let is_wanted = config.memory.note_runs != Some(false);
    let vault = home.vault.as_ref().filter(|vault| vault.exists());
    let Some(vault) = vault.filter(|_| is_wanted) else {
        return Ok(());
    };
    let ending = match ending {
        Ending::Reached {
            strength: Strength::Answered,
            ..
        } => "answered",
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
        | Ending::Interrupted => return Ok(()),
    };
    // As the journal has it, without secrets.
    let started = StandingRun::read(store, run)?.started;
    let goal = projection::stored(&started.goal, &store.reader(&log_name(run))?).ok();
    let Some(goal) = goal.filter(|goal| goal.origin == Origin::Person) else {
        return Ok(());
    };
    vault
        .note_run(run, &goal.text, ending, at_ms)
        .map_err(|error| Failure::failed("the memory does not name the run").because(&error))
}
