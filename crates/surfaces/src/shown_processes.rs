//! The background processes of a run, as far as its journal tells: from the call that put a command
//! there to the one that saw its end.

use std::collections::BTreeMap;

use gyrus_contract::{EffectId, RunId};
use gyrus_journal::{LogEntry, LogReader, Store};
use gyrus_kernel::{Entry, RunState, Stop, log_name};
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
    /// Calls of commands without a result.
    open: BTreeMap<EffectId, ShownProcess>,
}

impl ShownProcesses {
    /// Reads the processes of a run that a process of gyrus drives; those of another have ended.
    pub fn read(store: &Store, run: RunId) -> Vec<ShownProcess> {
        let mut shown = Self::default();
        let is_running = matches!(RunState::of(store, run), Ok(RunState::Running(_)));
        let reader = store.reader(&log_name(run));
        let Some(reader) = reader.ok().filter(|_| is_running) else {
            return Vec::new();
        };
        for entry in reader.entries(1).into_iter().flatten().flatten() {
            if let Ok(parsed) = gyrus_kernel::parse(&entry) {
                shown.take(&entry, &parsed, &reader);
            }
        }
        shown.processes
    }

    /// Returns the processes, the oldest first.
    pub fn list(&self) -> &[ShownProcess] {
        &self.processes
    }

    /// Takes an entry of the run.
    pub fn take(&mut self, entry: &LogEntry, parsed: &Entry, reader: &LogReader) {
        match parsed {
            Entry::ToolCalled(called) => {
                let Some(line) = called.call.arguments["command"].as_str() else {
                    return;
                };
                let process = ShownProcess {
                    name: called.effect.to_string(),
                    line: one_line(line.trim()).into_owned(),
                    since_ms: entry.at_ms,
                };
                self.open.insert(called.effect.clone(), process);
            }
            Entry::ToolResulted(resulted) => {
                let call = self.open.remove(&resulted.effect);
                let value = resulted.value.as_ref().filter(|_| call.is_some());
                let value = value
                    .and_then(|value| value.read(|id| reader.blob(id).map_err(Stop::from)).ok());
                let Some(value) = value else { return };
                let (Some(name), Some(goes_on)) =
                    (value["process"].as_str(), value["goes_on"].as_bool())
                else {
                    return;
                };
                if !goes_on {
                    self.ended(name);
                }
                // A later look at a process is a call of another name.
                self.processes
                    .extend(call.filter(|call| goes_on && call.name == name));
            }
            Entry::RunResumed(_) | Entry::RunParked(_) | Entry::RunEnded(_) => {
                *self = Self::default()
            }
            _ => {}
        }
    }

    /// Takes the end of a process.
    pub fn ended(&mut self, name: &str) {
        self.processes.retain(|process| process.name != name);
    }
}
