//! `gyrus trace`

use clap::Args;
use gyrus_kernel::log_name;

use crate::{Gyrus, exit::Code, failure::Failure};
use gyrus_surfaces::{output, trace};

/// Print a run as one line of JSON a step
///
/// Each line has step, phase, thought, tool_inputs, tool_outputs and timestamp; the same lines
/// that --trace appends while a run goes on.
#[derive(Args)]
pub(crate) struct Trace {
    /// The run: `last`, its id, or the start or end of it
    run: String,
}

impl Trace {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        let store = gyrus.store()?;
        let reader = store.reader(&log_name(gyrus_kernel::find_run(&store, &self.run)?))?;
        let mut out = output::standard();
        let mut trace = trace::Trace::default();
        for entry in reader.entries(1)? {
            if let Some(step) = trace.take(&entry?, &reader) {
                out.json(&step)?;
            }
        }
        Ok(Code::Reached)
    }
}
