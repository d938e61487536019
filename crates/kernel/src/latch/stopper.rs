//! Killing all work in some stores: every process that holds a run, and every keeper that a run
//! recorded and that may still be alive.
//!
//! A run that sees the latch stops by itself, writes down why, and tells its terminal: each has a
//! moment for that. Then processes are killed, not asked, and through their identity, so that a
//! later process with the same number is never hit. The death of a run's process ends its commands, by their keepers;
//! those are killed here too, so that nothing depends on a keeper that was suspended.

use std::{
    collections::{BTreeMap, HashSet},
    fmt,
    sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use gyrus_contract::{EffectId, RunId};
use gyrus_journal::{Error, Holder, LogName, LogReader, Store};
use gyrus_process::{ProcessIdentity, keeper};

use crate::{Ending, Entry, Register, log, log_name};

/// Interval at which the processes found so far are stopped, even if the search goes on.
const WAVE: Duration = Duration::from_millis(50);

/// Number of the newest runs that are searched for those that stopped by themselves.
const NEWEST: usize = 64;

/// Time limit for a process to stop by itself before it is killed.
const PATIENCE: Duration = Duration::from_secs(1);

/// Maximum number of threads that search. A log whose holder has not written its record is waited
/// for, which must not delay the others.
const LOOKERS: usize = 8;

/// The result of stopping everything.
#[derive(Debug, Default)]
pub struct StopResult {
    /// The processes that were at work, each with the runs that it held.
    pub processes: Vec<(ProcessIdentity, Vec<RunId>)>,
    /// Runs that stopped by themselves before their process was found.
    pub obeyed: Vec<RunId>,
    /// Number of killed process trees of commands.
    pub commands: usize,
    /// Processes that could not be killed, and runs whose holder is unknown.
    pub left: Vec<StillWorking>,
}

/// Something that may still be working.
#[derive(Debug)]
pub enum StillWorking {
    /// A process that holds a run, or the keeper of its command.
    Process {
        process: ProcessIdentity,
        /// The reason why the process is still there.
        why: String,
    },
    /// A run whose holder is unknown.
    Run { run: String, why: String },
}

impl fmt::Display for StillWorking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StillWorking::Process { process, why } => write!(f, "process {}: {why}", process.pid),
            StillWorking::Run { run, why } => write!(f, "run {run}: {why}"),
        }
    }
}

/// Ends every process that holds a run of these stores, with the process trees of their commands,
/// and waits for that at most for `timeout`. The latch must be set before: then processes stop by
/// themselves, and those that have not within a second are killed.
///
/// Runs that stopped after `since_ms` (UTC milliseconds) have obeyed this stop.
pub fn stop_all(stores: &[Store], since_ms: i64, timeout: Duration) -> StopResult {
    let deadline = Instant::now() + timeout;
    let mut stopped = StopResult::default();
    let mut logs = Vec::new();
    for store in stores {
        match Register::read(store) {
            // Runs with work in progress are likely to be among the newest.
            Ok(register) => {
                let unfinished = register.unfinished(store).into_iter().rev();
                logs.extend(unfinished.map(|run| (store, log_name(run))));
            }
            Err(error) => stopped.left.push(StillWorking::Run {
                run: format!("in {}", store.root().display()),
                why: error.to_string(),
            }),
        }
    }
    let held = end_holders(&logs, since_ms, &mut stopped);
    let keepers = logs
        .iter()
        .flat_map(|(store, name)| keepers(store, name, held.contains(name)));
    let mut alive = Vec::new();
    for identity in keepers {
        if identity.is_alive().unwrap_or(true) {
            // A keeper that is not in a namespace ends its tree itself, and nothing else can.
            let _ = keeper::kill_init(&identity);
            alive.push(identity);
        }
    }
    stopped.commands = alive.len();
    let processes = stopped.processes.iter().map(|(process, _)| process.clone());
    for process in processes.chain(alive).collect::<Vec<_>>() {
        if stopped.left.iter().any(|left| left.is(&process)) {
            continue;
        }
        let left = deadline.saturating_duration_since(Instant::now());
        let why = match process.wait_gone(left) {
            Ok(true) => continue,
            Ok(false) => format!("it was killed and is still there after {timeout:?}"),
            Err(error) => error.to_string(),
        };
        stopped.left.push(StillWorking::Process { process, why });
    }
    stopped
}

impl StillWorking {
    fn is(&self, other: &ProcessIdentity) -> bool {
        matches!(self, StillWorking::Process { process, .. } if process == other)
    }
}

