//! Killing all work in some stores: every process that holds a run, and every keeper that a run
//! recorded and that may still be alive.
//!
//! Processes are killed, not asked, and through their identity, so that a later process with the
//! same number is never hit. The death of a run's process ends its commands, by their keepers;
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
use gyrus_journal::{Error, Holder, LogName, Reader, Store};
use gyrus_process::{ProcessIdentity, keeper};

use crate::{Entry, RUNS, log};

/// Interval after which the processes found so far are killed, even if the search goes on.
const WAVE: Duration = Duration::from_millis(50);

/// Maximum number of threads that search. A log whose holder has not written its record is waited
/// for, which must not delay the others.
const LOOKERS: usize = 8;

/// The result of stopping everything.
#[derive(Debug, Default)]
pub struct Stopped {
    /// The killed processes, with the runs that each held.
    pub processes: Vec<(ProcessIdentity, Vec<RunId>)>,
    /// Number of killed process trees of commands.
    pub commands: usize,
    /// Processes that could not be killed, and runs whose holder is unknown.
    pub left: Vec<Left>,
}

/// Something that may still be working.
#[derive(Debug)]
pub enum Left {
    /// A process that holds a run, or keeps its command.
    Process {
        /// The process.
        process: ProcessIdentity,
        /// The reason why it is still there.
        why: String,
    },
    /// A run whose holder is unknown.
    Run {
        /// Its log.
        run: String,
        /// The reason.
        why: String,
    },
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Left::Process { process, why } => write!(f, "process {}: {why}", process.pid),
            Left::Run { run, why } => write!(f, "run {run}: {why}"),
        }
    }
}

/// Kills every process that holds a run of these stores, and the process trees of their commands,
/// and waits until they have ended, at most for `timeout`. The latch must be set before.
pub fn stop_all(stores: &[Store], timeout: Duration) -> Stopped {
    let deadline = Instant::now() + timeout;
    let mut stopped = Stopped::default();
    let mut logs = Vec::new();
    for store in stores {
        match store.names(RUNS) {
            // Runs with work in progress are likely to be among the newest.
            Ok(names) => logs.extend(names.into_iter().rev().map(|name| (store, name))),
            Err(error) => stopped.left.push(Left::Run {
                run: format!("in {}", store.root().display()),
                why: error.to_string(),
            }),
        }
    }
    let held = kill_holders(&logs, &mut stopped);
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
        stopped.left.push(Left::Process { process, why });
    }
    stopped
}

impl Left {
    fn is(&self, other: &ProcessIdentity) -> bool {
        matches!(self, Left::Process { process, .. } if process == other)
    }
}

/// Finds the holders of runs and kills them, in waves. Returns the logs that were held.
fn kill_holders(logs: &[(&Store, LogName)], stopped: &mut Stopped) -> HashSet<LogName> {
    let mut held = HashSet::new();
    let mut found: BTreeMap<u32, (ProcessIdentity, Vec<RunId>)> = BTreeMap::new();
    let mut killed = 0;
    let next = AtomicUsize::new(0);
    let (say, heard) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..LOOKERS.min(logs.len()) {
            let (say, next) = (say.clone(), &next);
            scope.spawn(move || look(logs, next, &say));
        }
        drop(say);
        let mut wave = Instant::now() + WAVE;
        loop {
            let left = wave.saturating_duration_since(Instant::now());
            match heard.recv_timeout(left) {
                Ok((name, Ok(holder))) => {
                    let process = holder.process;
                    let runs = &mut found
                        .entry(process.pid)
                        .or_insert_with(|| (process.clone(), Vec::new()))
                        .1;
                    runs.extend(name.id().parse::<RunId>().ok());
                    held.insert(name);
                }
                Ok((name, Err(error))) => stopped.left.push(Left::Run {
                    run: name.id().to_owned(),
                    why: error.to_string(),
                }),
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    if killed < found.len() {
                        kill(found.values().map(|(process, _)| process), stopped);
                        killed = found.len();
                    }
                    wave = Instant::now() + WAVE;
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
            }
        }
        if killed < found.len() {
            kill(found.values().map(|(process, _)| process), stopped);
        }
    });
    stopped.processes = found.into_values().collect();
    held
}

type Found = (LogName, Result<Holder, Error>);

fn look(logs: &[(&Store, LogName)], next: &AtomicUsize, say: &mpsc::Sender<Found>) {
    while let Some((store, name)) = logs.get(next.fetch_add(1, Ordering::Relaxed)) {
        let holder = match store.holder(name) {
            Ok(Some(holder)) => Ok(holder),
            // A run that is removed meanwhile does nothing any more.
            Ok(None) | Err(Error::NotFound { .. }) => continue,
            Err(error) => Err(error),
        };
        if say.send((name.clone(), holder)).is_err() {
            return;
        }
    }
}

fn kill<'a>(processes: impl Iterator<Item = &'a ProcessIdentity>, stopped: &mut Stopped) {
    let me = std::process::id();
    for process in processes {
        let why = if process.pid == me {
            "it is the one that stops the others".to_owned()
        } else {
            match process.kill() {
                Ok(()) => continue,
                Err(error) => format!("it cannot be killed: {error}"),
            }
        };
        if !stopped.left.iter().any(|left| left.is(process)) {
            let process = process.clone();
            stopped.left.push(Left::Process { process, why });
        }
    }
}

/// Returns the keepers of calls that have begun and not ended, as far as the journal tells. Other
/// keepers die with the process that started them.
fn keepers(store: &Store, name: &LogName, was_held: bool) -> Vec<ProcessIdentity> {
    let mut keepers = BTreeMap::new();
    if let Ok(reader) = store.reader(name) {
        // Reading stops at an entry that cannot be read; the keepers found so far count.
        let _ = open_calls(&reader, was_held, &mut keepers);
    }
    keepers.into_values().collect()
}

fn open_calls(
    reader: &Reader,
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
