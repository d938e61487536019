//! `gyrus trace`

use clap::Args;
use gyrus_kernel::log_name;

use super::run_argument::RunArgument;
use crate::{Gyrus, exit::Code, failure::Failure};
use gyrus_surfaces::{output, trace};

/// Print a run as one line of JSON a step
///
/// Each line has step, phase, thought, tool_inputs, tool_outputs and timestamp; the same lines
/// that --trace appends while a run goes on.
#[derive(Args)]
pub(crate) struct TraceCommand {
    #[command(flatten)]
    run: RunArgument,
}

impl TraceCommand {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        let store = gyrus.store()?;
        let reader = store.reader(&log_name(self.run.find(gyrus, &store)?))?;
        let mut out = output::standard();
        let mut trace = trace::TraceCollector::default();
        for entry in reader.entries(1)? {
            if let Some(step) = trace.take(&entry?, &reader) {
                out.json(&step)?;
            }
        }
        Ok(Code::Reached)
    }
}
