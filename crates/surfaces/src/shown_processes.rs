//! The background processes of a run, as far as its journal tells: from the call that put a command
//! there to the one that saw its end.

use std::collections::BTreeMap;

use gyrus_contract::{EffectId, RunId};
use gyrus_journal::{LogEntry, Store};
use gyrus_kernel::{Entry, Inline, RunState, log_name};
use gyrus_text::one_line;

/// A process that goes on.
#[derive(Debug, Clone)]
pub struct ShownProcess {
    pub name: String,
    /// The command on one line.
    pub line: String,
    /// The time of the call that started it, in milliseconds.
    pub since_ms: i64,
}

/// The processes that go on.
#[derive(Debug, Default)]
pub struct ShownProcesses {
    processes: Vec<ShownProcess>,
    /// Those that went on when the run last stopped.
    dropped: Vec<ShownProcess>,
    /// Calls of commands without a result.
    open: BTreeMap<EffectId, ShownProcess>,
}

impl ShownProcesses {
    /// Reads the processes of a run that a process of gyrus drives; those of another have ended.
    pub fn read(store: &Store, run: RunId) -> Vec<ShownProcess> {
        match RunState::of(store, run) {
            Ok(RunState::Running(_)) => Self::of_entries(store, run).processes,
            Ok(_) | Err(_) => Vec::new(),
        }
    }

    /// Reads the processes that ended with a run, whose changes were dropped.
    pub fn ended_with(store: &Store, run: RunId) -> Vec<ShownProcess> {
        Self::of_entries(store, run).dropped
    }

    fn of_entries(store: &Store, run: RunId) -> Self {
        let mut shown = Self::default();
        let reader = store.reader(&log_name(run)).ok();
        let entries = reader.and_then(|reader| reader.entries(1).ok());
        for entry in entries.into_iter().flatten().flatten() {
            if let Ok(parsed) = gyrus_kernel::parse(&entry) {
                shown.take(&entry, &parsed);
            }
        }
        shown
    }

    /// Returns the processes, the oldest first.
    pub fn list(&self) -> &[ShownProcess] {
        &self.processes
    }

    /// Takes an entry of the run.
    pub fn take(&mut self, entry: &LogEntry, parsed: &Entry) {
        if let Entry::ToolCalled(called) = parsed {
            if let Some(line) = called.call.arguments["command"].as_str() {
                let process = ShownProcess {
                    name: called.effect.to_string(),
                    line: one_line(line.trim()).into_owned(),
                    since_ms: entry.at_ms,
                };
                self.open.insert(called.effect.clone(), process);
            }
        } else if let Entry::ToolResulted(resulted) = parsed {
            if let Some(call) = self.open.remove(&resulted.effect)
                && let Some(Inline::Is(value)) = &resulted.value
                && let Some(name) = value["process"].as_str()
            {
                // A later look at a process is a call of another name.
                if value["goes_on"] == false {
                    self.ended(name);
                } else if call.name == name {
                    self.processes.push(call);
                }
            }
        } else if matches!(
            parsed,
            Entry::RunResumed(_) | Entry::RunParked(_) | Entry::RunEnded(_)
        ) {
            *self = Self {
                dropped: std::mem::take(&mut self.processes),
                ..Self::default()
            };
        }
    }

    /// Takes the end of a process.
    pub fn ended(&mut self, name: &str) {
        self.processes.retain(|process| process.name != name);
    }
}
