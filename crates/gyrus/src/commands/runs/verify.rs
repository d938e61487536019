//! `gyrus runs verify`

use clap::Args;
use gyrus_contract::RunId;
use gyrus_journal::{ChainVerification, Error, Store};
use gyrus_kernel::{Register, log_name};
use gyrus_text::counted;

use super::super::run_argument::find;
use super::blobs::{CountPictures, needed};
use crate::{Gyrus, exit::Code, failure::Failure};
use gyrus_surfaces::output;

/// Check the chain of runs from their first entry to their last, and their blobs
///
/// In a finished run it finds whatever is missing or changed. It finds accidents; it does not
/// protect against a person who can write the files.
#[derive(Args)]
pub(crate) struct Verify {
    /// The runs: `last`, an id, or the start or end of one (default: all)
    runs: Vec<String>,
    /// Let `last` be the newest run of this machine, whatever its folder
    #[arg(long)]
    anywhere: bool,
}

impl Verify {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        let store = gyrus.store()?;
        let runs = if self.runs.is_empty() {
            gyrus_kernel::runs(&store)?
        } else {
            self.runs
                .iter()
                .map(|given| find(gyrus, &store, given, self.anywhere))
                .collect::<Result<_, _>>()?
        };
        let mut out = output::standard();
        let mut code = Code::Reached;
        for run in runs {
            match verify(&store, run) {
                Ok(found) => writeln!(out, "run {}: {}", run.short(), words(&found))?,
                Err(failure) => {
                    code = Code::Failed;
                    writeln!(out, "run {}: {}", run.short(), failure.message)?;
                }
            }
        }
        Ok(code)
    }
}

/// Checks the journal of a run, and that no blob is missing. Of a run without a seal, only those are
/// expected without which it cannot be replayed; its end is where the list of runs has noted one.
pub(super) fn verify(store: &Store, run: RunId) -> Result<ChainVerification, Failure> {
    let name = log_name(run);
    let found = store.verify(&name).map_err(damaged)?;
    if !found.is_sealed {
        let reader = store.reader(&name)?;
        for id in needed(&reader, CountPictures::Without)? {
            reader.blob(&id).map_err(damaged)?;
        }
        let last = reader.entries_back()?.next().transpose()?;
        let has_end = last.is_some_and(|last| last.kind == "run.ended");
        if !has_end && !Register::read(store)?.unfinished(store).contains(&run) {
            return Err(Failure::failed(
                "the list of runs has noted its end, and its journal ends before that",
            ));
        }
    }
    Ok(found)
}

/// Returns the failure for a damaged journal, with the part that can still be read.
fn damaged(error: Error) -> Failure {
    let entries = match &error {
        Error::Corrupt { seq, .. } if *seq > 1 => {
            format!("its entries up to {} can still be read", seq - 1)
        }
        Error::BadSeal { .. }
        | Error::BlobLost { .. }
        | Error::BlobMissing { .. }
        | Error::BlobDamaged { .. } => "all of its entries can still be read".to_owned(),
        _ => return error.into(),
    };
    Failure::from(error).hint(entries)
}

fn words(found: &ChainVerification) -> String {
    let erased = match found.erased {
        0 => String::new(),
        n => format!(", {n} of them erased"),
    };
    let blobs = counted(found.blobs, "blob");
    let finished = if found.is_sealed { ", finished" } else { "" };
    let tail = found.tail.map_or_else(String::new, |tail| {
        format!("; {} at the end", counted(tail.bytes, "unfinished byte"))
    });
    format!(
        "the chain holds, {}{erased}, {blobs}{finished}, head {}{tail}",
        counted(found.entries, "entry"),
        found.head
    )
}
