//! Whether this process was started by a run's own command: then it speaks for no person.
//!
//! A command of a run has a keeper among its ancestors, whatever it did to its environment, its
//! session or its process group. It could still write into the state folder by other means; that
//! is the sandbox's business.

use std::fs;

use gyrus_process::keeper;

use crate::failure::Failure;

/// More ancestors than any process has.
const MAX_ANCESTORS: u32 = 1_000;

/// Refuses to do `what` for a run's own command.
pub(crate) fn refuse(what: &str) -> Result<(), Failure> {
    // As /proc numbers it, which may be from outside a namespace.
    let own = fs::read_link("/proc/self")
        .ok()
        .and_then(|pid| pid.to_str()?.parse().ok());
    if own.is_some_and(is_below_a_keeper) {
        return Err(Failure::usage(format!("a command of a run cannot {what}"))
            .hint("do it from a terminal of your own"));
    }
    Ok(())
}

/// Whether a process or one that it comes from is a keeper.
pub(crate) fn is_below_a_keeper(pid: u32) -> bool {
    let mut next = Some(pid);
    for _ in 0..MAX_ANCESTORS {
        let Some(pid) = next.filter(|pid| *pid != 0) else {
            return false;
        };
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let argument = line.split(|byte| *byte == 0).nth(1);
        if argument.is_some_and(|argument| argument == keeper::ARGUMENT.as_bytes()) {
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
