//! A worker among those that share a queue: its name, and what its machine has.

use std::{collections::BTreeSet, fmt, sync::Arc};

/// Returns whether a machine has what a label names. Asked each time, since it may change.
pub type HasLabel = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// A worker among those that share a queue.
#[derive(Clone)]
pub struct QueueWorker {
    /// Its name, which no other one has.
    pub name: String,
    /// Its machine. Folders of one machine are not those of another.
    pub machine: String,
    /// The labels that the machine has.
    pub has: HasLabel,
}

impl fmt::Debug for QueueWorker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("QueueWorker").field(&self.name).finish()
    }
}

impl QueueWorker {
    /// Returns the labels among these that the machine does not have.
    pub fn lacks<'a>(&self, needs: &'a BTreeSet<String>) -> Vec<&'a str> {
        let own = machine_label(&self.machine);
        let lacking = needs
            .iter()
            .filter(|need| **need != own && !(self.has)(need));
        lacking.map(String::as_str).collect()
    }
}

/// Maximum length of a label in bytes.
const MAX_LABEL: usize = 200;

/// Whether a text is a label: one word, as `gpu` or `region:eu`.
pub fn is_label(text: &str) -> bool {
    let is_fit = |char: char| !char.is_control() && !char.is_whitespace();
    (1..=MAX_LABEL).contains(&text.len()) && text.chars().all(is_fit)
}

/// Returns the label that only one machine has.
pub fn machine_label(machine: &str) -> String {
    format!("machine:{machine}")
}
