//! Questions about what cannot be taken back.

use gyrus_surfaces::terminal;

use crate::failure::Failure;

/// Asks the person at the terminal for confirmation, unless a flag gives it.
///
/// # Errors
/// Returns an error when the answer is no, or when nobody can be asked.
pub(crate) fn confirm(what: &str, yes: bool) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    if !terminal::can_ask() {
        return Err(
            Failure::usage(format!("to {what}, you must be asked first"))
                .hint("it needs your yes: do it at a terminal, or say it beforehand with --yes"),
        );
    }
    if terminal::says_yes(&format!("{what}? [y/N] "))? {
        Ok(())
    } else {
        Err(Failure::failed("nothing was done"))
    }
}
