//! `gyrus dot`: a dot on the person's desktop that tells what runs do, takes the key that stops them,
//! and opens gyrus where the person is.

mod popover;
mod questions;

use std::time::{Duration, Instant};

use gyrus_contract::RunId;
use gyrus_journal::{Store, os::watch};
use gyrus_kernel::log_name;
use gyrus_screen::{DotEvent, DotState, StatusDot};
use gyrus_server::{FoundRuns, Heads, RunWord};
use gyrus_surfaces::{
    console::put,
    phases::{Phase, Phases},
};
use gyrus_text::plural;

use crate::{Gyrus, commands::stop, drive, exit::Code, failure::Failure, stopped};
use popover::Popover;
use questions::QuestionNotices;

/// Number of the last entries of a run that are read to find its part of the cycle.
const ENTRIES: u64 = 40;

/// Time after which a question that could not be shown is shown again.
const PAUSE: Duration = Duration::from_secs(5);

/// Shows the dot until the program is interrupted.
pub(crate) fn show(gyrus: &Gyrus, display: &str) -> Result<Code, Failure> {
    gyrus.home()?.create_state()?;
    let store = gyrus.store()?;
    drive::runtime()?.block_on(follow(gyrus, &store, display))
}

async fn follow(gyrus: &Gyrus, store: &Store, display: &str) -> Result<Code, Failure> {
    let latch = gyrus.home()?.latch();
    let folder = latch.path().parent().unwrap_or(store.root()).to_owned();
    let mut latch_changes = watch::watch(&folder)?;
    let heads = Heads::follow(store, FoundRuns::look(store)?);
    let mut changes = heads.changes();
    let mut dot = StatusDot::open(display).map_err(Failure::failed)?;
    put(&format!("a dot is shown on {display}; Ctrl-C ends it\n"))?;
    let mut questions = QuestionNotices::new(store);
    let mut missing = String::new();
    let mut popover = Popover::on(display);
    loop {
        let (state, words) = match latch.check() {
            Ok(()) => at_work(&heads, store),
            Err(latched) => (DotState::Stopped, format!("; {}", stopped::words(&latched))),
        };
        dot.show(state, &words).map_err(Failure::failed)?;
        let is_used = dot.is_display_used().map_err(Failure::failed)?;
        let waiting = waiting(&heads);
        let shown = tokio::select! {
            shown = questions.show(&waiting, is_used) => shown,
            // A service that is slow does not delay the key that stops.
            event = dot.next() => {
                heard(event.map_err(Failure::failed)?, gyrus, (state, &words), &mut popover)?;
                continue;
            }
        };
        let tries_again = shown.is_err() && !waiting.is_empty();
        let before = std::mem::replace(&mut missing, shown.err().unwrap_or_default());
        if !missing.is_empty() && missing != before {
            put(&format!(
                "questions come without notifications: {missing}\n"
            ))?;
        }
        tokio::select! {
            event = dot.next() => {
                heard(event.map_err(Failure::failed)?, gyrus, (state, &words), &mut popover)?;
            }
            answered = questions.answered() => match answered {
                // What a run that uses the display could have clicked does not count.
                _ if dot.is_display_used().map_err(Failure::failed)? => popover.open(state)?,
                Some(answered) => answered.send(gyrus, store)?,
                None => popover.open(state)?,
            },
            changed = changes.changed() => if changed.is_err() {
                return Err(Failure::failed("the runs are no longer followed"));
            },
            () = latch_changes.changed() => {}
            () = tokio::time::sleep(PAUSE), if tries_again => {}
            interrupted = tokio::signal::ctrl_c() => {
                interrupted?;
                return Ok(Code::Reached);
            }
        }
    }
}

/// Does what the person wants by a key or a click.
fn heard(
    event: DotEvent,
    gyrus: &Gyrus,
    (state, words): (DotState, &str),
    popover: &mut Popover,
) -> Result<(), Failure> {
    match event {
        DotEvent::Stop(pressed) => stop(gyrus, pressed),
        DotEvent::Summoned => {
            put(&format!("{}{words}\n", state.word()))?;
            popover.open(state)
        }
    }
}

/// Stops everything, and prints how long after the key press that was done.
fn stop(gyrus: &Gyrus, pressed: Instant) -> Result<(), Failure> {
    let stopped = stop::everything(
        gyrus,
        "status dot",
        Some("the stop key was pressed".to_owned()),
    );
    put(&format!(
        "{} ms after the key\n",
        pressed.elapsed().as_millis()
    ))?;
    // What is said is no reason to take the dot away.
    if let Err(failure) = stopped {
        put(&format!("{failure}\n"))?;
    }
    Ok(())
}

/// Returns the runs that wait for answers.
fn waiting(heads: &Heads) -> Vec<RunId> {
    let live = heads.live().into_iter().filter_map(|run| heads.of(run));
    let waiting = live.filter(|head| head.questions > 0);
    waiting.map(|head| head.run).collect()
}

/// Maximum number of runs at work whose phases are read.
const READ_RUNS: usize = 16;

/// Returns the activity of the runs: a question comes before work, acting before thinking, and
/// among equals the newest run counts.
fn at_work(heads: &Heads, store: &Store) -> (DotState, String) {
    let mut live: Vec<_> = heads
        .live()
        .into_iter()
        .filter_map(|run| heads.of(run))
        .collect();
    live.sort_by_key(|head| head.run);
    let questions: usize = live.iter().map(|head| head.questions).sum();
    if questions > 0 {
        let words = format!("; {} for you", plural(questions, "question"));
        return (DotState::Waiting, words);
    }
    let running = live.iter().filter(|head| head.state == RunWord::Running);
    let newest = running.rev().take(READ_RUNS);
    let doing: Vec<_> = newest
        .map(|head| (state_of(store, head.run, head.seq), head.run))
        .collect();
    // The newest comes last among equals, as it should for `max_by_key`.
    let shown = doing.iter().rev().max_by_key(|(state, _)| urgency(*state));
    match shown {
        Some((state, run)) => (*state, format!("; run {}", run.short())),
        None => (DotState::Idle, String::new()),
    }
}

fn urgency(state: DotState) -> u8 {
    match state {
        DotState::Idle | DotState::Stopped => 0,
        DotState::Seeing => 1,
        DotState::Thinking => 2,
        DotState::Acting => 3,
        DotState::Waiting => 4,
    }
}

/// Returns the activity of a run that is at work and has come to this entry.
fn state_of(store: &Store, run: RunId, seq: u64) -> DotState {
    let mut phases = Phases::default();
    // A run that was removed meanwhile shows as idle until the next change.
    let read = store.reader(&log_name(run)).and_then(|reader| {
        for entry in reader.entries(seq.saturating_sub(ENTRIES).max(1))? {
            phases.take(&entry?);
        }
        Ok(())
    });
    let present = match read {
        Ok(()) => phases.spans().last().map_or(Phase::Idle, |span| span.phase),
        Err(_) => Phase::Idle,
    };
    match present {
        Phase::Think | Phase::Reflect => DotState::Thinking,
        // A look is on disk when it has ended, and a cycle begins with it.
        Phase::Idle | Phase::Perceive => DotState::Seeing,
        Phase::Ask => DotState::Waiting,
        Phase::Act => DotState::Acting,
    }
}
