//! A fleet of machines that work on one queue, as a server shows it that is one of its doors.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

/// The state of a fleet.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct FleetView {
    /// The address, without what proves who this is.
    pub address: String,
    /// The workers that answered when they were asked.
    pub workers: Vec<FleetWorkerView>,
    /// Number of commands that wait for their turn.
    pub waiting: usize,
    /// Number of commands that a worker has at work.
    pub at_work: usize,
    /// Number of commands whose runs are parked.
    pub parked: usize,
    /// Number of commands that are over, of those that are remembered.
    pub over: usize,
    /// Time for which the oldest command has waited that could begin, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oldest_ms: Option<i64>,
    /// The reason why nothing begins, if all runs are stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
    /// The first runs that are at work, and those that wait for a machine that is not there.
    pub runs: Vec<FleetRunView>,
}

/// A worker of a fleet.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct FleetWorkerView {
    /// Its name.
    pub name: String,
    /// Its machine.
    pub machine: String,
    /// The labels of its machine.
    pub labels: BTreeSet<String>,
    /// Maximum number of its runs at once.
    pub at_once: usize,
    /// Number of its runs.
    pub at_work: usize,
    /// Length of its leases in milliseconds.
    pub lease_ms: u64,
    /// The version of its program.
    pub build: String,
    /// The time at which it started, in UTC milliseconds.
    pub since_ms: i64,
}

/// A run of a fleet.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct FleetRunView {
    /// The run.
    pub run: String,
    /// The goal.
    pub goal: String,
    /// The worker that has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// The time since which the worker has it, in UTC milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since_ms: Option<i64>,
    /// The time of its last message to the servers, by their clock, in UTC milliseconds. A worker
    /// whose lease is over since then is dead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sign_ms: Option<i64>,
    /// The reason why no worker takes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
}
