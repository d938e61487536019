//! The result of a schedule, and the mistakes that are made on purpose.

use std::fmt;

/// A mistake that is made on purpose, to see that the properties find it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// The log does not look at the number that a writer expects.
    NoFencing,
    /// A successor does not wait until the worker before must be dead.
    NoWaiting,
    /// Messages of all writers share their names.
    SharedIds,
    /// Nothing ends a worker whose lease is over.
    NoKill,
    /// The log acknowledges what it can still lose.
    LazySync,
}

impl Flaw {
    /// All flaws.
    pub const ALL: [Self; 5] = [
        Self::NoFencing,
        Self::NoWaiting,
        Self::SharedIds,
        Self::NoKill,
        Self::LazySync,
    ];
}

/// A schedule in which a property does not hold.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub struct FailedFleetSchedule {
    /// The seed.
    pub seed: u64,
    /// The property.
    pub why: String,
    /// The end of what happened, oldest first.
    pub trace: Vec<String>,
}

impl fmt::Display for FailedFleetSchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}: {}", self.seed, self.why)?;
        for line in &self.trace {
            write!(f, "\n  {line}")?;
        }
        Ok(())
    }
}

/// Counts of what happened in schedules.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Number of entries that were acknowledged.
    pub entries: u64,
    /// Number of effects.
    pub effects: u64,
    /// Number of times that a run was taken from a worker that had not let it go.
    pub takeovers: u64,
    /// Number of processes that the machine killed when their lease was over.
    pub killed_at_deadline: u64,
    /// Number of processes that died before.
    pub crashes: u64,
    /// Number of appends that the log refused or was too busy for.
    pub refused: u64,
    /// Number of requests that got no answer in time.
    pub unanswered: u64,
    /// Number of events.
    pub events: u64,
    /// Longest time from a worker's death until another one drove its run, in thousandths of the
    /// lease, in schedules in which nothing else went wrong.
    pub longest_takeover: u64,
}

impl Outcome {
    /// Adds the counts of another schedule.
    pub fn add(&mut self, other: Self) {
        self.entries += other.entries;
        self.effects += other.effects;
        self.takeovers += other.takeovers;
        self.killed_at_deadline += other.killed_at_deadline;
        self.crashes += other.crashes;
        self.refused += other.refused;
        self.unanswered += other.unanswered;
        self.events += other.events;
        self.longest_takeover = self.longest_takeover.max(other.longest_takeover);
    }
}
