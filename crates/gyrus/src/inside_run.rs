//! Whether this process was started by a run's own command: then it speaks for no person.
//!
//! It could still write into the state folder by other means; that is the sandbox's business.

use std::fs;

use gyrus_process::keeper;

use crate::failure::Failure;

/// Refuses `what` to a command that a run started.
pub(crate) fn refuse(what: &str) -> Result<(), Failure> {
    // As /proc numbers it, which may be from outside a namespace.
    let own = fs::read_link("/proc/self")
        .ok()
        .and_then(|pid| pid.to_str()?.parse().ok());
    if own.is_some_and(keeper::is_below_a_keeper) {
        return Err(Failure::usage(format!("a command of a run cannot {what}"))
            .hint("do it from a terminal of your own"));
    }
    Ok(())
}
