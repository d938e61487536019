//! Ending a run for good that waits to be resumed.

use gyrus_contract::{Principal, RunId};
use gyrus_journal::{LockWait, Store};

use crate::{
    Ending, KernelError, RunEnded, family, log::RunLog, position::RunPosition, register, runs,
    standing,
};

/// Ends a run that no process drives, and its children, so that none of them can be resumed.
/// Nothing is undone. Returns the runs that were ended.
///
/// # Errors
/// Returns an error when the run is over or a record, when a process drives it, when it was started by another
/// run, which has to be given up instead, or when its journal cannot be read or written.
pub async fn give_up(store: &Store, run: RunId, by: &Principal) -> Result<Vec<RunId>, KernelError> {
    let mut ended = Vec::new();
    runs::check_not_record(store, run)?;
    for member in family(store, run)? {
        let (writer, _) = runs::take(store, member, LockWait::IfFree)?;
        let position = RunPosition::read(member, &writer.reader()?)?;
        if member == run
            && let Some(parent) = &position.started.parent
        {
            return Err(KernelError::NotARun {
                run,
                reason: format!("it belongs to run {}, which has to be given up", parent.run),
            });
        }
        match position.over() {
            Some((ending, _)) if member == run => {
                let what = crate::summary(&ending);
                return Err(KernelError::Over { run, what });
            }
            Some(_) => continue,
            None => {}
        }
        let ending = Ending::Failed {
            reason: format!("{by} gave it up"),
            denied: Vec::new(),
        };
        let spent = standing::spent(store, member)?;
        let log = RunLog::live(writer)?;
        log.append(RunEnded { ending, spent })?;
        log.seal().await?;
        register::over(store, member);
        ended.push(member);
    }
    Ok(ended)
}
