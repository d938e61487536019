//! `gyrus replay`

use std::time::Instant;

use clap::Args;
use gyrus_text::counted;

use super::run_argument::RunArgument;
use crate::{Gyrus, drive, exit::Code, failure::Failure, kernels};
use gyrus_surfaces::output;

/// Run a run again from its journal alone
///
/// No model is asked, no tool called, nothing written: everything is answered from the journal,
/// and every step must come to the same end.
#[derive(Args)]
pub(crate) struct ReplayCommand {
    #[command(flatten)]
    run: RunArgument,
}

impl ReplayCommand {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        let home = gyrus.home()?;
        let store = home.store()?;
        let run = self.run.find(gyrus, &store)?;
        let kernel = kernels::silent_kernel(&home, store, run)?;
        let began = Instant::now();
        let runtime = drive::runtime()?;
        let replayed = runtime.block_on(kernel.replay(run))?;
        let took = began.elapsed();
        let mut out = output::standard();
        let rate = replayed.entries as f64 / took.as_secs_f64().max(f64::EPSILON);
        let abandoned = match replayed.abandoned {
            0 => String::new(),
            n => format!(", {n} given up at the time"),
        };
        let open = if replayed.unfinished {
            ", the last one unfinished"
        } else {
            ""
        };
        writeln!(
            out,
            "run {}: {}, {}{abandoned}{open}; {}; {:.1} ms, {rate:.0} entries/s",
            run.short(),
            counted(replayed.entries, "entry"),
            counted(replayed.cycles, "step"),
            counted(replayed.differences.len(), "difference"),
            took.as_secs_f64() * 1000.0,
        )?;
        for difference in &replayed.differences {
            writeln!(out, "  {difference}")?;
        }
        Ok(Code::reached_if(replayed.differences.is_empty()))
    }
}
