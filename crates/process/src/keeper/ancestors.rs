//! Detects processes below a keeper, which belong to a run's own command.
//!
//! A command of a run has a keeper among its ancestors, even if it changed its environment, its
//! session or its process group.

use std::fs;

use super::nursery::ARGUMENT;

/// Maximum number of ancestors that are examined; more than any process has.
const MAX_ANCESTORS: u32 = 1_000;

/// Whether a process or one of its ancestors is a keeper.
pub fn is_below_a_keeper(pid: u32) -> bool {
    let mut next = Some(pid);
    for _ in 0..MAX_ANCESTORS {
        let Some(pid) = next.filter(|pid| *pid != 0) else {
            return false;
        };
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let argument = line.split(|byte| *byte == 0).nth(1);
        if argument.is_some_and(|argument| argument == ARGUMENT.as_bytes()) {
            return true;
        }
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        next = status
            .lines()
            .find_map(|line| line.strip_prefix("PPid:"))
            .and_then(|parent| parent.trim().parse().ok());
    }
    false
}
