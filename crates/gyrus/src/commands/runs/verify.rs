//! `gyrus runs verify`

use clap::Args;
use gyrus_kernel::log_name;
use gyrus_text::counted;

use crate::{Gyrus, exit::Code, failure::Failure};
use gyrus_surfaces::output;

/// Check the chain of runs from their first entry to their last
///
/// It finds accidents. It does not protect from a person who can write the files.
#[derive(Args)]
pub(crate) struct Verify {
    /// The runs: `last`, an id, or the start or end of one (default: all)
    runs: Vec<String>,
}

impl Verify {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        let store = gyrus.store()?;
        let runs = if self.runs.is_empty() {
            gyrus_kernel::runs(&store)?
        } else {
            self.runs
                .iter()
                .map(|given| gyrus_kernel::find_run(&store, given))
                .collect::<Result<_, _>>()?
        };
        let mut out = output::standard();
        let mut code = Code::Reached;
        for run in runs {
            match store.verify(&log_name(run)) {
                Ok(found) => {
                    let erased = match found.erased {
                        0 => String::new(),
                        n => format!(", {n} of them erased"),
                    };
                    let tail = found.tail.map_or_else(String::new, |tail| {
                        format!("; {} at the end", counted(tail.bytes, "unfinished byte"))
                    });
                    writeln!(
                        out,
                        "run {}: the chain holds, {}{erased}, head {}{tail}",
                        run.short(),
                        counted(found.entries, "entry"),
                        found.head
                    )?;
                }
                Err(error) => {
                    code = Code::Failed;
                    writeln!(out, "run {}: {error}", run.short())?;
                }
            }
        }
        Ok(code)
    }
}
