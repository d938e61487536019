//! A worker among those that share a queue: its name, and what its machine has.

use std::{collections::BTreeSet, fmt, sync::Arc};

/// Returns whether a machine has a label. Asked each time, since it may change.
pub type HasLabel = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// A worker of a shared queue.
#[derive(Clone)]
pub struct QueueWorker {
    /// The unique name of the worker.
    pub name: String,
    /// The worker's machine. Folders of one machine are not those of another.
    pub machine: String,
    /// The version of the worker's program, as `0.1.0`.
    pub build: String,
    /// Tells whether the machine has a label.
    pub has: HasLabel,
}

impl fmt::Debug for QueueWorker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("QueueWorker").field(&self.name).finish()
    }
}

impl QueueWorker {
    /// Returns the labels in `needs` that the machine does not have.
    pub fn lacks<'a>(&self, needs: &'a BTreeSet<String>) -> Vec<&'a str> {
        let own = machine_label(&self.machine);
        let has = |need: &str| match need.strip_prefix(BUILD) {
            Some(least) => numbers(&self.build) >= numbers(least),
            None => need == own || (self.has)(need),
        };
        let lacking = needs.iter().map(String::as_str);
        lacking.filter(|need| !has(need)).collect()
    }
}

/// Prefix of the label that gives the version of a worker's program.
const BUILD: &str = "gyrus:";

/// Returns the label of programs of at least a version: what a newer one wrote, an older one may
/// not understand.
pub(super) fn build_label(least: &str) -> String {
    format!("{BUILD}{least}")
}

pub(super) fn later(one: Option<&str>, other: &str) -> String {
    match one {
        Some(one) if numbers(one) >= numbers(other) => one.to_owned(),
        _ => other.to_owned(),
    }
}

fn numbers(version: &str) -> Vec<u64> {
    let parts = version.split(|char: char| !char.is_ascii_digit());
    parts.filter_map(|part| part.parse().ok()).collect()
}

/// Maximum length of a label in bytes.
const MAX_LABEL: usize = 200;

/// Whether a text is a label: one word, as `gpu` or `region:eu`.
pub fn is_label(text: &str) -> bool {
    let is_fit = |char: char| !char.is_control() && !char.is_whitespace();
    (1..=MAX_LABEL).contains(&text.len()) && text.chars().all(is_fit)
}

/// Returns the label of one particular machine.
pub fn machine_label(machine: &str) -> String {
    format!("machine:{machine}")
}
