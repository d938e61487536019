//! The ledger of procedures: one for all, which every process opens only for as long as it writes.

use std::{thread, time::Duration};

use gyrus_journal::{Error as JournalError, Store};
use gyrus_runtime::{
    ledger::{Ledger, LedgerError},
    procedures::{KeptProcedure, KeptProcedures, PROCEDURE_LEDGER, ProcedureFact},
};

use crate::failure::Failure;

/// Maximum number of attempts to open the ledger while another process writes to it, which takes
/// milliseconds.
const TRIES: u32 = 100;

/// Time between two attempts.
const PAUSE: Duration = Duration::from_millis(50);

pub(crate) fn kept(store: &Store) -> Result<KeptProcedures, Failure> {
    Ok(Ledger::read(store, PROCEDURE_LEDGER)?)
}

/// Adds the facts that `decide` finds right for the state on disk. When this returns, they are on
/// disk. Two processes at once change it one after the other.
pub(crate) fn change(
    store: &Store,
    decide: impl Fn(&KeptProcedures) -> Vec<ProcedureFact>,
) -> Result<(), Failure> {
    for tried in 1.. {
        match Ledger::<KeptProcedures>::open(store, PROCEDURE_LEDGER) {
            Ok(mut ledger) => {
                let facts = decide(ledger.state());
                if !facts.is_empty() {
                    ledger.append(facts)?;
                    ledger.writer().barrier_blocking()?;
                }
                return Ok(());
            }
            Err(LedgerError::Journal(JournalError::Held { .. })) if tried < TRIES => {
                thread::sleep(PAUSE);
            }
            Err(error) => return Err(error.into()),
        }
    }
    unreachable!("the last attempt returns")
}

pub(crate) fn named<'a>(
    kept: &'a KeptProcedures,
    name: &str,
) -> Result<&'a KeptProcedure, Failure> {
    kept.get(name).ok_or_else(|| {
        let names = kept.all().map(|(name, _)| name);
        let hint = match gyrus_text::closest(name, names) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "to see all: gyrus procedures list".to_owned(),
        };
        Failure::usage(format!("there is no procedure `{name}`")).hint(hint)
    })
}