/// Finds the holders of runs and kills those that do not stop by themselves, in waves. Returns the
/// logs that were held.
fn end_holders(
    logs: &[(&Store, LogName)],
    since_ms: i64,
    stopped: &mut StopResult,
) -> HashSet<LogName> {
    let mut held = HashSet::new();
    let mut found: BTreeMap<u32, (ProcessIdentity, Vec<RunId>)> = BTreeMap::new();
    let mut patient_until = BTreeMap::new();
    let next = AtomicUsize::new(0);
    let (say, heard) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..LOOKERS.min(logs.len()) {
            let (say, next) = (say.clone(), &next);
            scope.spawn(move || look(logs, since_ms, next, &say));
        }
        drop(say);
        let mut wave = Instant::now() + WAVE;
        loop {
            let left = wave.saturating_duration_since(Instant::now());
            match heard.recv_timeout(left) {
                Ok((name, Ok(None))) => stopped.obeyed.extend(name.id().parse::<RunId>().ok()),
                Ok((name, Ok(Some(holder)))) => {
                    let process = holder.process;
                    let until = Instant::now() + PATIENCE;
                    patient_until.entry(process.pid).or_insert(until);
                    let runs = &mut found
                        .entry(process.pid)
                        .or_insert_with(|| (process.clone(), Vec::new()))
                        .1;
                    runs.extend(name.id().parse::<RunId>().ok());
                    held.insert(name);
                }
                Ok((name, Err(error))) => stopped.left.push(StillWorking::Run {
                    run: name.id().to_owned(),
                    why: error.to_string(),
                }),
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    let now = Instant::now();
                    let due = found
                        .values()
                        .filter(|(process, _)| patient_until[&process.pid] <= now);
                    kill(due.map(|(process, _)| process), stopped);
                    wave = now + WAVE;
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
            }
        }
        for (process, _) in found.values() {
            let left = patient_until[&process.pid].saturating_duration_since(Instant::now());
            // One that cannot be waited for is killed at once.
            if !process.wait_gone(left).unwrap_or(false) {
                kill(std::iter::once(process), stopped);
            }
        }
    });
    stopped.processes = found.into_values().collect();
    held
}

/// A log with its holder; `None` if its run stopped by itself.
type HeldLog = (LogName, Result<Option<Holder>, Error>);

fn look(
    logs: &[(&Store, LogName)],
    since_ms: i64,
    next: &AtomicUsize,
    say: &mpsc::Sender<HeldLog>,
) {
    loop {
        let index = next.fetch_add(1, Ordering::Relaxed);
        let Some((store, name)) = logs.get(index) else {
            return;
        };
        let holder = match store.holder(name) {
            Ok(Some(holder)) => Ok(Some(holder)),
            Ok(None) if index < NEWEST && stopped_since(store, name, since_ms) => Ok(None),
            // A run that is removed meanwhile does nothing any more.
            Ok(None) | Err(Error::NotFound { .. }) => continue,
            Err(error) => Err(error),
        };
        if say.send((name.clone(), holder)).is_err() {
            return;
        }
    }
}

/// Whether the last entry of a run reports that it was stopped, and not before this time.
fn stopped_since(store: &Store, name: &LogName, since_ms: i64) -> bool {
    let last = || store.reader(name)?.entries_back()?.next().transpose();
    let last = last().ok().flatten().filter(|last| last.at_ms >= since_ms);
    matches!(last.as_ref().map(log::parse),
        Some(Ok(Entry::RunParked(parked))) if matches!(parked.ending, Ending::Stopped { .. }))
}

fn kill<'a>(processes: impl Iterator<Item = &'a ProcessIdentity>, stopped: &mut StopResult) {
    let me = std::process::id();
    for process in processes {
        let why = if process.pid == me {
            "it is the process that stops the others".to_owned()
        } else {
            match process.kill() {
                Ok(()) => continue,
                Err(error) => format!("it cannot be killed: {error}"),
            }
        };
        if !stopped.left.iter().any(|left| left.is(process)) {
            let process = process.clone();
            stopped.left.push(StillWorking::Process { process, why });
        }
    }
}

/// Returns the keepers of calls that the journal shows as begun and not ended. Other keepers die
/// with the process that started them.
fn keepers(store: &Store, name: &LogName, was_held: bool) -> Vec<ProcessIdentity> {
    let mut keepers = BTreeMap::new();
    if let Ok(reader) = store.reader(name) {
        // Reading stops at an entry that cannot be read; the keepers found so far count.
        let _ = open_calls(&reader, was_held, &mut keepers);
    }
    keepers.into_values().collect()
}

fn open_calls(
    reader: &LogReader,
    was_held: bool,
    keepers: &mut BTreeMap<(EffectId, u32), ProcessIdentity>,
) -> Result<(), Error> {
    let mut ended = Vec::new();
    for entry in reader.entries_back()? {
        let entry = entry?;
        match entry.kind.as_str() {
            "run.ended" | "run.parked" if !was_held => return Ok(()),
            "cycle.ended" | "cycle.dropped" | "run.started" => return Ok(()),
            "tool.result" | "tool.started" => {}
            _ => continue,
        }
        match log::parse(&entry) {
            Ok(Entry::ToolResulted(result)) => ended.push(result.effect),
            Ok(Entry::ToolStarted(started)) if !ended.contains(&started.effect) => {
                let call = (started.effect, started.attempt);
                keepers.extend(started.keeper.map(|keeper| (call, keeper)));
            }
            _ => {}
        }
    }
    Ok(())
}
